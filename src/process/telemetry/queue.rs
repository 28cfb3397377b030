//! A log that nobody waits for: lines are queued, and a thread writes them.
//!
//! Whoever reads the log may stop reading: a full disk behind it, a journal that hangs, a pipe to a paused pager. Then
//! lines are dropped and counted, and work goes on; the next line that is written says how many are missing.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The most lines that wait: some megabytes, and more than any round has.
const MOST_LINES: usize = 8_192;

/// The time that the end of the process leaves for what is not written yet.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The pause between two looks whether it is.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes lines and never waits.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    sender: SyncSender<Vec<u8>>,
    counts: Arc<Counts>,
}

/// Sees to it that what was logged is written before the process ends, unless nobody reads it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Flush(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicU64,
    dropped: AtomicU64,
}

/// Starts the thread that writes. `note` makes a line of how many were dropped, and of the line after them.
pub(super) fn start(output: impl Write + Send + 'static, note: fn(u64, &[u8]) -> Vec<u8>) -> (Lines, Flush) {
    let (sender, lines) = sync_channel(MOST_LINES);
    let counts = Arc::new(Counts::default());
    let of_thread = Arc::clone(&counts);
    thread::spawn(move || write_all(&lines, output, &of_thread, note));
    (Lines { sender, counts: Arc::clone(&counts) }, Flush(counts))
}

fn write_all(lines: &Receiver<Vec<u8>>, mut output: impl Write, counts: &Counts, note: impl Fn(u64, &[u8]) -> Vec<u8>) {
    while let Ok(line) = lines.recv() {
        let dropped = counts.dropped.swap(0, Ordering::Relaxed);
        let note = if dropped > 0 { note(dropped, &line) } else { Vec::new() };
        // A log that cannot be written must not stop the work.
        drop(output.write_all(&[note, line].concat()).and_then(|()| output.flush()));
        counts.waiting.fetch_sub(1, Ordering::Release);
    }
}

/// Says in JSON how many lines are missing before this one, and at its time.
pub(super) fn json_dropped(dropped: u64, line: &[u8]) -> Vec<u8> {
    let next: Value = serde_json::from_slice(line).unwrap_or_default();
    let note = json!({
        "timestamp": next["timestamp"],
        "level": "WARN",
        "message": "lines of the log were dropped, because they were not read in time",
        "lines": dropped,
        "target": module_path!(),
    });
    format!("{note}\n").into_bytes()
}

/// Says in words how many lines are missing.
pub(super) fn text_dropped(dropped: u64, _: &[u8]) -> Vec<u8> {
    format!("WARN {dropped} lines of the log were dropped, because they were not read in time\n").into_bytes()
}

impl Write for Lines {
    /// Each event comes as one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(line.to_vec()).is_err() {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        let pauses = LAST_WORDS.as_millis() / PAUSE.as_millis();
        for _ in 0..pauses {
            if self.0.waiting.load(Ordering::Acquire) == 0 {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// An output that takes nothing while somebody holds it.
    #[derive(Clone, Default)]
    struct Gate(Arc<Mutex<Vec<u8>>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_nobody_reads_keeps_nobody_waiting_and_says_what_is_missing() {
        let gate = Gate::default();
        let (mut lines, flush) = start(gate.clone(), json_dropped);
        let held = gate.0.lock().expect("nobody panics");
        let all = MOST_LINES + 1_000;
        for number in 0..all {
            lines.write_all(format!("{{\"timestamp\": \"t\", \"n\": {number}}}\n").as_bytes()).expect("it never fails");
        }
        drop(held);
        while flush.0.waiting.load(Ordering::Acquire) > 0 {
            thread::yield_now();
        }
        lines.write_all(b"{\"timestamp\": \"u\"}\n").expect("it never fails");
        drop(flush);
        let text = String::from_utf8(gate.0.lock().expect("nobody panics").clone()).expect("it is text");
        let notes: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let dropped: u64 = notes.iter().filter_map(|line| line["lines"].as_u64()).sum();
        let written = notes.iter().filter(|line| line["lines"].is_null()).count();
        assert!((990..=1_000).contains(&dropped), "{dropped}");
        assert_eq!(u64::try_from(written).unwrap_or_default() + dropped, u64::try_from(all).unwrap_or_default() + 1);
    }
}
