//! Directories as sources, and noticing at once that they change.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use gatewright::basics::duration::Period;
use gatewright::source::directory::{DirectorySource, Settings};
use gatewright::source::watch::watch;
use gatewright::source::{Reason, Source as _};

use super::{failure, files, snapshot, told};
use crate::support::process::Folder;

const LIMIT: Duration = Duration::from_secs(10);

fn reading(path: &Path) -> DirectorySource {
    DirectorySource::new(Settings { settle: Period(Duration::ZERO), ..Settings::of(path) })
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("the folder can be written");
    fs::write(path, text).expect("the folder can be written");
}

#[tokio::test]
async fn a_directory_is_named_by_its_content() {
    let folder = Folder::new();
    let source = reading(folder.path());
    let empty = snapshot(&source).await;
    assert!(empty.tree.is_empty());
    write(&folder.path().join("b/a.yaml"), "a: 1\n");
    write(&folder.path().join("README.md"), "no spec\n");
    let first = source.poll(Some(&empty.revision)).await.expect("it is there").expect("it has changed");
    assert_eq!(files(&first), [("b/a.yaml", "a: 1\n")]);
    assert_eq!(source.poll(Some(&first.revision)).await.expect("it is there"), None);
    write(&folder.path().join("README.md"), "still no spec\n");
    assert_eq!(source.poll(Some(&first.revision)).await.expect("it is there"), None);
    fs::remove_file(folder.path().join("b/a.yaml")).expect("it is there");
    let again = source.poll(Some(&first.revision)).await.expect("it is there").expect("it has changed");
    assert_eq!(again, empty);
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_missing_and_not_empty() {
    let error = failure(&reading(Path::new("/nowhere/specs"))).await;
    assert_eq!(error.reason, Reason::NotFound);
    assert!(told(&error).contains("Create /nowhere/specs"), "{}", told(&error));
}

#[tokio::test]
async fn a_file_that_was_just_written_is_read_when_it_has_settled() {
    let folder = Folder::new();
    let settle = Period(Duration::from_secs(1));
    let settings = Settings { settle, ..Settings::of(folder.path()) };
    let (source, file) = (DirectorySource::new(settings), folder.path().join("a.yaml"));
    // As by `(sleep 1; cat new) > a.yaml`, which empties the file first.
    write(&file, "");
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(700));
        write(&file, "a: 1\n");
    });
    assert_eq!(files(&snapshot(&source).await), [("a.yaml", "a: 1\n")]);
    writer.join().expect("it writes");
}

#[tokio::test]
async fn a_directory_that_changes_while_it_is_read_is_read_again_or_refused() {
    let folder = Folder::new();
    let source = reading(folder.path());
    let (file, stop) = (folder.path().join("a.yaml"), Arc::new(AtomicBool::new(false)));
    write(&file, "a: 0\n");
    let writer = thread::spawn({
        let (file, stop) = (file.clone(), Arc::clone(&stop));
        move || {
            for number in 1_u64.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                fs::write(&file, format!("a: {number}\n")).expect("the folder can be written");
                // Without a pause the file would look empty most of the time, and so the same.
                thread::sleep(Duration::from_millis(5));
            }
        }
    });
    // On a busy machine the writer may get no turn between two readings; the next poll sees it then.
    let mut refusal = None;
    for _ in 0..200 {
        refusal = source.poll(None).await.err();
        if refusal.is_some() {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("the writer does not panic");
    let error = refusal.expect("a directory that never rests is refused");
    assert_eq!(error.reason, Reason::Invalid);
    assert!(told(&error).contains("it keeps changing while it is read"), "{}", told(&error));

    write(&file, "a: last\n");
    assert_eq!(files(&snapshot(&source).await), [("a.yaml", "a: last\n")]);
}

#[test]
fn changes_to_specs_are_noticed_together_and_others_not_at_all() {
    let folder = Folder::new();
    write(&folder.path().join("a/b/c.yaml"), "");
    let (sender, nudges) = mpsc::channel();
    let watcher = watch(folder.path(), move || sender.send(()).unwrap_or_default()).expect("the folder can be watched");
    for number in 0..20 {
        write(&folder.path().join("a/b/c.yaml"), &format!("c: {number}\n"));
    }
    nudges.recv_timeout(LIMIT).expect("the changes are noticed");
    assert!(nudges.recv_timeout(Duration::from_secs(1)).is_err(), "twenty changes are one");

    write(&folder.path().join("notes.txt"), "no spec\n");
    fs::read(folder.path().join("a/b/c.yaml")).expect("the file is there");
    assert!(nudges.recv_timeout(Duration::from_secs(1)).is_err(), "nothing has changed");

    fs::rename(folder.path().join("a"), folder.path().join("z")).expect("the folder can be renamed");
    nudges.recv_timeout(LIMIT).expect("a renamed folder is noticed");
    write(&folder.path().join("z/b/new/d.yaml"), "");
    nudges.recv_timeout(LIMIT).expect("a file in a new folder is noticed");
    drop(watcher);
    nudges.recv_timeout(LIMIT).expect_err("nobody watches any more");
}

#[test]
fn a_watched_folder_may_go_away_and_come_back() {
    let folder = Folder::new();
    let specs = folder.path().join("specs");
    let (sender, nudges) = mpsc::channel();
    let _watcher =
        watch(&specs, move || sender.send(()).unwrap_or_default()).expect("a folder that is not there can be watched");
    for _ in 0..2 {
        write(&specs.join("a.yaml"), "a: 1\n");
        nudges.recv_timeout(LIMIT).expect("that it came is noticed");
        while nudges.recv_timeout(Duration::from_millis(1200)).is_ok() {}
        write(&specs.join("a.yaml"), "a: 2\n");
        nudges.recv_timeout(LIMIT).expect("a change in it is noticed");
        fs::remove_dir_all(&specs).expect("it is there");
        nudges.recv_timeout(LIMIT).expect("that it went is noticed");
    }
}

#[tokio::test]
async fn a_directory_that_is_not_read_in_time_is_told_as_trouble() {
    let folder = Folder::new();
    write(&folder.path().join("a.yaml"), "a: 1\n");
    // It is read twice, with a pause between: longer than that.
    let source =
        DirectorySource::new(Settings { timeout: Period(Duration::from_millis(10)), ..Settings::of(folder.path()) });
    for _ in 0..2 {
        let error = failure(&source).await;
        assert_eq!(error.reason, Reason::Unreachable);
        assert!(told(&error).contains("it was not read within 10ms"), "{}", told(&error));
    }
}

#[tokio::test]
async fn a_directory_has_the_limits_of_a_repository() {
    let folder = Folder::new();
    let deep = vec!["d"; 120].join("/");
    write(&folder.path().join(deep).join("a.yaml"), "a: 1\n");
    let error = failure(&reading(folder.path())).await;
    assert_eq!(error.reason, Reason::Invalid);
    assert!(told(&error).contains("more than 100 folders inside each other"), "{}", told(&error));
}
