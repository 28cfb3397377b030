//! The progress of a command, said on standard error while somebody waits for it: in one line that changes at a terminal,
//! else in a line now and then.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_engine::text::{count, listed};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::basics::lock::lock;
use crate::basics::{sanitize, waiting_line};
use crate::cli::{Context, complain_line};
use crate::reconcile::phase::Phase;

/// The time up to which nothing needs a line at a terminal.
const DELAY: Duration = Duration::from_secs(2);

/// The interval at which the line moves.
const TICK: Duration = Duration::from_millis(120);

/// The interval between two lines where there is no terminal.
const INTERVAL: Duration = Duration::from_secs(10);

/// The time after which a line comes again that says the same.
const AGAIN: Duration = Duration::from_mins(1);

/// The most of what is waited for that is named.
const NAMED: usize = 3;

/// The form in which progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nowhere: `--quiet`.
    None,
    /// As a line of a terminal that changes.
    Line,
    /// As lines of a log.
    Lines,
}

impl Form {
    fn of(context: &Context) -> Self {
        if context.is_quiet {
            Self::None
        } else if io::stderr().is_terminal() && !context.environment.has_plain_terminal {
            Self::Line
        } else {
            Self::Lines
        }
    }
}

/// The progress of something that consists of several things, such as a round on clusters.
pub(in crate::cli) struct Progress {
    what: String,
    thing: &'static str,
    number: usize,
    /// The things that are waited for, each with its phase.
    waiting: Mutex<BTreeMap<String, Option<Phase>>>,
    line: ProgressBar,
}

impl Progress {
    /// Begins with things that are all waited for, and shows it once it has taken long enough.
    pub(super) fn begin(
        what: String,
        (thing, names): (&'static str, impl Iterator<Item = String>),
        (context, runtime): (&Context, &Runtime),
    ) -> Arc<Self> {
        let progress = Arc::new(Self::new(what, thing, names));
        let shown = Arc::clone(&progress);
        match Form::of(context) {
            Form::None => {}
            Form::Line => drop(runtime.spawn(async move {
                sleep(DELAY).await;
                shown.show();
            })),
            Form::Lines => drop(runtime.spawn(async move { shown.tell().await })),
        }
        progress
    }

    fn new(what: String, thing: &'static str, names: impl Iterator<Item = String>) -> Self {
        let waiting: BTreeMap<_, _> = names.map(|name| (name, None)).collect();
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { what, thing, number: waiting.len(), waiting: Mutex::new(waiting), line }
    }

    fn show(&self) {
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

    /// Says it in lines until it is over.
    async fn tell(&self) {
        let mut last = (String::new(), Instant::now());
        loop {
            sleep(INTERVAL).await;
            // Held, so that it is not over in the middle of this.
            let waiting = lock(&self.waiting);
            if self.line.is_finished() {
                return;
            }
            let words = self.words(&waiting);
            if words != last.0 || last.1.elapsed() >= AGAIN {
                complain_line(&format!("gatewright: {words}"));
                last = (words, Instant::now());
            }
        }
    }

    /// Takes note of what one of the things is at.
    pub(in crate::cli) fn at(&self, name: &str, phase: Phase) {
        let mut waiting = lock(&self.waiting);
        if phase == Phase::Over {
            waiting.remove(name);
        } else if let Some(at) = waiting.get_mut(name) {
            *at = Some(phase);
        }
        self.line.set_message(self.words(&waiting));
    }

    /// Takes the line away.
    pub(in crate::cli) fn over(&self) {
        let _waiting = lock(&self.waiting);
        self.line.finish_and_clear();
        waiting_line::set_shown(false);
    }

    fn words(&self, waiting: &BTreeMap<String, Option<Phase>>) -> String {
        let through = format!("{}: {} of {}", self.what, self.number - waiting.len(), count(self.number, self.thing));
        if waiting.is_empty() {
            return through;
        }
        let named = waiting.iter().map(|(name, phase)| match phase {
            Some(phase) => format!("{name} ({phase})"),
            None => name.clone(),
        });
        sanitize::line(&format!("{through}, waiting for {}", listed(named, NAMED))).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use gatewright_engine::object::ObjectId;

    use super::*;

    fn progress() -> Progress {
        let names = ["eu-1", "eu-2", "us-1", "us-2", "us-3"].map(str::to_owned);
        Progress::new("plan of sync edge".to_owned(), "cluster", names.into_iter())
    }

    #[test]
    fn it_says_who_is_waited_for() {
        let progress = progress();
        let words = || progress.words(&lock(&progress.waiting));
        assert_eq!(words(), "plan of sync edge: 0 of 5 clusters, waiting for eu-1, eu-2, us-1 and 2 more");
        for name in ["eu-1", "eu-2", "us-1", "us-3", "no such"] {
            progress.at(name, Phase::Over);
        }
        assert_eq!(words(), "plan of sync edge: 4 of 5 clusters, waiting for us-2");
        progress.at("us-2", Phase::Over);
        assert_eq!(words(), "plan of sync edge: 5 of 5 clusters");
        progress.over();
        progress.show();
        assert!(progress.line.is_hidden(), "what is over is not shown any more");
    }

    #[test]
    fn it_says_what_each_is_at_and_lets_nobody_write_to_the_terminal() {
        let progress = progress();
        let object = ObjectId::new("apps", "Deployment", "infra", "edge");
        progress.at("eu-1", Phase::Waiting { object, why: "0 of 1\u{1b}[2J ready".to_owned(), others: 2 });
        progress.at("eu-2", Phase::Applying(1));
        progress.at("us-1", Phase::Turn);
        progress.at("no such", Phase::Gates);
        assert_eq!(
            progress.words(&lock(&progress.waiting)),
            "plan of sync edge: 0 of 5 clusters, waiting for eu-1 (Deployment infra/edge: 0 of 1\\u{1b}[2J ready; and 2 more), \
             eu-2 (applies 1 change), us-1 (waits for its turn) and 2 more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn lines_end_with_what_they_tell_of() {
        let progress = Arc::new(progress());
        let told = Arc::clone(&progress);
        let lines = tokio::spawn(async move { told.tell().await });
        sleep(2 * INTERVAL).await;
        assert!(!lines.is_finished());
        progress.over();
        lines.await.expect("it does not panic");
    }
}
