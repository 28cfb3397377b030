//! One patch of an overlay, and where it stands.

use serde_json::Value;

use super::Overlay;
use crate::diff::Segment;
use crate::error::Chain;
use crate::kinds::row::Row;
use crate::object::{Gvk, ObjectId};
use crate::patch::{PatchError, PatchType, patch_by_row};
use crate::problem::{Place, Problem};
use crate::yaml::Node;

/// One patch of an overlay.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverlayPatch<'a> {
    /// The overlay.
    pub overlay: &'a Overlay,
    /// The list that it stands in.
    pub list: &'static str,
    /// Its index in the list.
    pub index: usize,
    /// The type of the patch, which says how to read it.
    pub kind: PatchType,
    /// The patch itself.
    pub patch: &'a Value,
}

/// A document or object that is to be patched.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    /// It.
    pub id: &'a ObjectId,
    /// Its kind.
    pub gvk: &'a Gvk,
    /// All that is known of its kind.
    pub row: &'a Row,
}

impl<'a> OverlayPatch<'a> {
    /// Returns the changes of the Gateway, in the order in which they are made.
    pub(super) fn of_spec(overlay: &'a Overlay) -> impl Iterator<Item = Self> {
        overlay.spec.spec_patches.iter().enumerate().map(move |(index, it)| {
            let kind = it.kind.unwrap_or(if it.patch.is_array() { PatchType::Json } else { PatchType::Merge });
            Self { overlay, list: "specPatches", index, kind, patch: &it.patch }
        })
    }

    /// Returns the changes of objects, in the order in which they are made.
    pub(super) fn of_objects(overlay: &'a Overlay) -> impl Iterator<Item = Self> {
        overlay.spec.object_patches.iter().enumerate().map(move |(index, it)| {
            let usual = if it.data_key.is_some() { PatchType::Merge } else { PatchType::Strategic };
            let kind = it.kind.unwrap_or(if it.patch.is_array() { PatchType::Json } else { usual });
            Self { overlay, list: "objectPatches", index, kind, patch: &it.patch }
        })
    }

    /// Says what no value can make good: a patch that is no patch.
    pub(super) fn check(&self) -> Option<Problem> {
        let needed = match (self.kind, self.patch) {
            (PatchType::Json, Value::Array(_)) | (PatchType::Merge | PatchType::Strategic, Value::Object(_)) => {
                return None;
            }
            (PatchType::Json, _) => "a list of operations",
            (PatchType::Merge | PatchType::Strategic, _) => "a mapping",
        };
        let problem = self.problem(format!("the patch must be {needed}"));
        let hint = "write the patch itself, indented, and not as text behind a |";
        Some(if self.patch.is_string() { problem.hint(hint) } else { problem })
    }

    /// Makes the change; `what` is to be changed.
    pub(super) fn apply(&self, value: &Value, what: Target<'_>) -> Result<Value, Box<Problem>> {
        let Target { id, gvk, row } = what;
        patch_by_row(value, self.kind, self.patch, (gvk, row)).map_err(|error| {
            let path = match &error {
                PatchError::Operation { number, .. } => vec![(number - 1).to_string()],
                PatchError::Fault { .. } | PatchError::Kind(_) | PatchError::Operations(_) => {
                    error.path().iter().map(part).collect()
                }
            };
            let message = format!("cannot patch {id}: {}", Chain(&error));
            self.problem_at(self.place_in_patch(&path), message).into()
        })
    }

    /// Returns the place of what the change says about a path, or of the nearest thing around it.
    pub(super) fn place(&self, path: &[String]) -> Place {
        let below: Vec<String> = match self.kind {
            PatchType::Json => self.operation(path),
            PatchType::Merge | PatchType::Strategic => path.to_vec(),
        };
        self.place_in_patch(&below)
    }

    /// Tells whether it is a list of operations of which one sets what stands at a path, or something around it.
    pub(super) fn sets(&self, path: &[String]) -> bool {
        self.kind == PatchType::Json && self.operation(path).get(1).is_some_and(|field| field == "value")
    }

    /// Returns the patch as it was written, if it is no list of operations.
    pub(super) fn node(&self) -> Option<&'a Node> {
        let index = self.index.to_string();
        let node = self.overlay.document.root.at(["spec", self.list, &index, "patch"]);
        node.filter(|_| self.kind != PatchType::Json)
    }

    fn place_in_patch(&self, path: &[String]) -> Place {
        let index = self.index.to_string();
        let whole = ["spec", self.list, &index, "patch"].into_iter().chain(path.iter().map(String::as_str));
        self.overlay.document.place_of(&whole.collect::<Vec<_>>())
    }

    /// Returns a problem with the change as a whole.
    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        self.problem_at(self.place(&[]), message)
    }

    /// Returns a problem with a part of it.
    pub(super) fn problem_at(&self, place: Place, message: impl Into<String>) -> Problem {
        Problem::document(place, message).about(self.overlay.document.id.clone())
    }

    /// Says that the change is about something that no patch may change.
    pub(super) fn refused(&self, path: &[String], what: &ObjectId, hint: &str) -> Problem {
        let message = format!("the patch changes {} of {what}", path.join("."));
        self.problem_at(self.place(path), message).hint(hint)
    }

    /// Finds the last operation that reaches a path, and what it says there.
    fn operation(&self, path: &[String]) -> Vec<String> {
        let operations = self.patch.as_array().map(Vec::as_slice).unwrap_or_default();
        let target = |operation: &Value| operation["path"].as_str().map(pointer).unwrap_or_default();
        for (index, operation) in operations.iter().enumerate().rev() {
            let target = target(operation);
            if let Some(rest) = path.strip_prefix(target.as_slice()) {
                return [index.to_string(), "value".to_owned()].into_iter().chain(rest.iter().cloned()).collect();
            }
            if target.starts_with(path) {
                return vec![index.to_string()];
            }
        }
        Vec::new()
    }
}

/// Cuts a JSON pointer at its slashes.
fn pointer(text: &str) -> Vec<String> {
    text.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

fn part(segment: &Segment) -> String {
    match segment {
        Segment::Field(name) | Segment::Key(_, name) => name.clone(),
        Segment::Index(index) => index.to_string(),
    }
}
