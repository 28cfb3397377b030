//! Texts that would be equal amounts, where nobody means amounts.

use serde_json::{Value, json};

use super::{applied, configure, deployment, is_decided, live, want};
use crate::ownership::site::Site;

/// A Deployment with a text in a label, an annotation and a variable, and so much of a processor.
fn saying(text: &str, cpu: &str) -> Value {
    let mut body = deployment(Some(2), cpu);
    body["metadata"]["labels"] = json!({"version": text});
    body["metadata"]["annotations"] = json!({"example.com/version": text});
    body["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = json!(text);
    body
}

fn set(site: &Site, version: &str) {
    let patch = json!({"metadata": {"labels": {"version": version}}}).to_string();
    site.kubectl(&["patch", "deployment", "edge", "--type=merge", "-p", &patch, "--field-manager=some-controller"]);
}

#[test]
fn a_label_that_reads_as_an_equal_amount_is_left_to_who_has_set_it() {
    let site = applied("", &saying("1.10", "1000m"));
    set(&site, "1.1");
    is_decided(&site).says("metadata.labels.version: left to some-controller; ours would be \"1.10\"");
    assert_eq!(live(&site)["metadata"]["labels"]["version"], "1.1");

    configure(&site, "conflicts: [{manager: some-controller, policy: fail}]");
    site.sync().exits(3).says("\"some-controller\" has set metadata.labels.version to \"1.1\", ours would be \"1.10\"");
    assert_eq!(live(&site)["metadata"]["labels"]["version"], "1.1");
}

#[test]
fn a_read_only_report_shows_texts_that_read_as_equal_amounts() {
    let site = Site::new("");
    let binding =
        ["create", "clusterrolebinding", &site.name, "--clusterrole=system:aggregate-to-view", "--user=viewer"];
    site.server.kubectl_ok(&binding);
    configure(&site, "mode: report");
    site.create(&saying("0e99999", "1"));
    want(&site, &saying("0e12345", "1000m"));
    let run = site.desk.run_with(&site.server.kubeconfig("viewer"), &["plan"]).exits(0).says("1 object different");
    let shown = ["labels.version", "annotations[\"example.com/version\"]", "containers[envoy].env[A].value"];
    let run = shown.iter().fold(run, |run, place| run.says(&format!("{place}: \"0e99999\" -> \"0e12345\"")));
    assert!(!run.out.contains("cpu"), "an amount may be written in another way: {}", run.out);
}
