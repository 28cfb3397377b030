//! The last line of a terminal, while it says what a command waits for: whatever else is written there comes above it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Takes the cursor to the beginning of the line and clears it.
const ERASE: &str = "\r\u{1b}[2K";

static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Says whether there is such a line from now on. It is drawn again by whoever shows it.
pub(crate) fn set_shown(is_shown: bool) {
    IS_SHOWN.store(is_shown, Ordering::SeqCst);
}

/// Returns what is to be written to standard error before anything else is.
pub(crate) fn erase() -> &'static str {
    if IS_SHOWN.load(Ordering::SeqCst) { ERASE } else { "" }
}
