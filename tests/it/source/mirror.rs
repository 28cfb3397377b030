//! The faults and changes that the copies of remote repositories survive.

use std::fs;
use std::path::{Path, PathBuf};

use gatewright::source::git::GitSource;
use gatewright::source::{Reason, Source as _};
use serde_json::{Value, json};

use super::{FETCH, failure, files, snapshot, source, told};
use crate::support::git_server::{HttpsServer, Repository};
use crate::support::process::Folder;

/// A repository with one spec, served over https; these tests need a server, since what is on this disk has no mirror.
struct Setting {
    folder: Folder,
    repository: Repository,
    server: HttpsServer,
}

impl Setting {
    fn new() -> Self {
        let folder = Folder::new();
        let repository = Repository::new(folder.path(), "infra");
        repository.write("a.yaml", "a: 1\n");
        repository.push();
        let server = HttpsServer::start(folder.path(), "token", "");
        Self { folder, repository, server }
    }

    fn source(&self, reference: &Value) -> GitSource {
        let token_file = self.folder.path().join("my-token");
        crate::support::write_secret(&token_file, "token");
        let settings = json!({
            "url": format!("{}/infra.git", self.server.url),
            "ref": reference,
            "auth": {"tokenFile": token_file, "caFile": self.server.authority},
        });
        source(self.folder.path(), settings)
    }

    fn mirror(&self) -> PathBuf {
        self.folder.path().join("mirrors/test.git")
    }
}

/// Something that may happen to a mirror, with its name.
type Damage = (&'static str, fn(&Path));

fn packs(mirror: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(mirror.join("objects/pack")).expect("a mirror has a folder for packs");
    files.map(|file| file.expect("a folder can be read").path()).collect()
}

#[tokio::test]
async fn a_damaged_mirror_is_replaced_within_the_same_poll() {
    let setting = Setting::new();
    let source = setting.source(&json!({"branch": "main"}));
    let good = snapshot(&source).await;
    let damages: [Damage; 6] = [
        ("packs cut short", |mirror| {
            for pack in packs(mirror) {
                let mut permissions = fs::metadata(&pack).expect("the pack is there").permissions();
                std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
                fs::set_permissions(&pack, permissions).expect("the pack can be changed");
                let content = fs::read(&pack).expect("the pack is there");
                fs::write(&pack, &content[..content.len() / 2]).expect("the pack can be written");
            }
        }),
        ("packs gone", |mirror| packs(mirror).iter().for_each(|pack| fs::remove_file(pack).expect("it is there"))),
        ("HEAD gone", |mirror| fs::remove_file(mirror.join("HEAD")).expect("it is there")),
        ("configuration garbled", |mirror| fs::write(mirror.join("config"), "[core").expect("it can be written")),
        ("everything gone", |mirror| fs::remove_dir_all(mirror).expect("it is there")),
        ("a file in its place", |mirror| {
            fs::remove_dir_all(mirror).expect("it is there");
            fs::create_dir(mirror).expect("the folder can be written");
            fs::write(mirror.join("HEAD"), "nonsense").expect("the folder can be written");
        }),
    ];
    for (name, damage) in damages {
        damage(&setting.mirror());
        let found = source.poll(None).await.map_err(|error| format!("{name}: {}", told(&error)));
        assert_eq!(found.as_ref().map(Option::as_ref), Ok(Some(&good)), "{name}");
    }
}

#[tokio::test]
async fn a_lock_that_a_killed_fetch_left_behind_does_not_matter() {
    let setting = Setting::new();
    let source = setting.source(&json!({"branch": "main"}));
    let first = snapshot(&source).await;
    fs::write(setting.mirror().join("refs/gatewright/last.lock"), "").expect("the mirror can be written");
    setting.repository.write("a.yaml", "a: 2\n");
    setting.repository.push();
    let second = source.poll(Some(&first.revision)).await.map_err(|error| told(&error));
    let second = second.expect("the lock does not matter").expect("there is a new commit");
    assert_eq!(files(&second), [("a.yaml", "a: 2\n")]);
}

#[tokio::test]
async fn a_mirror_of_many_fetches_is_thrown_away() {
    let setting = Setting::new();
    let source = setting.source(&json!({"branch": "main"}));
    let first = snapshot(&source).await;
    for number in 0..400 {
        let leftover = setting.mirror().join(format!("objects/pack/pack_{number}.tmp"));
        fs::write(leftover, "").expect("the mirror can be written");
    }
    setting.repository.write("a.yaml", "a: 2\n");
    setting.repository.push();
    let second = source.poll(Some(&first.revision)).await.expect("the server is up").expect("there is a new commit");
    assert_eq!(files(&second), [("a.yaml", "a: 2\n")]);
    assert!(!setting.mirror().exists());
    assert_eq!(source.poll(Some(&second.revision)).await.expect("the server is up"), None);
    assert_eq!(snapshot(&source).await, second);
    assert!(packs(&setting.mirror()).len() < 10, "{:?}", packs(&setting.mirror()));
}

#[tokio::test]
async fn a_mirror_holds_neither_history_nor_a_work_tree() {
    let setting = Setting::new();
    setting.repository.write("a.yaml", "a: 2\n");
    setting.repository.push();
    snapshot(&setting.source(&json!({"branch": "main"}))).await;
    assert!(setting.mirror().join("shallow").exists());
    assert!(!setting.mirror().join("a.yaml").exists());
}

#[tokio::test]
async fn pushes_that_force_or_rewind_history_are_followed() {
    let setting = Setting::new();
    let source = setting.source(&json!({"branch": "main"}));
    let first = snapshot(&source).await;
    let old = setting.repository.git(&["rev-parse", "HEAD"]);
    let mut have = first.revision.clone();
    for number in 2..6 {
        setting.repository.write("a.yaml", &format!("a: {number}\n"));
        if number == 4 {
            setting.repository.git(&["checkout", "-q", "--orphan", "unrelated"]);
            setting.repository.push();
            setting.repository.git(&["branch", "-q", "-M", "unrelated", "main"]);
        }
        setting.repository.push();
        let found = source.poll(Some(&have)).await.map_err(|error| told(&error));
        let found = found.expect("the server is up").expect("there is a new commit");
        assert_eq!(files(&found), [("a.yaml", format!("a: {number}\n").as_str())]);
        have = found.revision;
    }
    setting.repository.git(&["push", "-q", "--force", "origin", &format!("{old}:main")]);
    let rewound = source.poll(Some(&have)).await.expect("the server is up");
    assert_eq!(rewound, Some(first));
}

#[tokio::test]
async fn a_commit_is_fetched_by_branch_or_by_itself_where_the_server_lets_us() {
    let setting = Setting::new();
    let old = setting.repository.git(&["rev-parse", "HEAD"]);
    setting.repository.write("a.yaml", "a: 2\n");
    let new = setting.repository.push();
    let tip = setting.source(&json!({"commit": new}));
    let found = snapshot(&tip).await;
    assert_eq!((found.revision.as_str(), files(&found)), (format!("sha1:{new}").as_str(), vec![("a.yaml", "a: 2\n")]));
    let asked = setting.server.requests().len();
    assert_eq!(tip.poll(Some(&found.revision)).await.expect("nothing is asked"), None);
    assert_eq!(snapshot(&tip).await, found);
    assert_eq!(setting.server.requests().len(), asked, "a commit that is there is not asked for again");

    let buried = setting.source(&json!({"commit": old}));
    let error = failure(&buried).await;
    assert_eq!(error.reason, Reason::NotFound, "{}", told(&error));
    assert!(told(&error).contains("uploadpack.allowReachableSHA1InWant"), "{}", told(&error));
    setting.repository.configure("uploadpack.allowReachableSHA1InWant", "true");
    assert_eq!(files(&snapshot(&buried).await), [("a.yaml", "a: 1\n")]);
}

#[tokio::test]
async fn annotated_tags_are_peeled_over_the_network_too() {
    let setting = Setting::new();
    let commit = setting.repository.git(&["rev-parse", "HEAD"]);
    setting.repository.git(&["tag", "-a", "-m", "a release", "v1"]);
    setting.repository.git(&["push", "-q", "origin", "v1"]);
    let found = snapshot(&setting.source(&json!({"tag": "v1"}))).await;
    assert_eq!(
        (found.revision.as_str(), files(&found)),
        (format!("v1@sha1:{commit}").as_str(), vec![("a.yaml", "a: 1\n")])
    );
}

#[tokio::test]
async fn many_polls_at_once_share_a_mirror() {
    let setting = Setting::new();
    let source = setting.source(&json!({"branch": "main"}));
    let polls = (0..8).map(|_| {
        let source = source.clone();
        tokio::spawn(async move { snapshot(&source).await })
    });
    let polls: Vec<_> = polls.collect();
    for poll in polls {
        let found = poll.await.expect("a poll does not panic");
        assert_eq!(files(&found), [("a.yaml", "a: 1\n")]);
    }
    assert_eq!(setting.server.count("POST"), FETCH, "{:?}", setting.server.requests());
}
