//! Somebody who changes an object between the two requests of one step.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{deployment, live, managers};
use crate::cluster::proxy::{Answer, Seen};
use crate::faults::Place;

/// An apply that is no dry run; what is said of owners before it is a patch without force.
fn is_apply(seen: &Seen) -> bool {
    seen.is_write() && seen.is("PATCH", "/deployments/edge") && seen.path.contains("force=true")
}

#[test]
fn a_step_that_is_overtaken_between_its_requests_is_planned_again() {
    let place = Place::new("unclaimed: apply");
    let mut object = deployment(Some(2), "1");
    object["metadata"]["namespace"] = place.site.name.clone().into();
    place.site.spec("edge", &object.to_string());
    place.sync().exits(0).says("1 object created");

    let patch = json!({"spec": {"template": {"spec": {"hostNetwork": true}}}}).to_string();
    place.site.kubectl(&["patch", "deployment", "edge", "--type=merge", "-p", &patch]);
    let (server, namespace) = (place.site.server, place.site.name.clone());
    let meddle = move || {
        let arguments = ["annotate", "deployment", "edge", "meddled=1", "--field-manager=some-controller"];
        server.kubectl_ok(&[&["-n", namespace.as_str()], arguments.as_slice()].concat());
    };
    place.proxy.recovers();
    place.proxy.answer(1, is_apply, Answer::After(Arc::new(meddle)));
    let run = place.run(&["sync", "--format", "json"]).exits(0);
    let report: Value = serde_json::from_str(&run.out).expect("it is JSON");
    let (cluster, step) = (&report["clusters"]["c"], &report["clusters"]["c"]["steps"][0]);
    assert_eq!((&cluster["state"], &step["action"]), (&json!("done"), &json!("update")), "{report}");
    assert_eq!(step["outcome"]["result"], "done", "{report}");
    let name = |seen: &Seen| match (is_apply(seen), seen.code) {
        (true, Some(200)) => "apply",
        (true, Some(409)) => "refused",
        (false, Some(200)) => "patch",
        _ => "something else",
    };
    let seen = place.proxy.seen();
    let writes: Vec<&str> =
        seen.iter().filter(|seen| seen.is_write() && seen.path.contains("/deployments/")).map(name).collect();
    assert_eq!(writes, ["patch", "refused", "apply"], "what was said of owners the first time holds");

    let now = live(&place.site);
    assert_eq!(now["spec"]["template"]["spec"].get("hostNetwork"), None);
    assert_eq!(now["metadata"]["annotations"]["meddled"], "1");
    assert_eq!(managers(&now), ["gatewright Apply", "some-controller Update"]);
    place.run(&["plan"]).exits(0).says("no changes, 1 object up to date");
}
