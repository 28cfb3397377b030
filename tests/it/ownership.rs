//! Ownership of objects: nothing that is not ours is written to or deleted, on a real API server.

mod deletion;
mod limits;
pub(crate) mod site;

use std::fs;

use serde_json::{Value, json};

use site::{Site, version};

fn config_map(name: &str, metadata: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "1"}});
    object["metadata"]["name"] = name.into();
    object
}

#[test]
fn two_installations_do_not_touch_each_other() {
    let ours = Site::new("");
    ours.want(&["edge"], 80);
    ours.sync().exits(0).says("4 objects created");
    let (objects, records) = (ours.versions(), ours.records());

    let theirs = ours.copied();
    theirs.want(&["edge"], 81);
    theirs.run(&["status"]).exits(0).says("no installation in state directory ").says("copy its state directory");
    // A plan that cannot reserve its id says that it is none.
    let no_lock = theirs.desk.path("state/installation.lock");
    fs::create_dir_all(&no_lock).expect("a new folder can be written");
    let plan = theirs.run(&["plan"]).exits(3).says("held by guard other-installation");
    let plan = plan.says("the id of this one is only that of this plan").complains("installation.lock");
    plan.complains("is only the installation id of this plan");
    assert!(!theirs.desk.path("state/installation").exists());
    fs::remove_dir(&no_lock).expect("it is empty");

    let plan = theirs.run(&["plan"]).exits(3).says("held by guard other-installation");
    assert!(!plan.out.contains("only that of this plan") && plan.err.is_empty(), "{}{}", plan.out, plan.err);
    let id = theirs.desk.read("state/installation");
    plan.says(&format!("belongs to installation {}, and this one is {id}", ours.desk.read("state/installation")));
    theirs.run(&["status"]).exits(0).says(&format!("installation {id}, state directory "));
    let held = theirs.sync().exits(3).says("held by guard other-installation").says("give this sync another name");
    held.says(&format!("and this one is {id}"));
    assert_eq!((ours.versions(), ours.records()), (objects.clone(), records.clone()));

    // Under another name the inventory is their own, and the objects still are not.
    let name = format!("{}-too", ours.name);
    theirs.configure(&name, "");
    theirs.run(&["plan"]).exits(3).says("foreign: it belongs to another installation of gatewright");
    theirs.sync().exits(3).says("foreign: it belongs to another installation of gatewright");
    theirs.configure(&name, "adopt: {policy: always}");
    theirs.sync().exits(3).says("foreign: it belongs to another installation of gatewright");
    assert_eq!((ours.versions(), ours.records()), (objects.clone(), records));
    let theirs = Site { name, ..theirs };
    assert_eq!(theirs.records().len(), 0, "who owns nothing has no inventory");

    // Neither does another sync of the same installation.
    ours.configure(&theirs.name, "");
    ours.sync().exits(3).says(&format!("foreign: it belongs to sync {:?} of this installation", ours.name));
    assert_eq!(ours.versions(), objects);
}

#[test]
fn what_nobody_owns_is_adopted_only_if_that_is_the_policy() {
    let site = Site::new("adopt: {policy: never}");
    site.create(&config_map("edge", &json!({})));
    let stranger = version(&site.get("configmap/edge"));
    site.want(&["edge"], 80);
    let refusal = format!("ConfigMap {}/edge: foreign", site.name);
    site.run(&["plan"]).exits(3).says(&refusal).says("adopt.policy is never");
    site.sync().exits(3).says(&refusal);
    assert_eq!(version(&site.get("configmap/edge")), stranger);
    assert_eq!(site.left_of("edge"), ["ConfigMap"], "half of a data plane helps nobody");

    site.configure(&site.name, "adopt: {policy: if-unowned}");
    let plan = site.run(&["plan"]).exits(0).says(&format!("& adopt ConfigMap {}/edge", site.name));
    plan.says("data.theirs: \"1\" -> nothing  (last written by kubectl").says("1 object to adopt");
    assert_eq!(version(&site.get("configmap/edge")), stranger, "a plan changes nothing");
    site.sync().exits(0).says("3 objects created, 1 object adopted");
    let adopted = site.get("configmap/edge");
    assert_eq!(adopted["data"].get("theirs"), None, "what only a person has set goes");
    assert!(adopted["metadata"]["annotations"]["gatewright.dev/owner"].is_string());
    site.sync().exits(0).says("no changes, 4 objects up to date");

    // What was there before us outlives us, unless the sync says otherwise.
    site.want(&["other"], 80);
    site.drop(&["edge"]);
    site.sync().exits(0).says(&format!("ConfigMap {}/edge: kept: it was adopted", site.name)).says("3 objects deleted");
    assert_eq!(site.get("configmap/edge")["metadata"]["uid"], adopted["metadata"]["uid"]);
    site.configure(&site.name, "adopt: {prune: true}");
    site.sync().exits(0).says("1 object deleted");
    assert_eq!(site.left_of("edge"), [""; 0]);
}

#[test]
fn what_others_have_marked_stays_theirs() {
    let site = Site::new("");
    site.create(&config_map("owner", &json!({})));
    let owner = site.get("configmap/owner")["metadata"]["uid"].clone();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner});
    let strangers = [
        ("of-helm", json!({"annotations": {"meta.helm.sh/release-name": "edge"}}), "Helm"),
        ("of-kapp", json!({"labels": {"kapp.k14s.io/app": "1700000000000000000"}}), "kapp"),
        ("of-flux", json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "edge"}}), "Flux"),
        ("of-argo", json!({"annotations": {"argocd.argoproj.io/tracking-id": "edge:/x"}}), "Argo CD"),
        ("owned", json!({"ownerReferences": [reference]}), "ConfigMap \"owner\", its ownerReference"),
    ];
    for (name, metadata, _) in &strangers {
        site.create(&config_map(name, metadata));
    }
    site.want(&strangers.each_ref().map(|(name, ..)| *name), 80);
    site.want(&["ours"], 80);
    let before = site.versions();

    let mut run = site.run(&["plan"]).exits(3);
    for (name, _, owner) in &strangers {
        run = run.says(&format!("ConfigMap {}/{name}: foreign: it belongs to {owner}", site.name));
    }
    site.sync().exits(3).says("4 objects created");
    assert_eq!(site.left_of("ours").len(), 4, "the other Gateway goes on");
    let after = site.versions();
    assert!(before.iter().all(|(object, version)| after.get(object) == Some(version)), "{before:?} {after:?}");
    assert_eq!(after.len(), before.len() + 4);
}
