//! Patches of objects, of the three sorts that Kubernetes knows.
//!
//! A strategic merge patch looks like the object that it changes: mappings merge, and so do lists whose items have a
//! key. Which lists those are is data about types (`patch/types.txt`). There is none of it for custom resources, unless
//! their row in the table of kinds says it; the others take the other two sorts. What comes out is, item by item and in
//! the same order, what an API server or `kubectl` would have made of it, and what they refuse is an error; a test
//! compares with their code.
//!
//! New items of a list stand before those that were there. This surprises, and is how Kubernetes does it.
//!
//! # Example
//!
//! ```
//! use gatewright_engine::object::Gvk;
//! use gatewright_engine::patch::{PatchType, patch};
//! use serde_json::json;
//!
//! let service = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}, {"port": 443}]}});
//! let change = json!({"spec": {"type": null, "ports": [{"port": 443, "name": "https"}, {"port": 80, "$patch": "delete"}]}});
//! let patched = patch(&service, PatchType::Strategic, &change, &Gvk::new("v1", "Service"))?;
//! assert_eq!(patched, json!({"spec": {"ports": [{"port": 443, "name": "https"}]}}));
//! # Ok::<(), gatewright_engine::patch::PatchError>(())
//! ```

pub mod ambiguity;
mod custom;
pub mod fault;
mod list;
mod mapping;
mod order;
#[cfg(test)]
mod tests;
mod types;
mod zeros;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::diff::{Path, Segment};
use crate::kinds::row::Row;
use crate::object::Gvk;
use ambiguity::Ambiguity;
use fault::{Fault, Mistake, Side};
pub use mapping::without_nulls;
use types::Type;

/// The sort of a patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PatchType {
    /// Like the object, with lists that merge by key; of custom resources only where their lists are known.
    #[default]
    Strategic,
    /// RFC 7396: like the object, with lists that are replaced.
    Merge,
    /// RFC 6902: a list of operations.
    Json,
}

/// A patch that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// Nothing is known about how lists of this kind merge.
    #[error("strategic merge patches are not known for {0}; a merge patch is")]
    Kind(Gvk),
    /// A value of the patch, or of the object under it, cannot be merged.
    #[error("{} {fault}", place(path))]
    Fault {
        /// The place of the fault. An index counts items of the patch, unless the fault says that they are the
        /// object's.
        path: Vec<Segment>,
        /// The fault.
        fault: Fault,
    },
    /// It is no list of operations.
    #[error("the patch is no list of operations")]
    Operations(#[source] serde_json::Error),
    /// One of its operations is impossible.
    #[error("operation {number}, on {path:?}, cannot be carried out")]
    Operation {
        /// Its number, from 1.
        number: usize,
        /// The path that it names.
        path: String,
        /// The reason.
        #[source]
        source: json_patch::PatchErrorKind,
    },
}

/// Applies a patch to an object of a kind, and returns what becomes of it.
///
/// After a strategic merge patch there are no nulls left, and no directives that met nothing: what reads the result as
/// a type would not see them either.
pub fn patch(object: &Value, kind: PatchType, patch: &Value, gvk: &Gvk) -> Result<Value, PatchError> {
    match kind {
        PatchType::Strategic => strategic(object, patch, gvk).map(mapping::finished),
        PatchType::Merge => merge(object, patch),
        PatchType::Json => operations(object, patch),
    }
}

/// Applies a patch to an object of a kind of which something is known, as [`patch`]; a strategic merge patch of a custom
/// resource by what its row says of its lists.
pub fn patch_by_row(
    object: &Value,
    kind: PatchType,
    change: &Value,
    (gvk, row): (&Gvk, &Row),
) -> Result<Value, PatchError> {
    match &row.strategic {
        Some(rules) if kind == PatchType::Strategic && Type::of(gvk).is_none() => custom::patch(object, change, rules),
        Some(_) | None => patch(object, kind, change, gvk),
    }
}

/// Applies a strategic merge patch exactly as Kubernetes' own code does, with what that leaves behind.
pub fn strategic(original: &Value, patch: &Value, gvk: &Gvk) -> Result<Value, PatchError> {
    let ty = Type::of(gvk).ok_or_else(|| PatchError::Kind(gvk.clone()))?;
    let merged = mapping::merge(mapping(original)?, mapping(patch)?, ty)?;
    Ok(Value::Object(merged))
}

/// Returns the lists of an object in which items share the merge key, such as the ports 443/TCP and 443/UDP of a
/// Service, in the order of the fields. Of a kind without merge keys there are none.
///
/// What carries a directive is no item, so that a patch can be looked at too.
pub fn ambiguous(object: &Value, gvk: &Gvk) -> Vec<Ambiguity> {
    Type::of(gvk).map(|ty| ambiguity::find(object, ty)).unwrap_or_default()
}

/// Returns an object without what a typed client leaves out when it writes one: fields that the type does not have, and
/// fields whose zero is the same as nothing. Of a kind whose type is not known all is kept.
pub fn without_zeros(object: Value, gvk: &Gvk) -> Value {
    match Type::of(gvk) {
        Some(ty) => zeros::omit(object, ty),
        None => object,
    }
}

fn merge(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut object = object.clone();
    json_patch::merge(&mut object, &Value::Object(mapping(patch)?));
    Ok(object)
}

fn operations(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = json_patch::Patch::deserialize(patch).map_err(PatchError::Operations)?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &operations).map_err(|error| PatchError::Operation {
        number: error.operation + 1,
        path: error.path.to_string(),
        source: error.kind,
    })?;
    Ok(object)
}

/// Returns a copy of the fields of a mapping; nothing at all counts as none.
fn mapping(value: &Value) -> Result<Map<String, Value>, PatchError> {
    match value {
        Value::Object(fields) => Ok(fields.clone()),
        Value::Null => Ok(Map::new()),
        _ => Err(Mistake::from(Fault::NoMapping).into()),
    }
}

impl PatchError {
    /// Returns where in the patch it goes wrong, as far as the patch says something there; for operations, nowhere.
    pub fn path(&self) -> &[Segment] {
        match self {
            // The item is the object's, so that its index says nothing about the patch.
            Self::Fault { path, fault: Fault::NoKey { side: Side::Object, .. } } => {
                path.split_last().map_or(&[], |(_, list)| list)
            }
            Self::Fault { path, .. } => path,
            Self::Kind(_) | Self::Operations(_) | Self::Operation { .. } => &[],
        }
    }
}

impl From<Mistake> for PatchError {
    fn from(mistake: Mistake) -> Self {
        let (path, fault) = mistake.into_parts();
        Self::Fault { path, fault }
    }
}

fn place(path: &[Segment]) -> String {
    if path.is_empty() { "the patch".to_owned() } else { Path(path).to_string() }
}
