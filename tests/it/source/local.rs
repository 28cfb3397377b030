//! Repositories on this disk: what is read of a commit, and what is there and what not.

use std::os::unix::fs::symlink;

use gatewright::source::git::GitSource;
use gatewright::source::{Reason, Source as _};
use gatewright_engine::tree::LINK;
use serde_json::{Value, json};

use super::{failure, files, snapshot, source, told};
use crate::support::git_server::Repository;
use crate::support::process::Folder;

fn reading(folder: &Folder, repository: &Repository, reference: Value, path: &str) -> GitSource {
    let url = format!("file://{}", repository.bare.display());
    let mut settings = json!({"url": url, "path": path});
    if !reference.is_null() {
        settings["ref"] = reference;
    }
    source(folder.path(), settings)
}

#[tokio::test]
async fn branches_tags_and_commits_lead_to_what_they_stand_for() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    repository.write("a.yaml", "a: 1\n");
    let old = repository.push();
    repository.git(&["tag", "light"]);
    repository.git(&["tag", "-a", "-m", "a release", "v1"]);
    repository.git(&["push", "-q", "origin", "--tags"]);
    repository.write("a.yaml", "a: 2\n");
    let new = repository.push();
    for (reference, revision, text) in [
        (json!(null), format!("main@sha1:{new}"), "a: 2\n"),
        (json!({"branch": "main"}), format!("main@sha1:{new}"), "a: 2\n"),
        (json!({"tag": "light"}), format!("light@sha1:{old}"), "a: 1\n"),
        (json!({"tag": "v1"}), format!("v1@sha1:{old}"), "a: 1\n"),
        (json!({"commit": old}), format!("sha1:{old}"), "a: 1\n"),
    ] {
        let found = snapshot(&reading(&folder, &repository, reference, ".")).await;
        assert_eq!((found.revision.as_str(), files(&found)), (revision.as_str(), vec![("a.yaml", text)]));
    }
}

#[tokio::test]
async fn what_is_not_there_is_missing_and_never_empty() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    let error = failure(&reading(&folder, &repository, json!(null), ".")).await;
    assert_eq!((error.reason, told(&error).contains("is empty")), (Reason::NotFound, true), "{}", told(&error));
    repository.write("gateways/a.yaml", "a: 1\n");
    repository.push();
    for (reference, path, expected) in [
        (
            json!({"branch": "mian"}),
            ".",
            "there is no branch \"mian\". Correct `ref`. There are branches such as main.",
        ),
        (json!({"tag": "v1"}), ".", "there is no tag \"v1\". Correct `ref`. There are no tags."),
        (json!({"commit": "1".repeat(40)}), ".", "there is no commit 1111"),
        (json!(null), "gateway", "the commit has no \"gateway\""),
    ] {
        let error = failure(&reading(&folder, &repository, reference, path)).await;
        assert_eq!(error.reason, Reason::NotFound, "{}", told(&error));
        assert!(told(&error).contains(expected), "{}", told(&error));
    }
    let nowhere = source(folder.path(), json!({"url": "/nowhere/infra.git"}));
    assert_eq!(failure(&nowhere).await.reason, Reason::NotFound);
}

#[tokio::test]
async fn a_forced_push_is_followed() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    repository.write("a.yaml", "a: 1\n");
    let old = repository.push();
    repository.write("a.yaml", "a: 2\n");
    repository.push();
    let source = reading(&folder, &repository, json!(null), ".");
    let newer = snapshot(&source).await;
    repository.git(&["reset", "-q", "--hard", &old]);
    repository.git(&["push", "-q", "--force", "origin", "main"]);
    let older = source.poll(Some(&newer.revision)).await.expect("the repository is there").expect("it has changed");
    assert_eq!((older.revision, newer.revision != format!("main@sha1:{old}")), (format!("main@sha1:{old}"), true));
}

#[tokio::test]
async fn only_regular_files_that_may_be_specs_are_read() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    for (path, text) in [
        (".gatewrightignore", "*.json\n"),
        (".github/workflow.yaml", "no: spec\n"),
        ("README.md", "no spec\n"),
        ("elsewhere/b.yaml", "b: 1\n"),
        ("gateways/.gatewrightignore", "old/\n"),
        ("gateways/a.yaml", "a: 1\n"),
        ("gateways/large.yaml", pointer),
        ("gateways/notes.txt", "no spec\n"),
    ] {
        repository.write(path, text);
    }
    symlink("/etc/passwd", repository.work().join("gateways/link.yaml")).expect("the clone can be written");
    repository.push();
    let found = snapshot(&reading(&folder, &repository, json!(null), "./gateways/")).await;
    let expected = [
        (".gatewrightignore", "*.json\n"),
        ("gateways/.gatewrightignore", "old/\n"),
        ("gateways/a.yaml", "a: 1\n"),
        ("gateways/large.yaml", "the file is kept by Git LFS, which is not supported"),
        ("gateways/link.yaml", LINK),
    ];
    assert_eq!(files(&found), expected);
    let single = snapshot(&reading(&folder, &repository, json!(null), "gateways/a.yaml")).await;
    assert_eq!(files(&single).last(), Some(&("gateways/a.yaml", "a: 1\n")));
}

#[tokio::test]
async fn a_submodule_is_not_entered() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    let other = Repository::new(folder.path(), "other");
    other.write("b.yaml", "b: 1\n");
    other.push();
    repository.write("a.yaml", "a: 1\n");
    let url = format!("{}", other.bare.display());
    repository.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub.yaml"]);
    repository.push();
    let found = snapshot(&reading(&folder, &repository, json!(null), ".")).await;
    let submodule = "it is a submodule, and submodules are not entered";
    assert_eq!(files(&found), [("a.yaml", "a: 1\n"), ("sub.yaml", submodule)]);
}

#[tokio::test]
async fn a_few_objects_that_describe_billions_of_files_are_refused() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    repository.write("0/0.yaml", "");
    repository.git(&["add", "-A"]);
    // Each tree holds the one before it ten times.
    let mut tree = repository.git(&["write-tree"]);
    for _ in 0..9 {
        let lines: Vec<String> = (0..10).map(|name| format!("040000 tree {tree}\t{name}\n")).collect();
        repository.write("lines", &lines.concat());
        tree = repository.git(&["-c", "alias.tree=!git mktree < lines", "tree"]);
    }
    let commit = repository.git(&["commit-tree", "-m", "a bomb", &tree]);
    repository.git(&["push", "-q", "origin", &format!("{commit}:refs/heads/main")]);
    let error = failure(&reading(&folder, &repository, json!(null), ".")).await;
    assert_eq!(error.reason, Reason::Invalid);
    assert!(told(&error).contains("more than 1000000 files and folders"), "{}", told(&error));
}

#[tokio::test]
async fn objects_of_other_repositories_are_not_taken() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    let other = Repository::new(folder.path(), "other");
    repository.write("a.yaml", "a: 1\n");
    repository.push();
    let objects = format!("{}/objects\n", other.bare.display());
    std::fs::write(repository.bare.join("objects/info/alternates"), objects).expect("the repository can be written");
    let error = failure(&reading(&folder, &repository, json!(null), ".")).await;
    assert_eq!(error.reason, Reason::Invalid);
    assert!(told(&error).contains("takes objects from another one"), "{}", told(&error));
}
