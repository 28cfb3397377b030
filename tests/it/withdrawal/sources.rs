//! Sources that are others than before, or older than what was applied.

use std::fs;

use super::slips::{desk, lives, spec};
use crate::guards::token;
use crate::ownership::site::Site;
use crate::rounds::installation::gateway;
use crate::support::git_server::Repository;

#[test]
fn another_path_of_the_source_deletes_nothing_without_a_word() {
    let desk = desk();
    desk.write("elsewhere/other.yaml", &spec("other"));
    desk.replace("gatewright.yaml", "{directory: {path: ./specs}}", "{directory: {path: ./elsewhere}}");
    let held = desk.run(&["sync"]).exits(3).says("held by guard source-identity").says("4 objects created");
    let held = held.says("was rendered from ./specs, and the source is ./elsewhere now");
    assert!(lives(&desk, "edge") && lives(&desk, "other"));
    // It is not forgotten by what was applied meanwhile.
    desk.run(&["sync"]).exits(3).says("held by guard source-identity");
    desk.run(&["approve", &token(&held)]).exits(0);
    desk.run(&["sync"]).exits(0).says("12 objects deleted");
    assert!(lives(&desk, "other"));
    // From now on that is where it comes from.
    desk.write("elsewhere/more.yaml", &spec("more"));
    desk.run(&["sync"]).exits(0).says("4 objects created");
    fs::remove_file(desk.path("elsewhere/more.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(0).says("4 objects deleted");
}

#[test]
fn another_path_of_the_sync_is_another_source_too() {
    let desk = desk();
    desk.replace("gatewright.yaml", "{source: specs,", "{source: specs, path: team,");
    desk.run(&["sync"]).exits(3).says("held by guard source-identity").says("the source is ./specs//team now");
    assert!(lives(&desk, "edge") && lives(&desk, "shop") && lives(&desk, "blue"));
}

#[test]
fn an_older_revision_deletes_nothing_that_a_newer_one_has_made() {
    let site = Site::new("");
    let repository = Repository::new(site.desk.path("").as_path(), "specs-of-git");
    let url = repository.bare.display().to_string();
    site.desk.replace("gatewright.yaml", "{directory: {path: ./specs}}", &format!("{{git: {{url: {url:?}}}}}"));
    let want = |name: &str| {
        repository.write(&format!("{name}.json"), &gateway(&site.name, name, 80));
    };
    want("old");
    commit(&repository, "2026-01-01T00:00:00Z");
    site.sync().exits(0).says("4 objects created");
    want("new");
    commit(&repository, "2026-01-02T00:00:00Z");
    site.sync().exits(0).says("4 objects created");

    // The server is behind, or the branch was set back.
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    repository.git(&["push", "--quiet", "--force", "origin", "HEAD"]);
    let held = site.sync().exits(3).says("held by guard older-source").says("which was applied here last");
    assert_eq!(site.left_of("new").len(), 4);
    site.run(&["approve", &token(&held)]).exits(0);
    site.sync().exits(0).says("4 objects deleted");
}

/// Commits and pushes everything, at a time that a test decides.
fn commit(repository: &Repository, time: &str) {
    repository.push();
    let redate = format!("alias.redate=!GIT_COMMITTER_DATE={time} git commit --quiet --amend --no-edit");
    repository.git(&["-c", &redate, "redate"]);
    repository.git(&["push", "--quiet", "--force", "origin", "HEAD"]);
}
