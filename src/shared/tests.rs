//! Hosts with folders of their own, and the store that they share.

mod hostile;
mod interleaved;
mod property;
mod servers;
mod slow;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::plan::restore::Deed;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tempfile::TempDir;

use super::*;
use crate::basics::lock::lock;
use crate::history::archive::record::Intent;
use crate::history::archive::{self, About, Archive};

/// A host: a state folder, and what keeps it like the store.
struct Host {
    state: State,
    shared: Shared,
    syncs: BTreeSet<String>,
}

impl Host {
    /// Begins with the folder that is there; whatever was noted before is forgotten, as when a process has ended.
    fn start(folder: &Path, open: impl FnOnce(&State) -> Result<Shared, SharedError>) -> Self {
        let state = State::open(folder).noting();
        let shared = open(&state).expect("the store can be opened");
        Self { state, shared, syncs: BTreeSet::new() }
    }

    fn in_folder(folder: &Path, store: &Path) -> Self {
        Self::start(folder, |state| Shared::open(&settings(store), state, Path::new("reports"), "test", true))
    }

    fn in_memory(folder: &Path, store: &Arc<InMemory>) -> Self {
        let store: Arc<dyn ObjectStore> = Arc::clone(store) as _;
        Self::start(folder, |state| {
            Shared::with(Remote::over(store, "fleet"), state, (Path::new("reports"), "test", true))
        })
    }

    fn write(&self, name: &str, text: &str) {
        self.state.write(name, text.as_bytes()).expect("it is written");
    }

    fn read(&self, name: &str) -> Option<String> {
        self.state.read(name).expect("it can be read").map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn synchronize(&self) -> Synchronized {
        let done = self.shared.synchronize(|sync| self.syncs.contains(sync)).await;
        done.expect("the store answers")
    }

    async fn flush(&self) {
        self.shared.flush(|_| true).await.expect("the store answers");
    }

    /// The shared files of this host, with their content.
    fn files(&self) -> BTreeMap<String, String> {
        let files = self.shared.local.files().expect("they can be read");
        files.keys().map(|name| (name.to_string(), self.read(name.as_str()).unwrap_or_default())).collect()
    }
}

fn settings(store: &Path) -> StoreSettings {
    StoreSettings { url: format!("file://{}", store.display()), options: BTreeMap::new(), secrets: None }
}

/// Two folders for hosts and one for their store.
fn folders() -> (TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = ["a", "b", "store"].map(|name| folder.path().join(name));
    fs::create_dir(&paths[2]).expect("a test may");
    (folder, paths)
}

async fn put(store: &InMemory, name: &str, bytes: Vec<u8>) {
    store.put(&ObjectPath::from(format!("fleet/{name}")), bytes.into()).await.expect("it is written");
}

async fn error(host: &Host) -> String {
    host.shared.synchronize(|_| true).await.expect_err("it is refused").to_string()
}

#[tokio::test]
async fn another_host_gets_what_one_has_written_and_loses_what_it_has_removed() {
    let (_folder, [a, b, store]) = folders();
    let (a, b) = (Host::in_folder(&a, &store), Host::in_folder(&b, &store));
    a.write("approvals/t1.json", "1");
    a.write("status/edge/west.json", "2");
    a.write("undo/20261120T100000.000Z-edge/west/steps-1", "3");
    a.write("reports/20261120T100000.000Z-edge.json", "4");
    a.write("known/edge/west.json", "not shared");
    a.write("rollouts/edge.lock", "not shared");
    a.flush().await;
    assert_eq!(b.synchronize().await, Synchronized { taken: 4, ..Synchronized::default() });
    assert_eq!(b.files(), a.files());
    assert_eq!(b.state.installation().ok(), a.state.installation().ok(), "the second host joins the first");
    assert_eq!((b.read("known/edge/west.json"), b.read("rollouts/edge.lock")), (None, None));
    assert!(b.state.notes().is_some_and(|notes| notes.all().keys().all(|path| !path.ends_with("t1.json"))));

    b.state.remove("approvals/t1.json").expect("it is removed");
    fs::remove_dir_all(b.state.path("undo/20261120T100000.000Z-edge")).expect("a test may");
    b.state.touched("undo/20261120T100000.000Z-edge");
    b.flush().await;
    assert_eq!(a.synchronize().await, Synchronized { removed: 2, ..Synchronized::default() });
    assert_eq!(a.files(), b.files());
    assert!(!a.state.path("undo/20261120T100000.000Z-edge").exists(), "an empty folder would be a run");
    assert_eq!(a.synchronize().await, Synchronized::default());
}

#[tokio::test]
async fn who_looks_after_a_sync_has_the_last_word_and_nothing_is_lost() {
    let (_folder, [a, b, store]) = folders();
    let (mut a, b) = (Host::in_folder(&a, &store), Host::in_folder(&b, &store));
    for name in ["status/edge/west.json", "suspended/edge.json", "approvals/t1.json"] {
        a.write(name, "first");
    }
    a.synchronize().await;
    b.synchronize().await;
    a.syncs.insert("edge".to_owned());
    // A late word of a host that has lost the sync, and one of a person.
    b.write("status/edge/west.json", "late");
    b.write("suspended/edge.json", "of a person");
    b.flush().await;
    let done = a.synchronize().await;
    assert_eq!(done, Synchronized { pushed: 1, taken: 1, conflicts: 1, ..Synchronized::default() });
    assert_eq!(a.read("status/edge/west.json").as_deref(), Some("first"));
    assert_eq!(a.read("suspended/edge.json").as_deref(), Some("of a person"));
    assert_eq!(a.read("shared/conflicts/status/edge/west.json").as_deref(), Some("late"));
    b.synchronize().await;
    assert_eq!(a.files(), b.files());

    // Both say something.
    a.write("approvals/t1.json", "ours");
    b.write("approvals/t1.json", "theirs");
    b.flush().await;
    let done = a.synchronize().await;
    assert_eq!(done, Synchronized { taken: 1, conflicts: 1, ..Synchronized::default() });
    assert_eq!(a.read("shared/conflicts/approvals/t1.json").as_deref(), Some("ours"));
    assert_eq!(a.files(), b.files());
}

#[tokio::test]
async fn a_flush_pushes_what_was_changed_elsewhere_meanwhile_and_keeps_that_aside() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Arc::new(InMemory::new());
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    // The one store knows conditions, the other one does not.
    let on_disk = folder.path().join("store");
    fs::create_dir(&on_disk).expect("a test may");
    let pairs = [
        (Host::in_memory(&a, &store), Host::in_memory(&b, &store)),
        (Host::in_folder(&a.join("2"), &on_disk), Host::in_folder(&b.join("2"), &on_disk)),
    ];
    for (a, b) in pairs {
        a.write("suspended/edge.json", "first");
        a.flush().await;
        b.synchronize().await;
        b.write("suspended/edge.json", "of b");
        b.write("suspended/core.json", "of b");
        b.flush().await;
        a.write("suspended/edge.json", "of a");
        a.write("suspended/core.json", "of a");
        a.flush().await;
        for name in ["suspended/edge.json", "suspended/core.json"] {
            assert_eq!(a.read(name).as_deref(), Some("of a"));
            assert_eq!(a.read(&format!("shared/conflicts/{name}")).as_deref(), Some("of b"));
        }
        b.synchronize().await;
        assert_eq!(a.files(), b.files());
        // What somebody has changed is not deleted by who does not know it.
        b.write("suspended/edge.json", "again");
        b.flush().await;
        a.state.remove("suspended/edge.json").expect("it is removed");
        a.flush().await;
        assert_eq!(a.read("shared/conflicts/suspended/edge.json").as_deref(), Some("again"));
    }
}

#[tokio::test]
async fn callers_at_one_time_are_told_only_when_all_is_there() {
    let (_folder, [a, b, store]) = folders();
    let (a, b) = (Host::in_folder(&a, &store), Host::in_folder(&b, &store));
    let each = (0..20).map(|number| {
        let a = &a;
        async move {
            a.write(&format!("approvals/t{number}.json"), "1");
            a.flush().await;
            assert!(a.shared.remote.head(&format!("approvals/t{number}.json")).await.expect("it answers").is_some());
        }
    });
    futures::future::join_all(each).await;
    assert_eq!(b.synchronize().await.taken, 20);
}

#[tokio::test]
async fn whoever_does_not_wait_for_a_flush_has_it_done_by_the_next() {
    let (_folder, [a, b, store]) = folders();
    let (a, b) = (Host::in_folder(&a, &store), Host::in_folder(&b, &store));
    a.write("approvals/t1.json", "1");
    for polls in 1..20 {
        a.write("approvals/t2.json", &polls.to_string());
        let mut flush = Box::pin(a.shared.flush(|_| true));
        for _ in 0..polls {
            drop(futures::poll!(&mut flush));
            tokio::task::yield_now().await;
            if futures::poll!(&mut flush).is_ready() {
                break;
            }
        }
    }
    a.flush().await;
    b.synchronize().await;
    assert_eq!(b.files(), a.files());
    assert_eq!(b.read("approvals/t2.json").as_deref(), Some("19"));
}

#[tokio::test]
async fn a_host_that_has_lost_its_files_gets_them_back() {
    let (_folder, [a, b, store]) = folders();
    let first = Host::in_folder(&a, &store);
    for number in 0..12 {
        first.write(&format!("status/edge/c{number}.json"), "1");
    }
    first.synchronize().await;
    let files = first.files();
    // Its files alone: nobody has removed so many.
    fs::remove_dir_all(a.join("status")).expect("a test may");
    let again = Host::in_folder(&a, &store);
    assert_eq!(again.synchronize().await, Synchronized { restored: 12, ..Synchronized::default() });
    assert_eq!(again.files(), files);
    // All that it had.
    fs::remove_dir_all(&a).expect("a test may");
    let mut again = Host::in_folder(&a, &store);
    assert_eq!(again.synchronize().await, Synchronized { taken: 12, ..Synchronized::default() });
    assert_eq!(again.files(), files);
    // Those that were removed through the state, by who looks after the sync, were meant to be.
    again.syncs.insert("edge".to_owned());
    for number in 0..11 {
        again.state.remove(format!("status/edge/c{number}.json")).expect("it is removed");
    }
    assert_eq!(again.synchronize().await, Synchronized { deleted: 11, ..Synchronized::default() });
    let second = Host::in_folder(&b, &store);
    assert_eq!(second.synchronize().await.taken, 1);
}

#[tokio::test]
async fn what_was_kept_aside_for_a_month_goes_once_the_time_is_known() {
    let (_folder, [a, _, store]) = folders();
    let host = Host::in_folder(&a, &store);
    let (old, new) = ("shared/conflicts/status/edge/west.json", "shared/conflicts/suspended/edge.json");
    for (name, days) in [(old, 31), (new, 29)] {
        fs::create_dir_all(a.join(name).parent().expect("it is in a folder")).expect("a test may");
        let file = fs::File::create(a.join(name)).expect("a test may");
        let now = file.metadata().and_then(|found| found.modified()).expect("it has a time");
        file.set_modified(now - Duration::from_secs(days * 24 * 60 * 60)).expect("a test may");
    }
    host.synchronize().await;
    assert!(a.join(old).exists(), "nobody has said that this is the time");
    host.state.notes().expect("it notes").knows_time(true);
    host.synchronize().await;
    assert!(!a.join(old).exists() && !a.join("shared/conflicts/status").exists() && a.join(new).exists());
}

#[tokio::test]
async fn a_folder_of_reports_may_lie_elsewhere() {
    let (folder, [a, b, store]) = folders();
    let elsewhere = folder.path().join("elsewhere");
    let a = Host::start(&a, |state| Shared::open(&settings(&store), state, &elsewhere, "test", true));
    let b = Host::in_folder(&b, &store);
    let report = elsewhere.join("20261120T100000.000Z-edge.json");
    a.state.write(&report, b"1").expect("it is written");
    a.state.write(elsewhere.join("notes.txt"), b"of a person").expect("it is written");
    a.flush().await;
    assert_eq!(b.synchronize().await.taken, 1);
    assert_eq!(b.read("reports/20261120T100000.000Z-edge.json").as_deref(), Some("1"));
    b.state.remove("reports/20261120T100000.000Z-edge.json").expect("it is removed");
    b.flush().await;
    a.synchronize().await;
    assert!(!report.exists() && elsewhere.join("notes.txt").exists());
}

#[tokio::test]
async fn two_processes_of_a_host_take_turns_at_a_file_and_at_all_of_them() {
    let (_folder, [a, b, store]) = folders();
    let (daemon, command) = (Host::in_folder(&a, &store), Host::in_folder(&a, &store));
    command.write("approvals/t1.json", "1");
    let name = Name::parse("approvals/t1.json").expect("it is one");
    let locks = [
        daemon.state.try_lock_files(locks::number(&name)).expect("it can be locked"),
        daemon.state.try_lock_shared().expect("it can be locked"),
    ];
    let [file, all] = locks.map(|lock| lock.expect("nobody holds it"));
    let mut flush = Box::pin(command.shared.flush(|_| true));
    for _ in 0..20 {
        assert!(futures::poll!(&mut flush).is_pending(), "the other one is at this file");
        sleep(Duration::from_millis(5)).await;
    }
    drop(file);
    flush.await.expect("the store answers");
    let mut exchange = Box::pin(command.shared.synchronize(|_| true));
    for _ in 0..20 {
        assert!(futures::poll!(&mut exchange).is_pending(), "the other one is at all files");
        sleep(Duration::from_millis(5)).await;
    }
    drop(all);
    exchange.await.expect("the store answers");
    assert_eq!(daemon.synchronize().await, Synchronized::default(), "the daemon knows what the command has pushed");
    assert_eq!(Host::in_folder(&b, &store).synchronize().await.taken, 1);
}

#[tokio::test]
async fn a_state_that_does_not_note_is_not_shared() {
    let (_folder, [a, _, store]) = folders();
    let opened = Shared::open(&settings(&store), &State::open(a), Path::new("reports"), "test", true);
    assert!(matches!(opened, Err(SharedError::NotNoting)));
}

#[tokio::test]
async fn what_a_round_adds_to_a_file_or_lets_expire_is_pushed_too() {
    let (_folder, [a, b, store]) = folders();
    let (a, b) = (Arc::new(Host::in_folder(&a, &store)), Host::in_folder(&b, &store));
    let archive = Archive::open(&a.state, &archive::Settings::default(), 10).map(Arc::new).expect("a key is made");
    let record = |run: &str| {
        let [run, sync, cluster, revision] = [run, "edge", "west", "1"].map(str::to_owned);
        let started = jiff::Timestamp::UNIX_EPOCH;
        let recorder = archive.recorder(About { run, sync, cluster, revision, started });
        let id = ObjectId::new("", "Service", "infra", "west");
        let gvk = Gvk { group: String::new(), version: "v1".to_owned(), kind: "Service".to_owned() };
        let intent = Intent { unit: id.clone(), id: id.clone(), gvk, files: BTreeSet::new(), deed: Deed::Create };
        recorder.begin_with(vec![intent]).expect("it is written");
        (recorder, id)
    };
    let (recorder, id) = record("20261120T100000.000Z-edge.west");
    // A round runs in a task of its own.
    let flush = |host: &Arc<Host>| {
        let host = Arc::clone(host);
        tokio::spawn(async move { host.shared.flush(|_| true).await.map(drop) })
    };
    flush(&a).await.expect("it ends").expect("the store answers");
    for _ in 0..2 {
        recorder.after(&id, None);
        a.flush().await;
        b.synchronize().await;
        assert_eq!(b.files(), a.files());
    }
    let after = "undo/20261120T100000.000Z-edge.west/west/after";
    assert_eq!(b.read(after).map(|text| text.lines().count()), Some(2));
    drop(recorder);
    for day in 21..25 {
        drop(record(&format!("202611{day}T100000.000Z-edge.west")));
    }
    a.flush().await;
    archive.expire("2027-11-20T12:00:00Z".parse().expect("it is a time"));
    assert!(a.files().contains_key(after), "nobody else has said that this is the time");
    a.state.notes().expect("it notes").knows_time(true);
    archive.expire("2027-11-20T12:00:00Z".parse().expect("it is a time"));
    flush(&a).await.expect("it ends").expect("the store answers");
    let host = Arc::clone(&a);
    let done = tokio::spawn(async move { host.shared.synchronize(|_| true).await }).await.expect("it ends");
    assert_eq!(done.expect("the store answers"), Synchronized::default(), "nothing was left to be done");
    b.synchronize().await;
    assert_eq!((b.files(), b.files().contains_key(after)), (a.files(), false));
}
