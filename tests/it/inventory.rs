//! Inventories that are not as they were left, on a real API server: it is said, and nothing is deleted until a person
//! has looked.

use std::collections::BTreeMap;
use std::fs;

use gatewright::inventory::store;
use gatewright_engine::inventory::{Entry, Inventory};
use gatewright_engine::object::{Gvk, ObjectId};
use serde_json::{Value, json};

use crate::cluster_kube::cluster;
use crate::commands::obeys;
use crate::ownership::site::{Site, server};
use crate::program::Run;

/// A Gateway that stays and one that goes.
fn site(settings: &str) -> Site {
    let site = Site::new(settings);
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("8 objects created");
    site
}

impl Site {
    fn repair(&self) -> Run {
        self.run(&["inventory", "repair", &self.name, "--cluster", "c", "--yes"])
    }

    /// Deletes our records, as anybody may who has the right to.
    fn lose_inventory(&self) {
        for record in self.records().into_keys() {
            self.server.kubectl_ok(&["-n", "gatewright-system", "delete", "configmap", &record]);
        }
    }

    /// A host that knows who it is, and nothing else.
    fn lose_memory(&self) {
        fs::remove_dir_all(self.desk.path("state/seen")).expect("there is one after a round");
    }

    /// The next round compares everything, as one does once a day.
    fn lose_notes(&self) {
        fs::remove_dir_all(self.desk.path("state/known")).expect("there is one after a round");
    }

    /// Puts something else in the place of the shard of the inventory.
    fn truncate_shard(&self) {
        let head = format!("gatewright.{}", self.name);
        let shard = self.records().into_keys().find(|name| *name != head).expect("there is one");
        let patch = r#"{"data": {"entries": "H4sI"}}"#;
        self.server.kubectl_ok(&["-n", "gatewright-system", "patch", "configmap", &shard, "--type=merge", "-p", patch]);
    }

    fn service(&self, name: &str) -> ObjectId {
        ObjectId::new("", "Service", &self.name, name)
    }

    /// Adds an object of somebody else to the inventory.
    fn smuggle(&self) -> ObjectId {
        let theirs =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"a": "b"}});
        self.create(&theirs);
        let id = ObjectId::new("", "ConfigMap", &self.name, "theirs");
        let unit = ObjectId::new("gateway.networking.k8s.io", "Gateway", &self.name, "edge");
        let uid = self.get("configmap/theirs")["metadata"]["uid"].as_str().map(str::to_owned);
        let entry = Entry {
            gvk: Gvk::new("v1", "ConfigMap"),
            uid,
            unit,
            adopted: false,
            files: [].into(),
            overlays: [].into(),
        };
        let mut inventory = self.inventory();
        inventory.epoch += 1;
        inventory.entries.insert(id.clone(), entry);
        self.forge(&inventory);
        id
    }
}

/// Everything but deletions goes on, a repair brings back what was there, and then deletions go on too.
#[track_caller]
fn held_and_repaired(site: &Site, why: &str) {
    let before = site.versions();
    site.drop(&["other"]);
    site.want(&["edge"], 81);
    let hint = format!("then run `gatewright inventory repair {} --cluster c`", site.name);
    let plan = site.run(&["plan"]).exits(3).says("held by guard inventory").says(why).says("nothing is deleted here");
    plan.says(&hint).says("2 objects to update");
    site.sync().exits(3).says(why).says("2 objects updated");
    assert_eq!(site.left_of("other").len(), 4, "nothing is deleted");
    // It is not forgotten by what the round itself has written.
    site.sync().exits(3).says("held by guard inventory").says(why).says("no changes");
    site.run(&["inventory", "show"]).exits(3).says(&format!("suspect: {why}")).says(&hint);
    site.repair().exits(0).says(&format!("suspect: {why}")).says("the inventory holds 8 objects now");
    assert_eq!(site.versions().len(), before.len(), "a repair touches no object");
    site.sync().exits(0).says("4 objects deleted, 4 unchanged");
    site.sync().exits(0).says("no changes, 4 objects up to date");
    site.run(&["inventory", "show"]).exits(0).says("4 objects");
}

#[test]
fn an_inventory_that_was_deleted_by_hand_holds_deletions_until_it_is_repaired() {
    let site = site("");
    site.lose_inventory();
    held_and_repaired(&site, "it is gone, and held 8 objects when it was last written here");
}

#[test]
fn an_older_copy_of_an_inventory_holds_deletions_until_it_is_repaired() {
    let site = site("");
    let old = site.inventory();
    site.want(&["third"], 80);
    site.sync().exits(0).says("4 objects created");
    site.drop(&["third"]);
    site.sync().exits(0).says("4 objects deleted");
    site.forge(&old);
    held_and_repaired(&site, "it is an older copy: it was written for the");
}

#[test]
fn an_inventory_that_was_edited_holds_deletions_until_it_is_repaired() {
    let site = site("");
    let mut inventory = site.inventory();
    inventory.entries.remove(&site.service("other"));
    site.forge(&inventory);
    held_and_repaired(&site, &format!("it was edited, and lacks what this host wrote: Service {}/other", site.name));
}

#[test]
fn a_truncated_inventory_holds_deletions_until_it_is_repaired() {
    let site = site("");
    let head = format!("gatewright.{}", site.name);
    site.truncate_shard();
    site.lose_notes();
    held_and_repaired(&site, "it cannot be read: shard");

    // A head that says nothing is no better.
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("4 objects created, 2 objects updated");
    let patch = r#"{"data": {"head": "{"}}"#;
    site.server.kubectl_ok(&["-n", "gatewright-system", "patch", "configmap", &head, "--type=merge", "-p", patch]);
    held_and_repaired(&site, "it cannot be read: the head of the inventory cannot be read");

    // Who has never seen it knows nothing to go on with.
    site.server.kubectl_ok(&["-n", "gatewright-system", "patch", "configmap", &head, "--type=merge", "-p", patch]);
    site.lose_memory();
    site.sync().exits(1).says(&format!("gatewright inventory repair {}", site.name));
    site.repair().exits(0).says("it bears our mark; it counts as adopted");
    site.sync().exits(0).says("no changes, 4 objects up to date");
}

/// A round that goes by notes goes by this host's copy of what the head names; what stands there is looked at when
/// everything is compared, and when a person asks.
#[test]
fn a_truncated_shard_is_noticed_when_everything_is_compared() {
    let site = site("");
    site.truncate_shard();
    site.sync().exits(0).says("no changes, 8 objects up to date");
    site.want(&["edge"], 81);
    site.sync().exits(0).says("2 objects updated, 6 unchanged");
    site.run(&["inventory", "show"]).exits(3).says("suspect: it cannot be read: shard");
    site.lose_notes();
    site.run(&["plan"]).exits(3).says("held by guard inventory").says("it cannot be read: shard");
    // A plan keeps nothing in mind, so the round after it looks too.
    site.sync().exits(3).says("held by guard inventory").says("it cannot be read: shard");
    site.repair().exits(0).says("the inventory holds 8 objects now");
    site.sync().exits(0).says("no changes, 8 objects up to date");
}

/// Records that are written again are right again, whatever somebody had made of them.
#[test]
fn a_truncated_shard_is_replaced_by_the_next_change_of_the_inventory() {
    let site = site("");
    site.truncate_shard();
    site.drop(&["other"]);
    site.sync().exits(0).says("4 objects deleted, 4 unchanged");
    site.lose_notes();
    site.sync().exits(0).says("no changes, 4 objects up to date");
    site.run(&["inventory", "show"]).exits(0).says("4 objects");
}

#[test]
fn entries_that_somebody_added_to_an_inventory_are_reported_and_never_deleted() {
    let site = site("");
    let theirs = site.smuggle();
    let why = format!("it has entries that this host never wrote: {theirs}");
    let before = site.get("configmap/theirs");
    site.drop(&["other"]);
    let held = site.sync().exits(3).says("held by guard inventory").says(&why);
    held.says("it does not carry our mark").says("kept: the inventory is suspect");
    assert_eq!((site.left_of("other").len(), site.get("configmap/theirs")), (4, before.clone()));
    site.run(&["sync", "--format", "json"]).exits(3).says("\"guard\":\"inventory\"");

    site.repair().exits(0).says(&format!("- {theirs}: it does not bear our mark"));
    site.sync().exits(0).says("4 objects deleted");
    assert_eq!(site.get("configmap/theirs"), before);
    assert!(!site.inventory().entries.contains_key(&theirs));
}

#[test]
fn a_changed_entry_makes_the_inventory_suspect_whatever_was_changed() {
    type Change = (&'static str, fn(&mut Entry));
    let changes: [Change; 4] = [
        ("adopted", |entry| entry.adopted = true),
        ("unit", |entry| entry.unit = ObjectId::new("", "Gateway", "", "other")),
        ("files", |entry| entry.files = ["elsewhere.yaml".to_owned()].into()),
        ("version", |entry| entry.gvk.version = "v2".to_owned()),
    ];
    for (what, change) in changes {
        let site = site("");
        let edge = site.service("edge");
        let mut inventory = site.inventory();
        change(inventory.entries.get_mut(&edge).expect("it is owned"));
        // As if another host had gone on.
        inventory.epoch += 1;
        site.forge(&inventory);
        site.drop(&["other"]);
        let why = format!("it has entries that this host never wrote: {edge}");
        let run = site.sync().exits(3);
        assert!(run.out.contains(&why), "{what}: {}", run.out);
        assert_eq!(site.left_of("other").len(), 4, "{what}");
        site.repair().exits(0);
        site.sync().exits(0).says("4 objects deleted");
    }
}

/// It may have said that the inventory is suspect: the host does not take it for none.
#[test]
fn a_memory_that_cannot_be_read_holds_deletions_until_it_is_repaired() {
    let site = site("");
    let mut inventory = site.inventory();
    inventory.epoch += 1;
    inventory.entries.get_mut(&site.service("edge")).expect("it is owned").files = ["elsewhere.yaml".to_owned()].into();
    site.forge(&inventory);
    site.sync().exits(3).says("it has entries that this host never wrote");
    let file = format!("state/seen/{}/c.json", site.name);
    let whole = fs::read_to_string(site.desk.path(&file)).expect("there is one after a round");
    let cut = &whole[..whole.len() / 2];
    site.desk.write(&file, cut);

    site.drop(&["other"]);
    let hint = format!("then run `gatewright inventory repair {} --cluster c`", site.name);
    for _ in 0..2 {
        let held = site.sync().exits(3).says("held by guard inventory");
        held.says("this host has lost what it remembers of it: cannot read").says(&file).says(&hint);
        assert_eq!(site.left_of("other").len(), 4, "nothing is deleted");
    }
    site.run(&["plan"]).exits(3).says("held by guard inventory");
    let kept = fs::read_to_string(site.desk.path(&file)).expect("nobody has removed it");
    assert_eq!(kept, cut, "a person can look at it");
    site.repair().exits(0).says("the inventory holds 8 objects now");
    site.sync().exits(0).says("4 objects deleted, 4 unchanged");
    site.sync().exits(0).says("no changes, 4 objects up to date");
}

#[test]
fn an_inventory_of_a_newer_gatewright_is_left_alone() {
    let site = site("");
    let head = format!("gatewright.{}", site.name);
    let data = site.records()[&head]["data"]["head"].as_str().expect("it is text").to_owned();
    let newer = data.replacen("\"schema\":1,", "\"schema\":99,", 1);
    assert_ne!(newer, data);
    let patch = json!({"data": {"head": newer}}).to_string();
    site.server.kubectl_ok(&["-n", "gatewright-system", "patch", "configmap", &head, "--type=merge", "-p", &patch]);
    site.drop(&["other"]);
    site.want(&["edge"], 81);
    let before = (site.versions(), site.records());
    for fresh in [false, true] {
        if fresh {
            site.lose_memory();
        }
        for command in ["plan", "sync"] {
            let run = site.run(&[command]).exits(1);
            run.says("the inventory has format 99, and this version knows 1: use a newer gatewright");
        }
        site.repair().exits(1).complains("the inventory has format 99");
        assert_eq!((site.versions(), site.records()), before);
    }
}

#[test]
fn a_fresh_host_deletes_nothing_in_its_first_round() {
    let site = site("");
    site.lose_memory();
    site.drop(&["other"]);
    site.sync().exits(0).says("kept: this host sees the cluster for the first time").says("4 objects kept");
    assert_eq!(site.left_of("other").len(), 4);
    site.sync().exits(0).says("4 objects deleted");
}

#[test]
fn when_inventory_and_memory_are_lost_nothing_is_deleted_and_what_bears_our_mark_can_be_found() {
    let site = site("");
    site.lose_memory();
    site.lose_inventory();
    site.drop(&["other"]);
    site.sync().exits(0).says("no changes, 4 objects up to date");
    site.sync().exits(0).says("no changes, 4 objects up to date");
    assert_eq!(site.left_of("other").len(), 4);
    let found = site.run(&["orphans"]).exits(0).says(&format!("Service {}/other", site.name));
    assert!(!found.out.contains(&format!("Service {}/edge", site.name)), "{}", found.out);

    site.repair().exits(0).says(&format!("+ Service {}/other: it bears our mark; it counts as adopted", site.name));
    let found = site.run(&["orphans"]).exits(0);
    assert!(!found.out.contains(&format!("{}/other", site.name)), "{}", found.out);
    site.sync().exits(0).says("kept: it was adopted");
    site.configure(&site.name, "adopt: {prune: true}");
    site.sync().exits(0).says("4 objects deleted");
}

#[test]
fn a_repair_asks_and_a_script_must_say_yes() {
    let site = site("");
    site.run(&["inventory", "repair", &site.name, "--cluster", "c"]).exits(64).complains("say --yes");
    site.run(&["inventory", "repair", "nobody", "--cluster", "c", "--yes"]).exits(64).complains("owns nothing");
    site.run(&["inventory", "repair", &site.name, "--cluster", "x", "--yes"])
        .exits(64)
        .complains("there is no cluster");
    let before = site.versions();
    site.repair().exits(0).says("8 of 8 objects stand in it already; no object is touched");
    assert_eq!(site.versions(), before);
}

#[test]
fn inventories_are_shown_as_text_and_as_json() {
    let site = site("");
    let shown = site.run(&["inventory", "show"]).exits(0).says(&format!("sync {}, cluster c: 8 objects", site.name));
    let uid = site.get("service/edge")["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    shown.says(&uid).says(&format!("Gateway {}/edge", site.name)).says("OBJECT");
    let json = site.run(&["inventory", "show", &site.name, "--cluster", "c", "--format", "json"]).exits(0).out;
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    obeys("inventory-v1alpha1", &json);
    assert_eq!(json["inventories"][0]["entries"].as_array().map(Vec::len), Some(8));
    site.run(&["inventory", "show", "gone", "--cluster", "c"]).exits(0).says("no inventory");
    site.run(&["inventory", "show", "gone"]).exits(64).complains("there is no sync \"gone\"");
}

/// With a key in the config.
fn signed(site: &Site) {
    site.desk.write("key", "0123456789abcdef0123456789abcdef\n");
    let config = site.desk.read("gatewright.yaml");
    site.desk.write("gatewright.yaml", &format!("{config}inventory: {{keyFile: key}}\n"));
}

#[test]
fn a_key_signs_what_this_host_has_written_and_nothing_else() {
    let site = site("");
    assert!(site.inventory().signatures.is_empty());
    // This host remembers every entry, so that none is suspect.
    signed(&site);
    site.sync().exits(0).says("no changes, 8 objects up to date");
    assert_eq!(site.inventory().signatures.len(), 8);
    site.run(&["inventory", "show"]).exits(0);

    // A fresh host takes what is signed for ours, and what is not for nobody's.
    let theirs = site.smuggle();
    site.lose_memory();
    site.drop(&["other"]);
    let why = format!("1 entry of the inventory without a valid HMAC, such as {theirs}");
    for _ in 0..2 {
        site.sync().exits(3).says("held by guard inventory").says(&why);
    }
    assert_eq!(site.left_of("other"), [""; 0], "what is proven to be ours may go in the second round");
    site.run(&["inventory", "show"]).exits(3).says("no valid HMAC");
    assert_eq!(site.inventory().signatures.len(), 4);
    site.get("configmap/theirs");

    site.repair().exits(0).says(&format!("- {theirs}"));
    site.sync().exits(0).says("no changes, 4 objects up to date");
    assert_eq!(site.inventory().signatures.len(), 4);

    // Another key is another signature; this host knows what it has written.
    site.desk.write("key", "fedcba9876543210fedcba9876543210\n");
    let before = site.inventory().signatures;
    site.sync().exits(0);
    assert_ne!(site.inventory().signatures, before);
    site.desk.write("key", "short\n");
    site.sync().exits(64).complains("has fewer than 32 bytes");
}

#[test]
fn another_version_of_a_kind_is_the_same_object() {
    let site = Site::new("unclaimed: apply");
    let scaler = |version: &str| {
        json!({
            "apiVersion": version, "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "edge", "namespace": site.name},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "edge"}},
        })
        .to_string()
    };
    site.spec("scaler", &scaler("autoscaling/v1"));
    site.want(&["edge"], 80);
    site.sync().exits(0).says("5 objects created");
    let uid = || site.get("horizontalpodautoscaler/edge")["metadata"]["uid"].clone();
    let before = uid();
    site.spec("scaler", &scaler("autoscaling/v2"));
    let run = site.sync().exits(0);
    assert!(!run.out.contains("delete") && !run.out.contains("create"), "{}", run.out);
    site.sync().exits(0).says("no changes, 5 objects up to date");
    assert_eq!((uid(), site.inventory().entries.len()), (before, 5));
    site.drop(&["scaler"]);
    site.sync().exits(0).says("1 object deleted");
}

#[test]
fn an_inventory_of_twenty_thousand_objects_is_written_and_read_on_a_real_server() {
    let site = Site::new("");
    let unit = ObjectId::new("gateway.networking.k8s.io", "Gateway", &site.name, "edge");
    let entry = |n: usize| Entry {
        gvk: Gvk::new("v1", "Service"),
        uid: Some(format!("{n:08x}-0000-4000-8000-{:012x}", n * 7919)),
        unit: unit.clone(),
        adopted: false,
        overlays: [].into(),
        files: ["edge.yaml".to_owned()].into(),
    };
    let entries: BTreeMap<_, _> = (0..20_000).map(|n| (site.service(&format!("s{n}")), entry(n))).collect();
    let wanted = Inventory { installation: "i".to_owned(), entries, ..Inventory::default() };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let cluster = cluster(server().kubeconfig("admin"));
        let mut store = store::load(&cluster, &site.name).await.expect("there is none");
        store.save(&cluster, &site.name, &wanted).await.expect("it is written in shards");
        let mut read = store::load(&cluster, &site.name).await.expect("it is read");
        assert_eq!(read.inventory.entries, wanted.entries);
        assert!(site.records().len() > 3, "a head and several shards");

        // One object less is one shard more or less, and what is of no use any more is gone.
        let mut fewer = read.inventory.clone();
        fewer.entries.pop_first();
        read.save(&cluster, &site.name, &fewer).await.expect("it is written");
        let again = store::load(&cluster, &site.name).await.expect("it is read");
        assert_eq!(again.inventory.entries.len(), 19_999);
        assert_eq!(site.inventory().entries.len(), 19_999);
        store::remove(&cluster, &site.name, again).await.expect("it is removed");
    });
    assert_eq!(site.records().len(), 0);
}
