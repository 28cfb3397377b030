//! In which order the items of a merged list stand.
//!
//! The order that the patch wants goes first, then that of the object. Where nothing else is said, an item of the
//! object goes before one of the patch only if the object had both, in that order: new items therefore come first.

use serde_json::Value;

use super::fault::Fault;
use super::mapping::DIRECTIVE;

/// An item, and what it is recognized by: the value of its key, or itself.
pub(super) struct Item {
    pub(super) id: Value,
    pub(super) value: Value,
}

/// Puts items into order: `wanted` is that of the patch, `before` that of the object.
pub(super) fn arrange(items: Vec<Item>, wanted: &[Value], before: &[Value]) -> Result<Vec<Value>, Fault> {
    let (mut patched, mut others) = (Vec::new(), Vec::new());
    for item in items {
        match position(wanted, &item.id)? {
            Some(at) => patched.push((Some(at), item)),
            None => others.push((None, item)),
        }
    }
    // A lone item is compared with nothing, so it may be one that cannot be compared.
    if patched.len() + others.len() > 1 {
        for (rank, item) in &mut others {
            *rank = position(before, &item.id)?;
        }
    }
    interleave(sorted(others), sorted(patched), before)
}

/// Returns where an item stands in a list of what items are recognized by.
pub(super) fn position(ids: &[Value], id: &Value) -> Result<Option<usize>, Fault> {
    for (at, other) in ids.iter().enumerate() {
        if same(other, id)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Tells whether two items are recognized by the same value. Lists and mappings are no such values.
pub(super) fn same(a: &Value, b: &Value) -> Result<bool, Fault> {
    match (a, b) {
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => Err(Fault::Incomparable),
        _ => Ok(a == b),
    }
}

type Ranked = (Option<usize>, Item);

/// Sorts by rank, and what has none goes before everything that stood in front of it: so it is on an API server, whose
/// comparison contradicts itself there. Directives that met nothing go last.
fn sorted(items: Vec<Ranked>) -> Vec<Ranked> {
    let (directives, mut items): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|(_, item)| item.value[DIRECTIVE] == "delete");
    let goes_before = |a: &Ranked, b: &Ranked| a.0.is_none() || b.0.is_none() || a.0 < b.0;
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && goes_before(&items[at], &items[at - 1]) {
            items.swap(at, at - 1);
            at -= 1;
        }
    }
    items.extend(directives);
    items
}

fn interleave(others: Vec<Ranked>, patched: Vec<Ranked>, before: &[Value]) -> Result<Vec<Value>, Fault> {
    let mut list = Vec::with_capacity(others.len() + patched.len());
    let mut others = others.into_iter().peekable();
    for (_, item) in patched {
        let limit = position(before, &item.id)?;
        while let Some((_, other)) = others.next_if(|(rank, _)| rank.is_some() && limit.is_some() && *rank < limit) {
            list.push(other.value);
        }
        list.push(item.value);
    }
    list.extend(others.map(|(_, other)| other.value));
    Ok(list)
}
