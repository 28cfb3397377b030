//! Two who set one value, on a real API server.

use super::{applied, apply, configure, decided, deployment, is_decided, live, replicas};
use crate::ownership::site::Site;
use serde_json::json;

const TAKES: &str = "conflicts: [{manager: 'scaler', policy: take}]";

/// The other sets the value, and a round follows.
fn flip(site: &Site) -> crate::program::Run {
    apply(site, "scaler", &json!({"replicas": 9}));
    site.sync()
}

#[test]
fn a_fight_is_named_rests_and_is_forgotten() {
    let site = applied(TAKES, &deployment(Some(2), "1"));
    for _ in 0..2 {
        let run = flip(&site).exits(0).says("spec.replicas: 9 -> 2").says("1 object updated");
        assert!(!run.out.contains("Fighting"), "{}", run.out);
        assert_eq!(replicas(&site), 2);
    }
    apply(&site, "scaler", &json!({"replicas": 9}));
    assert!(decided(&site).contains(&("fighting".to_owned(), "spec.replicas".to_owned())));
    let line = "spec.replicas: Fighting with scaler, corrected 3 times in vain; left alone for 1 more round";
    site.sync().exits(0).says(line).says("1 object updated");
    assert_eq!(replicas(&site), 2);
    site.run(&["status"]).says("Fighting with scaler");

    // It rests for one round, in which everything else of the object is corrected as ever, then for two.
    let patch = json!({"metadata": {"labels": {"theirs": "1"}}}).to_string();
    site.kubectl(&["patch", "deployment", "edge", "--type=merge", "-p", &patch]);
    flip(&site).exits(0).says("corrected 3 times in vain; corrected again in the next round").says("labels.theirs");
    assert_eq!((replicas(&site), live(&site)["metadata"]["labels"].get("theirs")), (json!(9), None));
    flip(&site).exits(0).says("corrected 4 times in vain; left alone for 2 more rounds").says("1 object updated");
    assert_eq!(replicas(&site), 2);
    flip(&site).exits(0).says("left alone for 1 more round").says("no changes");
    flip(&site).exits(0).says("corrected again in the next round").says("no changes");
    assert_eq!(replicas(&site), 9);
    site.sync().exits(0).says("corrected 5 times in vain").says("1 object updated");

    // The other has given up.
    let run = is_decided(&site);
    assert!(!run.out.contains("Fighting"), "{}", run.out);
    let run = flip(&site).exits(0).says("spec.replicas: 9 -> 2");
    assert!(!run.out.contains("Fighting"), "{}", run.out);
    is_decided(&site);
}

#[test]
fn a_fight_that_is_forgotten_with_the_state_begins_again() {
    let site = applied(TAKES, &deployment(Some(2), "1"));
    for _ in 0..3 {
        flip(&site).exits(0);
    }
    std::fs::remove_dir_all(site.desk.path("state/fights")).expect("it was written");
    let run = flip(&site).exits(0).says("1 object updated");
    assert!(!run.out.contains("Fighting"), "{}", run.out);

    // Peace can also be made by a rule.
    configure(&site, "conflicts: [{manager: 'scaler', policy: yield}]");
    flip(&site).exits(0).says("no changes").says("spec.replicas: left to scaler; ours would be 2");
    is_decided(&site);
}

#[test]
fn an_object_that_somebody_deletes_again_and_again_is_left_alone_for_a_while() {
    let site = applied("specs: render", &deployment(Some(2), "1"));
    let remake = || {
        site.kubectl(&["delete", "deployment", "edge", "--wait=true"]);
        site.sync()
    };
    for _ in 0..2 {
        let run = remake().exits(0).says("1 object created");
        assert!(!run.out.contains("again and again"), "{}", run.out);
    }
    remake()
        .exits(0)
        .says("deleted again and again: 3 rounds have made it, with this one; then it is left alone for 1 round");
    remake().exits(1).says("deleted again and again: 3 rounds have made it");
    assert_eq!(site.left_of("edge").len(), 0, "it is left alone for a round");
    site.sync().exits(0).says("1 object created");
    // Who gives up is forgotten.
    is_decided(&site);
    for _ in 0..3 {
        remake().exits(0).says("1 object created");
    }
}
