//! Values of a cluster in overlays: one overlay, and another address on each of many clusters.

use gatewright_engine::yaml;
use serde_json::Value;

use crate::errors::{desk, gateway};
use crate::program::Desk;

const CLUSTERS: usize = 40;

/// Forty clusters, and an overlay that gives the Gateway of each an address from a table, a registry from an annotation
/// and a label with its name.
fn fleet() -> Desk {
    let name = |number: usize| format!("c-{number:02}");
    let entry = |number: usize| {
        let region = if number < 20 { "eu" } else { "us" };
        let annotations = format!("annotations: {{mirror: {region}.example.com}}");
        format!("{{directory: {{path: out/{}}}, labels: {{region: {region}}}, {annotations}}}", name(number))
    };
    let clusters: Vec<(String, String)> = (0..CLUSTERS).map(|number| (name(number), entry(number))).collect();
    let clusters: Vec<(&str, String)> = clusters.iter().map(|(name, entry)| (name.as_str(), entry.clone())).collect();
    let desk = desk("gateways", &clusters);
    desk.write("specs/edge.yaml", &gateway("infra", "edge", 8080));
    desk.write("specs/inner.yaml", &gateway("infra", "inner", 8080));
    let rows = (0..CLUSTERS)
        .map(|number| format!("{}: {{ip: 192.0.2.{number}, replicas: {}}}\n", name(number), 1 + number % 3));
    desk.write("specs/addresses.yaml", &rows.collect::<String>());
    desk.write("specs/overlay.yaml", OVERLAY);
    desk
}

const OVERLAY: &str = r#"apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: addresses}
spec:
  values: {file: addresses.yaml}
  target:
    gateways: [{name: edge}]
  parameters:
    kube:
      deployment: {replicas: "{{ values.replicas }}"}
      envoyContainer:
        image: {registry: "{{ cluster.annotations.mirror }}/proxies"}
  specPatches:
  - patch:
      spec:
        addresses: [{type: IPAddress, value: "{{ values.ip }}"}]
  objectPatches:
  - target: {kind: Service}
    patch:
      metadata:
        annotations: {example.com/pool: "{{ cluster.labels.region }}-{{ cluster.name }}"}
"#;

fn object(desk: &Desk, cluster: &str, file: &str) -> Value {
    let text = desk.read(&format!("out/{cluster}/infra/{file}-edge.yaml"));
    yaml::parse_values(&text).expect("what is written can be read").remove(0)
}

#[test]
fn one_overlay_gives_each_of_forty_clusters_an_address() {
    let desk = fleet();
    desk.run(&["check", "specs"]).exits(0);
    desk.run(&["sync"]).exits(0);
    for number in [0, 7, 39] {
        let cluster = format!("c-{number:02}");
        let (service, deployment) = (object(&desk, &cluster, "service"), object(&desk, &cluster, "deployment"));
        let region = if number < 20 { "eu" } else { "us" };
        assert_eq!(service["spec"]["loadBalancerIP"], format!("192.0.2.{number}"), "{service}");
        assert_eq!(service["metadata"]["annotations"]["example.com/pool"], format!("{region}-{cluster}"));
        assert_eq!(deployment["spec"]["replicas"], 1 + number % 3);
        let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().expect("it has one");
        assert!(image.starts_with(&format!("{region}.example.com/proxies/")), "{image}");
    }
    desk.run(&["plan", "--detailed-exitcode"]).exits(0);

    // Another address in the table changes its cluster and no other.
    desk.replace("specs/addresses.yaml", "ip: 192.0.2.7,", "ip: 203.0.113.7,");
    let run = desk.run(&["plan"]).exits(0).says("spec.loadBalancerIP: \"192.0.2.7\" -> \"203.0.113.7\"");
    assert_eq!(run.out.matches("spec.loadBalancerIP").count(), 1, "{}", run.out);
}

#[test]
fn a_value_that_a_cluster_lacks_holds_what_it_feeds_there() {
    let desk = fleet();
    desk.run(&["sync"]).exits(0);
    desk.replace("specs/addresses.yaml", "c-07: {ip: 192.0.2.7, ", "c-07: {");
    desk.replace("specs/addresses.yaml", "c-08:", "c-80:");
    desk.replace("specs/edge.yaml", "8080", "9090");
    desk.replace("specs/inner.yaml", "8080", "9090");
    let run = desk.run(&["sync"]).exits(1);
    let said = "overlay.yaml:16: ClusterOverlay addresses: {{ values.ip }} has no value: ";
    let run = run.says(&format!("{said}the row of the cluster at addresses.yaml:8 has no \"ip\"; on cluster c-07\n"));
    run.says(&format!("{said}addresses.yaml has no row for the cluster; on cluster c-08\n"));
    let port = |cluster: &str, gateway: &str| {
        desk.read(&format!("out/{cluster}/infra/service-{gateway}.yaml")).contains("port: 9090")
    };
    assert_eq!(["c-06", "c-07", "c-08"].map(|cluster| port(cluster, "edge")), [true, false, false]);
    assert_eq!(["c-06", "c-07", "c-08"].map(|cluster| port(cluster, "inner")), [true; 3], "it takes no value");
    assert_eq!(object(&desk, "c-07", "service")["spec"]["loadBalancerIP"], "192.0.2.7");
    let run = desk.run(&["check", "specs"]).exits(1).complains("has no \"ip\"; on cluster c-07\n");
    run.complains("as its table has rows for: c-80");
}

#[test]
fn a_table_that_is_broken_or_gone_holds_what_it_fed() {
    let desk = fleet();
    desk.run(&["sync"]).exits(0);
    desk.replace("specs/edge.yaml", "8080", "9090");
    let table = desk.read("specs/addresses.yaml");
    let fed = || object(&desk, "c-07", "service")["spec"]["loadBalancerIP"].clone();
    desk.write("specs/addresses.yaml", "c-01: {ip: ");
    desk.run(&["sync"]).exits(1).says("addresses.yaml:");
    assert_eq!(fed(), "192.0.2.7");
    std::fs::remove_file(desk.path("specs/addresses.yaml")).expect("it is there");
    desk.run(&["sync"])
        .exits(1)
        .says("overlay.yaml:5: ClusterOverlay addresses: there is no file addresses.yaml in the source");
    assert_eq!(fed(), "192.0.2.7");
    desk.write("specs/addresses.yaml", &table);
    desk.run(&["sync"]).exits(0);
    assert!(desk.read("out/c-07/infra/service-edge.yaml").contains("port: 9090"));
}

#[test]
fn explain_names_the_line_of_the_overlay_and_that_of_the_value() {
    let desk = fleet();
    let explain = |object: &str, field: &str| {
        desk.run(&["explain", object, field, "--sync", "gateways", "--cluster", "c-07"]).exits(0)
    };
    explain("Deployment/infra/edge", "spec.replicas")
        .says("kube.deployment.replicas: 2 (overlay, overlay.yaml:10, values.replicas at addresses.yaml:8)\n");
    explain("Service/infra/edge", "spec.loadBalancerIP").says("overlay.yaml:16, values.ip at addresses.yaml:8)\n");
    let config = desk.read("gatewright.yaml");
    let line = 1 + config.lines().position(|line| line.contains("c-07: ")).expect("it is there");
    let at = format!("{}:{line}", desk.path("gatewright.yaml").display());
    let pool = "metadata.annotations[example.com/pool]";
    explain("Service/infra/edge", pool)
        .says(&format!("(overlay, overlay.yaml:21, cluster.labels.region at {at}, cluster.name at {at})\n"));
    let mirror = format!("(overlay, overlay.yaml:12, cluster.annotations.mirror at {at})");
    explain("Gateway/infra/edge", "kube.envoyContainer.image.registry").says(&mirror);
}

#[test]
fn commands_without_sync_know_values_too() {
    let desk = fleet();
    let run = desk.run(&["render", "specs", "--cluster", "c-07"]).exits(0);
    let run = run.says("loadBalancerIP: \"192.0.2.7\"\n").says("example.com/pool: eu-c-07\n");
    assert!(!run.out.contains("{{"), "{}", run.out);
    let run = desk.run(&["render", "specs"]).exits(0);
    assert!(!run.out.contains("loadBalancerIP") && !run.out.contains("{{"), "{}", run.out);
    desk.run(&["render", "specs", "--cluster", "c-07", "--values"]).exits(0).says("replicas: 2\n");
}
