//! The form in which values that may be secret are shown: a fingerprint with a key instead of the value.
//!
//! A plain digest of a short secret can be tried out by whoever sees it. With a key that is in no report it cannot, and
//! the same secret still has the same fingerprint in all reports of one installation, so that one sees whether it has
//! changed. What counts as secret is said in `docs/reports.md`; [`names`] and [`texts`] hold the rules.

mod digests;
pub mod lines;
pub mod names;
pub mod texts;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::object::Object;
use crate::text::hex;
use digests::Digests;
use names::{is_secret_field, is_secret_variable};

/// The text that stands for a secret, before its fingerprint.
pub const MASK: &str = "***";

/// The annotation in which `kubectl apply` keeps the whole of what it has applied, secrets included.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Below it are our own annotations, which tell whose an object is and nothing else.
const OURS: &str = "gatewright.dev/";

/// Hexadecimal digits of a fingerprint.
const DIGITS: usize = 8;

/// The block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// Masks what is secret in values and texts. Without a key, which is what [`Masker::default`] makes, it shows no
/// fingerprints.
#[derive(Clone, Default)]
pub struct Masker {
    key: Option<[u8; 32]>,
    /// The digests that were made with it.
    digests: Arc<Digests>,
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Masker(…)")
    }
}

impl Masker {
    /// Makes one with the key of its fingerprints.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key: Some(key), digests: Arc::default() }
    }

    /// Returns what is shown of a value all of which is secret: `*** (1f2e3d4c)`.
    pub fn value(&self, value: &Value) -> Value {
        match self.fingerprint(value) {
            Some(print) => format!("{MASK} ({print})").into(),
            None => MASK.into(),
        }
    }

    /// Returns a text with each secret in it masked: `--password=***(1f2e3d4c)`.
    pub fn text(&self, text: &str) -> String {
        texts::replaced(text, |secret| match self.fingerprint(&secret.into()) {
            Some(print) => format!("{MASK}({print})"),
            None => MASK.to_owned(),
        })
    }

    /// Returns an object, or anything in the form of one, with everything secret in it masked. All else stays where it
    /// is.
    pub fn body(&self, body: &Value) -> Value {
        let Value::Object(fields) = body else { return self.inner(body) };
        let is_secret = fields.get("kind").is_some_and(|kind| kind == "Secret");
        let masked = fields.iter().map(|(field, value)| {
            let value = match (field.as_str(), value) {
                ("data" | "stringData", Value::Object(data)) if is_secret => {
                    data.iter().map(|(key, value)| (key.clone(), self.value(value))).collect()
                }
                ("data" | "stringData", value) if is_secret => self.value(value),
                ("metadata", Value::Object(metadata)) => self.metadata(metadata, is_secret),
                (_, value) => self.field(field, value),
            };
            (field.clone(), value)
        });
        masked.collect()
    }

    /// Returns the SHA-256 of an object with everything secret in it masked, as 64 hexadecimal digits.
    pub fn digest(&self, object: &Object) -> String {
        self.digests.of(object, |body| self.body(body))
    }

    /// Returns what is shown of a value at a path, such as `spec.containers[a].env[DB_PASSWORD].value`.
    pub fn at(&self, path: &str, value: &Value) -> Value {
        if path.contains(LAST_APPLIED) {
            return self.value(value);
        }
        let name = match path.strip_suffix(".value").and_then(|path| path.strip_suffix(']')) {
            Some(variable) => variable.rsplit('[').next().unwrap_or_default(),
            None => {
                return self.field(path.trim_end_matches("\"]").rsplit(['.', '"']).next().unwrap_or_default(), value);
            }
        };
        let is_secret = is_secret_variable(name) && is_telling(value);
        if is_secret { self.value(value) } else { self.inner(value) }
    }

    /// Returns the secrets of an object as they stand in it, the longest first.
    pub fn secrets(body: &Value) -> Vec<String> {
        let mut found = Vec::new();
        collect(body, &Self::default().body(body), &mut found);
        found.retain(|secret| !secret.is_empty());
        found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        found.dedup();
        found
    }

    /// Masks the annotations of a Secret, which often have copies of it, and everybody's notes of what was applied.
    fn metadata(&self, metadata: &Map<String, Value>, is_secret: bool) -> Value {
        let annotation = |key: &str, value: &Value| {
            let is_copy = key == LAST_APPLIED || is_secret && !key.starts_with(OURS);
            if is_copy { self.value(value) } else { self.field(key, value) }
        };
        let field = |(field, value): (&String, &Value)| {
            let value = match (field.as_str(), value) {
                ("annotations", Value::Object(annotations)) => {
                    annotations.iter().map(|(key, value)| (key.clone(), annotation(key, value))).collect()
                }
                ("managedFields", value) => value.clone(),
                (_, value) => self.inner(value),
            };
            (field.clone(), value)
        };
        metadata.iter().map(field).collect()
    }

    /// Masks what stands in a field, or in each element of its list, if the name of the field says so.
    fn field(&self, name: &str, value: &Value) -> Value {
        match value {
            Value::String(_) | Value::Number(_) if is_secret_field(name, value) => self.value(value),
            Value::Array(list) if list.iter().all(Value::is_string) && is_secret_field(name, &"x".into()) => {
                list.iter().map(|value| self.value(value)).collect()
            }
            value => self.inner(value),
        }
    }

    fn inner(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(list) => self.list(list),
            Value::Object(map) => {
                let name = ["name", "key"].iter().find_map(|field| map.get(*field).and_then(Value::as_str));
                let is_secret = name.is_some_and(is_secret_variable);
                let field = |(field, value): (&String, &Value)| {
                    let is_it = field == "value" && is_secret && is_telling(value);
                    (field.clone(), if is_it { self.value(value) } else { self.field(field, value) })
                };
                map.iter().map(field).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Masks what follows a flag that names a secret.
    fn list(&self, list: &[Value]) -> Value {
        let mut is_awaited = false;
        let masked = list.iter().map(|value| {
            let text = value.as_str().unwrap_or_default();
            let is_secret = is_awaited && !text.starts_with('-') && is_telling(value);
            is_awaited = text.starts_with('-') && is_secret_variable(text.trim_start_matches('-'));
            if is_secret && value.is_string() { self.value(value) } else { self.inner(value) }
        });
        masked.collect()
    }

    fn fingerprint(&self, value: &Value) -> Option<String> {
        let key = self.key.as_ref()?;
        Some(hex(&hmac(key, value.to_string().as_bytes()))[..DIGITS].to_owned())
    }
}

/// Tells whether a value says more than where a secret is to be found.
fn is_telling(value: &Value) -> bool {
    match value {
        Value::String(text) => !texts::is_placeholder(text),
        Value::Number(_) => true,
        _ => false,
    }
}

/// Collects what stands in a value where another shows a mask.
fn collect(value: &Value, shown: &Value, found: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(value), Value::Object(shown)) => {
            value.iter().zip(shown.values()).for_each(|((_, value), shown)| collect(value, shown, found));
        }
        (Value::Array(value), Value::Array(shown)) => {
            value.iter().zip(shown).for_each(|(value, shown)| collect(value, shown, found));
        }
        (Value::String(text), Value::String(shown)) if text != shown => {
            if shown == MASK {
                found.push(text.clone());
            } else {
                found.extend(texts::secrets(text).into_iter().map(|span| text[span].to_owned()));
            }
        }
        (value, shown) if value != shown => leaves(value, found),
        _ => {}
    }
}

fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| leaves(value, found)),
        Value::Array(list) => list.iter().for_each(|value| leaves(value, found)),
        Value::String(text) => found.push(text.clone()),
        value => found.push(value.to_string()),
    }
}

/// HMAC with SHA-256 (RFC 2104), for a key that fits into a block.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests;
