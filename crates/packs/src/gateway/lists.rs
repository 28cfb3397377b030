//! Lists whose items the API server knows by a name, and takes each once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;

/// Returns a list in which a later item stands in the place of an earlier one if all of `keys` are the same in both.
///
/// Layers append to such lists. Control planes leave both items there, and the API server then refuses the whole object.
pub(crate) fn last_wins(items: impl IntoIterator<Item = Value>, keys: &[&str]) -> Vec<Value> {
    let mut places = BTreeMap::new();
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        match places.entry(keys.iter().map(|key| item[key].to_string()).collect::<Vec<_>>()) {
            Entry::Occupied(place) => kept[*place.get()] = item,
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push(item);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_item_of_a_name_stands_where_the_first_one_stood() {
        let item = |a, b, v| json!({"a": a, "b": b, "v": v});
        let items = [item("x", 1, 1), item("y", 1, 1), item("x", 2, 1), item("x", 1, 2)];
        assert_eq!(last_wins(items.clone(), &["a", "b"]), [3, 1, 2].map(|index: usize| items[index].clone()));
        assert_eq!(last_wins(items.clone(), &["a"]), [3, 1].map(|index: usize| items[index].clone()));
    }
}
