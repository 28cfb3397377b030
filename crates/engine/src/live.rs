//! An object as a cluster has it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::{Object, ObjectError};

/// A live object: the body, and what a write needs to be sure that it still is the same object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// The object, server-set fields included.
    pub object: Object,
    /// `metadata.uid`; of a file in a directory cluster, the digest of its path.
    pub uid: String,
    /// `metadata.resourceVersion`; of a file in a directory cluster, the digest of its bytes.
    pub resource_version: String,
}

impl Live {
    /// Reads a live object out of an API server's answer.
    pub fn new(body: Value) -> Result<Self, ObjectError> {
        let text = |field: &str| body["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (uid, resource_version) = (text("uid"), text("resourceVersion"));
        Ok(Self { object: Object::new(body)?, uid, resource_version })
    }

    /// Returns it without the record of who has set which field.
    #[must_use]
    pub fn without_managers(self) -> Self {
        Self { object: self.object.without_metadata("managedFields"), ..self }
    }

    /// Tells whether a deletion has begun.
    pub fn is_terminating(&self) -> bool {
        self.object.body().pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }
}
