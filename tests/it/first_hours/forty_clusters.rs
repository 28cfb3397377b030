//! An engineer with forty clusters and kgateway: from the first import to a fleet, a bad change that stops at the first
//! cluster, and the way back.
//!
//! One cluster is an API server on which a stand-in for kgateway deploys; the others are directories.
//! `trial.rs` has what goes wrong later, with servers that freeze and processes that are killed.

use std::fs;

use serde_json::json;

use crate::kgateway::road::provisioned;
use crate::program::Desk;
use crate::support::kgateway::identities;
use crate::terminal::Terminal;

/// The clusters beside the one with an API server.
const EDGES: usize = 39;

/// The config file of the fleet, in place of the one that the import has written.
const FLEET: &str = r#"
stateDir: ./state
sources: {specs: {directory: {path: ./specs}}}
clusterFolders: [./clusters.d]
packs: {kgateway: {"image":{"tag":"v2.3.2"},"managedBy":"kgateway","version":"v2.3.2"}}
syncs:
  gateways:
    moved: [{from: eu-1}]
    source: specs
    clusters: {matchExpressions: [{key: region, operator: Exists}]}
    createNamespaces: true
    specs: apply
    wait: {timeout: 1m}
"#;

/// A load balancer knows from where it is used.
const OVERLAY: &str = r#"
apiVersion: gatewright.dev/v1alpha1
kind: ClusterOverlay
metadata: {name: regions}
spec: {parameters: {kube: {service: {extraAnnotations: {example.com/region: "{{ cluster.labels.region }}"}}}}}
"#;

/// Parameters of the Gateway `shop` with something about its pods.
fn parameters(pods: &str) -> String {
    format!(
        "apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {{name: shop, namespace: infra}}\n\
         spec: {{kube: {{podTemplate: {{{pods}}}}}}}\n"
    )
}

const PARAMETERS: &str = "fleet/specs/infra/gatewayparameters-shop.yaml";

/// The number of edges whose Deployment `shop` has a text.
fn edges_with(desk: &Desk, text: &str) -> usize {
    let file = |number: usize| format!("fleet/rendered/edge-{number:02}/infra/deployment-shop.yaml");
    (1..=EDGES).filter(|number| desk.read(&file(*number)).contains(text)).count()
}

#[test]
fn an_engineer_with_forty_clusters_and_kgateway() {
    let (site, controller) = provisioned();
    let (server, desk) = (site.server, Desk::empty("unused.yaml"));
    let terminal = Terminal::new(&desk, &server.kubeconfig("admin"));
    let before = identities(server, "infra");

    // The first cluster becomes a repository, and nothing there moves.
    let import = terminal.ok("gatewright import fleet --name eu-1");
    let import = import.says("Gateway (2)").says("report: no differences");
    import.says("gatewright plan --config fleet/gatewright.yaml");
    terminal.ok("gatewright check fleet/specs");
    terminal.ok("sed -i 's/mode: report/specs: apply/' fleet/gatewright.yaml");
    terminal.ok("gatewright plan --adopt --config fleet/gatewright.yaml").says("& adopt Deployment infra/shop");
    terminal.ok("gatewright adopt --yes --config fleet/gatewright.yaml").says("13 objects adopted");
    controller.settle();
    assert_eq!(identities(server, "infra"), before, "no object is another one, and no pod restarted");
    assert_eq!(controller.deletions(), []);
    terminal.ok("gatewright sync --config fleet/gatewright.yaml").says("no changes");

    becomes_a_fleet(&terminal, &desk);
    controller.settle();
    assert_eq!(identities(server, "infra").keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());

    // A bad change stops at the first cluster.
    terminal.write(PARAMETERS, &parameters("nodeSelector: {no: such-node}"));
    let plan = terminal.ok("cd fleet && gatewright plan");
    plan.says("first on cluster eu-1, on the others once it is healthy there");
    terminal.ok("sed -i 's/timeout: 1m/timeout: 10s/' fleet/gatewright.yaml");
    let sync = terminal.run("cd fleet && gatewright sync").exits(1);
    let sync = sync.says("held by guard rollout-halted").says("on 39 of 40 clusters (all but eu-1)");
    sync.says("node(s) didn't match");
    assert_eq!(edges_with(&desk, "such-node"), 0);
    terminal.ok("cd fleet && gatewright rollout status").says("not healthy on cluster eu-1");

    // The way back is one command; the source is corrected afterwards.
    terminal.ok("sed -i 's/timeout: 10s/timeout: 1m/' fleet/gatewright.yaml");
    terminal.ok("cd fleet && gatewright rollback gateways").complains("gatewright resume gateways");
    let selector = ["-n", "infra", "get", "deployment", "shop", "-o", "jsonpath={.spec.template.spec.nodeSelector}"];
    assert_eq!(server.kubectl_ok(&selector), "");
    terminal.run("cd fleet && gatewright sync").exits(3).complains("suspended");
    terminal.write(PARAMETERS, &parameters("extraAnnotations: {example.com/edition: second}"));
    terminal.ok("cd fleet && gatewright resume gateways && gatewright sync");
    assert_eq!(edges_with(&desk, "edition: second"), EDGES);
    terminal.ok("cd fleet && gatewright sync").says("no changes");
    let status = terminal.ok("cd fleet && gatewright status").says("on all 40 clusters");
    assert!(status.out.lines().count() < 20, "{}", status.out);
    assert_eq!(controller.deletions(), []);
}

/// Thirty-nine clusters come to the first one, by a folder of files, with an overlay for what differs.
fn becomes_a_fleet(terminal: &Terminal<'_>, desk: &Desk) {
    terminal.ok("mkdir fleet/clusters.d && cp \"$KUBECONFIG\" fleet/clusters.d/eu-1.yaml");
    terminal.write("fleet/clusters.d/eu-1.labels.yaml", "region: eu\n");
    for number in 1..=EDGES {
        let directory = json!({"path": format!("../rendered/edge-{number:02}")});
        terminal.write(&format!("fleet/clusters.d/edge-{number:02}.directory.yaml"), &format!("{directory}\n"));
        let region = if number % 2 == 0 { "eu" } else { "us" };
        terminal.write(&format!("fleet/clusters.d/edge-{number:02}.labels.yaml"), &format!("region: {region}\n"));
    }
    terminal.write("fleet/gatewright.yaml", FLEET);
    terminal.write("fleet/specs/regions.yaml", OVERLAY);
    let listed = terminal.ok("cd fleet && gatewright config check && gatewright clusters");
    assert_eq!(listed.out.lines().filter(|line| line.starts_with("edge-")).count(), EDGES, "{}", listed.out);
    terminal.ok("cd fleet && gatewright plan").says("on 40 of 40 clusters");
    terminal.ok("cd fleet && gatewright sync");
    let service = desk.read("fleet/rendered/edge-07/infra/service-shop.yaml");
    assert!(service.contains("example.com/region: us"), "{service}");
    let written = fs::read_dir(desk.path("fleet/rendered/edge-39/infra")).expect("it is written").count();
    assert_eq!(written, 15, "all that the first cluster has");
    terminal.ok("cd fleet && gatewright sync").says("no changes");
}
