//! The memory that the documents of a text take, counted while they are read.

use std::cell::Cell;

use serde::de;

/// The memory that the shortest text may take: a file of a few lines may repeat one of them often.
const LEAST: usize = 256 * 1024;

/// The memory that a text may take for each of its bytes: more than the densest text takes that has no aliases.
const FOR_BYTE: usize = 320;

/// The parts of a text that may come of aliases, for each of its bytes, and at most.
const REPEATED_FOR_BYTE: usize = 16;
const MOST_REPEATED: usize = 1_000_000;

/// The memory that a value takes, in bytes.
pub(super) const VALUE: usize = 48;

/// The memory beside it of a value with a place of its own: a text, a list.
pub(super) const ALLOCATION: usize = 16;

/// The memory of a mapping, with its first fields.
const MAPPING: usize = 900;
const FIRST_FIELDS: usize = 8;

/// The memory of each further field.
const FIELD: usize = 130;

/// The problem of a text that takes more than it may.
const TOO_MUCH: &str = "the file takes too much memory from here on: split it, or write out what its aliases repeat";

thread_local! {
    /// The memory that the text that is being read on this thread may still take.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Returns how much memory is in proportion to a text.
pub(super) fn proportionate(text: &str) -> usize {
    LEAST.saturating_add(text.len().saturating_mul(FOR_BYTE))
}

/// Returns how many parts of a text may come of aliases.
pub(super) fn repetitions(text: &str) -> usize {
    MOST_REPEATED.min(LEAST / VALUE + text.len().saturating_mul(REPEATED_FOR_BYTE))
}

/// Returns what is taken by the next field of a mapping that has so many.
pub(super) fn of_field(number: usize) -> usize {
    match number {
        0 => MAPPING,
        1..FIRST_FIELDS => 0,
        FIRST_FIELDS.. => FIELD,
    }
}

/// Reads what may take so many bytes, and says how many it took.
pub(super) fn counted<T>(bytes: usize, read: impl FnOnce() -> T) -> (T, usize) {
    LEFT.set(bytes);
    let done = read();
    (done, bytes - LEFT.replace(usize::MAX))
}

/// Takes some of the room.
pub(super) fn take<E: de::Error>(bytes: usize) -> Result<(), E> {
    let left = LEFT.get().checked_sub(bytes).ok_or_else(|| E::custom(TOO_MUCH))?;
    LEFT.set(left);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{parse, parse_within};

    #[test]
    fn aliases_that_repeat_a_text_or_a_mapping_are_refused_in_proportion_to_the_file() {
        let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), "*a,".repeat(1_000));
        let map = format!("a: &a {{k: v}}\nb: [{}]\n", "*a,".repeat(20_000));
        let nested = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                      d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n";
        for bomb in [text.as_str(), map.as_str(), nested] {
            let error = parse(bomb).expect_err("it grows");
            assert!(error.message.contains("too much"), "{}", error.message);
        }
        let modest = format!("a: &a {{cpu: 100m, memory: 1Gi}}\nb: [{}]\n", "*a,".repeat(90));
        assert_eq!(parse(&modest).expect("ninety are few").len(), 1);
    }

    #[test]
    fn no_text_without_aliases_is_refused_in_proportion_to_its_length() {
        for dense in ["{a},", "[],", "1,", "{a: },", "[{a: [b]}],", "\"\","] {
            let text = format!("[{}]", dense.repeat(50_000));
            parse(&text).expect(dense);
        }
        let deep = format!("{}1{}", "{a: ".repeat(60), "}".repeat(60));
        parse(&format!("[{}]", format!("{deep},").repeat(2_000))).expect("mappings in mappings");
    }

    #[test]
    fn a_text_that_takes_more_than_there_is_room_is_refused() {
        let text = "a: {b: c}\n";
        let parsed = parse_within(text, 10_000).expect("it fits");
        assert!((1_000..4_000).contains(&parsed.bytes), "{}", parsed.bytes);
        assert!(parse_within(text, parsed.bytes).is_ok() && parse_within(text, parsed.bytes - 1).is_err());
    }
}
