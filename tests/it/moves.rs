//! Objects that move between syncs of one installation, on a real API server: none is deleted, none is made again.

mod desk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::memory::MemoryCluster;
use desk::Pair;
use gatewright::cluster::Cluster;
use gatewright::inventory::store;
use gatewright_engine::object::ObjectId;
use serde_json::json;

use crate::ownership::site::Site;
use crate::rounds::installation::{Installation, gateways};
use crate::rounds::mortal::{Death, End, Mortal, Side};

/// The uids of objects, which tell whether one was made again.
fn uids(versions: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let uid = |version: &str| version.find(' ').unwrap_or(version.len());
    versions.iter().map(|(key, version)| (key.as_str(), &version[..uid(version)])).collect()
}

/// Two syncs that each have a Gateway, and swap them in one commit.
fn swapped() -> (Pair, BTreeMap<String, String>) {
    let pair = Pair::new("");
    pair.want("a", &["one"]);
    pair.want("b", &["two"]);
    pair.run(&["sync"]).exits(0);
    let before = pair.versions();
    assert_eq!(before.len(), 8, "{before:?}");
    assert_eq!((pair.owner("one"), pair.owner("two")), (pair.sync("a"), pair.sync("b")));
    pair.drop("a", &["one"]);
    pair.drop("b", &["two"]);
    pair.want("a", &["two"]);
    pair.want("b", &["one"]);
    (pair, before)
}

#[test]
fn two_syncs_that_exchange_gateways_in_one_commit_delete_nothing_whichever_goes_first() {
    for order in [["a", "b"], ["b", "a"]] {
        let (pair, before) = swapped();
        let [first, second] = order.map(|name| pair.sync(name));
        let plan = pair.run(&["plan", &first]).exits(0).says("4 objects to adopt").says("4 objects to hand over");
        plan.says("wants it; it leaves this inventory when that has taken it over");
        pair.run(&["sync", &first])
            .exits(0)
            .says("4 objects adopted")
            .says(&format!("moves here from sync {second:?}"));
        assert_eq!(pair.owned(&first).len(), 8, "what is not taken yet is in its inventory still");
        pair.run(&["sync", &second]).exits(0).says("4 objects adopted, 4 objects handed over");
        pair.run(&["sync", &first]).exits(0).says("4 objects handed over").says(&format!("sync {second:?} has it now"));
        pair.run(&["sync"]).exits(0).says("no changes, 4 objects up to date");
        let after = pair.versions();
        assert_eq!(uids(&after), uids(&before));
        assert_eq!((pair.owner("one"), pair.owner("two")), (pair.sync("b"), pair.sync("a")));
        assert_eq!((pair.owned(&first).len(), pair.owned(&second).len()), (4, 4));

        // Each deletes what is its own now, though another has made it.
        pair.want("a", &["keep"]);
        pair.drop("a", &["two"]);
        pair.run(&["sync", &pair.sync("a")]).exits(0).says("4 objects created, 4 objects deleted");
    }
}

#[test]
fn what_has_moved_to_another_sync_is_not_deleted_by_taking_back_what_made_it() {
    for command in ["rollback", "undo"] {
        let pair = Pair::new("");
        let (a, b) = (pair.sync("a"), pair.sync("b"));
        pair.want("a", &["one"]);
        pair.run(&["sync", &a]).exits(0);
        pair.want("a", &["moves"]);
        let made = pair.run(&["sync", &a]).exits(0).says("4 objects created");
        let before = pair.versions();
        // The commit is there, and no round has seen it yet.
        pair.drop("a", &["moves"]);
        pair.want("b", &["moves"]);
        let run = crate::undo::run_of(&made);
        let argument = if command == "undo" { run.as_str() } else { a.as_str() };

        // Nobody knows what the other wants.
        pair.elsewhere("b");
        pair.run(&[command, argument, "--dry-run"]).says("may want it: cannot read source \"other\"");
        pair.together();
        let plan = pair.run(&[command, argument, "--dry-run"]).exits(0).says("4 objects to hand over");
        plan.says(&format!("sync {b:?} wants it"));
        pair.run(&[command, argument, "--yes"]).exits(0);
        assert_eq!(pair.versions(), before, "{command}");
        pair.run(&["sync", &b]).exits(0).says("4 objects adopted");
        assert_eq!(uids(&pair.versions()), uids(&before), "{command}");
        // Once the other has it, taking it back is no reason to delete it either.
        pair.run(&[command, argument, "--dry-run"]);
        assert_eq!((pair.owner("one"), pair.owner("moves")), (a, b));
    }
}

#[test]
fn what_moves_is_not_lost_while_the_sync_that_it_moves_to_fails() {
    let (pair, before) = swapped();
    // The sync that one of them moves to has a mistake in just this Gateway: the first one waits.
    let text = pair.desk.read("specs/b/one.json");
    pair.desk.write("specs/b/one.json", &text.replace("\"port\"", "\"prot\""));
    pair.run(&["sync"]).exits(1).says("may want it: its spec Gateway").says("4 objects adopted");
    assert_eq!(uids(&pair.versions()), uids(&before));
    assert_eq!((pair.owner("one"), pair.owner("two")), (pair.sync("a"), pair.sync("a")));
    pair.desk.write("specs/b/one.json", &text);

    // Nobody knows what the sync wants that has it.
    pair.desk.write("specs/a/broken.json", "{{{");
    pair.run(&["sync", &pair.sync("b")]).exits(3).says("which may want it: a/broken.json cannot be read");
    pair.run(&["sync", &pair.sync("a")]).exits(1);
    assert_eq!(uids(&pair.versions()), uids(&before));
    std::fs::remove_file(pair.desk.path("specs/a/broken.json")).expect("it is there");

    // Nothing of it is left when the mistake is gone, and nothing was made again.
    pair.run(&["sync"]).exits(0);
    pair.run(&["sync"]).exits(0);
    pair.run(&["sync"]).exits(0).says("no changes, 4 objects up to date");
    assert_eq!(uids(&pair.versions()), uids(&before));
    assert_eq!((pair.owner("one"), pair.owner("two")), (pair.sync("b"), pair.sync("a")));
}

#[test]
fn while_the_source_of_another_sync_cannot_be_read_nothing_is_deleted_that_it_may_want() {
    let pair = Pair::new("");
    pair.want("a", &["one", "stays"]);
    pair.want("b", &["two"]);
    pair.run(&["sync"]).exits(0);
    pair.elsewhere("b");
    pair.drop("a", &["one"]);
    let sync = pair.sync("a");
    pair.run(&["plan", &sync]).exits(0).says("4 objects: kept: sync").says("may want it: cannot read source \"other\"");
    pair.run(&["sync", &sync]).exits(0).says("4 objects kept");
    assert_eq!(pair.versions().len(), 12);
    pair.together();
    pair.run(&["sync", &sync]).exits(0).says("4 objects deleted");
}

#[test]
fn a_report_claims_nothing_so_nothing_is_handed_over_to_it() {
    for is_directory in [false, true] {
        let pair = Pair::new("createNamespaces: true");
        let (a, b) = (pair.sync("a"), pair.sync("b"));
        let reports = || {
            pair.configure(&[(&a, "a", ""), (&b, "b", "mode: report")]);
            if is_directory {
                pair.directory();
            }
        };
        reports();
        pair.want("a", &["one", "stays"]);
        // The same Gateway, as a sync that only looks at it wants it.
        pair.want("b", &["one"]);
        pair.run(&["sync", &a]).exits(0).says("8 objects created");
        // The branch without it: who only reports would never take it, whatever its source wants.
        pair.drop("a", &["one"]);
        let plan = pair.run(&["plan", &a]).exits(0).says("4 objects to prune");
        assert!(!plan.out.contains("hand"), "{}", plan.out);
        pair.run(&["sync", &a]).exits(0).says("4 objects deleted");
        pair.run(&["sync", &a]).exits(0).says("no changes, 4 objects up to date");
    }
}

#[test]
fn a_broken_source_of_a_report_keeps_nobody_from_deleting() {
    let pair = Pair::new("");
    let (a, b) = (pair.sync("a"), pair.sync("b"));
    pair.configure(&[(&a, "a", ""), (&b, "b", "mode: report")]);
    pair.want("a", &["one", "stays"]);
    pair.desk.write("specs/b/broken.json", "{{{");
    pair.run(&["sync", &a]).exits(0);
    pair.drop("a", &["one"]);
    pair.run(&["sync", &a]).exits(0).says("4 objects deleted");
}

#[test]
fn objects_of_a_sync_that_was_set_to_report_are_not_taken_while_its_source_has_them() {
    let pair = Pair::new("");
    let (a, b) = (pair.sync("a"), pair.sync("b"));
    pair.want("b", &["one"]);
    pair.run(&["sync", &b]).exits(0).says("4 objects created");
    pair.configure(&[(&a, "a", ""), (&b, "b", "mode: report")]);
    pair.want("a", &["one"]);
    let before = pair.versions();
    pair.run(&["sync", &a]).exits(3).says("which wants it too");
    assert_eq!(pair.versions(), before);
    // It has given them up when its source has: then they move, and are not made again.
    pair.drop("b", &["one"]);
    pair.want("b", &["other"]);
    pair.run(&["sync", &a]).exits(0).says("4 objects adopted");
    assert_eq!(uids(&pair.versions()), uids(&before));
}

#[test]
fn what_was_handed_over_to_a_sync_is_deleted_once_that_only_reports() {
    let pair = Pair::new("");
    let (a, b) = (pair.sync("a"), pair.sync("b"));
    pair.want("a", &["one", "stays"]);
    pair.run(&["sync", &a]).exits(0);
    pair.drop("a", &["one"]);
    pair.want("b", &["one"]);
    pair.run(&["sync", &a]).exits(0).says("it leaves this inventory when that has taken it over");
    pair.configure(&[(&a, "a", ""), (&b, "b", "mode: report")]);
    pair.run(&["sync", &a]).exits(0).says("4 objects deleted");
}

#[test]
fn an_object_that_two_syncs_want_stays_with_the_one_that_has_it() {
    let pair = Pair::new("");
    pair.want("a", &["one"]);
    pair.run(&["sync", &pair.sync("a")]).exits(0);
    pair.want("b", &["one"]);
    let refusal = format!("foreign: it belongs to sync {:?} of this installation, which wants it too", pair.sync("a"));
    let before = pair.versions();
    pair.run(&["sync", &pair.sync("b")]).exits(3).says(&refusal);
    pair.run(&["sync", &pair.sync("a")]).exits(0).says("no changes, 4 objects up to date");
    assert_eq!(pair.versions(), before);
}

#[test]
fn a_sync_that_is_renamed_keeps_its_objects_and_leaves_no_inventory_behind() {
    let pair = Pair::new("");
    pair.want("a", &["one", "two", "goes"]);
    pair.run(&["sync", &pair.sync("a")]).exits(0).says("12 objects created");
    let before = pair.versions();
    let (old, new) = (pair.sync("a"), format!("{}-new", pair.sync("a")));

    // Without a word about it nothing is touched.
    pair.configure(&[(&new, "a", "")]);
    pair.run(&["sync", &new]).exits(3).says(&format!("foreign: it belongs to sync {old:?} of this installation"));
    assert_eq!(pair.versions(), before);

    pair.configure(&[(&new, "a", &format!("moved: [{{from: {old}}}]"))]);
    pair.drop("a", &["goes"]);
    pair.run(&["plan", &new]).exits(0).says("8 objects to adopt, 4 objects to prune").says("moves here from sync");
    pair.run(&["sync", &new]).exits(0).says("8 objects adopted, 4 objects deleted");
    let after = pair.versions();
    assert_eq!(after.len(), 8);
    assert!(uids(&after).iter().all(|(key, uid)| uids(&before).get(key) == Some(uid)), "{before:?} {after:?}");
    assert_eq!(pair.records(&old), [""; 0], "the old inventory is gone");
    assert_eq!((pair.owned(&new).len(), pair.owner("one")), (8, new.clone()));
    pair.run(&["sync", &new]).exits(0).says("no changes, 8 objects up to date");

    // The setting may stay or go; what was made under the old name is deleted under the new one.
    pair.configure(&[(&new, "a", "")]);
    pair.want("a", &["next"]);
    pair.drop("a", &["two"]);
    pair.run(&["sync", &new]).exits(0).says("4 objects created, 4 objects deleted, 4 unchanged");
}

#[test]
fn a_renamed_sync_whose_old_inventory_is_gone_deletes_nothing_until_that_is_repaired() {
    let pair = Pair::new("");
    pair.want("a", &["one", "goes"]);
    pair.run(&["sync", &pair.sync("a")]).exits(0).says("8 objects created");
    let (old, new) = (pair.sync("a"), format!("{}-new", pair.sync("a")));
    for record in pair.records(&old) {
        pair.server.kubectl_ok(&["-n", "gatewright-system", "delete", "configmap", &record]);
    }
    pair.configure(&[(&new, "a", &format!("moved: [{{from: {old}}}]"))]);
    let before = pair.versions();
    pair.drop("a", &["goes"]);
    pair.want("a", &["two"]);
    let held =
        pair.run(&["sync", &new]).exits(3).says(&format!("that of sync {old:?}: it is gone, and held 8 objects"));
    held.says(&format!("gatewright inventory repair {old} --cluster c`")).says("4 objects created, 4 objects adopted");
    pair.run(&["sync", &new]).exits(3).says("held by guard inventory");
    assert_eq!(pair.versions().len(), 12);
    let repair = pair.run(&["inventory", "repair", &old, "--cluster", "c", "--yes"]).exits(0);
    repair.says("the inventory holds 4 objects now");
    pair.run(&["sync", &new]).exits(0).says("4 objects deleted");
    pair.run(&["sync", &new]).exits(0).says("no changes, 8 objects up to date");
    assert_eq!(pair.records(&old), [""; 0]);
    let after = pair.versions();
    let is_same = |(key, uid): (&&str, &&str)| key.ends_with("/two") || uids(&before).get(*key) == Some(uid);
    assert!(uids(&after).iter().all(is_same), "{before:?} {after:?}");
}

#[test]
fn a_path_that_is_renamed_changes_nothing_on_the_cluster() {
    let pair = Pair::new("");
    pair.want("a", &["one"]);
    pair.run(&["sync", &pair.sync("a")]).exits(0).says("4 objects created");
    let before = pair.versions();
    std::fs::rename(pair.desk.path("specs/a"), pair.desk.path("specs/c")).expect("it is there");
    std::fs::rename(pair.desk.path("specs/c/one.json"), pair.desk.path("specs/c/renamed.json")).expect("it is there");
    pair.configure(&[(&pair.sync("a"), "c", "")]);
    pair.run(&["sync"]).exits(0).says("no changes, 4 objects up to date");
    assert_eq!(pair.versions(), before);
}

#[test]
fn what_moves_between_units_of_a_sync_is_not_made_again() {
    let site = Site::new("unclaimed: apply");
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("8 objects created");
    let uid = site.get("serviceaccount/edge")["metadata"]["uid"].clone();
    site.drop(&["edge"]);
    let metadata = json!({"name": "edge", "namespace": site.name});
    site.spec("account", &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}).to_string());
    site.sync().exits(0).says("1 object updated").says("3 objects deleted");
    assert_eq!(site.get("serviceaccount/edge")["metadata"]["uid"], uid);
    let entries = site.inventory().entries;
    assert!(entries.iter().any(|(id, entry)| id.kind == "ServiceAccount" && entry.unit == *id), "{entries:?}");
    site.sync().exits(0).says("no changes, 5 objects up to date");
}

#[test]
fn a_former_name_that_is_still_in_use_is_a_mistake() {
    let pair = Pair::new("");
    let (a, b) = (pair.sync("a"), pair.sync("b"));
    pair.configure(&[(&a, "a", ""), (&b, "b", &format!("moved: [{{from: {a}}}]"))]);
    pair.run(&["config", "check"]).exits(64).complains(&format!("sync {a:?} is still there, for cluster \"c\" too"));
    pair.configure(&[(&a, "a", &format!("moved: [{{from: {a}}}]"))]);
    pair.run(&["config", "check"]).exits(64).complains("cannot have moved from its own name");
    pair.configure(&[(&a, "a", "moved: [{from: x}]"), (&b, "b", "moved: [{from: x}]")]);
    pair.run(&["config", "check"]).exits(64).complains(&format!("sync {a:?} has moved from \"x\" too"));
}

#[test]
fn what_was_adopted_counts_as_adopted_when_it_moves() {
    let pair = Pair::new("adopt: {policy: if-unowned}");
    let theirs = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"theirs": "1"},
    });
    pair.server.kubectl_stdin(&["-n", &pair.namespace, "create", "-f", "-"], &theirs.to_string());
    pair.want("a", &["one"]);
    pair.run(&["sync", &pair.sync("a")]).exits(0).says("3 objects created, 1 object adopted");
    pair.drop("a", &["one"]);
    pair.want("a", &["x"]);
    pair.want("b", &["one", "y"]);
    pair.run(&["sync", &pair.sync("b")]).exits(0).says("4 objects created, 4 objects adopted");
    pair.run(&["sync", &pair.sync("a")]).exits(0).says("4 objects handed over");
    pair.drop("b", &["one"]);
    pair.run(&["sync", &pair.sync("b")]).exits(0).says("kept: it was adopted").says("3 objects deleted");
}

#[test]
fn files_of_a_directory_move_between_syncs_too() {
    let pair = Pair::new("createNamespaces: true");
    pair.directory();
    pair.want("a", &["one"]);
    pair.want("b", &["two"]);
    pair.run(&["sync"]).exits(0);
    pair.drop("a", &["one"]);
    pair.drop("b", &["two"]);
    pair.want("a", &["two"]);
    pair.want("b", &["one"]);
    let file = pair.desk.path(&format!("rendered/{}/service-one.yaml", pair.namespace));
    let before = std::fs::read_to_string(&file).expect("it was rendered");
    pair.run(&["sync"]).exits(0).says("4 objects adopted");
    pair.run(&["sync"]).exits(0);
    pair.run(&["sync"]).exits(0).says("no changes, 4 objects up to date");
    assert_eq!(std::fs::read_to_string(&file).expect("it is still there"), before);
    pair.drop("b", &["one"]);
    pair.want("b", &["three"]);
    pair.run(&["sync"]).exits(0).says("4 objects deleted");
    assert!(!file.exists());
}

/// A rename that also takes a Gateway away, in a process that dies at one of its side effects; tells whether it did not.
async fn renamed_and_killed(death: Death) -> bool {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = memory.clone();
    let old = Installation::new("old", &json!({}));
    old.round(&gateways("infra", &[("one", 80), ("two", 80), ("goes", 80)]), &cluster).await;
    old.round(&gateways("infra", &[("one", 80), ("two", 80), ("goes", 80)]), &cluster).await;
    let before = memory.objects();
    let (new, specs) = (old.renamed("new"), gateways("infra", &[("one", 80), ("two", 80)]));

    let mortal = Mortal::new(&cluster, Some(death));
    let doomed: Arc<dyn Cluster> = mortal.clone();
    let survives = mortal.survives(new.round(&specs, &doomed)).await;
    let mut known: BTreeSet<ObjectId> = new.inventory(cluster.as_ref()).await.entries.into_keys().collect();
    let former = store::load(cluster.as_ref(), "old").await.expect("it is whole at every moment");
    known.extend(former.inventory.entries.into_keys());
    let lost: Vec<ObjectId> =
        memory.objects().into_keys().filter(|id| id.kind != "Namespace" && !known.contains(id)).collect();
    assert_eq!(lost, [], "{death:?}");

    for _ in 0..2 {
        let report = new.round(&specs, &cluster).await;
        assert!(report.holds.is_empty() && report.error.is_none(), "{death:?}: {report:?}");
    }
    let plan = new.plan(&specs, &cluster).await;
    assert!(plan.steps.iter().all(|step| step.action.word() == "keep"), "{death:?}: {plan:?}");
    let after = memory.objects();
    assert_eq!(after.len(), 1 + 8, "{death:?}: a namespace and two Gateways");
    assert!(after.iter().all(|(id, live)| before[id].uid == live.uid), "{death:?}");
    assert!(!store::load(cluster.as_ref(), "old").await.expect("it can be read").exists(), "{death:?}");
    survives
}

#[tokio::test]
async fn a_rename_loses_nothing_wherever_it_is_cut_off() {
    for (side, end) in [(Side::Before, End::Killed), (Side::After, End::Killed), (Side::After, End::CutOff)] {
        let mut deaths = 0;
        while !renamed_and_killed(Death { at: deaths + 1, side, end }).await {
            deaths += 1;
        }
        assert!(deaths > 10, "a rename has more side effects than {deaths}");
    }
}

/// Two syncs exchange a Gateway each, and the first of them dies at one of its side effects; tells whether it did not.
async fn exchanged_and_killed(death: Death) -> bool {
    let memory = Arc::new(MemoryCluster::new("c"));
    let cluster: Arc<dyn Cluster> = memory.clone();
    let a = Installation::new("a", &json!({}));
    let b = a.other("b");
    let (one, two) = (gateways("infra", &[("one", 80)]), gateways("infra", &[("two", 80)]));
    for _ in 0..2 {
        a.round_beside(&one, (&b, &two), &cluster).await;
        b.round_beside(&two, (&a, &one), &cluster).await;
    }
    let before = memory.objects();

    let mortal = Mortal::new(&cluster, Some(death));
    let doomed: Arc<dyn Cluster> = mortal.clone();
    let survives = mortal.survives(a.round_beside(&two, (&b, &one), &doomed)).await;
    let whole = |round: &str| {
        let after = memory.objects();
        let is_same = after.iter().all(|(id, live)| before.get(id).is_some_and(|old| old.uid == live.uid));
        assert!(after.len() == before.len() && is_same, "{death:?}, {round}: {after:?}");
    };
    whole("at once");
    // Whichever goes on, in whatever order.
    let is_odd = death.at % 2 == 1;
    for _ in 0..3 {
        if is_odd {
            b.round_beside(&one, (&a, &two), &cluster).await;
            whole("b");
        }
        a.round_beside(&two, (&b, &one), &cluster).await;
        whole("a");
        if !is_odd {
            b.round_beside(&one, (&a, &two), &cluster).await;
            whole("b");
        }
        let mut known: BTreeSet<ObjectId> = a.inventory(cluster.as_ref()).await.entries.into_keys().collect();
        known.extend(b.inventory(cluster.as_ref()).await.entries.into_keys());
        assert_eq!(known.len(), 8, "{death:?}: every object stands in an inventory");
    }
    let of = async |sync: &Installation| {
        sync.inventory(cluster.as_ref()).await.entries.into_keys().map(|id| id.name.clone())
    };
    let names =
        |names: &mut dyn Iterator<Item = String>| names.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>();
    assert_eq!(
        (names(&mut of(&a).await), names(&mut of(&b).await)),
        (vec!["two".into()], vec!["one".into()]),
        "{death:?}"
    );
    survives
}

#[tokio::test]
async fn an_exchange_loses_nothing_wherever_it_is_cut_off() {
    for (side, end) in [(Side::Before, End::Killed), (Side::After, End::Killed), (Side::After, End::CutOff)] {
        let mut deaths = 0;
        while !exchanged_and_killed(Death { at: deaths + 1, side, end }).await {
            deaths += 1;
        }
        assert!(deaths >= 5, "an exchange has more side effects than {deaths}");
    }
}
