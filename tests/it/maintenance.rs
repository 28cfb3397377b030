//! Maintenance of inventories by a person, on a real API server: orphans, claim, destroy.

use serde_json::Value;

use crate::cluster::unique;
use crate::commands::{at_a_terminal, obeys};
use crate::errors::{desk, kubeconfig};
use crate::ownership::site::{Site, server};
use crate::rounds::installation::gateway;

fn orphans(site: &Site) -> Value {
    let json = site.run(&["orphans", "--cluster", "c", "--format", "json"]).exits(0).out;
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    obeys("orphans-v1alpha1", &json);
    json["clusters"]["c"].clone()
}

/// The names of orphans of a Gateway.
fn names(orphans: &Value, namespace: &str) -> Vec<String> {
    let objects = orphans["objects"].as_array().cloned().unwrap_or_default();
    let here = objects.iter().filter(|object| object["id"]["namespace"] == namespace);
    here.map(|object| format!("{}/{}", object["id"]["kind"], object["id"]["name"]).replace('"', "")).collect()
}

#[test]
fn a_sync_that_is_gone_from_the_config_is_an_orphan_until_it_is_destroyed() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.sync().exits(0).says("4 objects created");
    assert_eq!(names(&orphans(&site), &site.name), [""; 0]);

    let before = site.versions();
    site.configure(&format!("{}-new", site.name), "");
    site.drop(&["edge"]);
    site.want(&["another"], 80);
    let found = orphans(&site);
    assert_eq!(names(&found, &site.name).len(), 4, "{found}");
    let inventories = found["inventories"].as_array().cloned().unwrap_or_default();
    let mine: Vec<&Value> = inventories.iter().filter(|it| it["sync"] == site.name.as_str()).collect();
    assert_eq!((mine.len(), &mine[0]["isOurs"], &mine[0]["objects"]), (1, &true.into(), &4.into()));
    site.run(&["orphans"]).exits(0).says("INVENTORY OF SYNC").says(&site.name).says("this one");
    assert_eq!(site.versions(), before, "looking changes nothing");

    site.run(&["destroy", &site.name]).exits(64).complains("there is no sync");
    site.run(&["destroy", &site.name, "--cluster", "c"]).exits(64).complains("say --yes").says("4 objects to prune");
    assert_eq!(site.versions(), before);
    site.run(&["destroy", &site.name, "--cluster", "c", "--yes"]).exits(0).says("4 objects deleted");
    assert_eq!((site.versions().len(), site.records().len()), (0, 0));
    assert_eq!(names(&orphans(&site), &site.name), [""; 0]);
}

#[test]
fn destroy_deletes_what_a_sync_owns_and_keeps_what_asks_for_it() {
    let site = Site::new("");
    site.want(&["a", "b", "c", "d", "e", "f", "g"], 80);
    site.sync().exits(0).says("28 objects created");
    site.kubectl(&["annotate", "service", "a", "helm.sh/resource-policy=keep"]);
    site.kubectl(&["create", "configmap", "theirs"]);
    let run =
        site.run(&["destroy", &site.name, "--yes"]).exits(3).says("27 objects deleted").says("helm.sh/resource-policy");
    run.complains("is still configured, and its next round makes all of it again");
    assert_eq!(site.versions().into_keys().collect::<Vec<_>>(), ["ConfigMap/theirs", "Service/a"]);
    assert_eq!(site.inventory().entries.len(), 1, "what is kept is not lost sight of");
    site.kubectl(&["annotate", "service", "a", "helm.sh/resource-policy-"]);
    site.run(&["destroy", &site.name, "--yes"]).exits(0).says("1 object deleted");
    assert_eq!((site.versions().len(), site.records().len()), (1, 0));
    // Nothing is left to say about it, and the next round is as the first.
    site.sync().exits(0).says("28 objects created");
}

#[test]
fn destroy_asks_for_the_name_of_the_sync() {
    let (sync, namespace) = (unique("destroyed"), unique("destroyed"));
    let desk = desk(&sync, &[("only", kubeconfig(&server().kubeconfig("admin"), ""))]);
    desk.write("specs/a.json", &gateway(&namespace, "a", 80));
    desk.run(&["sync"]).exits(0).says("4 objects created");
    let left = || server().kubectl_ok(&["-n", &namespace, "get", "services", "-o", "name"]).lines().count();
    for answer in ["yes\n", "\n"] {
        let (code, screen) = at_a_terminal(&desk, &format!("destroy {sync}"), answer);
        assert_eq!((code, left()), (1, 1), "{screen}");
        assert!(screen.contains("Delete 4 objects?") && screen.contains("cancelled, nothing was changed"), "{screen}");
    }
    let (code, screen) = at_a_terminal(&desk, &format!("destroy {sync}"), &format!("{sync}\n"));
    assert_eq!((code, left()), (0, 0), "{screen}");
}

#[test]
fn what_another_installation_owned_is_claimed_without_being_made_again() {
    let theirs = Site::new("");
    theirs.want(&["edge", "other"], 80);
    theirs.sync().exits(0).says("8 objects created");
    theirs.kubectl(&["delete", "configmap", "other"]);
    let before = theirs.versions();
    let generation = |site: &Site| site.get("deployment/edge")["metadata"]["generation"].clone();
    let (old, name) = (generation(&theirs), theirs.name.clone());

    let ours = theirs.copied();
    ours.sync()
        .exits(3)
        .says("held by guard other-installation")
        .says(&format!("`gatewright inventory claim {name} --cluster c`"));
    ours.run(&["inventory", "repair", &name, "--cluster", "c", "--yes"])
        .exits(1)
        .complains("gatewright inventory claim");
    ours.run(&["inventory", "claim", &name, "--cluster", "c"])
        .exits(64)
        .complains("say --yes")
        .says("7 objects to claim");
    assert_eq!(ours.versions(), before, "nothing is changed without a word");
    let run = ours.run(&["inventory", "claim", &name, "--cluster", "c", "--yes"]).exits(0);
    run.says(&format!("ConfigMap {name}/other: it is not there; it leaves the inventory")).says("7 objects claimed");
    ours.run(&["inventory", "claim", &name, "--cluster", "c", "--yes"])
        .exits(64)
        .complains("no other installation has a sync");

    ours.sync().exits(0).says("1 object created, 7 unchanged");
    assert_eq!(generation(&ours), old, "nothing is rolled out");
    let uid = |version: &String| version.split(' ').next().map(str::to_owned);
    let after = ours.versions();
    assert!(before.iter().all(|(key, version)| after.get(key).and_then(uid) == uid(version)), "{before:?} {after:?}");
    for object in ["service/edge", "deployment/edge"] {
        let entries = ours.get(object)["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let managers: Vec<_> = entries.iter().map(|entry| (&entry["manager"], &entry["operation"])).collect();
        assert_eq!(managers, [(&"gatewright".into(), &"Apply".into())], "{object}");
    }
    theirs.sync().exits(3).says("held by guard other-installation");
    ours.drop(&["other"]);
    ours.sync().exits(0).says("4 objects deleted");
}

#[test]
fn the_first_round_after_a_claim_deletes_nothing() {
    let theirs = Site::new("");
    theirs.want(&["edge", "other"], 80);
    theirs.sync().exits(0);
    let ours = theirs.copied();
    ours.drop(&["other"]);
    ours.run(&["inventory", "claim", &ours.name, "--cluster", "c", "--yes"]).exits(0).says("8 objects claimed");
    ours.sync().says("this host sees the cluster for the first time");
    assert_eq!(ours.get("service/other")["metadata"]["name"], "other");
    ours.sync().exits(3).says("held by guard source-identity");
}

#[test]
fn a_claim_that_was_cut_off_goes_on() {
    let theirs = Site::new("");
    theirs.want(&["edge"], 80);
    theirs.sync().exits(0).says("4 objects created");
    // Of the copy's installation the first object bears the mark already, as after a crash.
    let ours = theirs.copied();
    let name = theirs.name.clone();
    ours.run(&["inventory", "claim", &name, "--cluster", "c"]).exits(64);
    let installation = ours.desk.read("state/installation");
    let owner = format!("gatewright.dev/owner={}/{name}#/Service/{name}/edge", installation.trim());
    let label = format!("gatewright.dev/sync={name}.{}", &installation[..8]);
    ours.kubectl(&["annotate", "--overwrite", "service", "edge", &owner]);
    ours.kubectl(&["label", "--overwrite", "service", "edge", &label]);
    let run = ours.run(&["inventory", "claim", &name, "--cluster", "c", "--yes"]).exits(0);
    run.says("3 objects to claim, 1 claimed already").says("4 objects claimed");
    ours.sync().exits(0).says("no changes, 4 objects up to date");
}
