//! Objects that are deleted only after something else is healthy, and those that are in nobody's way.

use serde_json::{Value, json};

use crate::ownership::site::Site;
use crate::rounds::installation::gateway;

/// Without controllers a Deployment is what somebody says that it is.
fn is_healthy(site: &Site, name: &str) {
    let generation = site.get(&format!("deployment/{name}"))["metadata"]["generation"].clone();
    let conditions = json!([{"type": "Available", "status": "True"}]);
    let status = json!({"status": {
        "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1, "conditions": conditions,
    }});
    let patch = status.to_string();
    site.kubectl(&["patch", "deployment", name, "--subresource=status", "--type=merge", "-p", &patch]);
}

fn refusal(site: &Site, new: &str) -> String {
    format!("not deleted before Gateway {}/{new} is as it should be", site.name)
}

#[test]
fn what_is_replaced_stays_until_its_replacement_is_healthy() {
    let site = Site::new("wait: {timeout: 1s}");
    site.spec("edge", &gateway(&site.name, "old", 80));
    site.sync().exits(1).says("4 objects created");
    is_healthy(&site, "old");
    site.sync().exits(0);

    // Another name in the same file; the timeout of one round is not the end of it.
    site.spec("edge", &gateway(&site.name, "new", 80));
    site.sync().exits(1).says("4 objects created").says(&refusal(&site, "new"));
    site.sync().exits(1).says(&refusal(&site, "new"));
    assert_eq!((site.left_of("old").len(), site.inventory().entries.len()), (4, 8));
    is_healthy(&site, "new");
    site.sync().exits(0).says("4 objects deleted");
    assert_eq!(site.left_of("old"), [""; 0]);
}

#[test]
fn a_sick_bystander_blocks_nobody() {
    let site = Site::new("wait: {timeout: 1s}");
    site.want(&["sick", "gone", "fine"], 80);
    site.sync().exits(1).says("12 objects created");
    is_healthy(&site, "gone");
    is_healthy(&site, "fine");
    site.drop(&["gone"]);
    site.sync().exits(1).says("4 objects deleted").says("sick");

    // A change of this round in the same namespace may be what replaces it.
    site.want(&["new"], 80);
    site.drop(&["fine"]);
    site.sync().exits(1).says(&refusal(&site, "new"));
    assert_eq!(site.left_of("fine").len(), 4);
    let units: Value = serde_json::from_str(&site.run(&["plan", "--format", "json"]).out).expect("it is JSON");
    assert_eq!(units["clusters"]["c"]["holds"], json!([]));
}
