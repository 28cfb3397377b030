//! Layers of parameters, one over another.
//!
//! Which rule holds where is data (a [`Table`], read from the file of a pack), so that another parameter kind is
//! another table and not other code. Without a rule, mappings merge field by field and everything else is replaced by
//! the higher layer. An explicit `null` says nothing: it leaves what the lower layers said, unless the table is one by
//! which it takes that away, as in Helm's values.
//!
//! Inputs are never changed; every value of the result knows its [`origin::Origin`].

pub mod origin;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use origin::{Layer, Merged, MergedContent};

use crate::yaml::{Content, Node};

/// The rule by which two layers of one field become one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Rule {
    /// Mappings field by field; everything else is replaced. The rule where no other is given.
    #[default]
    Deep,
    /// As `Deep`, but an empty mapping in the higher layer clears what the lower one said.
    Keyed,
    /// The higher layer's items behind the lower one's; an empty list clears.
    Append,
    /// The higher layer's value as a whole.
    Replace,
    /// The higher layer's value, unless it is zero, false or empty.
    Nonzero,
    /// As `Deep`, but at most one of these fields may be left: the higher layer's choice drops the lower one's.
    Exclusive(Vec<String>),
    /// As `Deep`, but a higher layer that says one of the two and not the other clears the other.
    Coupled(String, String),
    /// Items that this field names: those of the higher layer stand in place of the lower one's of the same name, and
    /// behind the others. An empty list says nothing.
    ByKey(String),
    /// Nothing is left if both layers say something.
    Drop,
    /// The value of the lower layer, even if that is nothing: a mapping that both layers have keeps the lower one's
    /// field.
    Unmerged,
}

/// Rules by path.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rule: Rule,
    below: BTreeMap<String, Self>,
    /// Whether a null takes away what lower layers said.
    deletes: bool,
}

/// One line of a table: a path such as `kube.podTemplate.tolerations`, and its rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Line {
    /// Fields, separated by dots; several paths may share a rule.
    pub paths: Vec<String>,
    /// The rule.
    pub rule: Rule,
}

impl Table {
    /// Puts a table together; the last line about a path holds.
    pub fn new(lines: &[Line]) -> Self {
        let mut table = Self::default();
        for (path, line) in lines.iter().flat_map(|line| line.paths.iter().map(move |path| (path, line))) {
            let mut at = &mut table;
            for part in path.split('.').filter(|part| !part.is_empty()) {
                at = at.below.entry(part.to_owned()).or_default();
            }
            at.rule = line.rule.clone();
        }
        table
    }

    /// Sets whether a null takes away what lower layers said.
    #[must_use]
    pub fn deleting(self, deletes: bool) -> Self {
        Self { deletes, ..self }
    }

    /// Tells whether the items of a list go behind those of the layers below it.
    pub(crate) fn appends<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> bool {
        let at = path.into_iter().try_fold(self, |table, field| table.below.get(field));
        at.is_some_and(|table| table.rule == Rule::Append)
    }
}

/// Merges layers, the lowest first.
///
/// Merging is repeatable and has an identity: a layer that says nothing changes nothing.
pub fn merge(layers: &[Layer<'_>], table: &Table) -> Merged {
    merge_over(Merged::empty(), layers, table)
}

/// Merges layers over something that is merged already.
pub fn merge_over(lowest: Merged, layers: &[Layer<'_>], table: &Table) -> Merged {
    layers.iter().fold(lowest, |mut merged, layer| {
        if table.deletes {
            delete(&mut merged, layer.node);
        }
        over(merged, Merged::of(layer), table)
    })
}

/// Takes away the fields that are null in a layer.
fn delete(lower: &mut Merged, layer: &Node) {
    let MergedContent::Map(fields) = &mut lower.content else { return };
    for (key, field) in layer.fields() {
        if field.node.content == Content::Null {
            fields.remove(key);
        } else if let Some(below) = fields.get_mut(key) {
            delete(below, &field.node);
        }
    }
}

/// Puts one value over another.
pub fn over(lower: Merged, higher: Merged, table: &Table) -> Merged {
    if higher.is_null() {
        return lower;
    }
    if lower.is_null() {
        return higher;
    }
    match &table.rule {
        Rule::Keyed if higher.is_empty() => higher,
        Rule::Nonzero if higher.is_zero() => lower,
        Rule::Deep | Rule::Keyed | Rule::Nonzero => deep(lower, higher, table),
        Rule::Append => append(lower, higher),
        Rule::Replace => higher,
        Rule::Exclusive(fields) => exclusive(lower, higher, fields, table),
        Rule::Coupled(one, other) => coupled(lower, higher, (one, other), table),
        Rule::ByKey(_) if higher.is_empty() => lower,
        Rule::ByKey(key) => by_key(lower, higher, key),
        Rule::Drop => Merged::empty(),
        Rule::Unmerged => lower,
    }
}

/// Returns the paths at which two merged values differ; lists that append are equal in any order.
pub(crate) fn disagreements(one: &Merged, other: &Merged, table: &Table) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    disagree(one, other, table, &mut Vec::new(), &mut found);
    found
}

fn disagree(one: &Merged, other: &Merged, table: &Table, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let (absent, plain) = (Merged::empty(), Table::default());
    match (&one.content, &other.content) {
        (MergedContent::Map(fields), MergedContent::Map(others)) => {
            let keys: BTreeSet<&String> = fields.keys().chain(others.keys()).collect();
            for key in keys {
                let (one, other) = (fields.get(key).unwrap_or(&absent), others.get(key).unwrap_or(&absent));
                path.push(key.clone());
                disagree(one, other, table.below.get(key).unwrap_or(&plain), path, found);
                path.pop();
            }
        }
        (MergedContent::List(_), MergedContent::List(_))
            if table.rule == Rule::Append && sorted(one) == sorted(other) => {}
        _ if one.to_value() == other.to_value() => {}
        _ => found.push(path.clone()),
    }
}

/// Writes the items of a list, in an order that does not depend on theirs.
fn sorted(list: &Merged) -> Vec<String> {
    let mut items: Vec<String> = match &list.content {
        MergedContent::List(items) => items.iter().map(|item| item.to_value().to_string()).collect(),
        MergedContent::Leaf(_) | MergedContent::Map(_) => Vec::new(),
    };
    items.sort();
    items
}

fn deep(lower: Merged, higher: Merged, table: &Table) -> Merged {
    let nothing = Table::default();
    match (lower.content, higher.content) {
        (MergedContent::Map(mut fields), MergedContent::Map(above)) => {
            for (key, higher) in above {
                let table = table.below.get(&key).unwrap_or(&nothing);
                if table.rule == Rule::Unmerged {
                    continue;
                }
                let lower = fields.remove(&key).unwrap_or_else(Merged::empty);
                let merged = over(lower, higher, table);
                if !merged.is_null() {
                    fields.insert(key, merged);
                }
            }
            Merged { content: MergedContent::Map(fields), origin: lower.origin }
        }
        (_, content) => Merged { content, origin: higher.origin },
    }
}

fn append(lower: Merged, higher: Merged) -> Merged {
    if higher.is_empty() {
        return higher;
    }
    match (lower.content, higher.content) {
        (MergedContent::List(mut items), MergedContent::List(more)) => {
            items.extend(more);
            Merged { content: MergedContent::List(items), origin: lower.origin }
        }
        (_, content) => Merged { content, origin: higher.origin },
    }
}

fn by_key(mut lower: Merged, higher: Merged, key: &str) -> Merged {
    let name = |item: &Merged| item.get(key).map(Merged::to_value);
    if let (MergedContent::List(items), MergedContent::List(above)) = (&mut lower.content, &higher.content) {
        let named: Vec<Value> = above.iter().filter_map(name).collect();
        items.retain(|item| name(item).is_none_or(|name| !named.contains(&name)));
    }
    append(lower, higher)
}

fn exclusive(mut lower: Merged, higher: Merged, fields: &[String], table: &Table) -> Merged {
    if fields.iter().any(|field| higher.get(field).is_some()) {
        for field in fields {
            lower.remove(field);
        }
    }
    deep(lower, higher, table)
}

fn coupled(mut lower: Merged, higher: Merged, (one, other): (&str, &str), table: &Table) -> Merged {
    let says = |field: &str| higher.get(field).is_some_and(|value| !value.is_zero());
    for (said, unsaid) in [(one, other), (other, one)] {
        if says(said) && higher.get(unsaid).is_none() {
            lower.remove(unsaid);
        }
    }
    deep(lower, higher, table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;
    use origin::LayerName;
    use serde_json::json;

    /// Merges texts, the lowest first, with `rule` at the path `a`.
    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(rule: Rule, texts: &[&str], expected: Value) {
        let table = Table::new(&[Line { paths: vec!["a".into()], rule }]);
        let nodes: Vec<_> = texts.iter().map(|text| yaml::parse(text).expect(text).remove(0)).collect();
        let layers: Vec<_> = nodes.iter().map(|node| Layer::new(LayerName::Gateway, "a.yaml", node)).collect();
        assert_eq!(merge(&layers, &table).to_value(), json!({"a": expected}), "{texts:?}");
    }

    #[test]
    fn mappings_merge_field_by_field() {
        check(Rule::Deep, &["a: {x: 1, k: {z: 1}}", "a: {k: {w: 2}}"], json!({"x": 1, "k": {"z": 1, "w": 2}}));
        check(Rule::Deep, &["a: 1", "a: 0"], json!(0));
        check(Rule::Deep, &["a: 1", "a: null"], json!(1));
        check(Rule::Deep, &["a: {x: 1}", "a: {}"], json!({"x": 1}));
        check(Rule::Deep, &["a: [1, 2]", "a: [3]"], json!([3]));
    }

    #[test]
    fn an_empty_mapping_clears_a_keyed_one() {
        check(Rule::Keyed, &["a: {x: 1}", "a: {}"], json!({}));
        check(Rule::Keyed, &["a: {x: 1, k: 1}", "a: {k: 2}"], json!({"x": 1, "k": 2}));
    }

    #[test]
    fn lists_append_and_an_empty_one_clears() {
        check(Rule::Append, &["a: [1]", "a: [1, 2]"], json!([1, 1, 2]));
        check(Rule::Append, &["a: [1]", "a: []"], json!([]));
    }

    #[test]
    fn zero_does_not_override_a_nonzero_field() {
        check(Rule::Nonzero, &["a: 5", "a: 0"], json!(5));
        check(Rule::Nonzero, &["a: 5", "a: 7"], json!(7));
        check(Rule::Nonzero, &["a: x", "a: ''"], json!("x"));
    }

    #[test]
    fn one_choice_drops_the_other() {
        let rule = || Rule::Exclusive(vec!["exec".into(), "httpGet".into()]);
        check(rule(), &["a: {httpGet: {port: 1}, m: 1}", "a: {exec: {}}"], json!({"exec": {}, "m": 1}));
        check(
            rule(),
            &["a: {httpGet: {port: 1, path: /}}", "a: {httpGet: {port: 2}}"],
            json!({"httpGet": {"port": 2}}),
        );
        check(rule(), &["a: {httpGet: {port: 1}}", "a: {m: 2}"], json!({"httpGet": {"port": 1}, "m": 2}));
    }

    #[test]
    fn a_digest_clears_the_tag_below_it() {
        let rule = || Rule::Coupled("tag".into(), "digest".into());
        check(rule(), &["a: {tag: v1, r: x}", "a: {digest: d}"], json!({"digest": "d", "r": "x"}));
        check(rule(), &["a: {digest: d}", "a: {tag: v1}"], json!({"tag": "v1"}));
        check(rule(), &["a: {tag: v1}", "a: {tag: v2, digest: d}"], json!({"tag": "v2", "digest": "d"}));
        check(rule(), &["a: {tag: v1}", "a: {digest: ''}"], json!({"tag": "v1", "digest": ""}));
    }

    #[test]
    fn items_of_one_name_are_replaced_and_the_new_ones_go_behind() {
        let rule = || Rule::ByKey("id".into());
        let lower = "a: [{id: b, v: 1}, {id: c, v: 1}]";
        check(
            rule(),
            &[lower, "a: [{id: d, v: 2}, {id: b, v: 2}]"],
            json!([{"id": "c", "v": 1}, {"id": "d", "v": 2}, {"id": "b", "v": 2}]),
        );
        check(rule(), &[lower, "a: []"], json!([{"id": "b", "v": 1}, {"id": "c", "v": 1}]));
        check(rule(), &[lower, "a: [{id: b}]", "a: [{id: c}]"], json!([{"id": "b"}, {"id": "c"}]));
        check(rule(), &["a: [{v: 1}]", "a: [{v: 1}]"], json!([{"v": 1}, {"v": 1}]));
    }

    #[test]
    fn every_value_knows_who_said_it() {
        let (low, high) = ("a:\n  x: 1\n  k: 1\n", "a:\n  k: 2\n");
        let nodes: Vec<_> = [low, high].iter().map(|text| yaml::parse(text).expect(text).remove(0)).collect();
        let layers =
            [Layer::new(LayerName::Class, "c.yaml", &nodes[0]), Layer::new(LayerName::Gateway, "g.yaml", &nodes[1])];
        let merged = merge(&layers, &Table::default());
        let origin = |path: &str| merged.at(path).map(|value| value.origin.to_string());
        assert_eq!(origin("a.x").as_deref(), Some("class, c.yaml:2"));
        assert_eq!(origin("a.k").as_deref(), Some("gateway, g.yaml:2"));
    }
}
