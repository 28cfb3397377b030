//! Files that are kept on disk: nothing of them can be read or changed without being noticed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{FREELY, as_set, run_of};
use crate::ownership::site::Site;

/// All files below a folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it can be listed").map(|entry| entry.expect("it can be listed").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn contains(path: &Path, text: &str) -> bool {
    let bytes = fs::read(path).expect("it can be read");
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A site with a Secret that a round has changed and another has deleted; returns the runs that did that.
fn with_secret() -> (Site, String, String) {
    let site = Site::new(FREELY);
    let secret = |value: &str| {
        let metadata = json!({"name": "password", "namespace": site.name});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": value}}).to_string()
    };
    site.want(&["edge"], 80);
    site.spec("password", &secret("aHVudGVyMi1maXJzdA=="));
    site.sync().exits(0);
    site.spec("password", &secret("aHVudGVyMi1zZWNvbmQ="));
    let changed = run_of(&site.sync().exits(0).says("1 object updated"));
    site.drop(&["password"]);
    let pruned = run_of(&site.sync().exits(0).says("1 object deleted"));
    (site, changed, pruned)
}

#[test]
fn a_secret_comes_back_and_is_nowhere_to_be_read() {
    let (site, changed, pruned) = with_secret();
    let plan = site.run(&["undo", &pruned, "--dry-run"]).exits(0).says("1 object to create");
    let undo = site.run(&["undo", &pruned]).exits(0).says("1 object created");
    assert_eq!(site.get("secret/password")["data"]["password"], "aHVudGVyMi1zZWNvbmQ=");
    let refused = site.run(&["undo", &changed]).exits(3).says("not undone: another object stands in its place now");
    let texts = [&plan.out, &undo.out, &refused.out];
    assert!(texts.iter().all(|text| !text.contains("hunter2") && !text.contains("aHVudGVyMi1")), "{texts:?}");

    let kept = files(&site.desk.path("state"));
    assert!(kept.iter().filter(|path| path.extension().is_some_and(|ext| ext == "before")).count() >= 2, "{kept:?}");
    for path in &kept {
        for word in ["hunter2", "aHVudGVyMi1"] {
            assert!(!contains(path, word), "{} shows the Secret", path.display());
        }
    }
    let hidden = kept
        .iter()
        .filter(|path| ["undo", "rendered"].iter().any(|name| path.starts_with(site.desk.path("state").join(name))));
    for path in hidden.chain([&site.desk.path("state/key")]) {
        let mode = fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        assert!(!contains(path, "password"), "{}", path.display());
    }
}

#[test]
fn what_was_tampered_with_is_an_error_with_its_path() {
    let (site, _, pruned) = with_secret();
    let before = as_set(&site);
    let folder = site.desk.path(&format!("state/undo/{pruned}/c"));
    for path in files(&folder) {
        let bytes = fs::read(&path).expect("it can be read");
        let mut changed = bytes.clone();
        let last = changed.len() - 5;
        changed[last] ^= 1;
        for wrong in [&changed[..], &bytes[..bytes.len() / 2]] {
            fs::write(&path, wrong).expect("a test may");
            let run = site.run(&["undo", &pruned]);
            // The notes are lines; one that is not whole was being written when a process ended.
            if path.ends_with("after") && wrong.len() < bytes.len() {
                assert_eq!(run.code, 0, "{}\n{}", run.out, run.err);
                site.run(&["undo", run_of(&run).as_str()]).exits(0);
            } else {
                let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
                run.exits(1).complains(&name).complains("is damaged");
            }
            assert_eq!(as_set(&site), before);
        }
        fs::write(&path, bytes).expect("a test may");
    }
    let key = fs::read_to_string(site.desk.path("state/key")).expect("it is there");
    fs::write(site.desk.path("state/key"), key.replace(&key[..4], "AAAA")).expect("a test may");
    site.run(&["undo", &pruned]).exits(1).complains("was encrypted with another key").complains("undo.keyFile");
    fs::write(site.desk.path("state/key"), &key).expect("a test may");

    // Of another installation's rounds nothing is known, and a name is no path.
    site.run(&["undo", "../../etc"]).exits(64).complains("there is no record of a run");
    site.run(&["undo"]).exits(0).says(&pruned).says("prune 1");
    site.run(&["undo", &pruned]).exits(0).says("1 object created");
}

#[test]
fn without_room_for_what_is_there_nothing_is_changed() {
    let site = Site::new(FREELY);
    site.want(&["edge"], 80);
    site.sync().exits(0);
    let before = site.versions();
    fs::remove_dir_all(site.desk.path("state/undo")).expect("it is there");
    fs::write(site.desk.path("state/undo"), "a file").expect("a test may");
    site.want(&["edge"], 81);
    let run = site.sync().exits(1).says("without which nothing is changed or deleted");
    run.says("state/undo").says("make room in the state directory");
    assert_eq!(site.versions(), before);
    fs::remove_file(site.desk.path("state/undo")).expect("it is there");
    site.sync().exits(0).says("2 objects updated");
}

#[test]
fn the_key_may_lie_elsewhere() {
    let site = Site::new(FREELY);
    let config = site.desk.read("gatewright.yaml");
    site.desk.write("gatewright.yaml", &format!("{config}undo: {{keyFile: elsewhere}}\n"));
    site.want(&["edge"], 80);
    site.run(&["plan"]).exits(0);
    site.sync().exits(1).complains("cannot read the key file").complains("undo.keyFile");
    assert_eq!(site.left_of("edge"), [""; 0]);
    fs::write(site.desk.path("elsewhere"), [7; 32]).expect("a test may");
    site.sync().exits(1).complains("can be read by all users; it takes chmod 600");
    fs::set_permissions(site.desk.path("elsewhere"), fs::Permissions::from_mode(0o600)).expect("a test may");
    let made = run_of(&site.sync().exits(0));
    assert!(!site.desk.path("state/key").exists());
    site.run(&["undo", &made]).exits(0).says("4 objects deleted");
}

/// As on a disk that is full: what is deleted is kept before, or it is not deleted.
#[test]
fn nothing_is_deleted_that_cannot_be_kept() {
    let site = Site::new(FREELY);
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("8 objects created");
    site.drop(&["other"]);
    let (folder, before) = (site.desk.path("state/undo"), site.versions());
    fs::rename(&folder, site.desk.path("kept")).expect("there is one after a round");
    site.desk.write("state/undo", "no folder");
    for _ in 0..2 {
        let run = site.sync();
        assert_ne!(run.code, 0, "{}{}", run.out, run.err);
        assert_eq!(site.versions(), before, "{}{}", run.out, run.err);
    }
    fs::remove_file(&folder).expect("it is there");
    fs::rename(site.desk.path("kept"), &folder).expect("it is there");
    site.sync().exits(0).says("4 objects deleted");
}
