//! The forms of names that API servers know.

use std::sync::LazyLock;

use regex::Regex;

/// A DNS label, as of RFC 1123.
static LABEL: LazyLock<Regex> = LazyLock::new(|| regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"));

/// Names with dots.
static SUBDOMAIN: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));

/// The name of a port: up to 15 characters, of which one is a letter.
static PORT: LazyLock<Regex> = LazyLock::new(|| regex("^[a-z0-9]+(-[a-z0-9]+)*$"));

/// The key of an entry of a `ConfigMap` or Secret.
static KEY: LazyLock<Regex> = LazyLock::new(|| regex("^[-._a-zA-Z0-9]{1,253}$"));

const LONGEST_SUBDOMAIN: usize = 253;
const LONGEST_PORT: usize = 15;

/// The form of the name of a port, for people.
pub(in crate::rules) const OF_PORTS: &str = "write up to 15 lower-case letters, digits and dashes, at least one letter";

/// The form of a name with dots, for people.
pub(in crate::rules) const OF_NAMES: &str = "write lower-case letters, digits, dashes and dots";

/// The form of a key, for people.
pub(in crate::rules) const OF_KEYS: &str = "write letters, digits, dashes, underscores and dots";

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a test reads it")
}

pub(super) fn is_label(text: &str) -> bool {
    LABEL.is_match(text)
}

pub(in crate::rules) fn is_subdomain(text: &str) -> bool {
    text.len() <= LONGEST_SUBDOMAIN && SUBDOMAIN.is_match(text)
}

/// Tells whether a port may have a name. A number in quotes is none.
pub(in crate::rules) fn is_port(text: &str) -> bool {
    let has_letter = text.contains(|char: char| char.is_ascii_lowercase());
    text.len() <= LONGEST_PORT && has_letter && PORT.is_match(text)
}

/// Tells whether an entry may have a key. Those that lead out of a folder would do so where they are mounted.
pub(in crate::rules) fn is_key(text: &str) -> bool {
    KEY.is_match(text) && text != "." && !text.starts_with("..")
}

/// Says what to write instead of the name of a port.
pub(in crate::rules) fn port_hint(text: &str) -> &'static str {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { "write the number without quotes" } else { OF_PORTS }
}
