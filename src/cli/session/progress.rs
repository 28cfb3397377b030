//! A line at the terminal that says how far a round is, while somebody waits for it.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::text::{count, listed};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::basics::lock::lock;
use crate::basics::waiting_line;

/// A round that takes no longer than this needs no line.
const DELAY: Duration = Duration::from_secs(2);

/// The interval at which the line moves.
const TICK: Duration = Duration::from_millis(120);

/// The most clusters that are named.
const NAMED: usize = 3;

/// The progress of a round.
pub(super) struct Progress {
    what: String,
    number: usize,
    waiting: Mutex<BTreeSet<String>>,
    line: ProgressBar,
}

impl Progress {
    /// Begins with clusters that are all waited for.
    pub(super) fn new(what: String, clusters: impl Iterator<Item = String>) -> Arc<Self> {
        let waiting: BTreeSet<String> = clusters.collect();
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Arc::new(Self { what, number: waiting.len(), waiting: Mutex::new(waiting), line })
    }

    /// Shows it once it has taken long enough, where standard error is a terminal.
    pub(super) fn show(progress: &Arc<Self>, runtime: &Runtime) {
        if !io::stderr().is_terminal() {
            return;
        }
        let progress = Arc::clone(progress);
        runtime.spawn(async move {
            sleep(DELAY).await;
            progress.begin();
        });
    }

    fn begin(&self) {
        // Held, so that it is not over in the middle of this.
        let waiting = lock(&self.waiting);
        if self.line.is_finished() {
            return;
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            self.line.set_style(style);
        }
        self.line.set_draw_target(ProgressDrawTarget::stderr());
        self.line.set_message(self.words(&waiting));
        self.line.enable_steady_tick(TICK);
        waiting_line::set_shown(true);
    }

    /// Takes note that the round is over on a cluster.
    pub(super) fn ended(&self, cluster: &str) {
        let mut waiting = lock(&self.waiting);
        waiting.remove(cluster);
        self.line.set_message(self.words(&waiting));
    }

    /// Takes the line away.
    pub(super) fn over(&self) {
        let _waiting = lock(&self.waiting);
        self.line.finish_and_clear();
        waiting_line::set_shown(false);
    }

    fn words(&self, waiting: &BTreeSet<String>) -> String {
        let through = self.number - waiting.len();
        let clusters = count(self.number, "cluster");
        if waiting.is_empty() {
            return format!("{}: {through} of {clusters}", self.what);
        }
        let names: Vec<&String> = waiting.iter().collect();
        format!("{}: {through} of {clusters}, waiting for {}", self.what, listed(&names, NAMED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_is_waited_for() {
        let names = ["eu-1", "eu-2", "us-1", "us-2", "us-3"].map(str::to_owned);
        let progress = Progress::new("plan of sync edge".to_owned(), names.into_iter());
        let words = || progress.words(&lock(&progress.waiting));
        assert!(words().starts_with("plan of sync edge: 0 of 5 clusters, waiting for eu-1, eu-2, us-1"), "{}", words());
        for name in ["eu-1", "eu-2", "us-1", "us-3", "no such"] {
            progress.ended(name);
        }
        assert_eq!(words(), "plan of sync edge: 4 of 5 clusters, waiting for us-2");
        progress.ended("us-2");
        assert_eq!(words(), "plan of sync edge: 5 of 5 clusters");
        progress.over();
        progress.begin();
        assert!(progress.line.is_hidden(), "what is over is not shown any more");
    }
}
