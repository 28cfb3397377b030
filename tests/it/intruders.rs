//! The access of others on the machine to the state directory, to what is rendered, and to keys.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use crate::errors::{desk, gateway};
use crate::program::Desk;

/// A user who owns nothing else: `nobody`.
const NOBODY: u32 = 65534;

/// A desk with a Gateway and a Secret, and a directory that they are rendered to.
fn with_secret() -> Desk {
    let desk = desk("gateways", &[("out", "{directory: {path: out}}".to_owned())]);
    desk.replace("gatewright.yaml", "source: ", "unclaimed: apply\n    source: ");
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\nstringData: {key: sesame}\n";
    desk.write("specs/secret.yaml", secret);
    desk
}

fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it can be listed").map(|entry| entry.expect("it can be listed").path());
    let below = |path: PathBuf| if path.is_dir() { [vec![path.clone()], all(&path)].concat() } else { vec![path] };
    entries.flat_map(below).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o777
}

/// Gives everything to a user, if whoever runs the tests can do that, and returns who has it now.
fn give(desk: &Desk) -> u32 {
    let root = desk.path("");
    let me = fs::metadata(&root).expect("it is there").uid();
    let owner = if me == 0 { NOBODY } else { me };
    for path in all(&root).iter().chain([&root]) {
        chown(path, Some(owner), Some(owner)).expect("it is ours to give");
    }
    owner
}

#[test]
fn root_works_as_the_owner_of_the_state_directory() {
    let desk = with_secret();
    fs::create_dir(desk.path("state")).expect("a new folder can be written");
    let owner = give(&desk);
    desk.run(&["sync"]).exits(0).says("5 objects created");
    let made = [all(&desk.path("state")), all(&desk.path("out"))].concat();
    assert!(made.len() > 10, "{made:?}");
    for path in &made {
        assert_eq!(fs::symlink_metadata(path).expect("it is there").uid(), owner, "{}", path.display());
    }
    desk.run(&["plan", "--detailed-exitcode"]).exits(0);

    // What the owner has made a link of leads nowhere.
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let precious = elsewhere.path().join("precious");
    fs::write(&precious, "do not touch").expect("a new folder can be written");
    let before = fs::metadata(&precious).expect("it was written");
    for name in ["lock", "rounds/gateways/out", "installation", "seen", "undo", "reports", "key", "known"] {
        let (path, aside) = (desk.path(&format!("state/{name}")), desk.path("aside"));
        let was_there = fs::rename(&path, &aside).is_ok();
        let target = if aside.is_dir() { elsewhere.path() } else { precious.as_path() };
        symlink(target, &path).expect("a folder of the test can be written");
        desk.write("specs/edge.yaml", &gateway("shop", "edge", 9000));
        drop(chown(desk.path("specs/edge.yaml"), Some(owner), Some(owner)));
        desk.run(&["sync"]);
        let after = fs::metadata(&precious).expect("it is still there");
        let same = (before.uid(), before.mode(), before.mtime_nsec());
        assert_eq!((after.uid(), after.mode(), after.mtime_nsec()), same, "{name}");
        assert_eq!(fs::read_to_string(&precious).ok().as_deref(), Some("do not touch"), "{name}");
        assert_eq!(fs::read_dir(elsewhere.path()).map(Iterator::count).ok(), Some(1), "{name}");
        fs::remove_file(&path).expect("it was made here");
        if was_there {
            fs::rename(&aside, &path).expect("it was there");
        }
    }
    desk.run(&["sync"]).exits(0);
}

#[test]
fn a_link_in_the_state_directory_is_an_error_with_its_path() {
    let desk = with_secret();
    desk.run(&["sync"]).exits(0);
    fs::rename(desk.path("state/rounds"), desk.path("rounds")).expect("it is there");
    symlink("../rounds", desk.path("state/rounds")).expect("the folder can be written");
    let run = desk.run(&["sync"]).exits(1);
    run.complains("state/rounds\" is a symbolic link, and links in the state directory are not followed");
}

#[test]
fn nobody_else_can_enter_the_state_directory_or_read_a_rendered_secret() {
    let desk = with_secret();
    // As an earlier version has left it.
    fs::create_dir(desk.path("state")).expect("a new folder can be written");
    fs::set_permissions(desk.path("state"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    desk.run(&["sync"]).exits(0);
    assert_eq!(mode(&desk.path("state")), 0o700);
    for path in all(&desk.path("state")) {
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    assert_eq!(mode(&desk.path("out/shop/secret-key.yaml")), 0o600);
    assert_eq!(mode(&desk.path("out/shop/service-edge.yaml")), 0o644);
}

#[test]
fn a_key_or_token_that_others_can_read_is_refused() {
    let desk = with_secret();
    let source = "{git: {url: \"https://127.0.0.1:1/a\", auth: {tokenFile: token}}}";
    desk.replace("gatewright.yaml", "{directory: {path: specs}}", source);
    desk.write("token", "sesame");
    let open = |path: &str, mode: u32| {
        fs::set_permissions(desk.path(path), fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    for mode in [0o644, 0o604, 0o660] {
        open("token", mode);
        let run = desk.run(&["sync"]).exits(1);
        let why = format!("it can be read by other users (its mode is {mode:o})");
        let run = run.complains("which `auth.tokenFile` names").complains(&why).complains("chmod 600");
        assert!(!run.err.contains("sesame"), "{}", run.err);
    }
    open("token", 0o600);
    let run = desk.run(&["sync"]).exits(1);
    assert!(!run.err.contains("other users"), "{}", run.err);

    desk.replace("gatewright.yaml", source, "{directory: {path: specs}}");
    let config = desk.read("gatewright.yaml");
    for (settings, file) in [("inventory: {keyFile: seal}", "seal"), ("undo: {keyFile: undo}", "undo")] {
        desk.write("gatewright.yaml", &format!("{config}{settings}\n"));
        desk.write(file, "0123456789abcdef0123456789abcdef");
        open(file, 0o644);
        let run = desk.run(&["sync"]);
        assert!(run.code != 0 && run.err.contains("can be read by"), "{settings}: {}{}", run.out, run.err);
        open(file, 0o600);
        desk.run(&["sync"]).exits(0);
    }
}
