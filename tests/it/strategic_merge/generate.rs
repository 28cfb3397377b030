//! Objects and patches at random, the same for the same seed.

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use super::shape::{Ids, KINDS, Shape};

/// An object and a patch for it.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) original: Value,
    pub(super) patch: Value,
}

/// Makes the pair of a seed. Every fourth may hold mistakes, large and small.
pub(super) fn pair(seed: u64) -> Pair {
    let mut random =
        Random { rng: StdRng::seed_from_u64(seed), mistakes: if seed.is_multiple_of(4) { 0.01 } else { 0.0 } };
    let kinds = [0, 0, 0, 0, 1, 1, 2, 2, 2, 3];
    let (api_version, kind, shape) = KINDS[kinds[random.below(kinds.len())]];
    let original = random.original(shape);
    let patch = random.change(shape, &original);
    Pair { api_version, kind, original, patch }
}

type Fields = &'static [(&'static str, Shape)];

/// The probability of a field, which is higher where the rest cannot be reached without it.
fn likely((name, _): &(&str, Shape), probability: f64) -> f64 {
    if ["spec", "template", "containers"].contains(name) { 0.95 } else { probability }
}

struct Random {
    rng: StdRng,
    /// The probability that something is wrong on purpose.
    mistakes: f64,
}

impl Random {
    fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    fn mistake(&mut self) -> bool {
        self.mistakes > 0.0 && self.chance(self.mistakes)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.rng.random_range(0..limit)
    }

    fn text(&mut self) -> String {
        format!("t{}", self.below(6))
    }

    fn texts(&mut self) -> Vec<String> {
        let mut texts: Vec<String> = (0..6).map(|number| format!("t{number}")).collect();
        texts.shuffle(&mut self.rng);
        texts.truncate(self.below(5));
        texts
    }

    /// A value that is of the wrong type almost everywhere.
    fn oddity(&mut self) -> Value {
        let odd =
            [json!(null), json!([]), json!({}), json!(1.5), json!(true), json!(["x", 1]), json!([[1]]), json!([null])];
        let more = [json!({"x": {"y": 1}}), json!([{"name": {"x": 1}}]), json!({"$patch": "merge"}), json!("odd")];
        odd.iter().chain(&more).collect::<Vec<_>>().choose(&mut self.rng).map_or(Value::Null, |odd| (*odd).clone())
    }

    fn id(&mut self, ids: Ids) -> Value {
        match ids {
            Ids::Texts(all) => json!(all[self.below(all.len())]),
            Ids::Numbers(all) => json!(all[self.below(all.len())]),
        }
    }

    fn original(&mut self, shape: Shape) -> Value {
        if self.mistake() {
            return self.oddity();
        }
        match shape {
            Shape::Text => self.text().into(),
            Shape::Number => self.below(9).into(),
            Shape::Texts => self.texts().into_iter().map(|key| (key, Value::from(self.text()))).collect(),
            Shape::Set | Shape::Atomic => self.texts().into(),
            Shape::Struct(fields) => self.fields(fields, 0.75).into(),
            Shape::AtomicMappings(fields) => {
                (0..self.below(3)).map(|_| Value::Object(self.fields(fields, 0.8))).collect()
            }
            Shape::Keyed(key, ids, fields) => {
                let count = self.below(5);
                let items = self.distinct(ids, count);
                let mut items: Vec<Value> = items.into_iter().map(|id| self.item(key, id, fields)).collect();
                if let Some(again) = items.choose(&mut self.rng).cloned().filter(|_| self.chance(0.07)) {
                    let at = self.below(items.len() + 1);
                    items.insert(at, again);
                }
                items.into()
            }
        }
    }

    fn fields(&mut self, fields: Fields, probability: f64) -> Map<String, Value> {
        let chosen: Vec<_> = fields.iter().filter(|field| self.chance(likely(field, probability))).collect();
        chosen.into_iter().map(|(name, shape)| ((*name).to_owned(), self.original(*shape))).collect()
    }

    fn distinct(&mut self, ids: Ids, count: usize) -> Vec<Value> {
        let mut distinct: Vec<Value> = Vec::new();
        for _ in 0..count {
            let id = self.id(ids);
            if !distinct.contains(&id) {
                distinct.push(id);
            }
        }
        distinct
    }

    fn item(&mut self, key: &str, id: Value, fields: Fields) -> Value {
        let mut item = self.fields(fields, 0.4);
        if !self.mistake() {
            item.insert(key.to_owned(), id);
        }
        item.into()
    }

    /// A patch of a value.
    fn change(&mut self, shape: Shape, original: &Value) -> Value {
        if self.mistake() {
            return self.oddity();
        }
        if self.chance(0.05) {
            return Value::Null;
        }
        match shape {
            Shape::Struct(fields) => self.change_fields(fields, original).into(),
            Shape::Texts => self.texts().into_iter().map(|key| (key, self.text_or_null())).collect(),
            Shape::Keyed(..) => Value::Null,
            plain => self.original(plain),
        }
    }

    fn text_or_null(&mut self) -> Value {
        if self.chance(0.3) { Value::Null } else { self.text().into() }
    }

    fn change_fields(&mut self, fields: Fields, original: &Value) -> Map<String, Value> {
        let mut patch = Map::new();
        let chosen: Vec<_> = fields.iter().filter(|field| self.chance(likely(field, 0.4))).collect();
        for (name, shape) in chosen {
            let before = original.get(name).unwrap_or(&Value::Null);
            match *shape {
                Shape::Keyed(key, ids, fields) => self.change_list(&mut patch, name, (key, ids, fields), before),
                Shape::Set => self.change_set(&mut patch, name, before),
                Shape::Atomic if self.chance(0.2) => self.order_plain(&mut patch, name, before),
                Shape::AtomicMappings(_) if self.mistake() => self.order_plain(&mut patch, name, before),
                shape => {
                    patch.insert((*name).to_owned(), self.change(shape, before));
                }
            }
        }
        if self.mistake() {
            patch.insert("bogus".to_owned(), self.oddity());
        }
        if self.chance(0.05) {
            self.retain(&mut patch, original);
        }
        if self.chance(0.02) {
            let directive = if self.mistake() { "merge" } else { ["delete", "replace"][self.below(2)] };
            patch.insert("$patch".to_owned(), directive.into());
        }
        patch
    }

    fn retain(&mut self, patch: &mut Map<String, Value>, original: &Value) {
        let mut names: Vec<&String> = patch.keys().filter(|name| !name.starts_with('$')).collect();
        let kept = original.as_object().into_iter().flat_map(Map::keys);
        names.extend(kept.filter(|_| self.rng.random_bool(0.5)));
        if self.mistakes > 0.0 && self.rng.random_bool(0.2) {
            names.pop();
        }
        let names = json!(names);
        patch.insert("$retainKeys".to_owned(), names);
    }

    fn change_list(&mut self, patch: &mut Map<String, Value>, name: &str, of: (&str, Ids, Fields), before: &Value) {
        let (key, ids, fields) = of;
        let known: Vec<Value> =
            before.as_array().into_iter().flatten().filter_map(|item| item.get(key)).cloned().collect();
        let count = self.below(4);
        let mut items: Vec<Value> = Vec::new();
        for id in self.distinct(ids, count) {
            let id = known.choose(&mut self.rng).filter(|_| self.rng.random_bool(0.5)).cloned().unwrap_or(id);
            let item = before.as_array().into_iter().flatten().find(|item| item.get(key) == Some(&id));
            for _ in 0..=usize::from(self.chance(0.1)) {
                items.push(self.change_item((key, id.clone(), fields), item.unwrap_or(&Value::Null)));
            }
        }
        if self.chance(0.05) {
            let at = self.below(items.len() + 1);
            items.insert(at, json!({"$patch": "replace"}));
        }
        if self.mistake() {
            items.push(self.oddity());
        }
        let wants_order = self.chance(0.25);
        if wants_order {
            let order = self.order(&items, known, key, ids);
            patch.insert(format!("$setElementOrder/{name}"), order);
        }
        if !wants_order || self.chance(0.8) {
            let value = if self.chance(0.04) { Value::Null } else { items.into() };
            patch.insert(name.to_owned(), value);
        }
    }

    fn change_item(&mut self, (key, id, fields): (&str, Value, Fields), before: &Value) -> Value {
        if self.chance(0.2) {
            return json!({"$patch": if self.mistake() { "remove" } else { "delete" }, key: id});
        }
        let mut item = self.change_fields(fields, before);
        // Of a directive for the item, the list that it is in takes notice.
        if let Some(directive) = item.get("$patch").filter(|_| self.chance(0.5)).cloned() {
            return json!({"$patch": directive, key: id});
        }
        item.remove("$patch");
        if let Some(Value::Array(names)) = item.get_mut("$retainKeys").filter(|_| self.rng.random_bool(0.9)) {
            names.push(json!(key));
        }
        if !self.mistake() {
            item.insert(key.to_owned(), id);
        }
        item.into()
    }

    /// An order that has the items of the patch in theirs, and others between them.
    fn order(&mut self, items: &[Value], known: Vec<Value>, key: &str, ids: Ids) -> Value {
        let mut order: Vec<Value> = Vec::new();
        let kept = items.iter().filter(|item| item.get("$patch").is_none()).filter_map(|item| item.get(key)).cloned();
        order.extend(kept);
        for id in known {
            if !order.contains(&id) && self.chance(0.7) {
                let at = self.below(order.len() + 1);
                order.insert(at, id);
            }
        }
        if self.chance(0.1) {
            order.push(self.id(ids));
        }
        if self.mistake() {
            order.shuffle(&mut self.rng);
        }
        if self.chance(0.05) {
            order.clear();
        }
        order.into_iter().map(|id| json!({key: id})).collect()
    }

    fn change_set(&mut self, patch: &mut Map<String, Value>, name: &str, before: &Value) {
        let (added, deleted) = (self.texts(), self.texts());
        if self.chance(0.3) {
            return self.order_plain(patch, name, before);
        }
        if self.chance(0.5) {
            // What is added and deleted at once depends on the order of a Go map.
            let deleted: Vec<&String> = deleted.iter().filter(|text| !added.contains(text)).collect();
            let deleted = if self.mistake() { self.oddity() } else { json!(deleted) };
            patch.insert(format!("$deleteFromPrimitiveList/{name}"), deleted);
        }
        if self.chance(0.7) {
            patch.insert(name.to_owned(), json!(added));
        }
    }

    fn order_plain(&mut self, patch: &mut Map<String, Value>, name: &str, before: &Value) {
        let added = self.texts();
        let mut order = json!(added).as_array().cloned().unwrap_or_default();
        for item in before.as_array().into_iter().flatten() {
            if !order.contains(item) && self.chance(0.7) {
                let at = self.below(order.len() + 1);
                order.insert(at, item.clone());
            }
        }
        if self.mistake() {
            order.shuffle(&mut self.rng);
        }
        if self.chance(0.05) {
            order.clear();
        }
        patch.insert(format!("$setElementOrder/{name}"), order.into());
        if self.chance(0.6) {
            patch.insert(name.to_owned(), json!(added));
        }
    }
}
