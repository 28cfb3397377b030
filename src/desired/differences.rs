//! All places in which two texts part, line by line: what a case expects, and what is rendered.

/// The most lines that are told of one place on one side.
const MOST_LINES: usize = 20;

/// The most cells of the table that is filled to find what two texts have in common.
const MOST_CELLS: usize = 4_000_000;

/// Says where two texts part; nothing where they are the same.
pub fn differences(expected: &str, actual: &str) -> Vec<String> {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let pairs = expected.iter().zip(&actual);
    let start = pairs.take_while(|(expected, actual)| expected == actual).count();
    let ends = expected[start..].iter().rev().zip(actual[start..].iter().rev());
    let end = ends.take_while(|(expected, actual)| expected == actual).count();
    let expected = &expected[..expected.len() - end];
    let actual = &actual[..actual.len() - end];
    let mut found = Vec::new();
    let (mut row, mut column) = (start, start);
    for (same_row, same_column) in common(&expected[start..], &actual[start..]) {
        found.extend(place(row, &expected[row..start + same_row], &actual[column..start + same_column]));
        (row, column) = (start + same_row + 1, start + same_column + 1);
    }
    found.extend(place(row, &expected[row..], &actual[column..]));
    found
}

/// Says what is expected from a line on, and what is there.
fn place(line: usize, expected: &[&str], actual: &[&str]) -> Option<String> {
    if expected.is_empty() && actual.is_empty() {
        return None;
    }
    let side = |word: &str, lines: &[&str]| {
        let mut said: Vec<String> = lines.iter().take(MOST_LINES).map(|line| format!("\n  {word}: {line}")).collect();
        match lines.len() {
            0 => said.push(format!("\n  {word}: (nothing)")),
            number if number > MOST_LINES => said.push(format!("\n  … and {} lines more", number - MOST_LINES)),
            _ => {}
        }
        said.concat()
    };
    Some(format!("line {}:{}{}", line + 1, side("expected", expected), side("rendered", actual)))
}

/// Returns the indices of lines that both have, in their order and as many as there are.
fn common(expected: &[&str], actual: &[&str]) -> Vec<(usize, usize)> {
    let (rows, columns) = (expected.len(), actual.len());
    // Of texts that are as different as this, everything is one place.
    if rows.saturating_mul(columns) > MOST_CELLS {
        return Vec::new();
    }
    let width = columns + 1;
    // How many lines are the same from a row and a column on.
    let mut lengths = vec![0_u32; (rows + 1) * width];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            lengths[row * width + column] = if expected[row] == actual[column] {
                lengths[(row + 1) * width + column + 1] + 1
            } else {
                lengths[(row + 1) * width + column].max(lengths[row * width + column + 1])
            };
        }
    }
    let (mut same, mut row, mut column) = (Vec::new(), 0, 0);
    while row < rows && column < columns {
        if expected[row] == actual[column] {
            same.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if lengths[(row + 1) * width + column] >= lengths[row * width + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    same
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
