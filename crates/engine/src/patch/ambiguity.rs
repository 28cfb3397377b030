//! Lists whose items share what they are told apart by.

use serde_json::Value;

use super::types::Type;
use crate::diff::{Path, Segment, plain};

/// Items of a list that share a merge key, so that a patch cannot mean all but the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    /// The list.
    pub path: Vec<Segment>,
    /// The field that tells its items apart.
    pub key: &'static str,
    /// The value of that field in each of these items.
    pub value: Value,
    /// The indices of the items.
    pub items: Vec<usize>,
}

impl Ambiguity {
    /// Writes the path of the list, as `spec.template.spec.containers[proxy].ports`.
    pub fn place(&self) -> String {
        Path(&self.path).to_string()
    }
}

/// Returns all of them, in the order of the fields.
pub(super) fn find(object: &Value, ty: Type) -> Vec<Ambiguity> {
    let mut found = Vec::new();
    walk(object, ty, &mut Vec::new(), &mut found);
    found
}

fn walk(value: &Value, ty: Type, path: &mut Vec<Segment>, found: &mut Vec<Ambiguity>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let Ok(field) = ty.field(name) else { continue };
        path.push(Segment::Field(name.clone()));
        match (value, field.items()) {
            (Value::Object(_), _) => walk(value, field.mapping(), path, found),
            (Value::Array(items), Ok(ty)) => {
                let key = field.key.filter(|_| field.merges);
                found.extend(key.into_iter().flat_map(|key| shared(items, key, path)));
                for (index, item) in items.iter().enumerate() {
                    path.push(segment(item, index, key));
                    walk(item, ty, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// Returns the values of a key that several items have.
fn shared(items: &[Value], key: &'static str, path: &[Segment]) -> Vec<Ambiguity> {
    let mut groups: Vec<Ambiguity> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(value) = item.get(key).filter(|_| item.get(super::mapping::DIRECTIVE).is_none()) else { continue };
        match groups.iter_mut().find(|group| group.value == *value) {
            Some(group) => group.items.push(index),
            None => groups.push(Ambiguity { path: path.to_vec(), key, value: value.clone(), items: vec![index] }),
        }
    }
    groups.retain(|group| group.items.len() > 1);
    groups
}

fn segment(item: &Value, index: usize, key: Option<&'static str>) -> Segment {
    let known = key.and_then(|key| Some(Segment::Key(key, plain(item.get(key)?))));
    known.unwrap_or(Segment::Index(index))
}
