//! Documents of JSON that follow each other without anything between them: no YAML, and what kubectl reads as well.

use std::ops::Range;

use serde::de::IgnoredAny;

use crate::{Node, Position, YamlError, of_yaml};

/// Returns where the documents of a text stand that are JSON, one after the other, which is no YAML and what kubectl reads;
/// nothing if it is something else.
pub(crate) fn pieces(text: &str) -> Vec<Range<usize>> {
    let (mut values, mut pieces) = (serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>(), Vec::new());
    let mut start = 0;
    while let Some(value) = values.next() {
        let end = values.byte_offset();
        if value.is_err() || !text[start..end].trim_start().starts_with('{') {
            return Vec::new();
        }
        pieces.push(start..end);
        start = end;
    }
    pieces
}

/// Reads each of them, with positions in the whole text.
pub(crate) fn read(text: &str, pieces: &[Range<usize>]) -> Result<Vec<Node>, YamlError> {
    let (mut line, mut column, mut all) = (0, 0, Vec::new());
    for piece in pieces {
        let piece = &text[piece.clone()];
        let on_first = |at: Position| at.column + if at.line == 1 { column } else { 0 };
        let to = |at: Position| Position { line: at.line + line, column: on_first(at) };
        match of_yaml(piece) {
            Ok(nodes) => all.extend(nodes.into_iter().map(|node| node.shifted(&to))),
            Err(error) => return Err(YamlError { position: to(error.position), ..error }),
        }
        let last = piece.rsplit('\n').next().unwrap_or_default();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let breaks = number(piece.matches('\n').count());
        column = number(last.chars().count()) + if breaks == 0 { column } else { 0 };
        line += breaks;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use crate::{Position, parse};

    #[test]
    fn documents_of_json_need_nothing_between_them() {
        let text = "{\"kind\": \"A\",\n \"x\": 1}\n\n{\"kind\": \"B\"} {\"kind\":\n\"C\"}\n";
        let documents = parse(text).expect("it is JSON");
        let at = |position: Position| (position.line, position.column);
        let kinds: Vec<_> = documents
            .iter()
            .map(|it| it.get("kind").and_then(|kind| Some((kind.as_str()?, at(kind.position)))))
            .collect();
        assert_eq!(kinds, [Some(("A", (1, 10))), Some(("B", (4, 10))), Some(("C", (5, 1)))]);
        assert_eq!(at(documents[2].position), (4, 15));
    }

    #[test]
    fn what_is_wrong_in_one_of_them_is_told_where_it_stands() {
        let twice = parse("{\"a\": 1}\n{\"b\": 1,\n \"b\": 2}").expect_err("a key stands there twice");
        assert_eq!((twice.position.line, twice.message.as_str()), (3, "the key \"b\" stands here a second time"));
        for text in ["{\"a\": 1}\n{\"b\": ", "{\"a\": 1}\n1", "{\"a\": 1} x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
