//! The calls of filters, tests and functions in a template, and the arguments that each of them has.
//!
//! Tera hands a filter all arguments that are written, and a filter looks only at those that it has: a misspelt one, or
//! one that no filter of that name has, changes nothing and says nothing. So it is an error when a pack is loaded.

use super::functions::{ENCODING, OWN};
use super::syntax::{Tag, Token};
use crate::check::suggest;
use crate::text::did_you_mean;

/// The thing that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// `value | name`.
    Filter,
    /// `value is name`.
    Test,
    /// `name()`.
    Function,
}

/// A call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    /// The thing that is called.
    pub(crate) callee: Callee,
    /// Its name.
    pub(crate) name: &'a str,
    /// The names of the arguments, each with its line.
    pub(crate) arguments: Vec<(&'a str, u32)>,
}

/// A mistake in a template that Tera says nothing about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Its line of the template.
    pub(crate) line: u32,
    /// The description.
    pub(crate) message: String,
    /// Advice, if there is any.
    pub(crate) hint: Option<String>,
}

/// A name and the arguments that it has.
type Entry = (&'static str, &'static [&'static str]);

/// The filters of Tera.
const FILTERS: [Entry; 37] = [
    ("abs", &[]),
    ("capitalize", &[]),
    ("default", &["value", "boolean"]),
    ("escape", &[]),
    ("escape_html", &[]),
    ("escape_xml", &[]),
    ("first", &[]),
    ("float", &[]),
    ("get", &["key", "default"]),
    ("group_by", &["attribute"]),
    ("indent", &["width", "indentation", "first", "blank"]),
    ("int", &["base"]),
    ("join", &["sep"]),
    ("keys", &[]),
    ("last", &[]),
    ("length", &[]),
    ("lower", &[]),
    ("newlines_to_br", &[]),
    ("nth", &["n"]),
    ("pairs", &[]),
    ("pluralize", &["singular", "plural"]),
    ("replace", &["from", "to"]),
    ("reverse", &[]),
    ("round", &["method", "precision"]),
    ("safe", &[]),
    ("sort", &["attribute"]),
    ("split", &["pat"]),
    ("str", &[]),
    ("title", &[]),
    ("trim", &["pat"]),
    ("trim_end", &["pat"]),
    ("trim_start", &["pat"]),
    ("truncate", &["length", "end"]),
    ("unique", &[]),
    ("upper", &[]),
    ("values", &[]),
    ("wordcount", &[]),
];

/// The tests of Tera.
const TESTS: [Entry; 17] = [
    ("array", &[]),
    ("bool", &[]),
    ("containing", &["pat"]),
    ("defined", &[]),
    ("divisible_by", &["divisor"]),
    ("ending_with", &["pat"]),
    ("even", &[]),
    ("float", &[]),
    ("integer", &[]),
    ("iterable", &[]),
    ("map", &[]),
    ("none", &[]),
    ("number", &[]),
    ("odd", &[]),
    ("starting_with", &["pat"]),
    ("string", &[]),
    ("undefined", &[]),
];

/// The functions of Tera.
const FUNCTIONS: [Entry; 3] = [("range", &["start", "end", "step_by"]), ("super", &[]), ("throw", &["message"])];

/// Words before a bracket that are no functions.
const WORDS: [&str; 9] = ["and", "elif", "else", "for", "if", "in", "is", "not", "or"];

/// Returns the calls of a tag, in their order.
pub(crate) fn calls<'a>(tag: &Tag<'a>) -> Vec<Call<'a>> {
    if tag.word() == Some("component") {
        return Vec::new();
    }
    let call = |(index, token): (usize, &Token<'a>)| {
        let callee = callee(tag, index)?;
        Some(Call { callee, name: token.name()?, arguments: arguments(&tag.tokens[index + 1..]) })
    };
    tag.tokens.iter().enumerate().filter_map(call).collect()
}

/// Tells what is called by the name at an index, if anything is.
pub(crate) fn callee(tag: &Tag<'_>, index: usize) -> Option<Callee> {
    let before = |steps: usize| index.checked_sub(steps).and_then(|at| tag.tokens.get(at));
    let is_word = |steps, word: &str| before(steps).is_some_and(|token| token.is_word(&[word]));
    let is_sign = |steps, sign: &str| before(steps).is_some_and(|token| token.is(sign));
    let name = tag.tokens.get(index)?.name()?;
    let is_section = index == 1 && tag.word() == Some("filter");
    if is_sign(1, "|") || is_section {
        return Some(Callee::Filter);
    }
    if (is_word(1, "is") && name != "not") || (is_word(1, "not") && is_word(2, "is")) {
        return Some(Callee::Test);
    }
    let is_open = tag.tokens.get(index + 1).is_some_and(|token| token.is("("));
    let is_field = is_sign(1, ".") || is_sign(1, "?.");
    (is_open && !is_field && !WORDS.contains(&name)).then_some(Callee::Function)
}

/// Returns the names of the arguments in the brackets that tokens begin with.
fn arguments<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, u32)> {
    let mut names = Vec::new();
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate() {
        depth += token.nests();
        if depth == 0 {
            break;
        }
        let is_named = tokens.get(index + 1).is_some_and(|next| next.is("="));
        names.extend(token.name().filter(|_| depth == 1 && is_named).map(|name| (name, token.line)));
    }
    names
}

/// Returns the arguments in some tags that nothing has.
pub(crate) fn unknown_arguments(tags: &[Tag<'_>]) -> Vec<Fault> {
    let calls = tags.iter().flat_map(calls);
    let faults = calls.filter_map(|call| Some((known(call.callee, call.name)?, call)));
    faults.flat_map(|(known, call)| faults_of(known, &call)).collect()
}

fn faults_of(known: &[&str], call: &Call<'_>) -> Vec<Fault> {
    let fault = |&(argument, line): &(&str, u32)| {
        let word = match call.callee {
            Callee::Filter => "filter",
            Callee::Test => "test",
            Callee::Function => "function",
        };
        let message = format!("the {word} {:?} has no argument {argument:?}", call.name);
        Fault { line, message, hint: Some(hint(known, call.name, argument)) }
    };
    call.arguments.iter().filter(|(name, _)| !known.contains(name)).map(fault).collect()
}

/// Says what to write instead.
fn hint(known: &[&str], name: &str, argument: &str) -> String {
    if name == "unique" && argument == "attribute" {
        return "it compares whole items; `group_by(attribute=…)` has a list for each value of a field".to_owned();
    }
    let near = did_you_mean(suggest(argument, known.iter().copied()));
    near.unwrap_or_else(|| match known {
        [] => "it has none".to_owned(),
        known => format!("it has {}", known.join(", ")),
    })
}

/// Returns the arguments of what has a name; a name that is not known is Tera's to complain about.
fn known(callee: Callee, name: &str) -> Option<&'static [&'static str]> {
    let find = |entries: &[Entry]| entries.iter().find(|(known, _)| *known == name).map(|(_, arguments)| *arguments);
    match callee {
        Callee::Filter => find(&OWN).or_else(|| find(&FILTERS)),
        Callee::Test => find(&TESTS),
        Callee::Function => find(&FUNCTIONS),
    }
}

/// Tells whether tokens are an expression whose value can be printed as it is, because it has passed an encoding filter;
/// `encoded` are names of values that have.
pub(crate) fn is_encoded(tokens: &[Token<'_>], encoded: &dyn Fn(&str) -> bool) -> bool {
    let outer = outer(tokens);
    let at = |word: &str| outer.iter().copied().find(|&index| tokens[index].is_word(&[word]));
    if let (Some(condition), Some(other)) = (at("if"), at("else")) {
        return is_encoded(&tokens[..condition], encoded) && is_encoded(&tokens[other + 1..], encoded);
    }
    match tokens {
        [] => return false,
        [only] => return only.name().is_some_and(encoded),
        [first, inner @ .., last] if first.is("(") && last.is(")") && outer.len() == 2 => {
            return is_encoded(inner, encoded);
        }
        [first, second, ..] if second.is("(") && first.is_word(&["super", "throw"]) => return true,
        [first, ..] if first.is("<") => return true,
        _ => {}
    }
    let is_operator = |index: usize| match tokens[index].part {
        super::syntax::Part::Sign(sign) => index > 0 && OPERATORS.contains(&sign),
        _ => tokens[index].is_word(&["and", "in", "is", "not", "or"]),
    };
    let passes = |index: usize| index > 0 && tokens[index - 1].is("|") && tokens[index].is_word(&[ENCODING]);
    outer.iter().all(|&index| !is_operator(index)) && outer.iter().any(|&index| passes(index))
}

/// The signs between two values.
const OPERATORS: [&str; 14] = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">="];

/// Returns the indices of tokens that are in no bracket; what opens and closes one is not in it.
fn outer(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut depth = 0;
    let mut outer = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let nests = token.nests();
        if depth == 0 || depth + nests == 0 {
            outer.push(index);
        }
        depth += nests;
    }
    outer
}

#[cfg(test)]
mod tests {
    use super::super::syntax::tags;
    use super::*;
    use crate::render::Renderer;
    use serde_json::json;

    #[track_caller]
    fn check(template: &str, expected: &[&str]) {
        let faults = unknown_arguments(&tags(template)).into_iter();
        let faults = faults.map(|it| format!("{}: {} ({})", it.line, it.message, it.hint.unwrap_or_default()));
        assert_eq!(faults.collect::<Vec<_>>(), expected, "{template}");
    }

    #[test]
    fn an_argument_that_nothing_has_is_a_fault() {
        check(
            "{{ a | unique(attribute=\"b\") | json }}",
            &[
                "1: the filter \"unique\" has no argument \"attribute\" (it compares whole items; `group_by(attribute=…)` has a list for each value of a field)",
            ],
        );
        check(
            "\n{% if a is starting_with(pta=\"b\") %}",
            &["2: the test \"starting_with\" has no argument \"pta\" (did you mean \"pat\"?)"],
        );
        check(
            "{% for a in range(end=2, strat=3,\n by=1) %}",
            &[
                "1: the function \"range\" has no argument \"strat\" (did you mean \"start\"?)",
                "2: the function \"range\" has no argument \"by\" (it has start, end, step_by)",
            ],
        );
        check("{{ a | json(pretty=true) }}", &["1: the filter \"json\" has no argument \"pretty\" (it has none)"]);
        check(
            "{% filter indent(wdth=2) %}",
            &["1: the filter \"indent\" has no argument \"wdth\" (did you mean \"width\"?)"],
        );
        check("{% if b is not defined(x=1) %}", &["1: the test \"defined\" has no argument \"x\" (it has none)"]);
    }

    #[test]
    fn what_is_no_argument_is_none() {
        for template in [
            "{{ a | sort(attribute=\"b\") | join(sep=c | get(key=\"d\", default=[e == f])) | json }}",
            "{% set a = b if not (c == d) and (e) else f %}",
            "{% set unique = 1 %}{{ a.unique }}",
            "{% component unique(attribute=1) %}",
            "{{ a | substitute(from=\"x\", to=y) | json }}",
        ] {
            check(template, &[]);
        }
    }

    #[test]
    fn a_value_is_encoded_if_all_of_it_passes_the_filter() {
        for (expression, expected) in [
            ("a | json", true),
            ("a.b?.c | default(value=1 + 2) | json", true),
            ("(a ~ b) | json", true),
            ("((a ~ b) | json)", true),
            ("-a | json", true),
            ("a | json if b == 1 else c | json", true),
            ("known", true),
            ("throw(message=\"no\")", true),
            ("a ~ b | json", false),
            ("a or b | json", false),
            ("a | json if b else c", false),
            ("a", false),
            ("a | upper", false),
            ("(a | json) ~ (b | json)", false),
            ("[a | json]", false),
            ("\"text\"", false),
        ] {
            let template = format!("{{{{ {expression} }}}}");
            let tags = tags(&template);
            assert_eq!(is_encoded(&tags[0].tokens, &|name| name == "known"), expected, "{expression}");
        }
    }

    /// Tera does not list what it has, so each name of the tables is used, and the numbers are compared.
    #[test]
    fn the_tables_have_what_tera_has() {
        let entries = |entries: &[Entry], form: fn(&str) -> String| -> Vec<String> {
            entries.iter().map(|(name, _)| form(name)).collect()
        };
        let filters = entries(&FILTERS, |name| format!("{{{{ a | {name} }}}}"));
        let tests = entries(&TESTS, |name| format!("{{% if a is {name} %}}{{% endif %}}"));
        let functions = FUNCTIONS.iter().filter(|(name, _)| *name != "super");
        let functions = functions.map(|(name, _)| format!("{{{{ {name}() }}}}")).collect();
        for text in [&filters, &tests, &functions].into_iter().flatten() {
            let loaded = Renderer::new(&[("t".to_owned(), text.clone())]);
            assert!(loaded.is_ok(), "Tera does not have what {text} uses");
        }
        let tera = format!("{:?}", tera::Tera::new());
        for (what, number) in [("filters", filters.len()), ("tests", tests.len()), ("functions", functions.len())] {
            assert!(tera.contains(&format!("{what}: {number},")), "Tera has other {what} than the table: {tera}");
        }
    }

    /// The names of arguments stand in Tera's code alone.
    #[test]
    fn the_arguments_are_those_of_the_release_that_is_used() {
        let lock = include_str!("../../../../Cargo.lock");
        assert!(
            lock.contains("name = \"tera\"\nversion = \"2.4.0\"\n"),
            "another Tera: compare the tables of arguments with its filters.rs, tests.rs and functions.rs"
        );
    }

    #[test]
    fn every_argument_of_ours_is_one() {
        for (name, arguments) in OWN {
            let written: Vec<String> = arguments.iter().map(|argument| format!("{argument}=\"x\"")).collect();
            let text = format!("{{a: {{{{ \"x\" | {name}({}) | json }}}}}}", written.join(", "));
            let renderer = Renderer::new(&[("t".to_owned(), text)]).expect("the filter is there");
            let said = renderer.render(&json!({})).map_or_else(|error| error.line(), |_| String::new());
            assert!(!said.contains("argument"), "{name}: {said}");
        }
    }
}
