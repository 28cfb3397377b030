//! YAML as Kubernetes reads it, every value with its position.
//!
//! What `kubectl` accepts means the same here: YAML 1.1 booleans (`yes`, `on`), octals (`0644`), merge keys, many
//! documents a file. What it accepts and should not is refused: a duplicate key wins nowhere. Alias bombs and deep
//! nesting end in an error with a position; no other limit is one that a repository of specs meets.
//!
//! The memory that a text takes is counted (`Parsed::bytes`), because a few aliases can stand for
//! gigabytes, and a list of little mappings takes a hundred times what it is long.

mod concatenated;
mod room;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::{MessageFormatter, Spanned, UserMessageFormatter};

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column in characters, from 1; 0 if unknown.
    pub column: u32,
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The position where the value begins.
    pub position: Position,
    /// The value.
    pub content: Content,
}

/// The content of a [`Node`]: JSON's data model.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Nothing, `null` or `~`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number; one without a fraction is an integer, however it was written.
    Number(Number),
    /// Text.
    String(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping; keys that are no strings become strings, as on the way to JSON.
    Map(BTreeMap<String, Field>),
}

/// One entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The position of the key.
    pub key: Position,
    /// The value.
    pub node: Node,
}

/// Text that is not the YAML that Kubernetes takes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct YamlError {
    /// The position of the mistake.
    pub position: Position,
    /// The mistake, lower case.
    pub message: String,
}

/// The deepest nesting of lists and maps: more than the deepest Kubernetes schema needs, and less than a thread has
/// stack for.
const MAX_DEPTH: usize = 64;
const TOO_DEEP: &str = "the document nests too deep, or its aliases expand to too much";

/// The documents of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The documents; empty ones are left out.
    pub documents: Vec<Node>,
    /// The memory that they take, about.
    pub bytes: usize,
}

/// Reads all documents of a file; empty ones are left out.
pub fn parse(text: &str) -> Result<Vec<Node>, YamlError> {
    parse_within(text, usize::MAX).map(|parsed| parsed.documents)
}

/// Reads all documents of a file that may take so much memory, and no more than is in proportion to its length.
pub fn parse_within(text: &str, room: usize) -> Result<Parsed, YamlError> {
    let (documents, bytes) = room::counted(room.min(room::proportionate(text)), || documents(text));
    let documents = documents?;
    let documents = documents.into_iter().filter(|document| document.content != Content::Null).collect();
    Ok(Parsed { documents, bytes })
}

fn documents(text: &str) -> Result<Vec<Node>, YamlError> {
    let whole = of_yaml(text);
    match whole.is_err().then(|| concatenated::pieces(text)) {
        Some(pieces) if pieces.len() > 1 => concatenated::read(text, &pieces),
        _ => whole,
    }
}

fn of_yaml(text: &str) -> Result<Vec<Node>, YamlError> {
    serde_saphyr::from_multiple_with_options::<Node>(text, options(text)).map_err(|e| error(&e))
}

/// Reads all documents of a text that this program wrote itself, without positions; as strict as [`parse`].
pub fn parse_values(text: &str) -> Result<Vec<Value>, YamlError> {
    let documents = serde_saphyr::from_multiple_with_options::<Value>(text, options(text)).map_err(|e| error(&e))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Writes a value as YAML that reads back as the same value, keys sorted.
///
/// # Panics
/// Never: every JSON value has a form in YAML.
pub fn to_string(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("a JSON value is always writable as YAML")
}

fn options(text: &str) -> serde_saphyr::Options {
    serde_saphyr::options! {
        // The defaults (1,024 documents, 250,000 nodes) are limits that a repository of specs does meet.
        budget: serde_saphyr::budget! {
            max_documents: 10_000_000,
            max_nodes: 100_000_000,
            max_events: 200_000_000,
            max_depth: MAX_DEPTH,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: room::repetitions(text) },
        legacy_octal_numbers: true,
        // Nobody reads either, and comments would count against limits.
        emit_comments: false,
        with_snippet: false,
    }
}

fn error(error: &serde_saphyr::Error) -> YamlError {
    let error = error.without_snippet();
    let position = error.location().map_or(Position::default(), |at| position(&at));
    YamlError { position, message: message(error).into_owned() }
}

fn message(error: &serde_saphyr::Error) -> Cow<'_, str> {
    match error {
        serde_saphyr::Error::AliasError { error, .. } => message(error),
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {key:?} stands here a second time").into()
        }
        serde_saphyr::Error::Budget { .. } => TOO_DEEP.into(),
        other => match UserMessageFormatter.format_message(other) {
            // The parser gives up before its budget is counted.
            message if message.contains("recursion limit") => TOO_DEEP.into(),
            message => message,
        },
    }
}

fn position(at: &serde_saphyr::Location) -> Position {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Position { line: number(at.line()), column: number(at.column()) }
}

impl Node {
    /// Returns it with every position elsewhere.
    #[must_use]
    pub fn shifted(self, to: &impl Fn(Position) -> Position) -> Self {
        let content = match self.content {
            Content::List(items) => Content::List(items.into_iter().map(|item| item.shifted(to)).collect()),
            Content::Map(fields) => {
                let field =
                    |(name, field): (String, Field)| (name, Field { key: to(field.key), node: field.node.shifted(to) });
                Content::Map(fields.into_iter().map(field).collect())
            }
            leaf @ (Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_)) => leaf,
        };
        Self { position: to(self.position), content }
    }

    /// Makes a node that stands nowhere.
    pub fn of_value(value: &Value) -> Self {
        let field = |node| Field { key: Position::default(), node };
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(value) => Content::Bool(*value),
            Value::Number(value) => Content::Number(value.clone()),
            Value::String(value) => Content::String(value.clone()),
            Value::Array(items) => Content::List(items.iter().map(Self::of_value).collect()),
            Value::Object(fields) => {
                Content::Map(fields.iter().map(|(key, value)| (key.clone(), field(Self::of_value(value)))).collect())
            }
        };
        Self { position: Position::default(), content }
    }

    /// Returns the value without positions.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(value) => Value::Number(value.clone()),
            Content::String(value) => Value::String(value.clone()),
            Content::List(nodes) => nodes.iter().map(Self::to_value).collect(),
            Content::Map(fields) => fields.iter().map(|(key, field)| (key.clone(), field.node.to_value())).collect(),
        }
    }

    /// Returns a field of a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(fields) => fields.get(key).map(|field| &field.node),
            _ => None,
        }
    }

    /// Follows keys and indexes, as in a JSON pointer cut at its slashes.
    pub fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Self> {
        path.into_iter().try_fold(self, |node, part| match &node.content {
            Content::List(nodes) => nodes.get(part.parse::<usize>().ok()?),
            _ => node.get(part),
        })
    }

    /// Returns text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items of a list.
    pub fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(nodes) => nodes,
            _ => &[],
        }
    }

    /// Returns the fields of a mapping.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Field)> {
        let fields = match &self.content {
            Content::Map(fields) => Some(fields),
            _ => None,
        };
        fields.into_iter().flatten().map(|(key, field)| (key.as_str(), field))
    }
}

impl Content {
    /// Names the type in the words of a JSON schema.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(number) if number.is_f64() => "number",
            Self::Number(_) => "integer",
            Self::String(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "object",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        room::take(room::VALUE)?;
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { position: position(&spanned.referenced), content: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Content, E> {
        number(value).map(Content::Number).ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Content, E> {
        room::take(room::ALLOCATION + value.len())?;
        Ok(Content::String(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Content, E> {
        room::take(room::ALLOCATION + value.len())?;
        Ok(Content::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        room::take(room::ALLOCATION)?;
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            // A list that grows has room for twice of what is in it.
            room::take(room::VALUE)?;
            nodes.push(node);
        }
        Ok(Content::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(key) = entries.next_key::<Node>()? {
            let name = key_text(&key.content).ok_or_else(|| {
                de::Error::custom("a list or an object cannot be a key; is a {{ template }} left in the file, or a text without quotes?")
            })?;
            room::take(room::of_field(fields.len()))?;
            let node = entries.next_value()?;
            if fields.insert(name.clone(), Field { key: key.position, node }).is_some() {
                return Err(de::Error::custom(format!("the key {name:?} stands here a second time")));
            }
        }
        Ok(Content::Map(fields))
    }
}

/// A float without a fraction becomes an integer, because JSON (and so an API server) makes no difference.
fn number(value: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked in the line above")]
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

fn key_text(key: &Content) -> Option<String> {
    match key {
        Content::String(text) => Some(text.clone()),
        Content::Bool(value) => Some(value.to_string()),
        Content::Number(value) => Some(value.to_string()),
        Content::Null => Some("null".to_owned()),
        Content::List(_) | Content::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(text: &str, expected: Value) {
        let documents = parse(text).expect(text);
        assert_eq!(documents.iter().map(Node::to_value).collect::<Value>(), expected, "{text}");
    }

    fn fails(text: &str, line: u32, message: &str) {
        let error = parse(text).expect_err(text);
        assert!(error.message.contains(message), "{}", error.message);
        assert_eq!(error.position.line, line, "{}", error.message);
    }

    #[test]
    fn scalars_mean_what_kubernetes_takes_them_for() {
        check("a: [yes, Off, y, 'y']", json!([{"a": [true, false, true, "y"]}]));
        check("a: [0644, 0o17, 0x1f, 0b11, 1_000, 08, 1e3, 1.0]", json!([{"a": [420, 15, 31, 3, 1000, 8, 1000, 1]}]));
        check("a: [12:30:45, 2024-01-01, 1.5, ~, '']", json!([{"a": ["12:30:45", "2024-01-01", 1.5, null, ""]}]));
        check("1: a\non: b\n", json!([{"1": "a", "true": "b"}]));
    }

    #[test]
    fn empty_documents_are_left_out() {
        check("---\n# nothing\n---\na: 1\n---\n...\n", json!([{"a": 1}]));
        check("", json!([]));
    }

    #[test]
    fn anchors_and_merge_keys_expand() {
        check("a: &x {k: 1}\nb: *x\nc: {<<: *x, m: 2}", json!([{"a": {"k": 1}, "b": {"k": 1}, "c": {"k": 1, "m": 2}}]));
    }

    #[test]
    fn windows_files_read_as_any_other() {
        check("\u{feff}a: b\r\nc: d\r\n", json!([{"a": "b", "c": "d"}]));
    }

    #[test]
    fn every_value_knows_its_line() {
        let documents = parse("a: 1\nb:\n  - x: 1\n    z: 2\n").expect("it is valid");
        let at = |path: &[&str]| documents[0].at(path.iter().copied()).map(|node| node.position);
        assert_eq!(at(&["b", "0", "z"]), Some(Position { line: 4, column: 8 }));
        assert_eq!(at(&["b", "1"]), None);
    }

    #[test]
    fn mistakes_have_a_line() {
        fails("a: 1\nb: 2\na: 3\n", 3, "\"a\" stands here a second time");
        fails("a: [1, 2\n", 1, "bracket");
        fails("a: 1\nb: {{ x }}\n", 2, "template");
        fails("a: b: c", 1, "mapping values");
        fails("a: .inf", 1, "not a finite number");
    }

    #[test]
    fn bombs_are_refused() {
        fails(&format!("a: {}{}", "[".repeat(200), "]".repeat(200)), 1, "nests too deep");
        fails(&format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000)), 1, "nests too deep");
        let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned()];
        for i in 1..10 {
            let aliases = vec![format!("*a{}", i - 1); 9].join(", ");
            lines.push(format!("a{i}: &a{i} [{aliases}]"));
        }
        let bomb = lines.join("\n");
        fails(&bomb, 4, "too much");
    }

    #[test]
    fn a_large_file_is_no_problem() {
        let text = "a: {b: [1, 2, 3]}\n---\n".repeat(20_000);
        assert_eq!(parse(&text).map(|documents| documents.len()), Ok(20_000));
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let value = json!({"a": "yes", "b": "1e3", "c": "0644", "d": "x: y #", "e": "multi\nline\n", "f": ["~", null, 1.5, "\u{85}\t", "a \u{2028} b \u{7f} \u{feff}"], "n": ""});
        assert_eq!(parse_values(&to_string(&value)), Ok(vec![value]));
    }
}
