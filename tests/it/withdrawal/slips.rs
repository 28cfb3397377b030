//! Slips of a hand in the source, one by one, on the program.

use std::fs;
use std::os::unix::fs::symlink;

use crate::guards::token;
use crate::ownership::site::Site;
use crate::program::{Desk, Run};
use crate::rounds::installation::gateway;

const CONFIG: &str = "
stateDir: ./state
sources: {specs: {directory: {path: ./specs}}}
clusters: {out: {directory: {path: ./rendered}}}
syncs:
  edge: {source: specs, clusters: {names: [out]}, createNamespaces: true, prune: {maxDelete: {units: 99, percent: 100}}}
";

/// A Gateway over several lines, as people write it.
pub(super) fn spec(name: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata:\n  name: {name}\n  namespace: infra\n\
         spec:\n  gatewayClassName: kgateway\n  listeners:\n  - {{name: http, port: 8080, protocol: HTTP}}\n"
    )
}

/// A directory with two Gateways in files of their names, and one in a folder.
pub(super) fn desk() -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", CONFIG);
    for name in ["edge", "shop", "team/blue"] {
        let gateway = name.rsplit('/').next().unwrap_or(name);
        desk.write(&format!("specs/{name}.yaml"), &spec(gateway));
    }
    desk.run(&["sync"]).exits(0).says("12 objects created");
    desk
}

/// Tells whether all objects of a Gateway are there.
pub(super) fn lives(desk: &Desk, name: &str) -> bool {
    let files = fs::read_dir(desk.path("rendered/infra")).expect("there are objects");
    let files = files.map(|file| file.expect("it can be listed").file_name().to_string_lossy().into_owned());
    files.filter(|file| file.contains(name)).count() == 4
}

#[track_caller]
fn is_held(desk: &Desk, name: &str, reason: &str, code: i32) -> Run {
    let run = desk.run(&["sync"]).exits(code).says("held by guard withdrawal").says(reason);
    assert!(lives(desk, name), "{}", run.out);
    run
}

#[test]
fn a_slip_in_the_identity_of_a_document_deletes_nothing() {
    for (from, to, reason, code) in [
        ("kind: Gateway", "kind: Gatewya", "specs/edge.yaml:1: Gatewya may be meant as Gateway", 1),
        ("kind: Gateway\n", "", "edge.yaml:1: the document has no kind", 1),
        ("name: edge", "nmae: edge", "edge.yaml:4: the document has no metadata.name", 1),
        ("name: edge", "name: 123", "edge.yaml:4: metadata.name is an integer, but must be a string", 1),
        ("namespace: infra", "namespace: no", "edge.yaml:5: metadata.namespace is a boolean, but must be a string", 1),
        ("k8s.io/v1", "k8s.oi/v1", "edge.yaml:1: Gateway may be meant as Gateway.gateway.networking.k8s.io", 1),
        ("apiVersion: gateway.networking.k8s.io/v1", "apiVersion: v1", "edge.yaml:1: no pack claims Gateway edge", 3),
        ("apiVersion: gateway.networking.k8s.io/v1\n", "", "the document has no apiVersion", 1),
    ] {
        let desk = desk();
        desk.replace("specs/edge.yaml", from, to);
        is_held(&desk, "edge", reason.trim_start_matches("specs/"), code);
        desk.replace("specs/edge.yaml", if to.is_empty() { "metadata:" } else { to }, &restored(from, to));
        desk.run(&["sync"]).exits(0).says("12 objects up to date");
    }
}

/// The text that stands in the place of a slip when it is mended.
fn restored(from: &str, to: &str) -> String {
    if to.is_empty() { format!("{from}metadata:") } else { from.to_owned() }
}

#[test]
fn a_file_that_became_something_else_deletes_nothing() {
    let list = format!("- {}", spec("edge").replace('\n', "\n  "));
    for (text, reason, code) in [
        (list.as_str(), "edge.yaml:1: the document is a list, and no object", 1),
        ("", "edge.yaml: the file is empty", 1),
        ("---\n", "edge.yaml: the file is empty", 1),
        ("null\n", "edge.yaml: the file is empty", 1),
        ("# switched off\n", "edge.yaml: the file is there, and holds no document any more", 3),
        ("kind: List\napiVersion: v1\nitems: {}\n", "edge.yaml:3: items is an object, but must be a list", 1),
        ("kind: List\napiVersion: v1\nitems:\n", "edge.yaml:3: items is null, but must be a list", 1),
        ("kind: List\napiVersion: v1\nitems: []\n", "edge.yaml: the file is there, and holds no document any more", 3),
        ("just text\n", "edge.yaml:1: the document is a string, and no object", 1),
    ] {
        let desk = desk();
        desk.write("specs/edge.yaml", text);
        is_held(&desk, "edge", reason, code);
    }
}

#[test]
fn a_file_that_became_an_empty_folder_deletes_nothing() {
    let desk = desk();
    fs::remove_file(desk.path("specs/edge.yaml")).expect("it is there");
    fs::create_dir(desk.path("specs/edge.yaml")).expect("the folder can be written");
    is_held(&desk, "edge", "edge.yaml: it is an empty folder, and no file", 1);
}

#[test]
fn what_a_person_approves_goes() {
    let desk = desk();
    desk.write("specs/edge.yaml", "# switched off\n");
    let held = is_held(&desk, "edge", "4 objects would be deleted", 3);
    desk.run(&["approve", &token(&held)]).exits(0);
    desk.run(&["sync"]).exits(0).says("4 objects deleted");
    assert!(!lives(&desk, "edge") && lives(&desk, "shop"));
}

#[test]
fn what_is_taken_away_goes() {
    let desk = desk();
    fs::remove_file(desk.path("specs/edge.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(0).says("4 objects deleted");
    // A document of a file, where the others stay.
    desk.write("specs/shop.yaml", &format!("{}---\n{}", spec("shop"), spec("other")));
    desk.run(&["sync"]).exits(0).says("4 objects created");
    desk.write("specs/shop.yaml", &spec("shop"));
    desk.run(&["sync"]).exits(0).says("4 objects deleted");
    // A rename, well-formed and whole.
    desk.write("specs/shop.yaml", &spec("store"));
    desk.run(&["sync"]).exits(0).says("4 objects created").says("4 objects deleted");
    assert!(lives(&desk, "store") && lives(&desk, "blue"));
}

#[test]
fn a_folder_that_was_not_read_deletes_nothing_of_what_stood_below_it() {
    let desk = desk();
    let (folder, aside) = (desk.path("specs/team"), desk.path("aside"));
    fs::rename(&folder, &aside).expect("they are on one disk");
    symlink(&aside, &folder).expect("the folder can be written");
    is_held(&desk, "blue", "team: it is a symbolic link, and links are not followed", 3);
    fs::remove_file(&folder).expect("it is there");
    fs::write(&folder, "").expect("the folder can be written");
    is_held(&desk, "blue", "team: it is a file, and no folder", 3);
    fs::remove_file(&folder).expect("it is there");
    fs::rename(&aside, &folder).expect("they are on one disk");
    desk.run(&["sync"]).exits(0).says("12 objects up to date");
    // With onProblem: hold-sync as well.
    desk.replace("gatewright.yaml", "source: specs,", "source: specs, onProblem: hold-sync,");
    fs::rename(&folder, &aside).expect("they are on one disk");
    symlink(&aside, &folder).expect("the folder can be written");
    is_held(&desk, "blue", "team: it is a symbolic link, and links are not followed", 3);
    // Who really takes it away takes the link away, too.
    fs::remove_file(&folder).expect("it is there");
    desk.run(&["sync"]).exits(0).says("4 objects deleted");
}

#[test]
fn an_ignore_file_that_cannot_be_read_leaves_out_all_that_it_may_speak_of() {
    for text in [b"/other.yaml\n\xff\n".as_slice(), b"{draft\n".as_slice()] {
        let desk = desk();
        desk.write("specs/team/.gatewrightignore", "/draft.yaml\n");
        desk.write("specs/team/draft.yaml", &spec("draft"));
        desk.run(&["sync"]).exits(0).says("12 objects up to date");
        fs::write(desk.path("specs/team/.gatewrightignore"), text).expect("the folder can be written");
        let held = is_held(&desk, "blue", "team: the patterns in team/.gatewrightignore", 1);
        assert!(!lives(&desk, "draft"), "{}", held.out);
        fs::remove_file(desk.path("specs/team/.gatewrightignore")).expect("it is there");
        symlink("../shop.yaml", desk.path("specs/team/.gatewrightignore")).expect("the folder can be written");
        is_held(&desk, "blue", "it is a symbolic link, and links are not followed", 1);
        assert!(!lives(&desk, "draft"));
    }
}

#[test]
fn an_overlay_with_a_slip_changes_and_deletes_nothing() {
    let overlay = "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: sizes}\n\
                   spec: {parameters: {kube: {deployment: {replicas: 3}}}}\n";
    for (from, to, reason) in [
        ("kind: ClusterOverlay", "kind: ClusterOverlya", "kept: its spec is broken"),
        ("gatewright.dev", "gatewrigth.dev", "kept: what the source says of it is not known: overlay.yaml:1:"),
        ("name: sizes", "nmae: sizes", "kept: its spec is broken"),
    ] {
        let desk = desk();
        desk.write("specs/overlay.yaml", overlay);
        desk.run(&["sync"]).exits(0).says("3 objects updated");
        desk.replace("specs/overlay.yaml", from, to);
        desk.run(&["sync"]).exits(1).says(reason);
        assert!(desk.read("rendered/infra/deployment-edge.yaml").contains("replicas: 3"));
    }
}

#[test]
fn a_replacement_that_is_broken_or_refused_keeps_the_old_one() {
    let desk = desk();
    // Another name and a slip in a field, in the same file and in another one.
    desk.write("specs/edge.yaml", &spec("front").replace("port: 8080", "prot: 8080"));
    is_held(&desk, "edge", "Gateway infra/front may take its place and is broken", 1);
    fs::remove_file(desk.path("specs/edge.yaml")).expect("it is there");
    desk.write("specs/front.yaml", &spec("front").replace("port: 8080", "prot: 8080"));
    is_held(&desk, "edge", "Gateway infra/front may take its place and is broken", 1);
    desk.write("specs/front.yaml", &spec("front"));
    desk.run(&["sync"]).exits(0).says("4 objects created").says("4 objects deleted");

    // What is refused by the cluster: a stranger has the name, or the namespace is not there.
    let site = Site::new("");
    site.want(&["old"], 80);
    site.sync().exits(0);
    site.kubectl(&["create", "configmap", "new"]);
    site.kubectl(&["label", "configmap", "new", "app.kubernetes.io/managed-by=Helm"]);
    site.kubectl(&["annotate", "configmap", "new", "meta.helm.sh/release-name=theirs"]);
    site.drop(&["old"]);
    site.want(&["new"], 80);
    site.sync().exits(3).says("held by guard withdrawal").says("may take its place and is refused");
    assert_eq!(site.left_of("old").len(), 4);
    site.drop(&["new"]);
    site.spec("old", &gateway("nowhere-at-all", "old", 80));
    site.sync().exits(1).says("held by guard withdrawal").says("does not exist");
    assert_eq!(site.left_of("old").len(), 4);
}
