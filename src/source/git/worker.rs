//! Talking to a git server in a process of its own, which can be ended.
//!
//! libgit2 waits for each read and not for the whole, and asks nobody while a server lists its references: one that
//! sends them byte by byte keeps a thread for ever, and one that sends a billion takes all memory. A thread cannot be
//! ended, and a process can. So this program starts itself, as `gatewright git-fetch`: the child is told by its input
//! what to fetch into which mirror, and answers by its output what it found. It is killed when nobody waits for it any
//! more, and when it takes too much memory. The files of the commit are read here, from the mirror.

use std::error::Error as StdError;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use git2::{Oid, Repository};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::refs::Wanted;
use super::settings::Settings;
use super::{InitError, conversation, limits};
use crate::source::Reason;

/// The command that does it.
pub const COMMAND: &str = "git-fetch";

/// The most memory that the child may take, files left out, in KiB.
const MOST_MEMORY: u64 = 512 * 1024;

/// More than any answer.
const MAX_ANSWER: u64 = 1024 * 1024;

/// The pauses between two looks at the child, the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The order to the child.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    settings: Settings,
    /// The mirror, which exists.
    mirror: PathBuf,
    /// The revision that is known.
    have: Option<String>,
}

/// The answer of the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    /// There is nothing new.
    Unchanged,
    /// This is in the mirror now.
    Fetched { commit: String, ask_for: String, revision: String },
    /// It failed.
    Failed { reason: Reason, causes: Vec<String>, hint: Option<String>, of_mirror: bool },
}

/// The child could not do its work.
#[derive(Debug, thiserror::Error)]
enum WorkerError {
    #[error("the process that talks to the server cannot be started")]
    NotStarted(#[source] io::Error),
    #[error("the process that talks to the server ended without an answer")]
    NoAnswer(#[source] Option<serde_json::Error>),
}

/// Fetches what is wanted into a mirror, as [`Remote::update`](super::Remote::update) does, in a process of its own.
pub(super) fn update(
    program: &Path,
    (settings, have): (&Settings, Option<&str>),
    mirror: &Repository,
    cancelled: &CancellationToken,
) -> Result<Option<Wanted>, Failure> {
    let job = Job { settings: settings.clone(), mirror: mirror.path().to_owned(), have: have.map(str::to_owned) };
    let lost = |error| Failure::new(Reason::Unreachable, WorkerError::NotStarted(error));
    let mut child = Killed(command(program).spawn().map_err(lost)?);
    let mut input = child.0.stdin.take();
    let told = serde_json::to_vec(&job).map_err(io::Error::from);
    told.and_then(|told| input.as_mut().map_or(Ok(()), |input| input.write_all(&[&told[..], b"\n"].concat())))
        .map_err(lost)?;
    // The input stays open until then: its end tells the child that nobody waits any more.
    wait(&mut child.0, cancelled)?;
    drop(input);
    let mut text = Vec::new();
    if let Some(output) = child.0.stdout.take() {
        output.take(MAX_ANSWER).read_to_end(&mut text).map_err(lost)?;
    }
    match serde_json::from_slice(&text) {
        Ok(answer) => said(answer),
        Err(error) => Err(Failure::new(Reason::Invalid, WorkerError::NoAnswer(Some(error)))),
    }
}

/// A child that does not outlive the one who waits for it.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[expect(clippy::disallowed_methods, reason = "it starts this program itself, and nothing else (invariant 5)")]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // What it tells systemd would be taken for our own word.
    command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
    command
}

fn wait(child: &mut Child, cancelled: &CancellationToken) -> Result<(), Failure> {
    let mut pause = FIRST_PAUSE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(error) => return Err(Failure::new(Reason::Unreachable, WorkerError::NotStarted(error))),
        }
        if cancelled.is_cancelled() {
            return Err(Failure::new(Reason::Unreachable, "it took too long"));
        }
        if memory(child.id()).is_some_and(|memory| memory > MOST_MEMORY) {
            let problem = format!("to fetch it takes more than {} MiB of memory", MOST_MEMORY >> 10);
            let failure = Failure::new(Reason::Invalid, problem);
            return Err(failure.hint("Keep the specs in a repository of their own, with few branches and tags."));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the memory that a process has taken, in KiB; files that it has mapped can be had again.
fn memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn said(answer: Answer) -> Result<Option<Wanted>, Failure> {
    match answer {
        Answer::Unchanged => Ok(None),
        Answer::Fetched { commit, ask_for, revision } => match Oid::from_str(&commit) {
            Ok(commit) => Ok(Some(Wanted { commit, ask_for, revision })),
            Err(_) => Err(Failure::new(Reason::Invalid, WorkerError::NoAnswer(None))),
        },
        Answer::Failed { reason, causes, hint, of_mirror } => {
            Err(Failure { reason, cause: causes.join(": ").into(), hint, of_mirror })
        }
    }
}

/// Does in the child what its input says, and writes what came of it.
pub fn serve(input: &mut (impl Read + Send), output: &mut impl Write) -> io::Result<()> {
    let mut job = serde_json::Deserializer::from_reader(&mut *input).into_iter::<Job>();
    let Some(job) = job.next().transpose()? else { return Ok(()) };
    let answer = match fetch(&job) {
        Ok(None) => Answer::Unchanged,
        Ok(Some(Wanted { commit, ask_for, revision })) => {
            Answer::Fetched { commit: commit.to_string(), ask_for, revision }
        }
        Err(Failure { reason, cause, hint, of_mirror }) => {
            let first: &(dyn StdError + 'static) = &*cause;
            let causes = std::iter::successors(Some(first), |cause| (*cause).source());
            Answer::Failed { reason, causes: causes.map(ToString::to_string).collect(), hint, of_mirror }
        }
    };
    serde_json::to_writer(&mut *output, &answer)?;
    output.flush()
}

fn fetch(job: &Job) -> Result<Option<Wanted>, Failure> {
    limits::init().map_err(|error: InitError| Failure::new(Reason::Invalid, error))?;
    let mirror = Repository::open_bare(&job.mirror).map_err(|error| Failure::of_mirror(&error))?;
    conversation::update(&job.settings, &mirror, job.have.as_deref(), &CancellationToken::new())
}
