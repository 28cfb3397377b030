//! One field of a set: the way to it, the value there, and its name in the words of people.

use serde_json::{Map, Value};

use super::{children, position};
use crate::diff::{KEYS, Path, Segment, key_of, plain};

/// The way to a field, in the words of sets: `f:spec`, `f:ports`, `k:{"port":80}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) struct Leaf(Vec<String>);

impl Leaf {
    /// Names a field that is in no list.
    pub(in crate::plan) fn of(fields: &[&str]) -> Self {
        Self(fields.iter().map(|field| format!("f:{field}")).collect())
    }

    /// Returns the words of the way.
    pub(in crate::plan) fn words(&self) -> &[String] {
        &self.0
    }

    /// Returns what stands there in a body.
    pub(in crate::plan) fn value<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(body, |value, word| child(value, word))
    }

    /// Puts a value there, or takes what is there away; nothing is done where the place itself is not there.
    pub(in crate::plan) fn put(&self, body: &mut Value, value: Option<&Value>) {
        let Some((end, way)) = self.0.split_last() else { return };
        let parent = way.iter().try_fold(body, |value, word| {
            if let Some(field) = word.strip_prefix("f:") {
                return value.get_mut(field);
            }
            let list = value.as_array_mut()?;
            position(list, word).and_then(|position| list.get_mut(position))
        });
        let (Some(map), Some(field)) = (parent.and_then(Value::as_object_mut), end.strip_prefix("f:")) else { return };
        match value {
            Some(value) => drop(map.insert(field.to_owned(), value.clone())),
            None => drop(map.remove(field)),
        }
    }

    /// Returns the set that holds nothing else.
    pub(in crate::plan) fn set(&self) -> Value {
        self.0.iter().rev().fold(Map::new().into(), |below, word| Map::from_iter([(word.clone(), below)]).into())
    }

    /// Returns the name that people know it by; the elements of lists are read off a body.
    pub(in crate::plan) fn text(&self, body: &Value) -> String {
        let mut segments = Vec::new();
        let mut value = Some(body);
        for word in &self.0 {
            segments.push(match word.strip_prefix("f:") {
                Some(field) => Segment::Field(field.to_owned()),
                None => element(word, value.and_then(Value::as_array).map_or(&[], Vec::as_slice)),
            });
            value = value.and_then(|value| child(value, word));
        }
        Path(&segments).to_string()
    }
}

/// Returns the fields of a set that have no fields below them in it.
pub(in crate::plan) fn leaves(set: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(set, &mut Vec::new(), &mut found);
    found
}

/// Returns the fields of a set that are in it with all that they hold, whatever that is. What is in it beside what it
/// holds (`.`) is not among them.
pub(in crate::plan) fn wholes(set: &Value) -> Vec<Leaf> {
    let mut found = leaves(set);
    let node = |leaf: &Leaf| leaf.0.iter().try_fold(set, |node, word| node.get(word));
    found.retain(|leaf| node(leaf).and_then(Value::as_object).is_some_and(Map::is_empty));
    found
}

fn collect(set: &Value, way: &mut Vec<String>, found: &mut Vec<Leaf>) {
    for (word, below) in children(set) {
        way.push(word);
        if children(&below).is_empty() {
            found.push(Leaf(way.clone()));
        } else {
            collect(&below, way, found);
        }
        way.pop();
    }
}

/// Returns the fields of a body that no set holds: those of a list whose elements nothing identifies are one.
///
/// A set that holds a mapping and nothing in it may mean all of it, or the mapping alone; where the mapping is empty in
/// `live`, what the body has in it is new in any case.
pub(in crate::plan) fn unheld(body: &Value, set: &Value, live: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    walk(body, (set, Some(live)), &mut Vec::new(), &mut found);
    found
}

fn walk(value: &Value, (set, live): (&Value, Option<&Value>), way: &mut Vec<String>, found: &mut Vec<Leaf>) {
    let is_held = !way.is_empty() && set.is_object() && children(set).is_empty();
    let mut step = |word: String, below: &Value, value: &Value| {
        let live = live.and_then(|live| child(live, &word));
        way.push(word);
        walk(value, (below, live), way, found);
        way.pop();
    };
    match value {
        _ if is_held && !live.is_some_and(|live| value.is_object() && is_empty(live)) => {}
        Value::Object(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                let word = format!("f:{field}");
                let below = set.get(&word).unwrap_or(&Value::Null);
                step(word, below, value);
            }
        }
        Value::Array(list) if let Some(key) = key_of(&[list]).filter(|_| !list.is_empty()) => {
            for element in list {
                let mut words = set.as_object().into_iter().flatten();
                let held = words.find(|(word, _)| position(std::slice::from_ref(element), word).is_some());
                let own = || format!("k:{}", Value::from(Map::from_iter([(key.to_owned(), element[key].clone())])));
                let (word, below) = held.map_or_else(|| (own(), &Value::Null), |(word, below)| (word.clone(), below));
                step(word, below, element);
            }
        }
        _ => found.push(Leaf(way.clone())),
    }
}

/// Tells whether a value has nothing in it.
pub(in crate::plan) fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns what one word of a way leads to.
pub(in crate::plan) fn child<'a>(value: &'a Value, word: &str) -> Option<&'a Value> {
    if let Some(field) = word.strip_prefix("f:") {
        return value.get(field);
    }
    let list = value.as_array()?;
    list.get(position(list, word)?)
}

/// Returns the keys by which a word names an element.
pub(in crate::plan) fn keys(word: &str) -> Map<String, Value> {
    let keys = word.strip_prefix("k:").and_then(|json| serde_json::from_str::<Value>(json).ok());
    keys.as_ref().and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Names an element as differences do: by the first field that identifies it in its list.
fn element(word: &str, list: &[Value]) -> Segment {
    let Some(position) = position(list, word) else {
        let keys = keys(word);
        let named = KEYS.into_iter().find_map(|key| Some(Segment::Key(key, plain(keys.get(key)?))));
        let first = || keys.values().next().map_or_else(|| word.to_owned(), plain);
        return named.unwrap_or_else(|| Segment::Key("", first()));
    };
    match key_of(&[list]) {
        Some(key) => Segment::Key(key, plain(&list[position][key])),
        None => Segment::Index(position),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_found_where_a_set_says_it_is() {
        let body = json!({"spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 443}], "type": "X"}});
        let set = json!({"f:spec": {
            "f:ports": {".": {}, "k:{\"port\":443,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}, "f:gone": {},
        }});
        let found: Vec<_> = leaves(&set).iter().map(|leaf| (leaf.text(&body), leaf.value(&body).cloned())).collect();
        assert_eq!(found, [("spec.gone".to_owned(), None), ("spec.ports[b].name".to_owned(), Some(json!("b")))]);
        let rest: Vec<String> = unheld(&body, &set, &body).iter().map(|leaf| leaf.text(&body)).collect();
        assert_eq!(rest, ["spec.ports[a].name", "spec.ports[a].port", "spec.ports[b].port", "spec.type"]);
    }

    #[test]
    fn what_is_in_a_set_as_a_whole_is_told_from_what_only_holds_something() {
        let set = json!({"f:metadata": {"f:labels": {".": {}}}, "f:spec": {"f:selector": {}, "f:ports": {"k:{\"port\":80}": {".": {}}}}});
        assert_eq!(wholes(&set), [Leaf::of(&["spec", "selector"])]);
    }

    #[test]
    fn a_value_is_put_where_its_place_is() {
        let mut body = json!({"spec": {"containers": [{"name": "a"}]}});
        let leaf = |element: &str| Leaf(vec!["f:spec".into(), "f:containers".into(), element.into(), "f:tty".into()]);
        leaf("k:{\"name\":\"a\"}").put(&mut body, Some(&json!(true)));
        leaf("k:{\"name\":\"b\"}").put(&mut body, Some(&json!(true)));
        assert_eq!(body, json!({"spec": {"containers": [{"name": "a", "tty": true}]}}));
        leaf("k:{\"name\":\"a\"}").put(&mut body, None);
        assert_eq!(body, json!({"spec": {"containers": [{"name": "a"}]}}));
    }
}
