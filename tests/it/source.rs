//! Sources against real servers: git over https, ssh and from disk, and directories that change.

mod directory;
mod https;
mod local;
mod mirror;
mod ssh;

use std::path::Path;

use gatewright::source::git::GitSource;
use gatewright::source::git::settings::Settings;
use gatewright::source::{Snapshot, Source, SourceError};
use gatewright_engine::error::Chain;
use gatewright_engine::tree::Entry;
use serde_json::Value;

/// The requests that it takes over https to list what there is: one to be told to bring a token, and one with it.
const LIST: usize = 2;

/// The requests that it takes over https to fetch a commit: one to learn where its history is cut, and one to get it.
const FETCH: usize = 2;

/// Makes a source from its settings as they stand in the config file.
fn source(folder: &Path, settings: Value) -> GitSource {
    let settings: Settings = serde_json::from_value(settings).expect("the settings of a test are well-formed");
    GitSource::new("test", settings, &folder.join("mirrors")).expect("the settings of a test fit together")
}

/// Polls for the first time.
async fn snapshot(source: &impl Source) -> Snapshot {
    let result = source.poll(None).await;
    result.map_err(|error| told(&error)).expect("the source can be read").expect("a first poll finds a snapshot")
}

/// Polls a source that cannot be read.
async fn failure(source: &impl Source) -> SourceError {
    source.poll(None).await.map(|_| ()).expect_err("the source cannot be read")
}

/// Everything that is told about a failure.
fn told(error: &SourceError) -> String {
    format!("{:?}: {}. {}", error.reason, Chain(error), error.hint.as_deref().unwrap_or_default())
}

/// Lists the files of a snapshot with their text, or why they have none.
fn files(snapshot: &Snapshot) -> Vec<(&str, &str)> {
    let files = snapshot.tree.files().map(|(path, entry)| match entry {
        Entry::Text(text) => (path, &**text),
        Entry::Unreadable(reason) | Entry::NotEntered(reason) => (path, reason.as_str()),
    });
    files.collect()
}
