//! The digests of masked objects, each made once: the clusters of a fleet want the same objects, and share their bodies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;

use crate::object::Object;
use crate::text::digest;

/// The most digests that are remembered.
const MOST: usize = 10_000;

/// Digests, by the place of the body in memory.
#[derive(Default)]
pub(super) struct Digests(Mutex<BTreeMap<usize, (Weak<Value>, String)>>);

impl Digests {
    /// Returns the digest of what `masked` makes of the body of an object.
    pub(super) fn of(&self, object: &Object, masked: impl FnOnce(&Value) -> Value) -> String {
        let body = object.shared_body();
        let place = Arc::as_ptr(body).addr();
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // As long as somebody remembers where it is, nothing else is there.
        if let Some((_, digest)) = known().get(&place).filter(|(known, _)| Weak::as_ptr(known) == Arc::as_ptr(body)) {
            return digest.clone();
        }
        let made = digest(masked(body).to_string().as_bytes());
        let mut known = known();
        if known.len() >= MOST {
            known.retain(|_, (body, _)| body.strong_count() > 0);
        }
        if known.len() < MOST {
            known.insert(place, (Arc::downgrade(body), made.clone()));
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_body_has_its_own_digest_and_is_masked_once() {
        let object = |name: &str| Object::new(json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": name}}));
        let digests = Digests::default();
        let one = object("a").expect("it has all that it needs");
        let of = |object: &Object| digests.of(object, Value::clone);
        assert_eq!(of(&one), digest(one.body().to_string().as_bytes()));
        assert_eq!(digests.of(&one.clone(), |_| unreachable!("it is known")), of(&one));
        let other = one.clone().in_namespace("b");
        assert_eq!(of(&other), digest(other.body().to_string().as_bytes()));
        for number in 0..MOST + 10 {
            let object = object(&format!("n{number}")).expect("it has all that it needs");
            assert_eq!(of(&object), digest(object.body().to_string().as_bytes()));
        }
    }
}
