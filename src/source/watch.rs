//! Noticing at once that a directory changed, so that nobody has to wait for the next poll.
//!
//! A nudge only changes when a source is polled, never what comes of it.
//! So this may miss a change (a symbolic link that is turned to another folder, a network file system) and may report
//! one that was none: the poll that goes on anyway makes up for the former, and the content for the latter.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use gatewright_engine::tree::Tree;
use notify::event::{CreateKind, EventKind, ModifyKind, RemoveKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};

/// The time for which changes are collected before they are reported together.
const QUIET: Duration = Duration::from_millis(500);

/// The pause between two looks for a folder that is not there.
const RETRY: Duration = Duration::from_secs(1);

/// Watching cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch {path:?}")]
pub struct WatchError {
    path: PathBuf,
    #[source]
    source: notify::Error,
}

/// Watches a directory until it is dropped.
pub struct Watcher {
    messages: Sender<Message>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // It fails only if the thread has ended already.
        drop(self.messages.send(Message::Stop));
    }
}

enum Message {
    Event(notify::Result<Event>),
    Stop,
}

/// Calls `on_change` half a second after files that may be specs began to change.
///
/// The folder need not exist; it may be deleted, and is watched again once it is back, which counts as a change.
/// `on_change` runs in a thread of its own.
///
/// Fails when the system has no means of watching left, which `fs.inotify.max_user_instances` and
/// `fs.inotify.max_user_watches` govern on Linux.
pub fn watch(path: &Path, on_change: impl Fn() + Send + 'static) -> Result<Watcher, WatchError> {
    let fail = |source| WatchError { path: path.to_owned(), source };
    let (messages, received) = mpsc::channel();
    let events = messages.clone();
    // Sending fails only after the receiving thread has ended, and the watcher ends with it.
    let watcher = notify::recommended_watcher(move |event| drop(events.send(Message::Event(event)))).map_err(fail)?;
    let mut state = State { root: path.to_owned(), watcher, attached: false };
    if path.exists() {
        state.attach().map_err(fail)?;
    }
    thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || state.run(&received, on_change))
        .map_err(|error| fail(notify::Error::io(error)))?;
    Ok(Watcher { messages })
}

struct State {
    root: PathBuf,
    watcher: RecommendedWatcher,
    attached: bool,
}

impl State {
    fn run(mut self, received: &Receiver<Message>, on_change: impl Fn()) {
        loop {
            let dirty = match received.recv_timeout(RETRY) {
                Ok(Message::Event(event)) => self.digest(event),
                Err(RecvTimeoutError::Timeout) => !self.attached && self.attach().is_ok(),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if !dirty {
                continue;
            }
            thread::sleep(QUIET);
            while let Ok(message) = received.try_recv() {
                match message {
                    Message::Event(event) => drop(self.digest(event)),
                    Message::Stop => return,
                }
            }
            on_change();
        }
    }

    fn attach(&mut self) -> notify::Result<()> {
        self.watcher.watch(&self.root, RecursiveMode::Recursive)?;
        self.attached = true;
        Ok(())
    }

    /// Tells whether something changed that matters, and lets go of a folder that went away.
    fn digest(&mut self, event: notify::Result<Event>) -> bool {
        let gone = event.as_ref().map_or(true, |event| takes_away(event, &self.root));
        if gone {
            // It fails when the folder is gone for good, and then nothing is left to let go of.
            drop(self.watcher.unwatch(&self.root));
            self.attached = false;
        }
        gone || event.is_ok_and(|event| event.need_rescan() || matters(&event, &self.root))
    }
}

/// Tells whether the watched folder itself was deleted or renamed.
fn takes_away(event: &Event, root: &Path) -> bool {
    let moves = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    moves && event.paths.iter().any(|path| path == root)
}

/// Tells whether an event may change what a poll finds.
///
/// What is renamed may be a folder full of specs; its name does not say.
/// Reading counts for nothing, or each poll would bring about the next one.
fn matters(event: &Event, root: &Path) -> bool {
    let of_folder = match event.kind {
        EventKind::Access(_) => return false,
        EventKind::Create(CreateKind::Folder)
        | EventKind::Remove(RemoveKind::Folder)
        | EventKind::Modify(ModifyKind::Name(_)) => true,
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(_) | EventKind::Any | EventKind::Other => false,
    };
    event.paths.iter().any(|path| {
        let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) else { return true };
        relative.is_empty() || Tree::wants(relative) || of_folder && Tree::wants(&format!("{relative}/any.yaml"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{AccessKind, DataChange, RenameMode};

    fn check(kind: EventKind, path: &str) -> bool {
        matters(&Event::new(kind).add_path(Path::new("/specs").join(path)), Path::new("/specs"))
    }

    #[test]
    fn only_what_may_hold_specs_matters() {
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        assert!(check(written, "a/gateway.yaml"));
        assert!(check(written, "a/.gatewrightignore"));
        assert!(!check(written, "README.md"));
        assert!(!check(written, ".git/index.json"));
        assert!(!check(EventKind::Access(AccessKind::Any), "a/gateway.yaml"));
    }

    #[test]
    fn folders_that_come_and_go_matter() {
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        assert!(check(renamed, "a/v1.2"));
        assert!(check(EventKind::Remove(RemoveKind::Folder), "a"));
        assert!(check(EventKind::Create(CreateKind::Folder), "a"));
        assert!(!check(EventKind::Remove(RemoveKind::Folder), ".git/refs"));
        assert!(!check(EventKind::Create(CreateKind::File), "notes.txt"));
    }

    #[test]
    fn the_watched_folder_itself_can_go_away() {
        let event = Event::new(EventKind::Remove(RemoveKind::Folder)).add_path("/specs".into());
        assert!(takes_away(&event, Path::new("/specs")));
        assert!(!takes_away(&event, Path::new("/")));
    }
}
