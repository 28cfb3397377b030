//! Standard output and standard error of commands.

use std::io::{self, Write as _};
use std::sync::OnceLock;

use crate::basics::{sanitize, waiting_line};

/// Prints a text for people, in which nobody has written to the terminal but us.
pub(super) fn print(text: &str) {
    emit(&sanitize::lines(text));
}

/// The reason why standard output did not take all that was printed.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Notes that something could not be printed: whoever reads the half of it must not take it for all. A reader that went
/// away (`| head`) is no failure.
pub(super) fn note(printed: io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        UNWRITTEN.get_or_init(|| error);
    }
}

/// Prints what is written piece by piece.
pub(super) fn stream(write: impl FnOnce(&mut io::BufWriter<io::StdoutLock<'static>>) -> io::Result<()>) {
    let mut out = io::BufWriter::new(io::stdout().lock());
    note(write(&mut out).and_then(|()| out.flush()));
}

/// Prints a document as it is.
pub(super) fn emit(text: &str) {
    note(io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()));
}

/// Writes a text to standard error; when that is closed nobody can be told.
pub(super) fn complain(text: &str) {
    drop(io::stderr().write_all(format!("{}{}", waiting_line::erase(), sanitize::lines(text)).as_bytes()));
}

/// Writes one line to standard error: a text of others in it begins no other.
pub(super) fn complain_line(text: &str) {
    complain(&sanitize::row(text));
}

/// Writes a text to standard error in which everything of others is harmless already, and colors are meant.
pub(super) fn complain_in_color(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Tells whether standard output has taken all that was printed; else it is told.
pub(super) fn is_whole() -> bool {
    let Some(error) = UNWRITTEN.get() else { return true };
    complain_line(&format!("gatewright: cannot write to standard output: {error}"));
    false
}
