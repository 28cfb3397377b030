//! Generated values, from the random numbers of the operating system.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright_engine::object::ObjectId;
use gatewright_engine::pack::manifest::{Encoding, Generated};
use gatewright_engine::text::hex;
use rand::TryRngCore as _;
use rand::rngs::OsRng;

use crate::cluster::{ClusterError, Reason};

/// Makes a value, as it stands in the `data` of a Secret. Nothing but the request to the API server may hold it.
pub(super) fn value(of: &Generated, id: &ObjectId) -> Result<String, ClusterError> {
    let mut bytes = vec![0; usize::from(of.bytes)];
    OsRng.try_fill_bytes(&mut bytes).map_err(|error| ClusterError {
        action: format!("make a random value for {id}"),
        reason: Reason::Other,
        hint: None,
        source: Box::new(error),
    })?;
    let text = match of.encoding {
        Encoding::Hex => hex(&bytes),
        Encoding::Base64 => STANDARD.encode(&bytes),
    };
    Ok(STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_random_and_written_as_they_should_be() {
        let id = ObjectId::new("", "Secret", "infra", "key");
        let made = |encoding| {
            let of = Generated { template: String::new(), key: "key".to_owned(), bytes: 32, encoding };
            let text = STANDARD.decode(value(&of, &id).expect("there are random numbers")).expect("it is base64");
            String::from_utf8(text).expect("it is text")
        };
        let (one, other) = (made(Encoding::Hex), made(Encoding::Hex));
        assert_eq!((one.len(), one == other), (64, false));
        assert!(one.chars().all(|digit| digit.is_ascii_hexdigit()));
        assert_eq!(STANDARD.decode(made(Encoding::Base64)).map(|bytes| bytes.len()), Ok(32));
    }
}
