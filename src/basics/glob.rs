//! Patterns of names.

/// Compares a name with a pattern in which `*` stands for anything and `?` for one character.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skipped| fits(rest, &name[skipped..])),
        ([b'?', rest @ ..], [_, after @ ..]) => fits(rest, after),
        ([wanted, rest @ ..], [found, after @ ..]) => wanted == found && fits(rest, after),
        ([], _) | (_, []) => false,
    }
}

/// Tells whether a text is a pattern, and no name.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}
