//! Quoting what others have said, without the secrets that they may have said.

use gatewright_engine::mask::texts;

/// The text in place of a word that was left out.
const HIDDEN: &str = "…";

/// A shorter one is everywhere, and is looked for in quotes only.
const SHORTEST: usize = 4;

const MAX_LINES: usize = 3;
const MAX_CHARS: usize = 200;

/// Names of secrets: the secret follows after `=`, `:` or a quote.
const NAMES: [&str; 4] = ["token", "password", "passwd", "secret"];

/// Words that the secret follows directly.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Returns the first lines of what a program said in one line, without control characters and without what looks like a
/// secret.
pub fn excerpt(text: &str) -> String {
    quote(text, looks_secret)
}

/// Returns the first lines of what a cluster said of an object, as [`excerpt`] does. Names of images and objects stay.
pub fn said(text: &str) -> String {
    // Names are in lower case; keys and tokens hardly ever are.
    quote(text, |word| looks_secret(word) && word.contains(|character: char| character.is_ascii_uppercase()))
}

/// Returns the whole of what a cluster said, without credentials, and without the secrets of what it was said about.
pub fn said_of(text: &str, secrets: &[String]) -> String {
    let mut clean = text.to_owned();
    for secret in secrets {
        // As it is, and as those write it who put it in quotes.
        let escaped = serde_json::Value::from(secret.as_str()).to_string();
        for form in [secret.as_str(), &escaped[1..escaped.len() - 1]] {
            if form.len() >= SHORTEST {
                clean = clean.replace(form, HIDDEN);
            }
        }
        clean = clean.replace(&escaped, &format!("{HIDDEN:?}"));
    }
    texts::replaced(&clean, |_| HIDDEN.to_owned())
}

fn quote(text: &str, is_secret: fn(&str) -> bool) -> String {
    // Before lines are cut off: what ends a key may be on another one.
    let text = texts::replaced(&without_users(text), |_| HIDDEN.to_owned());
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(MAX_LINES);
    let short = |line: &str| line.chars().take(MAX_CHARS).collect::<String>();
    let clean: Vec<String> = lines.map(|line| redact(&short(line), is_secret)).collect();
    clean.join(" / ")
}

/// Takes names and passwords out of addresses.
fn without_users(line: &str) -> String {
    let mut parts = line.split("://");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(part.len());
        let host = part[..end].rfind('@').map_or(0, |at| at + 1);
        clean += "://";
        clean += &part[host..];
    }
    clean
}

/// Replaces each word that looks like a secret, or stands where one is expected.
fn redact(line: &str, is_secret: fn(&str) -> bool) -> String {
    let (mut clean, mut word) = (String::new(), String::new());
    let (mut named, mut expected) = (false, false);
    for character in line.chars().chain([' ']) {
        if is_part_of_a_word(character) {
            word.push(character);
            continue;
        }
        if !word.is_empty() {
            let lower = word.to_lowercase();
            named = NAMES.iter().any(|name| lower.ends_with(name));
            let scheme = SCHEMES.contains(&lower.as_str());
            clean += if is_secret(&word) || expected && !named && !scheme { HIDDEN } else { &word };
            expected = scheme;
            word.clear();
        }
        // It has been left out already.
        (expected, named) = if HIDDEN.contains(character) { (false, false) } else { (expected, named) };
        expected |= named && "=:\"'".contains(character);
        clean.push(if character.is_control() { ' ' } else { character });
    }
    clean.trim_end().to_owned()
}

fn is_part_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || "-_.+/~%".contains(character)
}

/// Long and with a digit in it: keys, hashes, JSON web tokens. Some harmless words are lost too.
fn looks_secret(word: &str) -> bool {
    word.len() >= 20 && word.contains(|character: char| character.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(excerpt(text), expected);
    }

    #[test]
    fn an_excerpt_has_no_secrets() {
        check("the SSO session has expired\n\nlog in again\n", "the SSO session has expired / log in again");
        check("got eyJhbGciOiJSUzI1NiIsImtpZCI6Ik.eyJpc3MiOi back", "got … back");
        check("token=abc refused, password: \"hunter2\" too", "token=… refused, password: \"…\" too");
        check("Authorization: Bearer abc", "Authorization: Bearer …");
        check("AWS_SESSION_TOKEN=abc", "AWS_SESSION_TOKEN=…");
        check("the token has expired: log in", "the token has expired: log in");
    }

    #[test]
    fn what_a_cluster_says_keeps_names_and_no_secrets() {
        let image = "Back-off pulling image \"registry.example.com/infra/envoy-wrapper:v2.4.0-rc1\"";
        assert_eq!(said(image), image);
        let check = |text: &str, expected: &str| assert_eq!(said(text), expected);
        check("pull https://me:pw@example.com/a: denied", "pull https://example.com/a: denied");
        check("pull https://example.com/a@b: denied", "pull https://example.com/a@b: denied");
        check("got eyJhbGciOiJSUzI1NiIsImtpZCI6Ik.eyJpc3MiOi back", "got … back");
        check("password=hunter2", "password=…");
    }

    #[test]
    fn an_excerpt_is_short_and_plain() {
        check("\u{1b}[31mred\u{1b}[0m", " [31mred [0m");
        check("a\nb\nc\nd", "a / b / c");
        assert_eq!(excerpt(&"x ".repeat(1000)).chars().count(), MAX_CHARS - 1);
    }
}
