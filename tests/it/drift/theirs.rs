//! Gateways on a cluster that kgateway's own deployer has provisioned, as it does it: applied under its name, and owned
//! by their Gateway.

use std::fmt::Write as _;

use gatewright_engine::yaml;
use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::errors::{desk, kubeconfig};
use crate::program::Desk;

/// The name under which kgateway applies.
const MANAGER: &str = "kgateway.dev/kgateway";

/// The number of kubectl that apply at once: each waits between its requests.
const AT_ONCE: usize = 6;

/// The cluster, and what its Gateways are.
pub(crate) struct Theirs<'a> {
    server: &'a ApiServer,
    specs: String,
}

/// Returns Gateways `gw-0`, `gw-1` and so on, in namespace `shop`.
pub(crate) fn many(number: usize) -> String {
    let mut specs = String::new();
    for n in 0..number {
        let gateway = crate::errors::gateway("shop", &format!("gw-{n}"), 8080);
        let _ = writeln!(specs, "{gateway}---");
    }
    specs
}

impl<'a> Theirs<'a> {
    /// Provisions Gateways.
    pub(crate) fn new(server: &'a ApiServer, specs: &str) -> Self {
        server.kubectl_ok(&["create", "namespace", "shop"]);
        let theirs = Self { server, specs: specs.to_owned() };
        let desk = theirs.desk("admin");
        theirs.apply(&rendered(&desk));
        theirs
    }

    /// Makes objects of a Gateway that no source has.
    pub(crate) fn make(&self, name: &str, kinds: &[&str]) {
        let desk = self.desk("admin");
        desk.write("specs/gateways.yaml", &crate::errors::gateway("shop", name, 8080));
        let mut objects = rendered(&desk);
        objects.retain(|object| kinds.iter().any(|kind| object["kind"] == *kind));
        assert_eq!(objects.len(), kinds.len(), "{objects:?}");
        self.apply(&objects);
    }

    fn apply(&self, objects: &[Value]) {
        let each = objects.len().div_ceil(AT_ONCE);
        std::thread::scope(|scope| {
            for part in objects.chunks(each) {
                scope.spawn(move || {
                    let list = json!({"apiVersion": "v1", "kind": "List", "items": part}).to_string();
                    let arguments = ["apply", "--server-side", "--field-manager", MANAGER, "-f", "-"];
                    self.server.kubectl_stdin(&arguments, &list);
                });
            }
        });
    }

    /// Returns a desk whose sync reports on the cluster, as a user.
    pub(crate) fn desk(&self, user: &str) -> Desk {
        let desk = desk("edge", &[("only", kubeconfig(&self.server.kubeconfig(user), ""))]);
        desk.replace("gatewright.yaml", "createNamespaces: true", "mode: report");
        desk.write("specs/gateways.yaml", &self.specs);
        desk
    }

    /// Gives a user the rights of a role on the whole cluster.
    pub(crate) fn grant(&self, user: &str, role: &str) {
        let role = format!("--clusterrole={role}");
        self.server.kubectl_ok(&["create", "clusterrolebinding", user, &role, &format!("--user={user}")]);
    }

    /// Runs kubectl in the namespace of the Gateways.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.server.kubectl_ok(&[&["--namespace", "shop"], arguments].concat())
    }

    /// Returns what we keep on the cluster for ourselves.
    pub(crate) fn records(&self) -> String {
        let arguments = ["get", "namespace", "gatewright-system", "--ignore-not-found", "--output=name"];
        self.server.kubectl_ok(&arguments)
    }
}

/// The objects of a desk's Gateways, as kgateway would make them.
fn rendered(desk: &Desk) -> Vec<Value> {
    let run = desk.run(&["render", "specs"]).exits(0);
    yaml::parse_values(&run.out).expect("what is rendered is YAML").into_iter().map(made).collect()
}

fn made(mut object: Value) -> Value {
    let gateway = object["metadata"]["labels"]["gateway.networking.k8s.io/gateway-name"].clone();
    object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("kgateway");
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": gateway, "controller": true,
        "uid": "11111111-2222-3333-4444-555555555555",
    }]);
    object
}
