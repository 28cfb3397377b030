//! The first contact with a cluster: plans and diffs of specs that need no config file, and the mistakes that come first.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cluster::audit::{Audited, Request};
use crate::cluster::{ApiServer, shared, unique};
use crate::commands::obeys_the_schema;
use crate::errors::gateway;
use crate::program::{Desk, Run};

/// The program without a config file; temporary files go to a folder of the desk.
fn program(desk: &Desk, arguments: &[&str]) -> Command {
    fs::create_dir_all(desk.path("tmp")).expect("the folder can be made");
    let mut program = desk.without_config(arguments);
    program.env("TMPDIR", desk.path("tmp"));
    program
}

/// Runs it beside a kubeconfig where kubectl would find it.
fn run(desk: &Desk, kubeconfig: &Path, arguments: &[&str]) -> Run {
    let run = Run::of(program(desk, arguments).env("KUBECONFIG", kubeconfig).output().expect("the program starts"));
    assert_eq!(fs::read_dir(desk.path("tmp")).expect("it is there").count(), 0, "something is left behind");
    assert!(!desk.path("home").exists() && !desk.path("state").exists(), "something is left behind");
    run
}

/// Specs of one Gateway of four objects.
fn specs(namespace: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("specs/a.yaml", &gateway(namespace, "a", 8080));
    desk
}

/// The text of a plan without the folder that files are named by.
fn below(folder: &str, text: &str) -> String {
    text.replace(&format!("{folder}/"), "").replace("sync quickstart at", "sync specs at")
}

#[test]
fn a_plan_of_specs_is_that_of_a_config_file_and_writes_nothing() {
    let audited = Audited::start();
    let (server, desk) = (&audited.server, Desk::quickstart("gatewright-kube.yaml"));
    let kubeconfig = server.kubeconfig("admin");
    fs::remove_file(desk.path("gatewright.yaml")).expect("it is there");
    // Nothing can be dry-run in a namespace that is not there.
    server.kubectl_ok(&["create", "namespace", "infra"]);

    let plan = run(&desk, &kubeconfig, &["plan", "specs"]).exits(0);
    let plan = plan.complains(&format!("asks the cluster of context \"test\" ({})", server.url()));
    let plan = plan.complains("none of this deletes anything");
    run(&desk, &kubeconfig, &["plan", "specs", "--detailed-exitcode"]).exits(2);
    let json = run(&desk, &kubeconfig, &["plan", "specs", "--format", "json"]).exits(0).out;
    obeys_the_schema(&serde_json::from_str::<Value>(&json).expect("it is JSON and nothing else"));
    let shown = run(&desk, &kubeconfig, &["diff", "specs"]).exits(1).says("+++ desired/v1/Service/infra/edge.yaml");
    assert!(!shown.out.contains("gatewright.dev/"), "these are the marks of nobody: {}", shown.out);
    let asked = audited.requests();
    assert!(asked.iter().any(Request::is_dry_run), "{asked:?}");
    let writes: Vec<_> = asked.iter().filter(|request| request.is_write() && !request.is_dry_run()).collect();
    assert!(writes.is_empty(), "{writes:?}");

    // A file is as good as a folder, and several make one source.
    let some = ["plan", "specs/class.yaml", "specs/shop", "--summary"];
    run(&desk, &kubeconfig, &some).exits(0).says("plan: 4 objects to create, 1 namespace to create");

    let with_config = desk.run_with(&kubeconfig, &["plan"]).exits(0).out;
    assert_eq!(below("specs", &plan.out), below("specs", &with_config));
}

#[test]
fn what_an_installation_has_made_is_refused_and_can_be_looked_at() {
    let (server, desk) = (ApiServer::start(), Desk::quickstart("gatewright-kube.yaml"));
    let kubeconfig = server.kubeconfig("admin");
    desk.run_with(&kubeconfig, &["sync", "--no-wait"]).exits(0);
    fs::remove_dir_all(desk.path("state-kube")).expect("it is there");
    for name in ["gatewright.yaml", "gatewright-kube.yaml"] {
        fs::remove_file(desk.path(name)).expect("it is there");
    }
    let plan = run(&desk, &kubeconfig, &["plan", "specs"]).exits(3).says("another installation of gatewright");
    plan.says("plan: no changes, 12 objects refused");
    let diff = run(&desk, &kubeconfig, &["diff", "specs"]).exits(3).complains("not compared: ");
    let diff = diff.complains("`gatewright plan --read-only` compares what others own");
    assert_eq!(diff.out, "");

    // Whoever may only read sees what differs, whoever owns it; what is not among the specs is nobody's business.
    let viewer = server.kubeconfig("viewer");
    run(&desk, &viewer, &["plan", "specs", "--read-only", "--detailed-exitcode"])
        .exits(0)
        .says("no differences, 12 objects up to date");
    server.kubectl_ok(&["delete", "service", "edge", "-n", "infra"]);
    desk.replace("specs/shop/storefront.yaml", "port: 8443", "port: 9443");
    fs::remove_file(desk.path("specs/infra/gateways.yaml")).expect("it is there");
    let plan = run(&desk, &viewer, &["plan", "specs", "--read-only", "--detailed-exitcode"]).exits(2);
    plan.says("~ different Service shop/storefront").says("estimated");
    run(&desk, &kubeconfig, &["plan", "specs", "--read-only", "--out", "x"]).exits(64).complains("--out");
}

#[test]
fn what_nobody_has_marked_is_held_and_shown_without_a_token() {
    let (server, namespace) = (shared(), unique("unmarked"));
    let (desk, kubeconfig) = (specs(&namespace), server.kubeconfig("admin"));
    server.kubectl_ok(&["create", "namespace", &namespace]);
    server.kubectl_ok(&["create", "service", "clusterip", "a", "-n", &namespace, "--tcp=80:80"]);
    let plan = run(&desk, &kubeconfig, &["plan", "specs"]).exits(3).says("held by guard adopt");
    let plan = plan.says("the first `gatewright sync` prints the token that lifts it");
    assert!(!plan.out.contains("gatewright approve"), "{}", plan.out);
    let diff = run(&desk, &kubeconfig, &["diff", "specs"]).exits(1).complains("held by guard adopt");
    let diff = diff.says(&format!("adopt Service {namespace}/a, on cluster local (held)"));
    diff.says(&format!("create Deployment {namespace}/a, on cluster local (held)")).says("-  - name: 80-80");
}

#[test]
fn a_way_to_the_cluster_can_be_named() {
    let (server, namespace) = (shared(), unique("named"));
    let (desk, admin) = (specs(&namespace), server.kubeconfig("admin"));
    let known = fs::read_to_string(&admin).expect("the server has kubeconfigs");
    let mut other: Value = serde_json::from_str(&known).expect("it is JSON");
    other["current-context"] = "".into();
    desk.write("other.kubeconfig", &other.to_string());
    other["users"][0]["user"] = serde_json::json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1",
        "command": "no-such-plugin", "interactiveMode": "Never"}});
    desk.write("exec.kubeconfig", &other.to_string());
    let nowhere = Path::new("/nowhere");
    let with = |more: &[&str]| run(&desk, nowhere, &[&["plan", "specs"], more].concat());

    with(&["--kubeconfig", "other.kubeconfig", "--context", "test"]).exits(0).says("4 objects to create");
    let none = with(&["--kubeconfig", "other.kubeconfig"]).exits(64).complains("it has no current context");
    none.complains("choose one by --context: \"test\"");
    let wrong = with(&["--kubeconfig", "other.kubeconfig", "--context", "tset"]).exits(64);
    wrong.complains("it has no context \"tset\"").complains("did you mean \"test\"?");
    with(&["--kubeconfig", "othr.kubeconfig"]).exits(64).complains("did you mean \"other.kubeconfig\"?");
    with(&[]).exits(64).complains("there is no such file").complains("--kubeconfig FILE");
    let plugin = ["--kubeconfig", "exec.kubeconfig", "--context", "test"];
    with(&plugin).exits(64).complains("if you trust it, add --allow-exec no-such-plugin");
    let allowed = with(&[&plugin[..], &["--allow-exec", "no-such-plugin"]].concat());
    assert!(allowed.code != 0 && allowed.out.contains("no-such-plugin"), "{}{}", allowed.out, allowed.err);
}

#[test]
fn a_cluster_that_does_not_answer_is_told_with_its_address() {
    let free = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = free.local_addr().expect("a bound socket has an address").to_string();
    drop(free);
    let desk = specs("shop");
    let known = fs::read_to_string(shared().kubeconfig("admin")).expect("the server has kubeconfigs");
    desk.write("void.kubeconfig", &known.replace(&shared().url(), &format!("https://{address}")));
    let kubeconfig = desk.path("void.kubeconfig");
    let plan = run(&desk, &kubeconfig, &["plan", "specs"]).exits(4).says("unreachable: ").says(&address);
    plan.says("check that the API server runs");
    let diff = run(&desk, &kubeconfig, &["diff", "specs"]).exits(4).complains("gatewright: cluster local: ");
    assert_eq!(diff.complains(&address).out, "");
}

#[test]
fn what_is_neither_a_sync_nor_a_path_is_told_to_be_neither() {
    let desk = specs("shop");
    let nowhere = Path::new("/nowhere");
    let plan = |arguments: &[&str]| run(&desk, nowhere, &[&["plan"], arguments].concat()).exits(64);
    plan(&[]).complains("there is no config file").complains("name a file or folder with specs, which needs none");
    let lost =
        plan(&["spces"]).complains("there is no file or folder \"spces\", and no config file with a sync of that");
    lost.complains("did you mean \"specs\"?");
    plan(&["sepcs/a.yaml"]).complains("there is no file or folder").complains("did you mean \"specs/a.yaml\"?");
    plan(&["specs", "nothing"]).complains("there is no file or folder \"nothing\"");
    fs::create_dir(desk.path("empty")).expect("the folder can be made");
    plan(&["empty"]).complains("there are no YAML or JSON files in empty");
    plan(&["specs", "--cluster", "eu"]).complains("--context says which cluster is meant");

    let config = "sources: {s: {directory: {path: specs}}}\nclusters: {c: {directory: {path: rendered}}}\n\
                  syncs: {edges: {source: s, clusters: {names: [c]}, createNamespaces: true}}\nstateDir: kept\n";
    desk.write("gatewright.yaml", config);
    let neither = plan(&["edgse"]).complains("no sync is called \"edgse\", and there is no file or folder \"edgse\"");
    neither.complains("did you mean \"edges\"?");
    plan(&["specs", "--config", "gatewright.yaml"]).complains("specs is no sync, and specs go without --config");
    plan(&["edges", "--kubeconfig", "x"]).complains("--kubeconfig is for files and folders with specs");
    run(&desk, nowhere, &["plan", "edges"]).exits(0).says("4 objects to create");
    // Beside a config file a folder is still a folder, unless a sync has its name.
    let kubeconfig = shared().kubeconfig("admin");
    run(&desk, &kubeconfig, &["plan", "specs", "--out", "x"]).exits(64).complains("--out keeps the plan of a sync");
    let beside = run(&desk, &kubeconfig, &["plan", "specs"]).exits(0).complains("gatewright.yaml is ignored");
    beside.says("cluster local");
    fs::create_dir(desk.path("edges")).expect("the folder can be made");
    run(&desk, nowhere, &["plan", "edges"]).exits(0).says("cluster c");
    run(&desk, &kubeconfig, &["plan", "./edges"]).exits(64).complains("there are no YAML or JSON files in ./edges");
    // One that is broken is in the way only of what it may have a name for.
    desk.write("gatewright.yaml", "syncs: [");
    run(&desk, &kubeconfig, &["plan", "./specs"]).exits(0).says("4 objects to create");
    plan(&["specs"]).complains("gatewright.yaml:1");
}

#[test]
fn a_spec_with_a_mistake_is_told_with_its_place() {
    let desk = specs(&unique("mistake"));
    desk.replace("specs/a.yaml", "- name: http", "- nmae: http");
    let kubeconfig = shared().kubeconfig("admin");
    run(&desk, &kubeconfig, &["plan", "specs"]).exits(1).says("specs/a.yaml:7: ").says("did you mean \"name\"?");
    let diff = run(&desk, &kubeconfig, &["diff", "specs"]).exits(2).complains("specs/a.yaml:7: ");
    assert_eq!(diff.complains("did you mean \"name\"?").out, "");
}
