//! A host's memory of its rounds never hides what was undone or rolled back, on a real API server behind a proxy
//! that keeps a log.

use std::fs;

use serde_json::{Value, json};

use super::{FREELY, as_set, run_of};
use crate::faults::Place;

/// The state of the cluster that is known from the last round.
fn known(place: &Place) -> Option<Value> {
    let path = place.site.desk.path(&format!("state/known/{}/c.json", place.site.name));
    fs::read(path).ok().map(|bytes| serde_json::from_slice(&bytes).expect("it is JSON"))
}

/// The number of objects read or dry-run one by one since the proxy was asked to forget; with a name, those of it.
fn looked_at(place: &Place, name: &str) -> usize {
    let is_one = |path: &str| path.contains(&format!("/namespaces/{}/", place.site.name)) && path.contains(name);
    place.proxy.seen().iter().filter(|seen| is_one(&seen.path)).count()
}

/// Runs a round that needs nothing but the metadata of all objects and the version of the inventory.
#[track_caller]
fn is_quiet(place: &Place) {
    place.proxy.recovers();
    place.sync().exits(0).says("no changes");
    assert_eq!(looked_at(place, ""), 0, "{:?}", place.proxy.seen());
}

fn port(place: &Place, service: &str) -> Value {
    place.site.get(&format!("service/{service}"))["spec"]["ports"][0]["port"].clone()
}

#[test]
fn the_next_round_sees_what_was_undone_although_the_source_is_the_same() {
    let place = Place::new(FREELY);
    place.site.want(&["edge", "stays"], 80);
    place.sync().exits(0).says("8 objects created");
    place.site.want(&["edge"], 81);
    let changed = run_of(&place.sync().exits(0).says("2 objects updated"));
    is_quiet(&place);
    let before = known(&place);
    assert!(before.as_ref().is_some_and(|known| known["no_change"].is_object()), "{before:?}");

    place.run(&["undo", &changed, "--dry-run"]).exits(0).says("2 objects to update");
    assert_eq!(known(&place), before, "a plan of what the source does not say is nothing to remember");
    place.run(&["undo", &changed]).exits(0).says("2 objects updated");
    assert_eq!((known(&place), port(&place, "edge")), (None, json!(80)));

    // Nor does it hide behind what a plan has remembered since.
    for _ in 0..2 {
        place.run(&["plan"]).exits(0).says("suspended").says("2 objects to update, 6 unchanged");
    }
    assert!(known(&place).is_some_and(|known| known["no_change"].is_null()));
    place.sync().exits(3).complains("is suspended");
    assert_eq!(port(&place, "edge"), 80);
    place.run(&["resume", &place.site.name]).exits(0);
    place.sync().exits(0).says("2 objects updated");
    assert_eq!(port(&place, "edge"), 81);
    is_quiet(&place);
}

#[test]
fn objects_come_back_whole_of_which_only_metadata_were_looked_at_for_many_rounds() {
    let place = Place::new(FREELY);
    let site = &place.site;
    site.want(&["changes", "goes", "stays"], 80);
    place.sync().exits(0).says("12 objects created");
    let patch = r#"{"metadata": {"annotations": {"theirs": "too"}}}"#;
    for service in ["service/changes", "service/goes"] {
        site.kubectl(&["patch", service, "--type=merge", "--field-manager=controller", "-p", patch]);
    }
    place.sync().exits(0).says("no changes");
    is_quiet(&place);
    let before = as_set(site);

    site.drop(&["goes"]);
    site.want(&["changes"], 81);
    place.proxy.recovers();
    let changed = run_of(&place.sync().exits(0).says("2 objects updated, 4 objects deleted"));
    assert_eq!(looked_at(&place, "/stays"), 0, "that round went by its notes: {:?}", place.proxy.seen());
    place.run(&["undo", &changed]).exits(0).says("4 objects created, 2 objects updated");
    assert_eq!(as_set(site), before);
    place.run(&["resume", &site.name]).exits(0);
    place.sync().exits(0).says("2 objects updated, 4 objects deleted");
    is_quiet(&place);
}

#[test]
fn the_next_round_sees_what_was_rolled_back_although_the_source_is_the_same() {
    let place = Place::new(FREELY);
    let site = &place.site;
    site.want(&["edge", "stays"], 80);
    place.sync().exits(0).says("8 objects created");
    site.want(&["edge"], 81);
    site.want(&["more"], 80);
    place.sync().exits(0).says("4 objects created, 2 objects updated");
    is_quiet(&place);
    let before = known(&place);

    place.run(&["rollback", &site.name, "--dry-run"]).exits(0).says("2 objects to update, 4 objects to prune");
    assert_eq!(known(&place), before);
    place.proxy.recovers();
    place.run(&["rollback", &site.name]).exits(0).says("2 objects updated, 4 objects deleted");
    assert_eq!(looked_at(&place, "/stays"), 0, "what is known to be as it was then is not compared");
    assert!(known(&place).is_some_and(|known| known["no_change"].is_null()), "no round of the source is over by it");
    place.run(&["plan"]).exits(0).says("suspended").says("4 objects to create, 2 objects to update");
    place.run(&["resume", &site.name]).exits(0);
    place.sync().exits(0).says("4 objects created, 2 objects updated");
    assert_eq!(port(&place, "edge"), 81);
    is_quiet(&place);

    // Where it is what the source says too, nobody is the worse for it.
    place.run(&["rollback", &site.name, "--to", "0"]).exits(0).says("no changes");
    place.run(&["resume", &site.name]).exits(0);
    place.sync().exits(0).says("no changes");
    is_quiet(&place);
}

#[test]
fn rules_that_are_in_no_object_are_noticed_after_a_rollback() {
    let place = Place::new(FREELY);
    let site = &place.site;
    site.want(&["edge"], 80);
    place.sync().exits(0).says("4 objects created");
    let was = site.get("service/edge")["spec"]["ports"][0]["targetPort"].clone();
    let patch = r#"[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 1234}]"#;
    site.kubectl(&["patch", "service", "edge", "--type=json", "--field-manager=tuner", "-p", patch]);
    place.sync().exits(0).says("left to tuner").says("no changes");
    place.run(&["rollback", &site.name, "--to", "0"]).exits(0).says("left to tuner").says("no changes");
    place.run(&["resume", &site.name]).exits(0);
    place.configure(&format!("conflicts: [{{manager: tuner, policy: take}}], {FREELY}"));
    place.run(&["rollback", &site.name, "--to", "0", "--dry-run"]).exits(0).says("1 object to update");
    place.sync().exits(0).says("1 object updated");
    assert_eq!(site.get("service/edge")["spec"]["ports"][0]["targetPort"], was);
}

#[test]
fn a_set_is_kept_by_the_first_round_that_is_well_also_if_it_renders_nothing() {
    let place = Place::new("");
    let site = &place.site;
    // Long enough for traces that can be relied on at the end of the round; the proxy does not tell the server's time.
    place.configure(&format!("wait: {{timeout: 8s}}, {FREELY}"));
    site.want(&["edge"], 80);
    site.sync().exits(1).says("its controller has not seen the change yet");
    let sets = || {
        let list = place.run(&["rollback", &site.name, "--list"]).exits(0).out;
        let of = |health: &str| list.lines().filter(|line| line.contains(health)).count();
        (of("  healthy"), of("/edge was never healthy with it"))
    };
    assert_eq!(sets(), (0, 1), "a set that has never been well is no place to go back to");

    let conditions = r#"[{"type": "Available", "status": "True"}]"#;
    let status = format!(
        r#"{{"status": {{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1, "conditions": {conditions}}}}}"#
    );
    let patch = ["--subresource=status", "--type=merge", "--field-manager=kube-controller-manager", "-p", &status];
    site.kubectl(&[&["patch", "deployment", "edge"], &patch[..]].concat());
    is_quiet(&place);
    assert_eq!(sets(), (1, 0));
    let index = || fs::read(site.desk.path(&format!("state/rendered/{}/c/index", site.name))).expect("it is there");
    let before = index();
    is_quiet(&place);
    assert_eq!((sets(), index() == before), ((1, 0), true), "what is kept is not kept again");
}

#[test]
fn what_a_round_took_from_others_or_removed_comes_back() {
    let place = Place::new(FREELY);
    let site = &place.site;
    site.want(&["edge"], 80);
    place.sync().exits(0).says("4 objects created");
    let patch = |object: &str, patch: &str| {
        site.kubectl(&["patch", object, "--type=json", "--field-manager=kubectl-edit", "-p", patch])
    };
    patch(
        "service/edge",
        r#"[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 1234},
            {"op": "add", "path": "/metadata/labels/theirs", "value": "x"}]"#,
    );
    patch(
        "deployment/edge",
        r#"[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "quick/fix:1"}]"#,
    );
    let changed = as_set(site);
    let corrected = run_of(&place.sync().exits(0).says("2 objects updated").says("taken").says("removed"));
    let right = as_set(site);
    assert_ne!(right, changed);
    let undone = run_of(&place.run(&["undo", &corrected]).exits(0).says("2 objects updated"));
    assert_eq!(as_set(site), changed);
    place.run(&["undo", &corrected]).exits(0).complains("there is nothing to undo");
    place.run(&["resume", &site.name]).exits(0);
    place.sync().exits(0).says("2 objects updated");
    assert_eq!(as_set(site), right);
    place.run(&["undo", &undone]).exits(0).complains("there is nothing to undo");
    is_quiet(&place);
}
