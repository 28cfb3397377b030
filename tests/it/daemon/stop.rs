//! SIGTERM in the middle of a round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::inventory::{Encoded, Inventory};
use gatewright_engine::object::ObjectId;
use serde_json::Value;

use super::{Daemon, gateway, ours};
use crate::cluster::ApiServer;
use crate::cluster::process::free_port;
use crate::program::Desk;

/// So many that it takes seconds to create their objects, each of which has four.
const GATEWAYS: u16 = 100;

/// Reads the inventory of a sync off a server, as a restore by hand would find it.
fn inventory(server: &ApiServer, sync: &str) -> Inventory {
    let json = server.kubectl_ok(&["get", "configmaps", "-n", "gatewright-system", "-o", "json"]);
    let list: Value = serde_json::from_str(&json).expect("kubectl prints JSON");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let head_name = format!("gatewright.{sync}");
    let (mut head, mut shards) = (BTreeMap::new(), BTreeMap::new());
    for item in items {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let Some(shard) = name.strip_prefix(&head_name) else { continue };
        let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let data: BTreeMap<_, _> = item["data"].as_object().into_iter().flatten().filter_map(text).collect();
        match shard.strip_prefix('.') {
            Some(digest) => drop(shards.insert(digest.to_owned(), data)),
            None => head = data,
        }
    }
    Inventory::decode(&Encoded { head, shards }).expect("an inventory is whole at any moment")
}

/// The identities of everything that the specs ask for.
fn expected() -> BTreeSet<ObjectId> {
    let kinds = [("", "ServiceAccount"), ("", "ConfigMap"), ("", "Service"), ("apps", "Deployment")];
    let of_gateway = |number| kinds.map(|(group, kind)| ObjectId::new(group, kind, "shop", &format!("edge-{number}")));
    (0..GATEWAYS).flat_map(of_gateway).collect()
}

fn desk(server: &ApiServer, port: u16) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    for number in 0..GATEWAYS {
        desk.write(&format!("specs/edge-{number}.yaml"), &gateway(&format!("edge-{number}"), 8100 + number));
    }
    let config = format!(
        "stateDir: state\n\
         http: {{listen: \"127.0.0.1:{port}\"}}\n\
         sources: {{specs: {{directory: {{path: specs}}}}}}\n\
         clusters: {{only: {{kubeconfig: {{path: {}}}}}}}\n\
         syncs:\n  gateways:\n    source: specs\n    clusters: {{names: [only]}}\n    createNamespaces: true\n    \
           wait: {{enabled: false}}\n",
        server.kubeconfig("admin").display()
    );
    desk.write("gatewright.yaml", &config);
    desk
}

#[test]
fn a_stop_in_the_middle_of_a_round_leaves_a_true_inventory() {
    let server = ApiServer::start();
    let port = free_port();
    let desk = desk(&server, port);
    let mut daemon = Daemon::start(&desk, port, &[]);
    let made = || server.kubectl_ok(&["get", "serviceaccounts", "-n", "shop", "-o", "name"]).lines().count();
    daemon.until("the first objects", |_| made() > 0);
    daemon.stops_within(Duration::from_secs(10));

    let left = ours(&server);
    let (made, all) = (left.len(), expected().len());
    assert!(made > 0 && made < all, "{made} of {all}: this was not the middle, so the test shows nothing");
    let owned = inventory(&server, "gateways");
    for (id, live) in &left {
        let entry = owned.entries.get(id);
        let entry = entry.expect("what was made was written down before");
        assert!(entry.uid.as_ref().is_none_or(|uid| *uid == live.uid), "{id} was noted as another object");
    }
    for (id, entry) in &owned.entries {
        assert!(entry.uid.is_none() || left.contains_key(id), "{id} was noted as made, and is not there");
    }
    desk.run(&["status"]).exits(0).says("cluster only: stopped");

    desk.run(&["sync"]).exits(0).says("objects created");
    let whole = ours(&server);
    assert_eq!(whole.keys().cloned().collect::<BTreeSet<_>>(), expected());
    let owned = inventory(&server, "gateways");
    let uids = |(id, uid): (&ObjectId, Option<&String>)| (id.clone(), uid.cloned());
    let noted: BTreeMap<_, _> = owned.entries.iter().map(|(id, entry)| uids((id, entry.uid.as_ref()))).collect();
    let live: BTreeMap<_, _> = whole.iter().map(|(id, live)| uids((id, Some(&live.uid)))).collect();
    assert_eq!(noted, live);
    // What was there before the stop is still the same object.
    assert!(left.iter().all(|(id, live)| whole[id].uid == live.uid));
    desk.run(&["sync"]).exits(0).says(&format!("no changes, {all} objects up to date"));
}
