//! Reading what rounds have written down, and deleting it when it is too old or too much.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright_engine::live::Live;
use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::restore::{Change, Deed, Left};
use jiff::{SignedDuration, Timestamp};

use super::About;
use super::record::{ChangeRecord, Intent, Steps, file_name, line_place};
use super::vault::{Vault, VaultError};

/// The folder of the records, below the state directory: a folder for each run, and in it one for each cluster.
pub const FOLDER: &str = "undo";
/// The file with what was left behind.
pub(super) const NOTES: &str = "after";

/// The beginning of the name of a run: a time stamp.
const STAMP: &str = "%Y%m%dT%H%M%S";

/// The number of rounds of each sync on the same clusters that stay, however old they are: a clock may be wrong.
const NEWEST: usize = 3;

/// The record of what a round has done: its subject on each cluster, and its changes there.
pub type Recorded = BTreeMap<String, (About, Vec<Change>)>;

/// The outline of what a round was about to do on a cluster.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The subject of the round.
    pub about: About,
    /// To how many objects it was about to do what.
    pub counts: BTreeMap<Deed, usize>,
}

/// Names a round of a sync: by its time, the sync, and the cluster if there is only one.
pub fn name(started: Timestamp, sync: &str, clusters: &[&str]) -> String {
    let time = started.strftime("%Y%m%dT%H%M%S%.3fZ");
    match clusters {
        [only] => format!("{time}-{sync}.{only}"),
        _ => format!("{time}-{sync}"),
    }
}

pub(super) fn path(run: &str, cluster: &str, name: &str) -> String {
    format!("{FOLDER}/{run}/{cluster}/{name}")
}

pub(super) fn steps_name(attempt: u32) -> String {
    format!("steps-{attempt}")
}

/// Returns the names of all runs that are kept, the newest first.
pub fn list(folder: &Path) -> Vec<String> {
    let names = entries(folder).into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| is_run(name)).collect();
    names.sort_by(|a, b| b.cmp(a));
    names
}

/// Only names that we gave.
pub(crate) fn is_run(name: &str) -> bool {
    name.as_bytes().get(8) == Some(&b'T') && name.contains("Z-")
}

/// Of what is no folder of ours, but a link to another one, nothing is listed.
fn entries(folder: &Path) -> Vec<PathBuf> {
    if folder.is_symlink() {
        return Vec::new();
    }
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Reads what a run was about to do, by cluster; no object is read.
pub fn outline(vault: &Vault, run: &str) -> Result<BTreeMap<String, Outline>, VaultError> {
    let count = |(about, intents): (About, Intents)| {
        let mut counts = BTreeMap::new();
        // What was planned several times counts as it was first.
        for (_, intent) in intents.values().filter_map(|planned| planned.first()) {
            *counts.entry(intent.deed).or_default() += 1;
        }
        Outline { about, counts }
    };
    on_each(vault, run, |cluster| Ok(read_steps(vault, run, cluster)?.map(count)))
}

/// Returns the subject of the newest round of a sync on a cluster that has changed something there, or was about to.
pub fn last(vault: &Vault, sync: &str, cluster: &str) -> Result<Option<About>, VaultError> {
    let alone = format!("{sync}.{cluster}");
    let is_of_it = |run: &&String| run.split_once("Z-").is_some_and(|(_, about)| about == sync || about == alone);
    for run in list(&vault.state.path(FOLDER)).iter().filter(is_of_it) {
        // The name of another sync may be that of this one with a cluster behind it.
        let steps = vault.read::<Steps>(&path(run, cluster, &steps_name(1)))?;
        if let Some(steps) = steps.filter(|steps| steps.about.sync == sync) {
            return Ok(Some(steps.about));
        }
    }
    Ok(None)
}

/// Reads what a run has done, on all its clusters.
pub fn read(vault: &Vault, run: &str) -> Result<Recorded, VaultError> {
    on_each(vault, run, |cluster| read_cluster(vault, run, cluster))
}

/// The progress of a round with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::history) enum Progress {
    /// Nothing was sent.
    Untouched,
    /// It may have been done.
    Unknown,
    /// It was done, and a note says in which state it was left.
    Done,
}

/// Returns how far a round has come on a cluster with each object, in whichever of its plans it has come the farthest.
pub(in crate::history) fn progress(vault: &Vault, about: &About) -> Result<Vec<(Intent, Progress)>, VaultError> {
    let (run, cluster) = (about.run.as_str(), about.cluster.as_str());
    let Some((_, intents)) = read_steps(vault, run, cluster)? else { return Ok(Vec::new()) };
    let records = read_changes(vault, &path(run, cluster, NOTES))?;
    let progress = |(attempt, intent): (u32, Intent)| {
        let is_noted = records.iter().any(|record| record.id == intent.id && record.attempt == attempt);
        let is_kept = || vault.state.path(path(run, cluster, &file_name(&intent.id, attempt))).exists();
        let progress = match intent.deed {
            _ if is_noted => Progress::Done,
            Deed::Create => Progress::Unknown,
            _ if is_kept() => Progress::Unknown,
            _ => Progress::Untouched,
        };
        (intent, progress)
    };
    let farthest =
        |planned: Vec<(u32, Intent)>| planned.into_iter().map(progress).max_by_key(|(_, progress)| *progress);
    Ok(intents.into_values().filter_map(farthest).collect())
}

fn on_each<T>(
    vault: &Vault,
    run: &str,
    read: impl Fn(&str) -> Result<Option<T>, VaultError>,
) -> Result<BTreeMap<String, T>, VaultError> {
    let mut clusters = BTreeMap::new();
    for cluster in vault.state.names(format!("{FOLDER}/{run}")) {
        if let Some(found) = read(&cluster)? {
            clusters.insert(cluster, found);
        }
    }
    Ok(clusters)
}

/// The actions that were intended for each object, with the number of the plan.
type Intents = BTreeMap<ObjectId, Vec<(u32, Intent)>>;

fn read_steps(vault: &Vault, run: &str, cluster: &str) -> Result<Option<(About, Intents)>, VaultError> {
    let mut about = None;
    let mut intents = Intents::new();
    for attempt in 1.. {
        let Some(steps) = vault.read::<Steps>(&path(run, cluster, &steps_name(attempt)))? else { break };
        about.get_or_insert(steps.about);
        for intent in steps.steps {
            intents.entry(intent.id.clone()).or_default().push((attempt, intent));
        }
    }
    Ok(about.map(|about| (about, intents)))
}

fn read_cluster(vault: &Vault, run: &str, cluster: &str) -> Result<Option<(About, Vec<Change>)>, VaultError> {
    let Some((about, intents)) = read_steps(vault, run, cluster)? else { return Ok(None) };
    let mut records: BTreeMap<ObjectId, Vec<ChangeRecord>> = BTreeMap::new();
    for record in read_changes(vault, &path(run, cluster, NOTES))? {
        records.entry(record.id.clone()).or_default().push(record);
    }
    let mut changes = Vec::new();
    for (id, intents) in intents {
        let records = records.remove(&id).unwrap_or_default();
        changes.extend(change(vault, (run, cluster), &intents, &records)?);
    }
    Ok(Some((about, changes)))
}

/// Puts together what a round did to one object. It may have planned several times, because others were faster: the
/// state before the first write counts, and what was left by the last.
fn change(
    vault: &Vault,
    (run, cluster): (&str, &str),
    intents: &[(u32, Intent)],
    records: &[ChangeRecord],
) -> Result<Option<Change>, VaultError> {
    let mut sent = Vec::new();
    for (attempt, intent) in intents {
        let before = match intent.deed {
            Deed::Create => None,
            Deed::Change | Deed::Adopt | Deed::Delete | Deed::Release => {
                vault.read::<Live>(&path(run, cluster, &file_name(&intent.id, *attempt)))?
            }
        };
        if intent.deed == Deed::Create || before.is_some() {
            sent.push((*attempt, intent, before));
        }
    }
    let is_noted = |attempt: u32| records.iter().any(|record| record.attempt == attempt);
    let last = sent.last().map(|(attempt, ..)| *attempt);
    let first = sent.iter().position(|(attempt, ..)| is_noted(*attempt)).unwrap_or(sent.len().saturating_sub(1));
    let Some((_, intent, before)) = sent.into_iter().nth(first) else { return Ok(None) };
    let record = records.iter().rev().find(|record| Some(record.attempt) == last);
    let earlier = records.iter().filter(|record| Some(record.attempt) < last).filter_map(|record| record.left.as_ref());
    let left: Option<Left> = record.and_then(|record| record.left.clone()).map(|left| earlier.fold(left, Left::since));
    let Intent { unit, id, gvk, files, deed } = intent.clone();
    Ok(Some(Change { unit, id, gvk, files, deed, before, left }))
}

/// Reads what was left behind. A line without an end was being written when the process ended, and says nothing.
fn read_changes(vault: &Vault, path: &str) -> Result<Vec<ChangeRecord>, VaultError> {
    let Some(bytes) = vault.state.read(path)? else { return Ok(Vec::new()) };
    let file = vault.state.path(path);
    let text = String::from_utf8(bytes).map_err(|_| VaultError::Damaged(file.clone()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let record = |(number, line): (usize, &str)| {
        let damaged = || VaultError::Damaged(file.clone());
        let encrypted = STANDARD.decode(line).map_err(|_| damaged())?;
        let json = vault.decrypt(&line_place(path, number), &encrypted, &file)?;
        serde_json::from_slice(&json).map_err(|_| damaged())
    };
    whole.lines().enumerate().map(record).collect()
}

/// Returns what is too old or too much of all that is kept of rounds, newest first, each named as its round is and with
/// its bytes: what is older than it is kept, but for the newest of each sync on the same clusters, and whatever their age
/// the oldest of more than `most` bytes.
pub(crate) fn expired<'a>(
    all: impl Iterator<Item = (&'a str, u64)>,
    now: Timestamp,
    (keep, most): (Duration, u64),
) -> Vec<&'a str> {
    let limit = SignedDuration::try_from(keep).ok().and_then(|keep| now.checked_sub(keep).ok());
    let limit = limit.map(|limit| limit.strftime(STAMP).to_string()).unwrap_or_default();
    let (mut total, mut ranks) = (0_u64, BTreeMap::<&str, usize>::new());
    let is_expired = |(name, bytes): &(&'a str, u64)| {
        total = total.saturating_add(*bytes);
        let rank = ranks.entry(name.split_once("Z-").map_or(name, |(_, about)| about)).or_default();
        *rank += 1;
        let is_old = *rank > NEWEST && name.get(..limit.len()).is_some_and(|time| time < limit.as_str());
        is_old || total > most
    };
    all.filter(is_expired).map(|(name, _)| name).collect()
}

/// Deletes the runs that are expired; never those that are under way, nor the newest of all. Returns their folders.
pub(super) fn expire(
    folder: &Path,
    now: Timestamp,
    limits: (Duration, u64),
    active: &BTreeSet<String>,
) -> Vec<PathBuf> {
    let mut deleted = Vec::new();
    let runs = list(folder);
    let sizes = runs.iter().map(|run| (run.as_str(), size(&folder.join(run))));
    for run in expired(sizes, now, limits) {
        if run != runs[0] && !active.contains(run) {
            drop(fs::remove_dir_all(folder.join(run)));
            deleted.push(folder.join(run));
        }
    }
    deleted
}

fn size(path: &Path) -> u64 {
    let length = |entry: &Path| entry.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    let of = |entry: PathBuf| if entry.is_dir() { size(&entry) } else { length(&entry) };
    entries(path).into_iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gatewright_engine::object::Gvk;

    use super::super::{Archive, Settings};
    use super::*;
    use crate::state::State;

    fn runs(folder: &Path, names: &[(&str, usize)]) {
        for (name, bytes) in names {
            fs::create_dir_all(folder.join(name).join("c")).expect("a test may");
            fs::write(folder.join(name).join("c/file"), vec![0; *bytes]).expect("a test may");
        }
    }

    #[test]
    fn what_is_too_old_or_too_much_goes_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let all = ["20261120T100000.000Z-edge", "20261119T100000.000Z-edge.c", "20261101T100000.000Z-edge"];
        let newer: Vec<String> = (0..NEWEST).map(|hour| format!("20261120T0{hour}0000.000Z-edge")).collect();
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().expect("it is a time");
        let days = |days: u64| Duration::from_hours(24 * days);
        let left = |keep, most, active: &[&str]| {
            runs(folder, &[(all[0], 100), (all[1], 100), (all[2], 100), ("notes of a person", 1000)]);
            for name in &newer {
                runs(folder, &[(name, 0)]);
            }
            expire(folder, now, (keep, most), &active.iter().map(|name| (*name).to_owned()).collect());
            list(folder).iter().filter(|run| all.contains(&run.as_str())).count()
        };
        assert_eq!(left(days(30), 1000, &[]), 3);
        assert_eq!(left(days(10), 1000, &[]), 2);
        assert_eq!(left(days(10), 1000, &[all[2]]), 3, "it is under way");
        assert_eq!(left(days(30), 250, &[]), 2);
        assert_eq!(left(days(30), 10, &[]), 1, "the newest stays");
        assert_eq!(left(Duration::MAX, 300, &[]), 3);
        assert!(folder.join("notes of a person").exists());
    }

    #[test]
    fn the_newest_rounds_of_each_sync_stay_whatever_their_age() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let names =
            |about: &str| -> Vec<String> { (10..25).map(|day| format!("200611{day}T100000.000Z-{about}")).collect() };
        for name in ["edge", "edge.c", "other"].iter().flat_map(|about| names(about)) {
            runs(folder, &[(&name, 10)]);
        }
        let now: Timestamp = "2036-11-20T12:00:00Z".parse().expect("it is a time");
        expire(folder, now, (Duration::from_hours(24), u64::MAX), &BTreeSet::new());
        let left = list(folder);
        assert_eq!(left.len(), 3 * NEWEST, "{left:?}");
        assert!(left.contains(&names("edge.c")[14]) && !left.contains(&names("edge.c")[0]), "{left:?}");
    }

    #[test]
    fn no_two_rounds_have_one_name() {
        let at: Timestamp = "2026-11-20T12:00:00.123Z".parse().expect("it is a time");
        assert_eq!(name(at, "edge", &["eu-1"]), "20261120T120000.123Z-edge.eu-1");
        assert_eq!(name(at, "edge", &["eu-1", "us-1"]), "20261120T120000.123Z-edge");
    }

    #[test]
    fn the_last_round_is_known_before_it_has_left_a_report() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let archive = Archive::open(&State::open(folder.path()), &Settings::default(), 10).map(Arc::new);
        let archive = archive.expect("a key is made");
        let begin = |hour: u32, (name, sync): (&str, &str), cluster: &str, revision: &str| {
            let run = format!("20261120T{hour:02}0000.000Z-{name}");
            let [sync, cluster, revision] = [sync, cluster, revision].map(str::to_owned);
            let about = About { run, sync, cluster, revision, started: Timestamp::UNIX_EPOCH };
            let id = ObjectId::new("", "Service", "infra", "edge");
            let gvk = Gvk::new("v1", "Service");
            let intent = Intent { unit: id.clone(), id, gvk, files: BTreeSet::new(), deed: Deed::Create };
            archive.recorder(about).begin_with(vec![intent]).expect("it is written");
        };
        let last = |sync: &str, cluster: &str| {
            archive.last(sync, cluster).expect("it can be read").map(|about| about.revision)
        };
        assert_eq!(last("edge", "west"), None);
        begin(1, ("edge.west", "edge"), "west", "v1");
        begin(2, ("edge", "edge"), "west", "v2");
        begin(3, ("edge", "edge"), "east", "v3");
        begin(4, ("edge.west.east", "edge.west"), "east", "v4");
        assert_eq!(last("edge", "west").as_deref(), Some("v2"));
        begin(4, ("edge.west", "edge.west"), "west", "of another sync, on all of its clusters");
        assert_eq!(last("edge", "west").as_deref(), Some("v2"));
        begin(5, ("edge.west", "edge"), "west", "v5");
        assert_eq!([last("edge", "west"), last("edge", "east")].map(Option::unwrap_or_default), ["v5", "v3"]);
        fs::write(folder.path().join("undo/20261120T050000.000Z-edge.west/west/steps-1"), "?").expect("a test may");
        assert!(archive.last("edge", "west").is_err(), "unknown is not the one before");
    }
}
