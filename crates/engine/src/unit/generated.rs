//! Objects with a generated value: a key that nobody writes down, and that must not change.
//!
//! Rendering yields the object without the value. On a cluster that has it already the value stays what it is; otherwise
//! the daemon makes one, once, when it creates the object. It is in no plan, report or file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::live::Live;
use crate::object::{Object, is_secret};
use crate::pack;

/// An object whose value is made on each cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// The Secret, without the value.
    pub object: Object,
    /// The description of the generated value.
    pub value: pack::manifest::Generated,
}

impl Generated {
    /// Returns the object with the value that it has on a cluster; `None` if it has none there.
    pub fn kept(&self, live: &Live) -> Option<Object> {
        let value = live.object.body().get("data")?.get(&self.value.key)?;
        value.as_str().filter(|text| !text.is_empty())?;
        let mut body = self.object.body().clone();
        body["data"][&self.value.key] = value.clone();
        Object::new(body).ok()
    }

    /// Says in words what the value will be.
    pub fn promise(&self) -> String {
        let pack::manifest::Generated { key, bytes, .. } = &self.value;
        format!("data.{key} is generated once, on each cluster: {bytes} random bytes")
    }

    /// Checks that a template has yielded what a value can be put into.
    pub(super) fn of(object: Object, value: &pack::manifest::Generated) -> Result<Self, String> {
        let is_secret = is_secret(&object.id().group, &object.id().kind);
        let has_value = |field: &str| object.body().get(field).and_then(|data| data.get(&value.key)).is_some();
        if !is_secret || has_value("data") || has_value("stringData") {
            return Err(format!("template {:?} must yield a Secret without {:?}", value.template, value.key));
        }
        if object.body().get("data").is_some_and(|data| !data.is_object()) {
            return Err(format!("template {:?} yields a Secret whose data is no mapping", value.template));
        }
        Ok(Self { object, value: value.clone() })
    }
}

impl pack::manifest::Generated {
    /// Puts a value into an object.
    pub fn filled(&self, object: &Object, value: &str) -> Object {
        let mut body = object.body().clone();
        body["data"][&self.key] = Value::from(value);
        Object::new(body).unwrap_or_else(|_| object.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret(fields: &Value) -> Object {
        let mut body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}});
        for (key, value) in fields.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        Object::new(body).expect("it has all that it needs")
    }

    fn value() -> pack::manifest::Generated {
        let json = json!({"template": "secret.yaml", "key": "key", "bytes": 32, "encoding": "hex"});
        serde_json::from_value(json).expect("it says all")
    }

    #[test]
    fn a_value_that_is_there_is_kept() {
        let generated = Generated::of(secret(&json!({"type": "Opaque"})), &value()).expect("it is a Secret");
        let live =
            |fields: &Value| Live { object: secret(fields), uid: "1".to_owned(), resource_version: "1".to_owned() };
        let kept = generated.kept(&live(&json!({"data": {"key": "a2V5", "other": "eA=="}})));
        let data = kept.map(|object| object.body()["data"].clone());
        assert_eq!(data, Some(json!({"key": "a2V5"})), "and nothing else is taken for ours");
        for without in
            [json!({}), json!({"data": null}), json!({"data": {"key": ""}}), json!({"data": {"other": "eA=="}})]
        {
            assert_eq!(generated.kept(&live(&without)), None);
        }
        assert_eq!(value().filled(&generated.object, "a2V5").body()["data"], json!({"key": "a2V5"}));
    }

    #[test]
    fn a_template_must_leave_the_value_out() {
        assert!(Generated::of(secret(&json!({"data": {"key": "a2V5"}})), &value()).is_err());
        assert!(Generated::of(secret(&json!({"stringData": {"key": "key"}})), &value()).is_err());
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "key"}});
        assert!(Generated::of(Object::new(map).expect("it has a name"), &value()).is_err());
    }
}
