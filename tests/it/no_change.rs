//! Rounds that rely on what the last one has noted: they cost next to nothing, and miss nothing.
//!
//! The API server is a real one; a proxy before it counts what it is asked.

mod edits;
mod health;
mod requests;
mod restored;
mod rules;
mod trust;

use serde_json::Value;

use crate::cluster::proxy::{Answer, Seen};
use crate::faults::Place;

/// More requests than a test makes.
const ALWAYS: usize = usize::MAX / 4;

/// When all traces that a test leaves are old.
const LATER: &str = "2100-01-01T00:00:00Z";

impl Place {
    /// From now on the cluster's clock says this where it is asked for metadata, until the proxy recovers.
    fn clock_says(&self, time: &str) {
        let time = time.parse().expect("a test knows the form of times");
        self.proxy.answer(ALWAYS, |seen| seen.is("GET", "labelSelector="), Answer::Dated(time));
    }

    /// Has a round take note of all objects: of what they are, and who has touched them.
    #[track_caller]
    fn takes_note(&self) {
        self.proxy.recovers();
        self.clock_says(LATER);
        self.sync().exits(0).says("no changes");
        let notes = self.notes();
        let of_all = notes["cache"]["objects"].as_array().expect("there are notes of objects");
        assert!(of_all.iter().all(|note| note["fingerprint"].is_string()), "{notes}");
        assert!(notes["no_change"].is_object(), "{notes}");
        self.proxy.recovers();
    }

    /// The file of notes.
    fn notes_path(&self) -> String {
        format!("state/known/{}/c.json", self.site.name)
    }

    fn notes(&self) -> Value {
        serde_json::from_str(&self.site.desk.read(&self.notes_path())).expect("it is JSON")
    }

    /// The objects that were dry-run, such as `deployments/edge`, in order of the alphabet.
    fn dry_runs(&self) -> Vec<String> {
        let is_dry_run = |seen: &&Seen| seen.method == "PATCH" && seen.path.contains("dryRun=All");
        let seen = self.proxy.seen();
        let mut names: Vec<String> = seen.iter().filter(is_dry_run).map(|seen| object_of(&seen.path)).collect();
        names.sort();
        names
    }

    /// The requests that were made, such as `GET /api/v1/services`, in order of the alphabet.
    fn asked(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.proxy.seen().iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect();
        lines.sort();
        lines
    }
}

/// Plural and name at the end of an address.
fn object_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.rsplitn(3, '/').collect();
    format!("{}/{}", parts[1], parts[0])
}
