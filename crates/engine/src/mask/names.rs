//! Names that say that what they name is secret: of fields, variables, flags and headers.
//!
//! The last words count: a `tokenFile` and a `secretName` say where a secret is, and not what it is.

use serde_json::Value;

/// Words that name a secret by themselves, as the last word; a number of such a name counts something, as `maxTokens`.
const PLAIN: [&str; 10] = [
    "passwords",
    "secret",
    "secrets",
    "token",
    "tokens",
    "credential",
    "credentials",
    "apikey",
    "authorization",
    "cookie",
];

/// Those of which a number is secret too.
const NUMERIC: [&str; 6] = ["password", "passwd", "passphrase", "pwd", "pass", "pin"];

/// Kinds of keys that are secret: `api_key`, `tls.key`; others sort, partition, or select.
const KEYS: [&str; 16] = [
    "api",
    "access",
    "private",
    "secret",
    "encryption",
    "signing",
    "session",
    "master",
    "ssh",
    "tls",
    "auth",
    "account",
    "client",
    "storage",
    "license",
    "hmac",
];

/// Words before `secret` that make its value the name of one: `pullSecret: registry`.
const REFERRING: [&str; 4] = ["tls", "pull", "image", "existing"];

/// Tells whether a field, by its name, holds a secret if it has this value.
pub(crate) fn is_secret_field(name: &str, value: &Value) -> bool {
    if !may_be_secret(name) {
        return false;
    }
    match value {
        Value::String(text) => is_secret_name(&words(name)) && !super::texts::is_placeholder(text),
        Value::Number(_) => words(name).last().is_some_and(|last| NUMERIC.contains(&last.as_str())),
        _ => false,
    }
}

/// Tells whether a variable of an environment, a flag or a header of this name holds a secret.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    if !may_be_secret(name) {
        return false;
    }
    let words = words(name);
    // Whoever sets a variable that is a key, of whatever kind, means one that opens something.
    let is_key = name.chars().all(|c| !c.is_ascii_lowercase()) && words.last().is_some_and(|last| last == "key");
    is_key || is_secret_name(&words)
}

/// Tells whether a name is that of a secret, or would be with another letter or two: for texts in which there is a mistake.
pub(crate) fn is_nearly_secret(name: &str) -> bool {
    let Some(last) = words(name).pop() else { return false };
    let is_slip = |word: &&str| {
        let most = if word.len() < 7 { 1 } else { 2 };
        word.len() >= 5 && last.len().abs_diff(word.len()) <= most && strsim::damerau_levenshtein(&last, word) <= most
    };
    let is_known = PLAIN.contains(&last.as_str());
    is_secret_variable(name) || !is_known && PLAIN.iter().chain(&NUMERIC).any(is_slip)
}

/// Tells whether a number of this name is how many there are of something.
pub(crate) fn is_count(name: &str) -> bool {
    words(name).last().is_some_and(|last| last == "tokens")
}

/// Tells whether a name may be that of a secret, by how it ends. Nearly all are not, and to take them apart takes longer.
fn may_be_secret(name: &str) -> bool {
    let end = name.trim_end_matches(|character: char| !character.is_ascii_alphabetic()).as_bytes();
    let ends_with = |word: &&str| {
        let tail = end.len().checked_sub(word.len()).map(|start| &end[start..]);
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word.as_bytes()))
    };
    !name.is_ascii() || PLAIN.iter().chain(&NUMERIC).chain(&["key", "keys"]).any(ends_with)
}

fn is_secret_name(words: &[String]) -> bool {
    let [before @ .., last] = words else { return false };
    let before = before.last().map_or("", String::as_str);
    match last.as_str() {
        "secret" | "secrets" if REFERRING.contains(&before) => false,
        "key" | "keys" => KEYS.contains(&before),
        last if PLAIN.contains(&last) || NUMERIC.contains(&last) => true,
        last => KEYS.iter().any(|kind| last.strip_prefix(kind) == Some("key")),
    }
}

/// Splits a name into words, in lower case: `DB_PASSWORD`, `clientSecret`, `x-api-key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() || was_lower && character.is_uppercase() {
            words.push(String::new());
        }
        was_lower = character.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    // `TOKEN_2` is a token.
    while words.len() > 1 && words.last().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
        words.pop();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_name_say_whether_it_is_a_secret() {
        for name in ["password", "DB_PASSWORD", "clientSecret", "x-api-key", "AWS_SECRET_ACCESS_KEY", "tls.key"] {
            assert!(is_secret_variable(name) && is_secret_field(name, &"x".into()), "{name}");
        }
        for name in ["secretName", "tokenFile", "imagePullSecrets", "key", "sortKey", "PASSWORD_FILE", "author", ""] {
            assert!(!is_secret_variable(name) && !is_secret_field(name, &"x".into()), "{name}");
        }
        assert!(is_secret_variable("SESSION_KEY") && is_secret_variable("KEY") && is_secret_variable("TOKEN_2"));
    }

    #[test]
    fn numbers_are_secret_only_where_they_count_nothing() {
        assert!(is_secret_field("password", &1234.into()));
        assert!(!is_secret_field("maxTokens", &1234.into()));
        assert!(!is_secret_field("automountServiceAccountToken", &false.into()));
    }
}
