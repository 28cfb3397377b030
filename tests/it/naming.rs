//! Names and forms on the command line, as people know them from kubectl: short kinds, and `-o json` or `-o yaml`.

use gatewright_engine::yaml;
use serde_json::Value;

use crate::program::{Desk, Run};

fn json(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).expect("each line is a document")).collect()
}

#[test]
fn a_unit_is_named_as_kubectl_takes_it() {
    let desk = Desk::quickstart("gatewright.yaml");
    for name in ["Gateway/shop/storefront", "gtw/shop/storefront", "GATEWAYS/shop/storefront"] {
        let plan = desk.run(&["plan", "-o", "json", "--only", name]).exits(0);
        let steps = &json(&plan)[0]["clusters"]["rendered"]["steps"];
        let units = steps.as_array().expect("it is a list").iter().map(|step| &step["unit"]);
        let gateways: Vec<&Value> = units.filter(|unit| unit["kind"] == "Gateway").collect();
        assert_eq!(gateways.len(), 4, "{name}: {}", plan.out);
        assert!(gateways.iter().all(|unit| unit["name"] == "storefront"), "{name}: {}", plan.out);
    }
    // What kubectl would not take as this Gateway is not taken here, and nothing is done.
    for name in
        ["gw/shop/storefront", "gtw/storefront", "gateway.networking.istio.io/shop/storefront", "svc/shop/storefront"]
    {
        let message = format!("{name} is in no source of these syncs\n  ");
        desk.run(&["sync", "--only", name]).exits(64).complains(&message).complains("Gateway/shop/storefront");
    }
    assert!(!desk.path("rendered").exists(), "nothing was applied");
    desk.run(&["sync", "--only", "gateways.gateway.networking.k8s.io/shop/storefront"]).exits(0);
    assert!(desk.path("rendered/shop").exists() && !desk.path("rendered/infra").exists());
}

#[test]
fn objects_are_named_as_kubectl_takes_them() {
    let desk = Desk::quickstart("gatewright.yaml");
    let explain = |name: &str| desk.run(&["explain", name, "-f", "specs"]);
    let said = explain("Deployment/shop/storefront").exits(0).out;
    for name in ["deploy/shop/storefront", "deployments/shop/storefront", "deployment.apps/shop/storefront"] {
        assert_eq!(explain(name).exits(0).out, said, "{name}");
    }
    let of_gateway = explain("Gateway/shop/storefront").exits(0).out;
    assert_eq!(explain("gtw/shop/storefront").exits(0).out, of_gateway);
    explain("dep/shop/storefront").exits(64).complains("\"dep/shop/storefront\" is not rendered from these specs");
}

/// A saved plan goes on being about its unit, however that was named.
#[test]
fn a_saved_plan_knows_a_unit_by_its_short_name() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["plan", "--only", "gtw/shop/storefront", "--out", "plan.json"]).exits(0);
    desk.run(&["apply", "plan.json"]).exits(0);
    assert!(desk.path("rendered/shop").exists() && !desk.path("rendered/infra").exists());
}

#[test]
fn yaml_says_what_json_says() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    desk.replace("specs/shop/storefront.yaml", "replicas: 4", "replicas: 5");
    for arguments in [
        &["plan"][..],
        &["status"],
        &["clusters", "--offline"],
        &["tree"],
        &["history"],
        &["inventory", "show"],
        &["orphans"],
        &["events"],
        &["report", "list"],
        &["report", "show"],
        &["explain", "deploy/shop/storefront", "spec.replicas", "-f", "specs"],
        &["check", "specs"],
    ] {
        let run = |form: &[&str]| desk.run(&[arguments, form].concat()).exits(0);
        let mut expected = json(&run(&["-o", "json"]));
        assert_eq!(json(&run(&["--format=json"])).len(), expected.len(), "{arguments:?}");
        let yaml = run(&["--output", "yaml"]);
        assert!(yaml.out.starts_with("---\n"), "{arguments:?}: {}", yaml.out);
        let mut found = yaml::parse_values(&yaml.out).expect("it is YAML");
        // Two plans are made at two times.
        for document in expected.iter_mut().chain(&mut found) {
            for place in ["", "/clusters/rendered/trend"] {
                let Some(at) = document.pointer_mut(place).and_then(Value::as_object_mut) else { continue };
                at.retain(|field, _| !["started", "finished", "time"].contains(&field.as_str()));
            }
        }
        assert_eq!(found, expected, "{arguments:?}");
    }
}
