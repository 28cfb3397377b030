//! Defaults of kgateway's Gateways.

use gatewright_engine::check::check;
use gatewright_engine::defaults::defaults;
use gatewright_engine::merge::origin::LayerName;
use gatewright_engine::pack::Pack;
use gatewright_engine::schema::Schema;
use gatewright_engine::yaml::{self, Node};
use serde_json::{Value, json};

use crate::kgateway::parameters::GatewayParameters;

fn pack(settings: &Value) -> Pack {
    let pack = crate::pack("kgateway", settings).expect("the built-in pack can be used");
    match settings.get("parameters") {
        Some(parameters) => pack.with_settings("config.yaml", Node::of_value(parameters)),
        None => pack,
    }
}

#[test]
fn defaults_are_a_document_that_can_be_used() {
    for class in ["kgateway", "kgateway-waypoint"] {
        let found = defaults(&pack(&Value::Null), class);
        let schema = Schema::of::<GatewayParameters>().expect("the schema is sound");
        assert_eq!(check(&Node::of_value(&found.document), &schema), [], "{class}");
        assert_eq!(yaml::parse_values(&yaml::to_string(&found.document)), Ok(vec![found.document]));
    }
}

#[test]
fn a_waypoint_has_others() {
    let kind = |class: &str| defaults(&pack(&Value::Null), class).document["spec"]["kube"]["service"]["type"].clone();
    assert_eq!((kind("kgateway"), kind("kgateway-waypoint")), (json!("LoadBalancer"), json!("ClusterIP")));
}

#[test]
fn settings_of_the_pack_count_and_say_so() {
    let settings = json!({"image": {"tag": "v9"}, "parameters": {"kube": {"deployment": {"replicas": 3}}}});
    let found = defaults(&pack(&settings), "kgateway");
    let kube = &found.document["spec"]["kube"];
    assert_eq!((&kube["deployment"]["replicas"], &kube["envoyContainer"]["image"]["tag"]), (&json!(3), &json!("v9")));
    let set: Vec<&str> = found
        .origins
        .iter()
        .filter(|(_, origin)| origin.layer == LayerName::Settings)
        .map(|(path, _)| path.as_str())
        .collect();
    assert!(set.contains(&"kube.deployment.replicas") && set.contains(&"kube.envoyContainer.image.tag"), "{set:?}");
    assert_eq!(found.appended, ["kube.envoyContainer.securityContext.capabilities.drop"]);
}
