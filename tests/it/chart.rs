//! The chart and the manifests for a management cluster: Helm and an API server take them, their pod obeys the strictest
//! Pod Security standard, and what their service account may do is what a sync needs.

use std::fs;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::binaries::{self, in_repository};
use crate::cluster::process::command;
use crate::program::{Desk, Run};

const CHART: &str = "packaging/chart/gatewright";

/// Everything that can be switched on, and a config file whose source is the quick start beside it.
const VALUES: &str = "
config:
  sources: {specs: {directory: {path: specs}}}
  clusters: {here: {kubeconfig: {path: here.yaml}}}
  syncs: {edge: {source: specs, clusters: {names: [here]}, wait: {enabled: false}}}
files: {note.txt: \"  more than one line,\\n{{ and no template }}\\n\"}
secrets: [git-token, webhook.example.com]
rbac: {namespaces: [infra, shop]}
podMonitor: {enabled: true, labels: {release: prometheus}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {}}]}
persistence: {storageClassName: fast, size: 10Gi}
http: {listen: '[::]:9090'}
image: {repository: registry.example.com/gatewright, tag: '1.2'}
env: [{name: HTTPS_PROXY, value: 'http://proxy.example.com:3128'}]
podLabels: {team: platform}
podAnnotations: {example.com/note: a}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{operator: Exists}]
imagePullSecrets: [{name: registry}]
priorityClassName: system-cluster-critical
";

/// Helm, and a folder that is its home.
struct Helm {
    desk: Desk,
}

impl Helm {
    fn new() -> Self {
        let desk = Desk::quickstart("gatewright.yaml");
        desk.write("values.yaml", VALUES);
        Self { desk }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let mut helm = command(binaries::helm());
        helm.args(arguments).current_dir(self.desk.path("")).env("HOME", self.desk.path("home"));
        for variable in ["KUBECONFIG", "HELM_NAMESPACE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            helm.env_remove(variable);
        }
        Run::of(helm.output().expect("Helm can be run"))
    }

    /// Returns the manifests of the chart with more arguments.
    fn template(&self, arguments: &[&str]) -> String {
        let chart = chart();
        let given = ["template", "gatewright", &chart, "--namespace", "gatewright"];
        self.run(&[&given, arguments].concat()).exits(0).out
    }

    /// Runs a command of Helm about a release of the chart on a server.
    fn release(&self, server: &ApiServer, arguments: &[&str]) -> Run {
        let kubeconfig = server.kubeconfig("admin").display().to_string();
        self.run(&[arguments, &["--kubeconfig", &kubeconfig]].concat())
    }
}

fn chart() -> String {
    in_repository(CHART).display().to_string()
}

fn get(server: &ApiServer, arguments: &[&str]) -> Value {
    let text = server.kubectl_ok(&[&["get", "-o", "json"], arguments].concat());
    serde_json::from_str(&text).expect("kubectl prints JSON")
}

/// Makes the namespaces, as the manifests have them.
fn prepared() -> ApiServer {
    let server = ApiServer::start();
    let namespaces = in_repository("packaging/kubernetes/namespaces.yaml").display().to_string();
    server.kubectl_ok(&["apply", "-f", &namespaces]);
    for name in ["infra", "shop"] {
        server.kubectl_ok(&["create", "namespace", name]);
    }
    server
}

/// Asks whether the pod of the daemon would be let in, with something else in its specification.
fn asks_for_pod(server: &ApiServer, pointer: &str, value: Value) -> Run {
    let deployment = get(server, &["deployment", "gatewright", "-n", "gatewright"]);
    let mut spec = deployment["spec"]["template"]["spec"].clone();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
    spec.pointer_mut(parent).expect("it is there")[key] = value;
    let metadata = json!({"name": "try", "namespace": "gatewright"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("pod.json");
    fs::write(&file, pod.to_string()).expect("there is room for a file");
    Run::of(server.kubectl(&["create", "--dry-run=server", "-f", &file.display().to_string()]))
}

#[test]
fn helm_finds_nothing_wrong_with_the_chart() {
    let helm = Helm::new();
    helm.run(&["lint", "--strict", &chart()]).exits(0);
    helm.run(&["lint", "--strict", "--values", "values.yaml", &chart()]).exits(0);
    let text = fs::read_to_string(in_repository(&format!("{CHART}/Chart.yaml"))).expect("the chart is there");
    for field in ["version", "appVersion"] {
        let line = format!("\n{field}: {}\n", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&line), "the chart is of another version: no {line:?} in\n{text}");
    }
}

#[test]
fn the_manifests_are_those_of_the_chart() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mut script = command(in_repository("packaging/manifests"));
    let output = script.arg(folder.path()).env("HELM", binaries::helm()).output().expect("the script can be run");
    Run::of(output).exits(0);
    for name in ["namespaces.yaml", "gatewright.yaml"] {
        let read = |path| fs::read_to_string(path).expect("the script writes it");
        let (made, kept) = (folder.path().join(name), in_repository("packaging/kubernetes").join(name));
        assert_eq!(read(made), read(kept), "{name} is another one: run packaging/manifests");
    }
}

#[test]
fn values_that_would_do_harm_are_refused() {
    let helm = Helm::new();
    let digest = format!("image.digest=sha256:{}", "a".repeat(64));
    assert!(helm.template(&["--set", &digest]).contains(&format!("image: gatewright@sha256:{}", "a".repeat(64))));
    for value in [
        "imagee.tag=1",
        "config.stateDir=/elsewhere",
        "config.http.listen=127.0.0.1:8085",
        "rbac.namespaces={gatewright-system}",
        "files.gatewright\\.yaml=x",
        "secrets={../etc}",
        "image.digest=latest",
        "http.listen=off",
        "persistence.size=much",
        "podMonitor.enabled=1",
    ] {
        let run = helm.run(&["template", &chart(), "--set", value]);
        assert!(run.code != 0 && run.err.contains("values don't meet"), "{value} is taken:\n{}{}", run.out, run.err);
    }
}

#[test]
fn secrets_are_listed_in_their_namespaces_only() {
    let setting = r#"rbac.rules=[{"apiGroups":[""],"resources":["secrets","services"]}]"#;
    let manifests = Helm::new().template(&["--set-json", setting, "--set", "rbac.namespaces={infra}"]);
    let granting = manifests.split("\n---\n").filter(|document| document.contains("\"secrets\""));
    let kinds: Vec<bool> =
        granting.map(|role| role.contains("kind: Role\n") && role.contains("namespace: infra\n")).collect();
    assert_eq!(kinds, [true], "{manifests}");
}

#[test]
fn the_manifests_are_accepted_and_their_pod_is_restricted() {
    let server = prepared();
    let manifests = in_repository("packaging/kubernetes/gatewright.yaml").display().to_string();
    server.kubectl_ok(&["apply", "--dry-run=server", "--validate=strict", "-f", &manifests]);
    server.kubectl_ok(&["apply", "--server-side", "--validate=strict", "-f", &manifests]);
    server.kubectl_ok(&["diff", "--server-side", "-f", &manifests]);

    asks_for_pod(&server, "/enableServiceLinks", json!(false)).exits(0);
    for (pointer, value) in [
        ("/hostNetwork", json!(true)),
        ("/securityContext/seccompProfile", Value::Null),
        ("/containers/0/securityContext/capabilities", Value::Null),
        ("/containers/0/securityContext/allowPrivilegeEscalation", json!(true)),
    ] {
        asks_for_pod(&server, pointer, value).exits(1).complains("violates PodSecurity \"restricted:latest\"");
    }
    let deployment = get(&server, &["deployment", "gatewright", "-n", "gatewright"]);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    // What goes with the manifests is not what is known of the cluster.
    server.kubectl_ok(&["delete", "--wait=false", "-f", &manifests]);
    get(&server, &["namespace", "gatewright-system"]);
}

#[test]
fn the_service_account_may_do_what_a_sync_needs() {
    let (server, helm) = (prepared(), Helm::new());
    server.install_kind(["", "monitoring.coreos.com", "v1", "podmonitors", "PodMonitor", "Namespaced"]);
    let manifests = helm.template(&["--values", "values.yaml", "--set", "rbac.recordsNamespace=false"]);
    server.kubectl_stdin(&["apply", "--server-side", "--validate=strict", "-f", "-"], &manifests);
    asks_for_pod(&server, "/enableServiceLinks", json!(false)).exits(0);
    let monitor = get(&server, &["podmonitor", "gatewright", "-n", "gatewright"]);
    let deployment = get(&server, &["deployment", "gatewright", "-n", "gatewright"]);
    let template = &deployment["spec"]["template"];
    for (label, value) in monitor["spec"]["selector"]["matchLabels"].as_object().expect("it selects by labels") {
        assert_eq!(&template["metadata"]["labels"][label], value, "the monitor selects the pod");
    }
    assert_eq!(
        template["spec"]["containers"][0]["ports"],
        json!([{"containerPort": 9090, "name": "http", "protocol": "TCP"}])
    );

    // The config file and the kubeconfig are those of the pod; only where the server and its files are differs.
    let desk = &helm.desk;
    let map = get(&server, &["configmap", "gatewright", "-n", "gatewright"]);
    let file = |name: &str| map["data"][name].as_str().expect("the ConfigMap has it").to_owned();
    assert_eq!(file("note.txt"), "  more than one line,\n{{ and no template }}\n");
    let kubeconfig = file("here.yaml").replace("https://kubernetes.default.svc", &server.url());
    let mounted = "/var/run/secrets/kubernetes.io/serviceaccount/";
    assert_eq!(kubeconfig.matches(mounted).count(), 2, "{kubeconfig}");
    desk.write("here.yaml", &kubeconfig.replace(mounted, ""));
    desk.write("token", &server.kubectl_ok(&["create", "token", "gatewright", "--namespace", "gatewright"]));
    fs::copy(server.folder().join("apiserver.crt"), desk.path("ca.crt")).expect("a server has a certificate");
    desk.write("gatewright.yaml", &file("gatewright.yaml"));

    desk.run(&["config", "check"]).exits(0);
    let run = desk.run(&["clusters"]).exits(0).says("reachable");
    assert!(run.out.contains(" all") && !run.out.contains("missing"), "{}", run.out);
    desk.run(&["sync"]).exits(0).says("12 objects created");
    desk.run(&["sync"]).exits(0).says("no changes, 12 objects up to date");
    desk.run(&["destroy", "edge", "--yes"]).exits(0).says("12 objects deleted");
    // Nothing beyond: not itself, not other namespaces, no Secrets.
    let account = "system:serviceaccount:gatewright:gatewright";
    for (verb, what, place) in [
        ("patch", "deployments.apps", "gatewright"),
        ("get", "secrets", "infra"),
        ("get", "services", "default"),
        ("create", "clusterroles", "infra"),
    ] {
        let output = server.kubectl(&["auth", "can-i", verb, what, "-n", place, "--as", account]);
        assert!(!output.status.success(), "may {verb} {what} in {place}");
    }
}

#[test]
fn a_release_comes_and_goes_and_leaves_what_is_known() {
    let (server, helm) = (ApiServer::start(), Helm::new());
    let chart = chart();
    let release = |arguments: &[&str]| helm.release(&server, arguments).exits(0);
    release(&["install", "gatewright", &chart, "--namespace", "gatewright", "--create-namespace"]);
    get(&server, &["namespace", "gatewright-system"]);
    server.kubectl_ok(&["create", "namespace", "infra"]);
    let rights = "rbac.namespaces={infra}";
    release(&["upgrade", "gatewright", &chart, "--namespace", "gatewright", "--set", rights]);
    get(&server, &["role", "gatewright:gatewright:gatewright", "-n", "infra"]);
    release(&["uninstall", "gatewright", "--namespace", "gatewright"]);
    assert!(!server.kubectl(&["get", "deployment", "gatewright", "-n", "gatewright"]).status.success());
    get(&server, &["namespace", "gatewright-system"]);
    get(&server, &["persistentvolumeclaim", "gatewright", "-n", "gatewright"]);
    // The namespace of records is there, and no release has made it.
    release(&["install", "other", &chart, "--namespace", "elsewhere", "--create-namespace"]);
    get(&server, &["role", "gatewright:elsewhere:other", "-n", "gatewright-system"]);
}
