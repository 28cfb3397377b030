//! The tags of a template, in the small parts that questions about them need.
//!
//! Tera keeps its syntax tree to itself. So what has to be known of a template without filling it is read off its text
//! here: which filters are called with which arguments, which values are asked for, which are printed. A template that
//! Tera does not take is not read well here either; Tera says what is wrong with it.

/// A tag: `{{ … }}` or `{% … %}`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tag<'a> {
    /// Whether it puts a value into the text.
    pub(crate) is_print: bool,
    /// The line of the template on which it begins.
    pub(crate) line: u32,
    /// The tokens of it.
    pub(crate) tokens: Vec<Token<'a>>,
}

/// The smallest part of a tag that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// The part, without quotes.
    pub(crate) part: Part<'a>,
    /// Its line of the template.
    pub(crate) line: u32,
}

/// The part of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A name or a word of the language.
    Name(&'a str),
    /// A text in quotes, or a number.
    Literal,
    /// An operator, a bracket or a comma.
    Sign(&'a str),
}

/// Signs of more than one character, the longest first.
const LONG_SIGNS: [&str; 9] = ["...", "//", "**", "==", "!=", ">=", "<=", "?.", "?["];

impl<'a> Token<'a> {
    /// Returns the name, if it is one.
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self.part {
            Part::Name(name) => Some(name),
            Part::Literal | Part::Sign(_) => None,
        }
    }

    /// Tells whether it is this sign.
    pub(crate) fn is(&self, sign: &str) -> bool {
        self.part == Part::Sign(sign)
    }

    /// Tells whether it is one of these words.
    pub(crate) fn is_word(&self, words: &[&str]) -> bool {
        self.name().is_some_and(|name| words.contains(&name))
    }

    /// Returns the change of depth: 1 for what opens a bracket, -1 for what closes one.
    pub(crate) fn nests(&self) -> i32 {
        match self.part {
            Part::Sign("(" | "[" | "{" | "?[") => 1,
            Part::Sign(")" | "]" | "}") => -1,
            Part::Sign(_) | Part::Name(_) | Part::Literal => 0,
        }
    }
}

impl<'a> Tag<'a> {
    /// Returns the word that says what kind of tag it is, of `{% … %}`.
    pub(crate) fn word(&self) -> Option<&'a str> {
        self.tokens.first().filter(|_| !self.is_print)?.name()
    }
}

/// Returns the tags of a template, in their order; comments and what is raw have none.
pub(crate) fn tags(template: &str) -> Vec<Tag<'_>> {
    let (mut tags, mut rest, mut line) = (Vec::new(), template, 1);
    while let Some(start) = rest.find('{') {
        line += lines(&rest[..start]);
        let tag = &rest[start..];
        let length = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map(|end| end + 2),
            Some(b'{') => length(tag, "}}"),
            Some(b'%') => length(tag, "%}"),
            _ => Some(1),
        };
        let Some(length) = length else { break };
        let (tag, after) = tag.split_at(length);
        rest = after;
        if tag.starts_with("{{") || tag.starts_with("{%") {
            let tag = Tag { is_print: tag.starts_with("{{"), line, tokens: tokens(inside(tag), line) };
            if tag.word() == Some("raw") {
                let end = rest.find("endraw").unwrap_or(rest.len());
                line += lines(&rest[..end]);
                rest = &rest[end..];
            }
            tags.push(tag);
        }
        line += lines(tag);
    }
    tags
}

/// Returns the length of a tag; what closes it does not count within quotes.
pub(super) fn length(text: &str, close: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    for (index, char) in text.char_indices() {
        match quote {
            _ if escaped => escaped = false,
            Some(open) if char == open => quote = None,
            Some(_) => escaped = char == '\\',
            None if matches!(char, '"' | '\'' | '`') => quote = Some(char),
            None if text[index..].starts_with(close) => return Some(index + close.len()),
            None => {}
        }
    }
    None
}

fn lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

/// Returns a tag without what begins and ends it.
fn inside(tag: &str) -> &str {
    // What begins a tag and what ends it share a character in `{%}`, which Tera does not take.
    let inner = tag.get(2..tag.len() - 2).unwrap_or_default();
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    inner.strip_suffix('-').unwrap_or(inner)
}

fn tokens(text: &str, first: u32) -> Vec<Token<'_>> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, first);
    loop {
        let trimmed = rest.trim_start();
        line += lines(&rest[..rest.len() - trimmed.len()]);
        rest = trimmed;
        let Some(char) = rest.chars().next() else { return tokens };
        let (part, length) = part(rest, char);
        tokens.push(Token { part, line });
        line += lines(&rest[..length]);
        rest = &rest[length..];
    }
}

/// Returns the part that a text begins with, and its length.
fn part(text: &str, first: char) -> (Part<'_>, usize) {
    let while_it = |holds: fn(char) -> bool| text.find(|char| !holds(char)).unwrap_or(text.len());
    if matches!(first, '"' | '\'' | '`') {
        let end = text[1..].char_indices().scan(false, |escaped, (index, char)| {
            let is_end = !*escaped && char == first;
            *escaped = !*escaped && char == '\\';
            Some((index, is_end))
        });
        let end = end.filter(|(_, is_end)| *is_end).map(|(index, _)| index + 2).next();
        return (Part::Literal, end.unwrap_or(text.len()));
    }
    if first.is_ascii_digit() {
        return (Part::Literal, while_it(|char| char.is_ascii_digit() || char == '.'));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = while_it(|char| char.is_ascii_alphanumeric() || char == '_');
        return (Part::Name(&text[..length]), length);
    }
    let long = LONG_SIGNS.into_iter().find(|sign| text.starts_with(sign));
    let length = long.map_or(first.len_utf8(), str::len);
    (Part::Sign(&text[..length]), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the tags of a template, each with the lines of its tokens.
    fn shown(template: &str) -> Vec<String> {
        let part = |token: &Token<'_>| match token.part {
            Part::Name(text) | Part::Sign(text) => format!("{text}@{}", token.line),
            Part::Literal => format!("\"\"@{}", token.line),
        };
        let tag = |tag: &Tag<'_>| tag.tokens.iter().map(part).collect::<Vec<_>>().join(" ");
        tags(template).iter().map(tag).collect()
    }

    #[test]
    fn tags_have_their_tokens_with_their_lines() {
        for (template, expected) in [
            ("a\n{{ b?.c | json }}", &["b@2 ?.@2 c@2 |@2 json@2"][..]),
            ("{%- if a == \"}}\n\" -%}\n{{ x\n ~ 1.5 }}", &["if@1 a@1 ==@1 \"\"@1", "x@3 ~@4 \"\"@4"]),
            ("{# {{ a }} #}{ {% raw %}\n{{ b }}{% endraw %}{{ c }}", &["raw@1", "c@2"]),
            ("{{ f(a='\\'', b=[...c]) }}", &["f@1 (@1 a@1 =@1 \"\"@1 ,@1 b@1 =@1 [@1 ...@1 c@1 ]@1 )@1"]),
            ("{{ open", &[]),
            ("{%}{{ é ~ '\u{e9}' }}", &["", "é@1 ~@1 \"\"@1"]),
        ] {
            assert_eq!(shown(template), expected, "{template}");
        }
    }
}
