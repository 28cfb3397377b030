//! Questions to the person at the terminal, wherever input and output of the command go.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};

/// The terminal of this process, whatever its streams are connected to.
const TERMINAL: &str = "/dev/tty";

/// Tells whether somebody sits before this process who can be asked: one of its streams is a terminal, and there is one
/// to read an answer from.
pub(in crate::cli) fn is_attended() -> bool {
    let is_shown = io::stdout().is_terminal() || io::stderr().is_terminal();
    io::stdin().is_terminal() || (is_shown && File::open(TERMINAL).is_ok())
}

/// Shows a question, on standard error where a person sees that: standard output is for what the command prints.
pub(in crate::cli) fn put(question: &str) {
    let bytes = question.as_bytes();
    let shown = match File::options().write(true).open(TERMINAL) {
        Ok(mut terminal) if !io::stderr().is_terminal() => terminal.write_all(bytes),
        Ok(_) | Err(_) => io::stderr().write_all(bytes),
    };
    // Who does not see the question gives no answer, and that is none to go on.
    drop(shown);
}

/// Reads a line of the person, or nothing at the end of the input.
pub(in crate::cli) fn line() -> String {
    let mut line = String::new();
    let read = if io::stdin().is_terminal() {
        io::stdin().read_line(&mut line)
    } else {
        File::open(TERMINAL).and_then(|terminal| BufReader::new(terminal).read_line(&mut line))
    };
    if read.is_ok() { line } else { String::new() }
}
