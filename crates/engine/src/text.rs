//! Small things about text.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Writes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Returns the SHA-256 of some bytes as 64 hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of a value as JSON, as 64 hexadecimal digits; the JSON is never in memory as a whole.
///
/// # Errors
/// It cannot be written as JSON.
pub fn digest_of(value: &impl Serialize) -> serde_json::Result<String> {
    let mut hash = BufWriter::with_capacity(CHUNK, Hash(Sha256::new()));
    serde_json::to_writer(&mut hash, value)?;
    let hash = hash.into_inner().map_err(|error| serde_json::Error::io(error.into_error()))?;
    Ok(hex(&hash.0.finalize()))
}

/// The bytes that are put into a hash at once.
const CHUNK: usize = 8 * 1024;

struct Hash(Sha256);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Names of many objects and values of labels have at most 63 bytes (RFC 1123), the name of a Gateway 253.
const MAX_NAME: usize = 63;
/// The length that is kept of a longer name, before `-` and 12 digits of its digest.
const KEPT: usize = 50;

/// Returns a name that fits everywhere: itself, or a shortened one that is as unique.
pub fn safe_name(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    format!("{}-{}", cut(name, KEPT), &digest(name.as_bytes())[..12])
}

/// Cuts a name, and takes off the dash that it may end with then.
pub fn cut(name: &str, length: usize) -> &str {
    // Names of objects are ASCII; a name that is not would be refused by the API server anyway.
    let kept = name.get(..length).unwrap_or(name);
    kept.strip_suffix('-').unwrap_or(kept)
}

/// Asks whether the nearest name was meant.
pub fn did_you_mean(near: Option<&str>) -> Option<String> {
    near.map(|near| format!("did you mean {near:?}?"))
}

/// Writes a number of things: `1 object`, `3 objects`.
pub fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

/// Names things, and counts those beyond the first few: `a, b and 3 more`.
pub fn listed<T: Display>(things: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut things = things.into_iter();
    let named: Vec<String> = things.by_ref().take(most).map(|thing| thing.to_string()).collect();
    match things.count() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_stays_unique() {
        assert_eq!(safe_name("edge"), "edge");
        assert_eq!(safe_name(&"a".repeat(63)).len(), 63);
        let (one, other) =
            (safe_name(&format!("{}-one", "a".repeat(70))), safe_name(&format!("{}-two", "a".repeat(70))));
        assert_eq!(one.len(), 63);
        assert_ne!(one, other);
    }

    #[test]
    fn of_many_things_the_first_are_named() {
        assert_eq!(listed([""; 0], 2), "");
        assert_eq!(listed(["a"], 2), "a");
        assert_eq!(listed(["a", "b"], 2), "a, b");
        assert_eq!(listed(["a", "b", "c", "d"], 2), "a, b and 2 more");
    }

    #[test]
    fn a_dash_at_the_cut_is_dropped() {
        assert_eq!(safe_name(&format!("{}-{}", "a".repeat(49), "b".repeat(20))).len(), 62);
    }
}
