//! All places in which two texts part, line by line: what a case expects, and what is rendered.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

/// The most lines that are told of one place on one side.
const MOST_LINES: usize = 20;

/// Says where two texts part; nothing where they are the same.
pub fn differences(expected: &str, actual: &str) -> Vec<String> {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let parts = |change: &DiffOp| match change.as_tag_tuple() {
        (DiffTag::Equal, ..) => None,
        (_, before, after) => Some(place(before.start, &expected[before], &actual[after])),
    };
    capture_diff_slices(Algorithm::Myers, &expected, &actual).iter().filter_map(parts).collect()
}

/// Says what is expected from a line on, and what is there.
fn place(line: usize, expected: &[&str], actual: &[&str]) -> String {
    let side = |word: &str, lines: &[&str]| {
        let mut said: Vec<String> = lines.iter().take(MOST_LINES).map(|line| format!("\n  {word}: {line}")).collect();
        match lines.len() {
            0 => said.push(format!("\n  {word}: (nothing)")),
            number if number > MOST_LINES => said.push(format!("\n  … and {} lines more", number - MOST_LINES)),
            _ => {}
        }
        said.concat()
    };
    format!("line {}:{}{}", line + 1, side("expected", expected), side("rendered", actual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_told() {
        for (expected, actual, places) in [
            ("a\nb\n", "a\nb\n", &[][..]),
            ("", "a\n", &["line 1:\n  expected: (nothing)\n  rendered: a"]),
            (
                "a\nb\nc\nd\n",
                "a\nB\nc\nD\n",
                &["line 2:\n  expected: b\n  rendered: B", "line 4:\n  expected: d\n  rendered: D"],
            ),
            (
                "a\nx\nb\nc\n",
                "a\nb\ny\nc\n",
                &["line 2:\n  expected: x\n  rendered: (nothing)", "line 4:\n  expected: (nothing)\n  rendered: y"],
            ),
            ("a\nb\n", "a\n", &["line 2:\n  expected: b\n  rendered: (nothing)"]),
        ] {
            assert_eq!(differences(expected, actual), places, "{expected:?} {actual:?}");
        }
        let many = (0..30).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
        assert!(differences("", &many)[0].ends_with("\n  rendered: 19\n  … and 10 lines more"));
    }
}
