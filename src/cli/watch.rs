//! What a command shows, again whenever it is different.

use std::io::{self, IsTerminal as _, Write as _};
use std::thread;
use std::time::Duration;

use super::session::Session;
use super::{Context, Failure, complain_line, others};
use crate::basics::clock::Clock;
use crate::config::Config;
use crate::state::State;

/// Clears a terminal, and goes to its upper left corner.
pub(super) const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// The time between two looks at files of this host, which cost next to nothing.
const LOCAL: Duration = Duration::from_secs(1);

/// The time between two looks at clusters, or at what other hosts have left on one, which are requests.
const REMOTE: Duration = Duration::from_secs(10);

/// Whether a command goes on.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Watch {
    /// Go on, and show it again whenever it changes, until it is interrupted.
    #[arg(long, short)]
    watch: bool,
}

impl Watch {
    /// Prints what `show` finds in the state. Whoever watches sees each change of it; what cannot be read then is told once
    /// and waited for. A reader that goes away ends it.
    pub(super) fn print(
        self,
        context: &Context,
        config: &Config,
        show: impl Fn(&State) -> Result<String, Failure>,
    ) -> Result<u8, Failure> {
        let between = if config.settings.hosts.is_some() { REMOTE } else { LOCAL };
        let pause = |time| {
            thread::sleep(time);
            Ok(())
        };
        self.follow(context, (between, pause), || Ok((show(&others::looking(context, config)?)?, 0)))
    }

    /// The same of what is found on clusters; `look` also returns the exit code, of which the last one counts.
    pub(super) fn of_clusters(
        self,
        (context, session): (&Context, &Session<'_>),
        look: impl Fn() -> Result<(String, u8), Failure>,
    ) -> Result<u8, Failure> {
        // A session takes signals, and somebody has to look whether one has come.
        self.follow(context, (REMOTE, |time| session.pause(time)), look)
    }

    /// Tells whether it goes on.
    pub(super) fn goes_on(self) -> bool {
        self.watch
    }

    /// Tells of something beside what is shown, unless it would be told with each look.
    pub(super) fn tell_once(self, line: &str) {
        if !self.watch {
            complain_line(line);
        }
    }

    fn follow(
        self,
        context: &Context,
        (between, pause): (Duration, impl Fn(Duration) -> Result<(), Failure>),
        look: impl Fn() -> Result<(String, u8), Failure>,
    ) -> Result<u8, Failure> {
        let clock = context.clock.as_ref();
        let (mut shown, mut code) = look()?;
        let is_screen = self.watch && io::stdout().is_terminal();
        while write(&page(&shown, is_screen.then_some(clock))) && self.watch {
            let mut told = String::new();
            (shown, code) = loop {
                pause(between)?;
                let looked = look();
                // What was found while a signal came says nothing.
                pause(Duration::ZERO)?;
                match looked {
                    Ok(found) if found.0 != shown => break found,
                    Ok(_) => told.clear(),
                    Err(failure) if failure.message == told => {}
                    Err(failure) => {
                        failure.tell();
                        told = failure.message;
                    }
                }
            };
        }
        Ok(code)
    }
}

/// A page of its own on a screen, with the time at which it came to be so.
fn page(text: &str, clock: Option<&dyn Clock>) -> String {
    let Some(clock) = clock else { return text.to_owned() };
    format!("{CLEAR}{text}\n{}: so since then; Ctrl-C ends this\n", clock.now().strftime("%F %T UTC"))
}

/// Tells whether somebody still reads.
fn write(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let is_written = written.is_ok();
    super::note(written);
    is_written
}
