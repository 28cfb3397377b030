//! The steps that a template may take.
//!
//! Tera counts nothing itself. So every pass of a loop begins with a call of ours, which is written into the template
//! when it is loaded and puts nothing into the text. How often a loop goes round is said by a spec; how deep loops nest,
//! by the template.

use std::cell::Cell;
use std::io::{self, Write};

use tera::{Kwargs, State, Tera, TeraResult, Value};

use super::syntax::length;
use crate::interrupt;

/// The most passes of all loops of a template together: some tenths of a second.
const MOST_STEPS: u64 = 500_000;

/// The most bytes of a filled template.
const LONGEST: usize = 32 << 20;

const FUNCTION: &str = "gatewright_step";
const CALL: &str = "{{ gatewright_step() }}";
const TRIMMING_CALL: &str = "{{ gatewright_step() -}}";

thread_local! {
    /// A template is filled on one thread.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Adds what loops call.
pub(super) fn register(tera: &mut Tera) {
    tera.register_function(FUNCTION, |_: Kwargs, _: &State<'_>| step());
}

/// Starts a template.
pub(super) fn begin() {
    LEFT.set(MOST_STEPS);
}

fn step() -> TeraResult<Value> {
    let left = LEFT.get().checked_sub(1).filter(|_| !interrupt::is_given());
    LEFT.set(left.unwrap_or_default());
    match left {
        Some(_) => Ok(Value::safe_string("")),
        None => Err(tera::Error::message(format!("the loops of the template go round more than {MOST_STEPS} times"))),
    }
}

/// Takes the calls out of a line of a template that is shown to people.
pub(super) fn shown(line: &str) -> String {
    line.replace(CALL, "").replace(TRIMMING_CALL, "")
}

/// Has every loop of a template call us.
pub(super) fn counted(template: &str) -> String {
    let mut counted = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let length = match rest.as_bytes().get(start + 1) {
            Some(b'#') => rest[start..].find("#}").map(|end| end + 2),
            Some(b'{') => length(&rest[start..], "}}"),
            Some(b'%') => length(&rest[start..], "%}"),
            _ => Some(1),
        };
        // What is not closed is Tera's to complain about.
        let Some(length) = length else { break };
        let (before, after) = rest.split_at(start + length);
        counted.push_str(before);
        let tag = &before[start..];
        let word = tag.strip_prefix("{%").map(|tag| tag.trim_start_matches('-').split_whitespace().next());
        rest = match word.flatten() {
            Some("for") => {
                counted.push_str(if tag.ends_with("-%}") { TRIMMING_CALL } else { CALL });
                after
            }
            Some("raw") => {
                let end = after.find("endraw").unwrap_or(after.len());
                counted.push_str(&after[..end]);
                &after[end..]
            }
            _ => after,
        };
    }
    counted.push_str(rest);
    counted
}

/// A text that takes no more than [`LONGEST`].
#[derive(Default)]
pub(super) struct Text(pub(super) Vec<u8>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::Error::other(format!("the text grows to more than {} MiB", LONGEST >> 20)));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_counts_and_nothing_else_changes() {
        for (template, expected) in [
            ("{% for a in b %}\nx{% endfor %}", "{% for a in b %}{{ gatewright_step() }}\nx{% endfor %}"),
            ("{%- for a in b -%} x", "{%- for a in b -%}{{ gatewright_step() -}} x"),
            ("{% for a in [\"%}\"] %}x", "{% for a in [\"%}\"] %}{{ gatewright_step() }}x"),
            ("{# {% for a in b %} #}{ }", "{# {% for a in b %} #}{ }"),
            ("{% raw %}{% for a in b %}{% endraw %}{{ x }}", "{% raw %}{% for a in b %}{% endraw %}{{ x }}"),
            ("{{ \"{% for a in b %}\" | json }}", "{{ \"{% for a in b %}\" | json }}"),
            ("{% if format %}{% set forty = 1 %}{% end", "{% if format %}{% set forty = 1 %}{% end"),
        ] {
            assert_eq!(counted(template), expected);
            assert_eq!(shown(&counted(template)), template);
        }
    }
}
