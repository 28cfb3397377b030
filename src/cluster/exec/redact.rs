//! Quoting what a program said, without the secrets that it may have said.

/// What stands for a word that was left out.
const HIDDEN: &str = "…";

const MAX_LINES: usize = 3;
const MAX_CHARS: usize = 200;

/// Names of secrets: the secret follows after `=`, `:` or a quote.
const NAMES: [&str; 4] = ["token", "password", "passwd", "secret"];

/// Words that the secret follows directly.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Returns the first lines of a text in one line, without control characters and without what looks like a secret.
pub(super) fn excerpt(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(MAX_LINES);
    let clean: Vec<String> = lines.map(|line| redact(&line.chars().take(MAX_CHARS).collect::<String>())).collect();
    clean.join(" / ")
}

/// Replaces each word that looks like a secret, or stands where one is expected.
fn redact(line: &str) -> String {
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
            clean += if looks_secret(&word) || expected && !named && !scheme { HIDDEN } else { &word };
            expected = scheme;
            word.clear();
        }
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
    fn an_excerpt_is_short_and_plain() {
        check("\u{1b}[31mred\u{1b}[0m", " [31mred [0m");
        check("a\nb\nc\nd", "a / b / c");
        assert_eq!(excerpt(&"x ".repeat(1000)).chars().count(), MAX_CHARS - 1);
    }
}
