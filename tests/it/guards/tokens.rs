//! Tokens and their approval.

use std::fs;

use serde_json::Value;

use super::{token, tokens};
use crate::commands::obeys_the_schema;
use crate::ownership::site::Site;

fn seven() -> Site {
    let site = Site::new("");
    site.want(&["a", "b", "c", "d", "e", "f", "g"], 80);
    site.sync().exits(0).says("28 objects created");
    site
}

#[test]
fn a_token_lifts_the_steps_that_it_was_printed_with_and_not_one_more() {
    let site = seven();
    site.drop(&["a", "b", "c"]);
    let plan = site.run(&["plan"]).exits(3).says("held by guard max-delete").says("for exactly 12 steps");
    let first = token(&plan);
    assert_eq!(token(&site.run(&["plan"]).exits(3)), first, "the same steps have the same token");
    assert!(first.len() == 14 && !first.contains(['0', '1', 'i', 'l', 'o']), "{first}");
    site.run(&["approve", &first, "--reason", "three shops closed"]).exits(0).says("approved until ").says("prune");

    // One deletion more, and it is another token: what was approved is not lifted either.
    site.drop(&["d"]);
    let before = site.versions();
    let held = site.sync().exits(3).says("4 units of 7");
    assert_ne!(token(&held), first);
    assert_eq!(site.versions(), before);
    site.want(&["d"], 80);

    // The very steps that were approved; a change beside them is none of the guard's business.
    site.want(&["g"], 81);
    site.run(&["plan"]).exits(0).says("guard max-delete was approved").says("12 objects to prune");
    site.sync().exits(0).says("guard max-delete was approved").says("12 objects deleted").says("2 objects updated");
    assert_eq!([site.left_of("a").len(), site.left_of("d").len()], [0, 4]);

    // It is used up, and the same Gateways made again are others.
    site.run(&["approve"]).exits(0).says("nothing waits for approval");
    assert_eq!(fs::read_dir(site.desk.path("state/approvals")).expect("it was made").count(), 0);
    site.want(&["a", "b", "c"], 80);
    site.sync().exits(0).says("12 objects created");
    site.drop(&["a", "b", "c"]);
    assert_ne!(token(&site.sync().exits(3)), first);
}

#[test]
fn only_what_waits_can_be_approved() {
    let site = seven();
    site.run(&["approve", "k7wm-3xq9-hd2t"]).exits(1).complains("nothing waits for k7wm-3xq9-hd2t");
    site.run(&["approve", "../../x"]).exits(64).complains("is no token");
    site.run(&["approve", "k7wm-3xq9-hd2t", "--for", "soon"]).exits(64);
    site.drop(&["a", "b", "c"]);
    let first = token(&site.sync().exits(3));
    site.drop(&["d"]);
    let second = token(&site.sync().exits(3));
    site.run(&["approve", &first]).exits(1).complains(&second);

    let listed = site.run(&["approve"]).exits(0).says(&second).says("on cluster c, guard max-delete");
    assert_eq!(listed.out.matches("    prune ").count(), 16, "{}", listed.out);
    // Typed by a person.
    site.run(&["approve", &second.replace('-', "").to_uppercase()]).exits(0);
    site.run(&["approve"]).exits(0).says(&format!("{second}  approved until "));

    // An approval counts for its time, and for its own sync.
    site.run(&["approve", &second, "--for", "1ms"]).exits(0);
    site.sync().exits(3).says("held by guard max-delete");
    let report: Value = serde_json::from_str(&site.run(&["plan", "--format", "json"]).exits(3).out).expect("JSON");
    obeys_the_schema(&report);
    let hold = &report["clusters"]["c"]["holds"][0];
    assert_eq!((hold["token"].as_str(), hold["steps"].as_array().map(Vec::len)), (Some(second.as_str()), Some(16)));
    site.run(&["approve", &second]).exits(0);
    let report: Value = serde_json::from_str(&site.run(&["sync", "--format", "json"]).exits(0).out).expect("JSON");
    obeys_the_schema(&report);
    assert_eq!(report["clusters"]["c"]["lifted"][0]["guard"], "max-delete");
    assert_eq!(site.left_of("d"), [""; 0]);
}

#[test]
fn an_empty_source_empties_a_cluster_after_approval() {
    let site = Site::new("");
    site.want(&["a", "b"], 80);
    site.sync().exits(0).says("8 objects created");
    site.drop(&["a", "b"]);
    let held = site.sync().exits(3).says("held by guard empty-render");
    site.run(&["approve", &token(&held)]).exits(0);
    site.sync().exits(0).says("8 objects deleted");
    assert_eq!(site.versions().keys().filter(|key| key.ends_with("/a")).count(), 0);
}

#[test]
fn no_approval_lifts_the_guards_behind_which_a_mistake_stands() {
    let ours = Site::new("");
    ours.want(&["edge"], 80);
    ours.sync().exits(0);
    let theirs = ours.copied();
    let held = theirs.run(&["plan"]).exits(3).says("held by guard other-installation");
    assert_eq!(tokens(&held), [""; 0]);
    let inventory = ours.inventory();
    ours.forge(&gatewright_engine::inventory::Inventory { cluster: "another".to_owned(), ..inventory });
    let held = ours.sync().exits(3).says("held by guard cluster-identity").says("check the kubeconfig");
    assert_eq!(tokens(&held), [""; 0]);
    ours.run(&["approve"]).exits(0).says("nothing waits for approval");
}
