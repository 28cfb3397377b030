//! Stores that are not what they should be: somebody else's, emptied, unreadable, or full of what does not belong there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use super::*;

/// Everything below a folder, by path.
fn all(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { all(&path) } else { [path].into() }).collect()
}

#[tokio::test]
async fn no_name_of_the_store_leads_out_of_the_groups() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Arc::new(InMemory::new());
    let host = Host::in_memory(&folder.path().join("state"), &store);
    let long = "x".repeat(5_000);
    let names = ["../x", "/etc/x", "undo/../../x", "status/.sources/x.json", "key", "shared/files/x.json", "%2e%2e/x"];
    for name in names.into_iter().chain([&*format!("status/edge/{long}.json"), &*long]) {
        put(&store, name, b"1".to_vec()).await;
    }
    put(&store, "status/edge/west.json", b"1".to_vec()).await;
    let done = host.synchronize().await;
    assert_eq!((done.taken, done.refused), (1, 9));
    let state = host.state.path("");
    let expected = ["installation", "installation.lock", "shared.lock", "status/edge/west.json"];
    let expected = expected.into_iter().chain(["shared/files/status/edge/west.json.json", "shared/store"]);
    let locks = state.join("shared/locks");
    let found: BTreeSet<PathBuf> = all(folder.path()).into_iter().filter(|path| !path.starts_with(&locks)).collect();
    assert_eq!(found, expected.map(|name| state.join(name)).collect());
}

#[tokio::test]
async fn a_folder_may_hold_names_that_are_no_text_and_links() {
    let (folder, [a, _, store]) = folders();
    let host = Host::in_folder(&a, &store);
    host.write("status/edge/west.json", "1");
    host.synchronize().await;
    fs::write(folder.path().join("secret"), "1").expect("a test may");
    // A link in the state folder is not followed, and nothing goes through it.
    fs::remove_file(a.join("status/edge/west.json")).expect("a test may");
    symlink(folder.path().join("secret"), a.join("status/edge/west.json")).expect("a test may");
    assert!(error(&host).await.contains("west.json"));
    fs::remove_file(a.join("status/edge/west.json")).expect("a test may");
    // A folder that is a link would look as if all files were gone.
    fs::rename(a.join("status"), folder.path().join("status")).expect("a test may");
    symlink(folder.path().join("status"), a.join("status")).expect("a test may");
    assert!(error(&host).await.contains("status"));
    fs::remove_file(a.join("status")).expect("a test may");
    assert!(store.join("status/edge/west.json").exists());

    fs::write(store.join(OsStr::from_bytes(b"status/\xff")), "1").expect("a test may");
    let before = all(&a);
    assert!(error(&host).await.contains("cannot list the objects of file://"));
    assert_eq!(all(&a), before);
}

#[tokio::test]
async fn what_is_too_large_stays_where_it_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Arc::new(InMemory::new());
    let host = Host::in_memory(folder.path(), &store);
    put(&store, "status/edge/west.json", vec![b' '; 65 << 20]).await;
    assert_eq!(host.synchronize().await, Synchronized { refused: 1, ..Synchronized::default() });
    assert_eq!(host.read("status/edge/west.json"), None);
    let path = host.state.path("status/edge/east.json");
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a test may");
    fs::File::create(&path).and_then(|file| file.set_len(65 << 20)).expect("a test may");
    assert_eq!(host.synchronize().await, Synchronized { refused: 2, ..Synchronized::default() });
    // Others are not kept waiting by it, and it is not forgotten.
    host.write("status/core/east.json", "1");
    for _ in 0..2 {
        let error = host.shared.flush(|_| true).await.expect_err("it is not in the store");
        assert_eq!(error.to_string(), "\"status/edge/east.json\" is larger than 64MiB, and is not shared");
        assert!(error.hint().is_some_and(|hint| hint.contains("move it away")));
        host.shared.flush_for("edge", |_| true).await.expect_err("it is of this sync");
        host.shared.flush_for("core", |_| true).await.expect("it is of another one");
        assert!(host.shared.remote.head("status/core/east.json").await.expect("it answers").is_some());
        host.synchronize().await;
    }
    fs::remove_file(&path).expect("a test may");
    host.state.touched("status/edge/east.json");
    host.flush().await;
}

#[tokio::test]
async fn an_emptied_store_empties_no_folder() {
    let (_folder, [a, _, store]) = folders();
    let host = Host::in_folder(&a, &store);
    host.write("status/edge/west.json", "1");
    host.synchronize().await;
    fs::remove_dir_all(&store).expect("a test may");
    // A folder that is gone, and one that is empty.
    for _ in 0..2 {
        let message = error(&host).await;
        assert!(message.contains("is not the store that this host has used"), "{message}");
        assert_eq!(host.read("status/edge/west.json").as_deref(), Some("1"));
        drop(fs::create_dir(&store));
    }
    let again = Host::in_folder(&a, &store);
    again.write("status/edge/west.json", "2");
    let refused = again.shared.flush(|_| true).await.expect_err("it is not the store");
    assert!(refused.hint().is_some_and(|hint| hint.contains("remove the folder `shared`")));
    assert_eq!(all(&store), BTreeSet::new(), "nothing is written there");
    // Whoever means it can have it.
    fs::remove_dir_all(a.join("shared")).expect("a test may");
    assert_eq!(again.synchronize().await, Synchronized { pushed: 1, ..Synchronized::default() });
}

#[tokio::test]
async fn the_store_of_another_installation_is_left_alone() {
    let (_folder, [a, b, store]) = folders();
    let (a, b) = (Host::in_folder(&a, &store), Host::in_folder(&b, &store));
    a.write("status/edge/west.json", "1");
    a.synchronize().await;
    let (ours, theirs) = (b.state.make_installation(), a.state.make_installation());
    let (ours, theirs) = (ours.expect("it is made"), theirs.expect("it is read"));
    b.write("status/edge/east.json", "1");
    let message = error(&b).await;
    assert!(message.contains(&ours) && message.contains(&theirs) && message.contains("file://"), "{message}");
    assert!(matches!(b.shared.flush(|_| true).await, Err(SharedError::OtherInstallation { .. })));
    assert_eq!((b.read("status/edge/west.json"), store.join("status/edge/east.json").exists()), (None, false));
    for (text, expected) in [("", "holds no id"), ("../../x", "holds no id"), ("not\nplain", "holds no id")] {
        fs::write(store.join(marker::MARKER), text).expect("a test may");
        assert!(error(&a).await.contains(expected), "{text:?}");
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_an_error_and_loses_nothing() {
    let (folder, [a, b, store]) = folders();
    let host = Host::in_folder(&a, &store);
    host.write("status/edge/west.json", "1");
    host.synchronize().await;
    fs::write(&b, "a file").expect("a test may");
    let state = State::open(folder.path().join("c")).noting();
    let file = Shared::open(&settings(&b), &state, Path::new("reports"), "test", true);
    let refused = match file {
        Err(error) => error.to_string(),
        Ok(shared) => shared.synchronize(|_| true).await.expect_err("it is no folder").to_string(),
    };
    assert!(refused.contains("file://") && refused.contains("/b"), "{refused}");
    let absent = Shared::open(&settings(&folder.path().join("absent")), &state, Path::new("reports"), "test", true);
    assert!(absent.is_err_and(|error| error.to_string().starts_with("cannot open the object store file://")));
    // A file in the place of a folder, and a folder in the place of a file: no rights are needed to notice that.
    fs::remove_dir_all(store.join("status/edge")).expect("a test may");
    fs::create_dir_all(store.join("status/edge/west.json/below")).expect("a test may");
    host.write("status/edge/west.json", "2");
    let error = host.shared.flush(|_| true).await.expect_err("it cannot be written");
    assert!(error.to_string().contains("\"status/edge/west.json\" in file://"), "{error}");
    fs::remove_dir_all(store.join("status/edge")).expect("a test may");
    host.flush().await;
    assert_eq!(fs::read_to_string(store.join("status/edge/west.json")).ok().as_deref(), Some("2"));
}

#[tokio::test]
async fn a_host_that_cannot_write_says_so_and_goes_on_once_it_can() {
    let (_folder, [a, b, store]) = folders();
    let (a, b) = (Host::in_folder(&a, &store), Host::in_folder(&b, &store));
    a.write("status/edge/west.json", "1");
    a.write("suspended/edge.json", "1");
    a.synchronize().await;
    b.synchronize().await;
    a.write("status/edge/west.json", "2");
    a.write("status/core/west.json", "1");
    a.flush().await;
    // What is in the way fails a write as a full disk does, whoever runs the test.
    fs::write(b.state.path("status/core"), "in the way").expect("a test may");
    let error = b.shared.synchronize(|_| false).await.expect_err("it cannot be written");
    assert!(matches!(error, SharedError::State(_)), "{error}");
    assert_eq!(b.read("status/edge/west.json").as_deref(), Some("2"), "the others are written all the same");
    assert!(store.join("status/core/west.json").exists());
    fs::remove_file(b.state.path("status/core")).expect("a test may");
    assert_eq!(b.synchronize().await, Synchronized { taken: 1, ..Synchronized::default() });
    assert_eq!(a.files(), b.files());
}

#[tokio::test]
async fn a_store_that_is_swapped_or_emptied_is_neither_written_to_nor_believed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (store, away) = (folder.path().join("store"), folder.path().join("away"));
    fs::create_dir(&store).expect("a test may");
    let a = Host::in_folder(&folder.path().join("a"), &store);
    a.write("suspended/red.json", "we look into it");
    a.synchronize().await;
    // Unmounted: an empty folder is left.
    fs::rename(&store, &away).expect("a test may");
    fs::create_dir(&store).expect("a test may");
    sleep(Duration::from_millis(2_100)).await;
    a.write("suspended/blue.json", "so do we");
    a.shared.flush(|_| true).await.expect_err("it is not the store");
    assert_eq!(all(&store), [].into(), "nothing was written there");
    // Somebody begins with the empty one.
    Host::in_folder(&folder.path().join("b"), &store).synchronize().await;
    a.shared.synchronize(|_| true).await.expect_err("it is another one");
    assert_eq!(a.read("suspended/red.json").as_deref(), Some("we look into it"));
    fs::remove_dir_all(&store).expect("a test may");
    fs::rename(&away, &store).expect("a test may");
    a.synchronize().await;
    assert!(all(&store).contains(&store.join("suspended/blue.json")));
}

#[tokio::test]
async fn who_only_looks_begins_with_no_store_and_no_other_group_gets_in() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    fs::create_dir(&store).expect("a test may");
    let open = |name: &str, group: &str, may_found: bool| {
        let state = State::open(folder.path().join(name)).noting();
        Shared::open(&settings(&store), &state, Path::new("reports"), group, may_found).expect("it is a folder")
    };
    let looks = open("a", "test", false);
    assert!(matches!(looks.synchronize(|_| false).await, Err(SharedError::Unused { .. })));
    assert_eq!(looks.installation().await.expect("it can be asked"), None);
    open("b", "test", true).synchronize(|_| true).await.expect("it begins with it");
    assert!(looks.installation().await.expect("it can be asked").is_some());
    looks.synchronize(|_| false).await.expect("somebody has begun with it");
    assert!(matches!(open("c", "other", true).synchronize(|_| true).await, Err(SharedError::OtherGroup { .. })));
}

#[tokio::test]
async fn what_is_lost_in_the_store_by_the_dozen_is_written_there_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    fs::create_dir(&store).expect("a test may");
    let a = Host::in_folder(&folder.path().join("a"), &store);
    let names: BTreeSet<String> = (0..20).map(|number| format!("suspended/sync-{number}.json")).collect();
    for name in &names {
        a.write(name, "so it is");
    }
    a.synchronize().await;
    fs::remove_dir_all(store.join("suspended")).expect("a test may");
    assert_eq!(a.synchronize().await.pushed, 20);
    assert!(names.iter().all(|name| store.join(name).exists() && a.read(name).is_some()));
}

#[tokio::test]
async fn a_late_word_about_a_sync_of_another_host_does_not_count() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Arc::new(InMemory::new());
    let (mut a, mut b) =
        (Host::in_memory(&folder.path().join("a"), &store), Host::in_memory(&folder.path().join("b"), &store));
    a.syncs.insert("red".to_owned());
    a.write("rollouts/red.json", "begun");
    a.flush().await;
    // It is frozen; another one goes on.
    a.syncs.clear();
    b.synchronize().await;
    b.syncs.insert("red".to_owned());
    b.write("rollouts/red.json", "gone on");
    b.flush().await;
    a.write("rollouts/red.json", "late");
    a.shared.flush(|_| false).await.expect("the store answers");
    b.syncs.clear();
    b.synchronize().await;
    assert_eq!(b.read("rollouts/red.json").as_deref(), Some("gone on"));
    assert_eq!(a.read("rollouts/red.json").as_deref(), Some("gone on"));
}
