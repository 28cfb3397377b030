//! The pages for those who come from something, walked through on a cluster as that leaves it behind.
//!
//! Flux, Argo CD and Helm are not here: what they have applied is made with their field managers and their marks, and so
//! are the objects by which they remember it.

use serde_json::{Value, json};

use super::{Block, Noted, blocks, section, walk};
use crate::cluster::ApiServer;
use crate::kgateway::road::provisioned;
use crate::kgateway::with_parameters;
use crate::ownership::site::Site;
use crate::program::Desk;
use crate::support::kgateway::{Controller, Identity, Release, identities};
use crate::terminal::Terminal;

const STEPS: &str = "## Step by step";

/// Kinds that take everything, in place of those of others.
const KINDS: [[&str; 6]; 3] = [
    ["", "gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute", "Namespaced"],
    ["", "kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "Kustomization", "Namespaced"],
    ["", "argoproj.io", "v1alpha1", "applications", "Application", "Namespaced"],
];

/// A tool that applies the manifests in the beginning.
struct Tool {
    /// The arguments of `kubectl` with which objects get there as this tool does it.
    apply: &'static [&'static str],
    /// Puts its marks on an object.
    mark: fn(&mut Value),
    /// The object by which it remembers what it has applied.
    record: fn() -> Value,
}

const FLUX: Tool = Tool {
    apply: &["apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"],
    mark: |object| {
        let prefix = "kustomize.toolkit.fluxcd.io";
        object["metadata"]["labels"][format!("{prefix}/name")] = "edges".into();
        object["metadata"]["labels"][format!("{prefix}/namespace")] = "flux-system".into();
    },
    record: || {
        let metadata = json!({"name": "edges", "namespace": "flux-system"});
        let spec = json!({"path": "./edges", "prune": true, "interval": "10m"});
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec})
    },
};

/// Without server-side apply, which is its default: what it has set then is an update.
const ARGO_CD: Tool = Tool {
    apply: &["apply", "--field-manager=argocd-controller"],
    mark: |object| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split('/').next().unwrap_or_default();
        let (kind, name) = (object["kind"].as_str().unwrap_or_default(), object["metadata"]["name"].as_str());
        let id = format!("edges:{group}/{kind}:infra/{}", name.unwrap_or_default());
        object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = id.into();
    },
    record: || {
        let finalizers = ["resources-finalizer.argocd.argoproj.io"];
        let metadata = json!({"name": "edges", "namespace": "argocd", "finalizers": finalizers});
        let spec = json!({"syncPolicy": {"automated": {"prune": true}}});
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec})
    },
};

const HELM: Tool = Tool {
    apply: &["create", "--field-manager=helm"],
    mark: |object| {
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = "edges".into();
        object["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = "infra".into();
    },
    record: || {
        let labels = json!({"owner": "helm", "name": "edges", "status": "deployed", "version": "1"});
        let metadata = json!({"name": "sh.helm.release.v1.edges.v1", "namespace": "infra", "labels": labels});
        json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": metadata})
    },
};

/// The route, on one line where the pages change it.
fn route() -> Value {
    let rules = json!([{"backendRefs": [{"name": "shop", "port": 8080}]}]);
    let spec = json!({"parentRefs": [{"name": "edge"}], "hostnames": ["shop.example.com"], "rules": rules});
    let metadata = json!({"name": "shop", "namespace": "infra"});
    json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata, "spec": spec})
}

const ROUTE: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: infra}
spec:
  parentRefs: [{name: edge}]
  hostnames: [shop.example.com]
  rules: [{backendRefs: [{name: shop, port: 8080}]}]
";

/// Makes the cluster with which a page begins, and the folder of manifests.
fn applied_by(tool: &Tool) -> (Site, Controller) {
    let (server, guard) = ApiServer::for_one_test();
    server.install_gateway_api();
    server.install_deployers();
    for kind in KINDS {
        server.install_kind(kind);
    }
    for namespace in ["infra", "flux-system", "argocd"] {
        server.kubectl_ok(&["create", "namespace", namespace]);
    }
    let site = Site { desk: Desk::empty("gatewright.yaml"), name: "infra".to_owned(), server, _guard: Some(guard) };
    let [own, gateway] = with_parameters(&site, "edge", &json!({"kube": {"deployment": {"replicas": 2}}}));
    for (file, object) in [("parameters", &own), ("edge", &gateway)] {
        site.spec(file, &object.to_string());
    }
    site.spec("route", ROUTE);
    for mut object in [own, gateway, route()] {
        (tool.mark)(&mut object);
        let arguments = [&["-n", "infra"], tool.apply, &["--validate=false", "-f", "-"]].concat();
        server.kubectl_stdin(&arguments, &object.to_string());
    }
    server.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &(tool.record)().to_string());
    let controller = Controller::start(server, Release::kgateway("v2.4.0"), &["infra"]);
    controller.settle();
    site.kubectl(&["rollout", "status", "deployment/edge", "--timeout=60s"]);
    controller.settle();
    (site, controller)
}

/// Follows a page to its last step, and asserts what it promises of the objects.
fn follow(tool: &Tool, page: &str) {
    let (site, controller) = applied_by(tool);
    let terminal = Terminal::new(&site.desk, &site.server.kubeconfig("admin"));
    // Helm's Secret goes, as the page says.
    let objects = || identities(site.server, "infra").into_iter().filter(|(name, _)| !name.starts_with("Secret/"));
    let before: Vec<(String, Identity)> = objects().collect();
    let uid = |kind: &str| site.get(kind)["metadata"]["uid"].clone();
    let uids = ["gateway/edge", "httproute/shop"].map(uid);
    let number = walk(&terminal, &mut Noted::default(), section(page, STEPS), |command, _| {
        controller.settle();
        assert_eq!(objects().collect::<Vec<_>>(), before, "{command}");
    });
    assert!(number >= 8, "{page} has {number} commands");
    assert_eq!(["gateway/edge", "httproute/shop"].map(uid), uids, "no object is another one");
    assert_eq!(controller.deletions(), []);
    let port = |site: &Site| site.get("httproute/shop")["spec"]["rules"][0]["backendRefs"][0]["port"].clone();
    assert_eq!(port(&site), 9090);
    assert_eq!(
        site.get("gateway/edge")["spec"]["infrastructure"]["parametersRef"]["name"],
        "edge-self-managed",
        "a field that the tool had set is ours"
    );

    // A field that the tool had set, and that the source does not say any more, goes.
    terminal.ok("sed -i '/hostnames/d' specs/route.yaml && gatewright sync");
    assert!(site.get("httproute/shop")["spec"].get("hostnames").is_none(), "{}", site.get("httproute/shop"));
    // What leaves the source leaves the cluster, once the tool has let go of it.
    terminal.ok("rm specs/route.yaml && gatewright sync");
    assert_eq!(site.kubectl(&["get", "httproutes", "-o", "name"]), "");

    // On the way back the marks of the tool are enough.
    let mut gateway = site.get("gateway/edge");
    gateway["metadata"] = json!({"name": "edge", "namespace": "infra"});
    (tool.mark)(&mut gateway);
    let text = gateway.to_string();
    let back = ["-n", "infra", "apply", "--server-side", "--force-conflicts", "--field-manager=back", "-f", "-"];
    site.server.kubectl_stdin(&back, &text);
    terminal.run("gatewright sync").exits(3).says("Gateway infra/edge: foreign: it belongs to ");
}

#[test]
fn who_comes_from_flux_loses_nothing() {
    follow(&FLUX, "docs/from-flux.md");
}

#[test]
fn who_comes_from_argo_cd_loses_nothing() {
    follow(&ARGO_CD, "docs/from-argocd.md");
}

#[test]
fn who_comes_from_helm_loses_nothing() {
    follow(&HELM, "docs/from-helm.md");
}

#[test]
fn who_comes_from_kgateway_can_go_back() {
    let (site, controller) = provisioned();
    let desk = Desk::empty("unused.yaml");
    let terminal = Terminal::new(&desk, &site.server.kubeconfig("admin"));
    let before = identities(site.server, "infra");
    let page: Vec<Block> = blocks("docs/from-kgateway.md");
    let number = walk(&terminal, &mut Noted::default(), page, |command, _| {
        controller.settle();
        assert_eq!(identities(site.server, "infra"), before, "{command}");
    });
    assert!(number >= 9, "the page has {number} commands");
    assert_eq!(controller.deletions(), []);
    let name = |gateway: &str| {
        let gateway = site.get(&format!("gateway/{gateway}"));
        gateway["spec"]["infrastructure"]["parametersRef"]["name"].clone()
    };
    assert_eq!((name("shop"), name("edge")), ("shop".into(), "edge-self-managed".into()), "one went back, one stayed");
}
