//! The line that a plan names for a difference is one that `explain` names, and the one that accounts for it.

use serde_json::Value;

use crate::errors::{desk, folder, gateway};
use crate::program::Desk;

const IMAGE: &str = "spec.template.spec.containers[kgateway-proxy].image";

/// The places where, by the plan, an image is asked for, one for each Deployment.
fn planned(desk: &Desk) -> Vec<String> {
    let report: Value =
        serde_json::from_str(&desk.run(&["plan", "--format", "json"]).exits(0).out).expect("it is JSON");
    let steps = report["clusters"]["only"]["steps"].as_array().expect("a report has steps");
    let differences = steps.iter().filter_map(|step| step["differences"].as_array()).flatten();
    let images = differences.filter(|difference| difference["path"] == IMAGE);
    images.map(|it| format!("{}:{}", it["place"]["file"].as_str().unwrap_or_default(), it["place"]["line"])).collect()
}

/// Every place that has a say in the image, by what it says.
fn explained(desk: &Desk) -> Vec<(String, String)> {
    let arguments =
        ["explain", "Deployment/shop/a", IMAGE, "--sync", "gateways", "--cluster", "only", "--format", "json"];
    let found: Value = serde_json::from_str(&desk.run(&arguments).exits(0).out).expect("it is JSON");
    let causes = found["leaves"][0]["causes"].as_array().expect("a field has causes");
    let place =
        |cause: &Value| format!("{}:{}", cause["place"]["file"].as_str().unwrap_or_default(), cause["place"]["line"]);
    causes.iter().map(|cause| (cause["value"].as_str().unwrap_or_default().to_owned(), place(cause))).collect()
}

#[test]
fn a_tag_that_an_overlay_sets_is_asked_for_there() {
    let desk = desk("gateways", &[("only", folder())]);
    for name in ["a", "b"] {
        desk.write(&format!("specs/{name}.yaml"), &gateway("shop", name, 8080));
    }
    desk.run(&["sync"]).exits(0);
    let overlay = |image: &str| {
        format!(
            "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: tag}}\nspec:\n  parameters:\n    \
             kube:\n      envoyContainer:\n        image:\n{image}"
        )
    };
    desk.write("specs/overlay.yaml", &overlay("          tag: v9.9.9\n"));
    assert_eq!(planned(&desk), ["overlay.yaml:9", "overlay.yaml:9"]);
    assert!(explained(&desk).contains(&("v9.9.9".to_owned(), "overlay.yaml:9".to_owned())), "{:?}", explained(&desk));
    desk.run(&["sync"]).exits(0);

    // Of two lines of one overlay that which has changed.
    desk.write("specs/overlay.yaml", &overlay("          registry: mirror.example.com\n          tag: v9.9.9\n"));
    assert_eq!(planned(&desk), ["overlay.yaml:9", "overlay.yaml:9"]);
    desk.run(&["sync"]).exits(0);
    desk.write("specs/overlay.yaml", &overlay("          registry: mirror.example.com\n          tag: v9.9.8\n"));
    assert_eq!(planned(&desk), ["overlay.yaml:10", "overlay.yaml:10"]);
}
