//! Secrets in texts: what looks like a credential, or stands where one does.
//!
//! A rule that finds too much hides what a report is read for, so each goes by a form that hardly anything else has.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::MASK;
use super::names::{is_count, is_secret_variable};

type Pattern = LazyLock<Regex>;

/// Classes are written out, and words end where those of ASCII do: a class of Unicode is hundreds of ranges, and a pattern
/// that repeats some takes megabytes in each thread. A letter beyond ASCII stands in no name and in no token of a known form;
/// where it may stand in a password, the pattern takes all of them.
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is constant, and tests use it")
}

/// Texts that are secret wherever they stand: private keys, also in base64, JSON web tokens, and tokens with a known
/// beginning.
static WHOLE: Pattern = LazyLock::new(|| {
    pattern(concat!(
        r"(?s:-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?P<pem>.+?)(?:-----END|\z))",
        r"|(?m:(?P<encoded>LS0tLS1CRUdJTiB[QSFPE][A-Za-z0-9+/=]*(?:\r?\n[ \t]*[A-Za-z0-9+/=]+$)*))",
        r"|(?P<jwt>(?-u:\b)eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)*)",
        r"|(?P<known>(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}",
        r"|xox[abeprs]-[A-Za-z0-9_-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}|sk-[A-Za-z0-9_-]{20,}|hvs\.[A-Za-z0-9_-]{20,}",
        r"|npm_[A-Za-z0-9_]{30,}|AIza[A-Za-z0-9_-]{30,}))",
    ))
});

/// An address, up to what can be in none.
static ADDRESS: Pattern = LazyLock::new(|| pattern(r#"[A-Za-z][A-Za-z0-9+.-]*://(?P<rest>[^\s"'<>\\`]+)"#));

/// The text that follows the scheme of a header.
static SCHEME: Pattern = LazyLock::new(|| {
    pattern(concat!(
        r"(?P<before>(?i-u:authorization)[^A-Za-z0-9_]+)?(?-u:\b)(?i-u:bearer|basic)[ \t]+",
        r"(?P<secret>[A-Za-z0-9_.~+/=\x{80}-\x{10FFFF}-]{3,})",
    ))
});

/// A name and what is to be set; the value is read by hand.
static ASSIGNMENT: Pattern = LazyLock::new(|| {
    pattern(r#"(?P<name>[A-Za-z0-9_.-]*[A-Za-z0-9_])(?:\\*["'])?[ \t]*(?P<sign>:=|=>|[:=])[ \t]*(?P<quote>\\*["'])?"#)
});

/// A flag and its value, as words of a command.
static FLAG: Pattern = LazyLock::new(|| {
    pattern(r#"(?:^|[\s"'])--?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)[ \t]+["']?(?P<secret>[^\s"'-][^\s"']*)"#)
});

/// A variable as a pair of fields, in JSON, YAML or the words of Go.
static PAIR: Pattern = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i-u:name|key)(?:\\*["'])?\s*:\s*(?:\\*["'])?(?P<name>[A-Za-z0-9_.-]+)(?:\\*["'])?\s*,?\s*"#,
        r#"(?:\\*["'])?(?-u:\b)(?i-u:value)(?:\\*["'])?\s*:[ \t]*(?P<quote>\\*["'])?"#,
    ))
});

/// Words with which API servers begin a message about what is wrong with a field.
const COMPLAINTS: [&str; 9] = [
    "Required value",
    "Forbidden",
    "Unsupported value",
    "Duplicate value",
    "Not found",
    "Internal error",
    "Too long",
    "Too many",
    "must ",
];

/// The same, before the value that is wrong.
const INVALID: &str = "Invalid value:";

/// Words in a header that say how to read what follows.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// The most bytes of texts without a secret that a thread remembers.
const MOST_PLAIN: usize = 1 << 20;

thread_local! {
    /// Texts in which nothing was found. On the clusters of a fleet the same ones are looked at again and again, and one
    /// that is known takes a fraction of the time. No secret is among them.
    static PLAIN: RefCell<Plain> = RefCell::default();
}

#[derive(Default)]
struct Plain {
    texts: BTreeSet<Box<str>>,
    bytes: usize,
}

impl Plain {
    fn add(&mut self, text: &str) {
        if text.len() > MOST_PLAIN / 16 {
            return;
        }
        if self.bytes + text.len() > MOST_PLAIN {
            *self = Self::default();
        }
        self.bytes += text.len();
        self.texts.insert(text.into());
    }
}

/// Returns where secrets stand in a text, in order and apart.
pub fn secrets(text: &str) -> Vec<Range<usize>> {
    if !text.contains([':', '=', '-', ' ', '_', '.']) && !text.contains("LS0t") && !text.starts_with("AKIA") {
        return Vec::new();
    }
    if PLAIN.with_borrow(|plain| plain.texts.contains(text)) {
        return Vec::new();
    }
    let found = found(text);
    if found.is_empty() {
        PLAIN.with_borrow_mut(|plain| plain.add(text));
    }
    found
}

/// Looks for secrets in a text.
fn found(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for hit in WHOLE.captures_iter(text) {
        found.extend(hit.iter().skip(1).flatten().map(|group| group.range()));
    }
    found.extend(ADDRESS.captures_iter(text).filter_map(|hit| user(text, &hit)));
    found.extend(SCHEME.captures_iter(text).filter_map(|hit| after_scheme(&hit)));
    let named = |hit: &Captures<'_>| {
        let is_escaped = hit.name("name").is_some_and(|name| text[..name.start()].ends_with('\\'));
        let name = &hit["name"];
        is_secret_variable(name) || is_escaped && name.get(1..).is_some_and(is_secret_variable)
    };
    found.extend(FLAG.captures_iter(text).filter(named).filter_map(|hit| Some(hit.name("secret")?.range())));
    found.extend(PAIR.captures_iter(text).filter(named).filter_map(|hit| paired(text, &hit)));
    let mut covered = 0;
    for hit in ASSIGNMENT.captures_iter(text).filter(named) {
        // What stands in a value goes with it; a long row of them must not be gone through again and again.
        let is_inside = hit.name("quote").is_none() && hit.get(0).is_some_and(|whole| whole.start() < covered);
        if let Some(span) = (!is_inside).then(|| assigned(text, &hit)).flatten() {
            covered = covered.max(span.end);
            found.push(span);
        }
    }
    found.retain(|span| !is_placeholder(&text[span.clone()]));
    found.sort_by_key(|span| (span.start, span.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for span in found {
        match apart.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => apart.push(span),
        }
    }
    apart
}

/// Returns a text with something else in the place of each secret.
pub fn replaced(text: &str, mut instead: impl FnMut(&str) -> String) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for span in secrets(text) {
        out += &text[at..span.start];
        out += &instead(&text[span.clone()]);
        at = span.end;
    }
    out + &text[at..]
}

/// Tells whether a text only says where a secret is to be found, or is none: nothing, a mask, a reference to a variable.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'', ' ', '\\']);
    let is_within = |open: &str, close: char| {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.is_some_and(|inner| !inner.contains([close, ' ']))
    };
    let is_word = matches!(text, "" | "null" | "none" | "true" | "false" | "nil" | "…" | "[]" | "{}" | "{" | "|" | ">");
    is_word || text.starts_with(MASK) || is_within("$(", ')') || is_within("${", '}') || is_within("<", '>')
}

/// The password of an address, or whatever stands for a user alone: that is a token.
fn user(text: &str, hit: &Captures<'_>) -> Option<Range<usize>> {
    let rest = hit.name("rest")?;
    let authority = rest.as_str().find(['/', '?', '#']).map_or(rest.as_str(), |end| &rest.as_str()[..end]);
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let is_cut = port.is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit()) && !port.ends_with(']'));
    // A password with a slash ends what would be the host.
    let whole = if authority.contains('@') || !is_cut { authority } else { rest.as_str() };
    let (user, _) = whole.rsplit_once('@')?;
    let start = rest.start() + user.find(':').map_or(0, |colon| colon + 1);
    let end = rest.start() + user.len();
    (!text[start..end].is_empty()).then_some(start..end)
}

/// Prose knows "basic" and "bearer" too, so the word must look made up, or the header be named.
fn after_scheme(hit: &Captures<'_>) -> Option<Range<usize>> {
    let secret = hit.name("secret")?;
    let is_made_up = |word: &str| {
        word.len() >= 6
            && word.chars().skip(1).any(|c| c.is_ascii_digit() || c.is_ascii_uppercase() || "=_+~".contains(c))
    };
    (hit.name("before").is_some() || is_made_up(secret.as_str())).then(|| secret.range())
}

fn assigned(text: &str, hit: &Captures<'_>) -> Option<Range<usize>> {
    let (whole, name) = (hit.get(0)?, hit.name("name")?);
    let line = text[..name.start()].rfind('\n').map_or(0, |at| at + 1);
    let lead = text[line..name.start()].trim_start_matches("export ");
    // In a quoted text a line begins after `\n`, whose letter looks like a part of the name.
    let is_escaped = lead.ends_with('\\');
    let opens_line = is_escaped || lead.chars().all(|c| c.is_whitespace() || "#-\"'".contains(c));
    // Alone in its text it is said in prose at least as often as it is set.
    let is_set = &hit["sign"] != ":" || hit.name("quote").is_some() || opens_line;
    // What follows `=` without blanks is a word, as in a command.
    let is_line = opens_line && (&hit["sign"] != "=" || whole.as_str().contains(" ="));
    let is_bare = opens_line && !is_escaped && !lead.contains(['"', '\'']);
    let is_query = lead.ends_with(['?', '&']);
    let ends = |c: char| match c {
        '\n' | '\r' => true,
        '&' => is_query,
        '"' | '\'' | '\\' => !is_bare,
        c => c.is_whitespace() && !is_line,
    };
    let mut range = value(text, hit, ends)?;
    let said = &text[range.clone()];
    let scheme =
        SCHEMES.iter().find(|scheme| said.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme)));
    range.start += scheme.map_or(0, |scheme| scheme.len());
    if is_count(&hit["name"]) && said.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Some(rest) = text[whole.end()..].strip_prefix(INVALID) {
        return Some(quoted(text, text.len() - rest.trim_start().len()));
    }
    if COMPLAINTS.iter().any(|words| text[whole.end()..].starts_with(words)) {
        return None;
    }
    let is_word = said.trim_end_matches(['.', ',', ';']).bytes().all(|byte| byte.is_ascii_lowercase());
    (is_set || !is_word).then_some(range)
}

/// Returns the range of what a pair of fields sets: a line of YAML, or up to what ends a field of JSON.
fn paired(text: &str, hit: &Captures<'_>) -> Option<Range<usize>> {
    let is_flow = hit[0].contains([',', '"', '\\']);
    value(text, hit, |c| "\r\n".contains(c) || is_flow && ",}\"\\".contains(c))
}

/// Returns the range of what an API server quotes.
fn quoted(text: &str, start: usize) -> Range<usize> {
    let rest = &text[start..];
    match rest.strip_prefix('"') {
        Some(inner) => start + 1..start + 1 + end_of_quote(inner, "\""),
        None => start..start + rest.find(": ").unwrap_or(rest.len()),
    }
}

/// Returns the range of the value that is set: up to the end of its quotes, or to what ends it where there are none.
fn value(text: &str, hit: &Captures<'_>, ends: impl Fn(char) -> bool) -> Option<Range<usize>> {
    let start = hit.get(0)?.end();
    let rest = &text[start..];
    let end = match hit.name("quote") {
        Some(quote) => end_of_quote(rest, quote.as_str()),
        None => rest.find(ends).unwrap_or(rest.len()),
    };
    let end = start + text[start..start + end].trim_end().len();
    (end > start).then_some(start..end)
}

/// Finds the quote that ends a value: one that is escaped no more than the one that began it.
fn end_of_quote(text: &str, quote: &str) -> usize {
    let (escapes, mark) = (quote.len() - 1, quote.chars().last().unwrap_or('"'));
    let mut run = 0;
    for (at, character) in text.char_indices() {
        match character {
            '\\' => run += 1,
            _ if character == mark && run <= escapes => return at - run,
            _ => run = 0,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let masked = replaced(text, |_| MASK.to_owned());
        assert_eq!(masked, expected);
        assert_eq!(replaced(&masked, |_| "again".to_owned()), masked, "once is enough");
    }

    #[test]
    fn credentials_are_found_by_their_form() {
        check("https://me:pw@example.com/a", "https://me:***@example.com/a");
        check("https://ghtoken@example.com/a", "https://***@example.com/a");
        check("amqp://me:p/w@example.com/a", "amqp://me:***@example.com/a");
        check("a eyJhbGciOiJSUzI1NiIs.eyJpc3Mi.c2ln b", "a *** b");
        check("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END", "-----BEGIN RSA PRIVATE KEY-----***-----END");
        check("key: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t", "key: ***");
        check("Authorization: Bearer abc", "Authorization: Bearer ***");
        check("use Bearer Zm9vYmFy now", "use Bearer *** now");
        check("use BASIC pässwört1 now", "use BASIC *** now");
        check("äsk-abcdefghijklmnopqrstuv", "ä***");
        check("id AKIAABCDEFGHIJKLMNOP", "id ***");
    }

    #[test]
    fn credentials_are_found_by_their_names() {
        check("--password=hunter2", "--password=***");
        check("mysql --password hunter2 -v", "mysql --password *** -v");
        check("https://a/b?token=abc&x=1", "https://a/b?token=***&x=1");
        check("password=a\"b&c'd", "password=***");
        check("a\\npassword: a\\nuser: me", "a\\npassword: ***\\nuser: me");
        check("db:\n  password: a b c\n  user: me", "db:\n  password: ***\n  user: me");
        check(r#"{"password":"a\"b","user":"me"}"#, r#"{"password":"***","user":"me"}"#);
        check(r#""{\"password\":\"ab\",\"user\":\"me\"}""#, r#""{\"password\":\"***\",\"user\":\"me\"}""#);
        check(r#"[{"name":"DB_PASSWORD","value":"x y"}]"#, r#"[{"name":"DB_PASSWORD","value":"***"}]"#);
        check("- name: DB_PASSWORD\n  value: xy\n- name: A", "- name: DB_PASSWORD\n  value: ***\n- name: A");
        check(
            r#"EnvVar{Name:"DB_PASSWORD", Value:"hunter2", X:nil}"#,
            r#"EnvVar{Name:"DB_PASSWORD", Value:"***", X:nil}"#,
        );
        check(r#"spec.token: Invalid value: "a: b": too short"#, r#"spec.token: Invalid value: "***": too short"#);
    }

    #[test]
    fn a_long_text_is_gone_through_once() {
        let long = "password=".repeat(100_000);
        check(&long, "password=***");
        check("token=password=\"a b\"", "token=***\"");
    }

    #[test]
    fn what_only_sounds_like_a_credential_stays() {
        for text in [
            "the token has expired: log in",
            "cannot get the token: context deadline exceeded",
            "https://example.com/a@b",
            "https://example.com:8443/a@b",
            "registry.example.com/infra/proxy:v1@sha256:0123456789abcdef",
            "spec.token: Required value",
            "--token-file /run/token",
            "password: $(DB_PASSWORD)",
            "basic authentication",
            "secretName: edge-tls",
            "maxTokens: 4096",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
            "secrets \"edge-tls\" not found",
        ] {
            check(text, text);
        }
    }
}
