//! Merges a list of a patch into one of an object.

use serde_json::Value;

use super::fault::{Fault, Mistake, Side};
use super::mapping;
use super::order::{Item, arrange, same};
use super::types::Type;

/// The rules by which a list takes a patch.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// The type of its items.
    pub(super) items: Type,
    /// Items of the patch join those that are there; otherwise they take their place.
    pub(super) merges: bool,
    /// The field that tells items apart.
    pub(super) key: Option<&'static str>,
}

/// The type that all items of a list have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    /// Mappings.
    Mappings,
    /// Texts, or whole numbers, or other numbers, or booleans.
    Plain,
}

/// A list after a patch.
pub(super) struct Merged {
    pub(super) items: Vec<Value>,
    /// The order of the object, for those who put the items into order once more.
    pub(super) before: Vec<Value>,
}

impl Rules {
    /// Returns those of a field.
    pub(super) fn of(ty: Type, field: &str) -> Result<Self, Fault> {
        let field = ty.field(field)?;
        Ok(Self { items: field.items()?, merges: field.merges, key: field.key })
    }

    /// Returns what an item is recognized by.
    pub(super) fn id(&self, item: &Value, side: Side) -> Result<Value, Fault> {
        match self.key {
            None => Ok(item.clone()),
            Some(key) => id(item, key, side),
        }
    }

    /// Returns items with what each is recognized by.
    pub(super) fn items(&self, items: Vec<Value>, side: Side) -> Result<Vec<Item>, Mistake> {
        let ids = self.ids(&items, side)?;
        Ok(ids.into_iter().zip(items).map(|(id, value)| Item { id, value }).collect())
    }

    /// Returns what each item is recognized by.
    pub(super) fn ids(&self, items: &[Value], side: Side) -> Result<Vec<Value>, Mistake> {
        let id = |(index, item)| self.id(item, side).map_err(|fault| Mistake::from(fault).in_item(index));
        items.iter().enumerate().map(id).collect()
    }
}

/// Merges two lists; or, if the patch `deletes`, takes the items of the one out of the other.
pub(super) fn merge(object: Vec<Value>, patch: Vec<Value>, rules: &Rules, deletes: bool) -> Result<Merged, Mistake> {
    if object.is_empty() && patch.is_empty() {
        return Ok(Merged { items: object, before: Vec::new() });
    }
    match (kind(object.iter().chain(&patch))?, rules.key) {
        (Items::Plain, _) if deletes => {
            let items = object.iter().filter(|item| !patch.contains(item)).cloned().collect();
            Ok(Merged { items, before: object })
        }
        (Items::Plain, None) => Ok(union(object, &patch)?),
        (Items::Plain, Some(_)) => Err(Mistake::from(Fault::NoMapping).in_item(0)),
        (Items::Mappings, None) => Err(Fault::KeylessList.into()),
        (Items::Mappings, Some(key)) => merge_by_key(object, patch, key, rules),
    }
}

/// Returns what all these items are.
pub(super) fn kind<'a>(items: impl IntoIterator<Item = &'a Value>) -> Result<Items, Fault> {
    let mut items = items.into_iter();
    let first = items.next().ok_or(Fault::NoItems)?;
    let kind = match first {
        Value::Null | Value::Array(_) => return Err(Fault::MixedItems),
        Value::Object(_) => Items::Mappings,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Items::Plain,
    };
    if items.all(|item| mapping::is_same_type(first, item)) { Ok(kind) } else { Err(Fault::MixedItems) }
}

/// Joins plain values. Of an object that has one twice, Kubernetes makes an order that depends on how much memory a list
/// happens to have; that is not imitated.
fn union(object: Vec<Value>, patch: &[Value]) -> Result<Merged, Fault> {
    let mut items: Vec<Value> = Vec::new();
    for item in object.iter().chain(patch) {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    let items = items.into_iter().map(|item| Item { id: item.clone(), value: item }).collect();
    Ok(Merged { items: arrange(items, patch, &object)?, before: object })
}

fn merge_by_key(object: Vec<Value>, patch: Vec<Value>, key: &'static str, rules: &Rules) -> Result<Merged, Mistake> {
    let mut list = Keyed::new(object, key);
    let (patch, replaces) = list.delete(patch)?;
    let wanted = patch.iter().map(|(index, item)| id(item, key, Side::Patch).map_err(in_item(*index)));
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    if replaces {
        let items = wanted.iter().zip(patch).map(|(id, (_, value))| Item { id: id.clone(), value }).collect();
        return Ok(Merged { items: arrange(items, &[], &wanted)?, before: list.order });
    }
    let before = list.order[..list.items.len()].to_vec();
    for (id, (index, item)) in wanted.iter().zip(patch) {
        list.add(id, item, rules.items).map_err(|mistake| mistake.in_item(index))?;
    }
    let items = rules.items(list.items, Side::Object)?;
    Ok(Merged { items: arrange(items, &wanted, &before)?, before: list.order })
}

fn in_item(index: usize) -> impl Fn(Fault) -> Mistake {
    move |fault| Mistake::from(fault).in_item(index)
}

fn id(item: &Value, key: &'static str, side: Side) -> Result<Value, Fault> {
    let fields = item.as_object().ok_or(Fault::NoMapping)?;
    fields.get(key).cloned().ok_or_else(|| Fault::NoKey { key: key.to_owned(), side })
}

/// The items of an object's list while a patch changes it.
struct Keyed {
    key: &'static str,
    items: Vec<Value>,
    /// The values by which items are recognized, in a list as long as the object's was. API servers work in place, so
    /// that items that are added after others were deleted count as having been there when `$setElementOrder` is
    /// obeyed.
    order: Vec<Value>,
}

impl Keyed {
    fn new(items: Vec<Value>, key: &'static str) -> Self {
        let order = items.iter().map(|item| item.get(key).cloned().unwrap_or_default()).collect();
        Self { key, items, order }
    }

    /// Deletes what the patch says, and returns the other items of the patch with their index in it, and whether
    /// they replace the whole list.
    fn delete(&mut self, patch: Vec<Value>) -> Result<(Vec<(usize, Value)>, bool), Mistake> {
        let (mut others, mut replaces) = (Vec::new(), false);
        for (index, item) in patch.into_iter().enumerate() {
            match item.get(mapping::DIRECTIVE).map(Value::as_str) {
                None => others.push((index, item)),
                Some(Some("replace")) => replaces = true,
                Some(Some("delete")) => self.delete_all(&item).map_err(in_item(index))?,
                Some(_) => return Err(in_item(index)(Fault::Directive(item[mapping::DIRECTIVE].clone()))),
            }
        }
        Ok((others, replaces))
    }

    fn delete_all(&mut self, item: &Value) -> Result<(), Fault> {
        let id = id(item, self.key, Side::Patch)?;
        while let Some(at) = self.find(&id)? {
            self.items.remove(at);
            for next in at + 1..=self.items.len() {
                self.order[next - 1] = self.order[next].clone();
            }
        }
        Ok(())
    }

    /// Merges an item into the first one that has the same key, or else appends it.
    fn add(&mut self, id: &Value, item: Value, ty: Type) -> Result<(), Mistake> {
        match (self.find(id)?, item) {
            (Some(at), Value::Object(item)) => {
                let Value::Object(found) = self.items[at].take() else { return Err(Fault::NoMapping.into()) };
                self.items[at] = Value::Object(mapping::merge(found, item, ty)?);
            }
            (_, item) => {
                if let Some(free) = self.order.get_mut(self.items.len()) {
                    free.clone_from(id);
                }
                self.items.push(item);
            }
        }
        Ok(())
    }

    fn find(&self, id: &Value) -> Result<Option<usize>, Fault> {
        for (at, item) in self.items.iter().enumerate() {
            if item.get(self.key).map_or(Ok(false), |other| same(other, id))? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// Tells whether a list that wants an order has the items of the patch, in their order.
pub(super) fn has_order_of(wanted: &[Value], patch: &[Value], rules: &Rules) -> Result<bool, Fault> {
    if wanted.is_empty() || patch.is_empty() {
        return Ok(true);
    }
    let is_deleted = |item: &&Value| rules.key.is_some() && item[mapping::DIRECTIVE] == "delete";
    let patch: Vec<&Value> = patch.iter().filter(|item| !is_deleted(item)).collect();
    let (mut at, mut in_wanted) = (0, 0);
    while at < patch.len() && in_wanted < wanted.len() {
        if patch[at].get(mapping::DIRECTIVE).is_some() {
            at += 1;
            continue;
        }
        at += usize::from(same(&rules.id(patch[at], Side::Patch)?, &wanted[in_wanted])?);
        in_wanted += 1;
    }
    Ok(at == patch.len())
}
