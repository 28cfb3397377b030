//! Fields of a patch that the type does not have.

use serde_json::Value;

use super::types::Type;
use crate::check::suggest;
use crate::diff::Segment;

/// A field that a type does not have. Kubernetes refuses it, or ignores it; a patch alone does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// Its path.
    pub path: Vec<Segment>,
    /// The type that does not have it, such as `v1.Container`.
    pub of: &'static str,
    /// The field that was probably meant.
    pub near: Option<&'static str>,
}

/// Returns all of them, in the order of the fields.
pub(super) fn find(patch: &Value, ty: Type) -> Vec<UnknownField> {
    let mut found = Vec::new();
    walk(patch, ty, &mut Vec::new(), &mut found);
    found
}

fn walk(value: &Value, ty: Type, path: &mut Vec<Segment>, found: &mut Vec<UnknownField>) {
    let Type::Struct(fields) = ty else { return };
    for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| !name.starts_with('$')) {
        path.push(Segment::Field(name.clone()));
        match (ty.field(name), value) {
            (Err(_), _) => {
                let near = suggest(name, fields.names());
                found.push(UnknownField { path: path.clone(), of: fields.name, near });
            }
            (Ok(field), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(Segment::Index(index));
                    walk(item, field.items().unwrap_or(Type::Other), path, found);
                    path.pop();
                }
            }
            (Ok(field), value) => walk(value, field.mapping(), path, found),
        }
        path.pop();
    }
}
