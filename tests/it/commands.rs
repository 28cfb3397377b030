//! The commands as a person and a script use them: what they print, what they ask, and their exit codes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gatewright_engine::check::check;
use gatewright_engine::schema::Schema;
use gatewright_engine::yaml;
use serde_json::Value;

use crate::cluster::binaries::in_repository;
use crate::cluster::process::command;
use crate::cluster::{shared, unique};
use crate::errors::{desk, folder, gateway, kubeconfig};
use crate::program::Desk;

/// Parses the only line of an output.
#[track_caller]
fn json(text: &str) -> Value {
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).expect("the program prints JSON")
}

/// Checks a report against its published schema, strictly: a field that the schema does not know is a mistake.
#[track_caller]
pub(crate) fn obeys_the_schema(report: &Value) {
    obeys("report-v1alpha1", report);
}

/// Checks JSON that the program prints against one of the published schemas.
#[track_caller]
pub(crate) fn obeys(schema: &str, report: &Value) {
    let file = in_repository(&format!("docs/schema/{schema}.json"));
    let text = fs::read_to_string(file).expect("the schema is there");
    let schema = Schema::new(&serde_json::from_str(&text).expect("the schema is JSON")).expect("it is a schema");
    let roots = yaml::parse(&report.to_string()).expect("JSON is YAML");
    let mistakes: Vec<String> = check(&roots[0], &schema).into_iter().map(|mistake| mistake.message).collect();
    assert_eq!(mistakes, [""; 0]);
}

/// Runs the program at a terminal; `answer` is typed when it asks. Returns the exit code and what is on the screen.
///
/// Variables may stand before the arguments: `NO_COLOR=1; plan`.
pub(crate) fn at_a_terminal(desk: &Desk, arguments: &str, answer: &str) -> (i32, String) {
    // The shell must not stay between the terminal and the program: it would take part in an interrupt.
    let (environment, arguments) = arguments.split_once(';').unwrap_or(("", arguments));
    let line = format!("exec env {environment} '{}' {arguments}", env!("CARGO_BIN_EXE_gatewright"));
    let mut script = command("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(desk.path("")).env("HOME", desk.path(""));
    script.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("GATEWRIGHT_CONFIG");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("util-linux has a terminal");
    let mut keyboard = child.stdin.take().expect("it was asked for");
    let mut screen = child.stdout.take().expect("it was asked for");
    let (mut shown, mut part, mut has_answered) = (Vec::new(), [0; 4096], answer.is_empty());
    loop {
        match screen.read(&mut part).expect("a pipe can be read") {
            0 => break,
            length => shown.extend_from_slice(&part[..length]),
        }
        if !has_answered && shown.ends_with(b"accepted: ") {
            keyboard.write_all(answer.as_bytes()).expect("the program reads");
            has_answered = true;
        }
    }
    let code = child.wait().expect("it ends").code().unwrap_or(-1);
    (code, String::from_utf8(shown).expect("the program prints text").replace("\r\n", "\n"))
}

#[test]
fn specs_are_rendered_to_a_stream_in_the_order_of_apply() {
    let desk = Desk::quickstart("gatewright.yaml");
    let whole = desk.run(&["render", "specs"]).exits(0);
    let documents: Vec<Value> = yaml::parse_values(&whole.out).expect("the output is YAML");
    let kinds: Vec<&str> = documents.iter().filter_map(|document| document["kind"].as_str()).collect();
    assert_eq!(kinds, ["ServiceAccount", "ConfigMap", "Service", "Deployment"].repeat(3));
    let name = |document: &Value| format!("{}/{}", document["metadata"]["namespace"], document["metadata"]["name"]);
    let mut names: Vec<String> = documents.iter().map(name).collect();
    names.dedup();
    assert_eq!(names, [r#""infra"/"edge""#, r#""infra"/"internal""#, r#""shop"/"storefront""#]);
    assert!(whole.out.starts_with("---\n") && !whole.out.contains("gatewright.dev/"), "{}", whole.out);
    assert!(whole.err.is_empty(), "{}", whole.err);

    assert_eq!(desk.run(&["render", "specs"]).out, whole.out, "same specs, same bytes");
    let parts = desk.run(&["render", "specs/shop/storefront.yaml", "specs/class.yaml", "specs/infra"]).exits(0);
    assert_eq!(parts.out, whole.out, "several paths are one source");
    let moved =
        desk.run(&["render", "specs/shop", "specs/class.yaml", "specs/infra", "--target-namespace", "elsewhere"]);
    let moved = moved.exits(0).says("namespace: elsewhere");
    assert!(!moved.out.contains("namespace: shop"), "{}", moved.out);

    desk.replace("specs/shop/storefront.yaml", "port: 8443", "prot: 8443");
    let broken =
        desk.run(&["render", "specs"]).exits(1).complains("specs/shop/storefront.yaml:17: Gateway shop/storefront: ");
    assert_eq!(yaml::parse_values(&broken.out).expect("the rest is rendered").len(), 8);
}

#[test]
fn check_says_what_is_wrong_with_specs() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["check", "specs"]).exits(0).says("12 objects from 3 Gateways\n");
    desk.write("specs/route.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n");
    desk.run(&["check", "specs"]).exits(0).says("12 objects from 3 Gateways, 1 document that no pack claims\n");
    desk.replace("specs/infra/gateways.yaml", "protocol: HTTP", "protocol: 1");
    let run = desk.run(&["check", "specs"]).exits(1).says("8 objects from 2 Gateways, 1 Gateway with problems");
    run.complains("specs/infra/gateways.yaml:").complains("protocol is the number 1, but must be a string");
    desk.run(&["check"]).exits(64).complains("<PATH>...");
}

#[test]
fn reports_as_json_obey_their_schema() {
    let desk = desk("gateways", &[("fine", folder()), ("lost", "{kubeconfig: {path: nowhere}}".to_owned())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.write("specs/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    let plan = json(&desk.run(&["plan", "--format", "json"]).exits(1).out);
    obeys_the_schema(&plan);
    assert_eq!(
        (plan["mode"].as_str(), plan["clusters"]["fine"]["steps"].as_array().map(Vec::len)),
        (Some("plan"), Some(9))
    );
    assert_eq!(plan["clusters"]["lost"]["state"], "failed");
    let sync = json(&desk.run(&["sync", "--format", "json"]).exits(1).out);
    obeys_the_schema(&sync);
    assert_eq!(sync["clusters"]["fine"]["steps"][0]["outcome"]["result"], "done");

    // Differences, refusals, problems and a guard.
    desk.write("specs/a.yaml", &gateway("shop", "a", 9090));
    desk.write("specs/b.yaml", "{{ no YAML }}");
    let sync = json(&desk.run(&["sync", "--format", "json"]).exits(1).out);
    obeys_the_schema(&sync);
    assert_eq!(sync["clusters"]["fine"]["refusals"][0]["reason"]["reason"], "held");
    fs::remove_dir_all(desk.path("specs")).expect("it is there");
    fs::create_dir(desk.path("specs")).expect("it can be made");
    let held = json(&desk.run(&["plan", "--cluster", "fine", "--format", "json"]).exits(3).out);
    obeys_the_schema(&held);
    assert_eq!(held["clusters"]["fine"]["holds"][0]["guard"], "empty-render");
    for line in desk.run(&["history", "--format", "json"]).exits(0).out.lines() {
        obeys_the_schema(&json(line));
    }
}

#[test]
fn a_part_of_the_clusters_or_units_can_be_chosen() {
    let desk = desk("gateways", &[("eu", folder()), ("us", "{directory: {path: us}}".to_owned())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.run(&["sync", "--cluster", "us", "--only", "Gateway/shop/a"]).exits(0).says("4 objects created");
    assert!(!desk.path("rendered").exists());
    assert!(desk.path("us/shop/service-a.yaml").exists() && !desk.path("us/shop/service-b.yaml").exists());
    desk.run(&["sync"]).exits(0).says("cluster eu").says("8 objects created").says("4 objects created, 4 unchanged");

    // What was not chosen is not deleted, though it is gone from the source.
    fs::remove_file(desk.path("specs/b.yaml")).expect("it is there");
    desk.run(&["sync", "--only", "Gateway/shop/a"]).exits(0).says("no changes, 4 objects up to date");
    desk.run(&["plan", "--cluster", "eu", "--detailed-exitcode"]).exits(2).says("4 objects to prune");

    // Of several syncs those have a round that a chosen cluster belongs to.
    let more = "  other: {source: specs, createNamespaces: true, clusters: {names: [ap]}}\n";
    desk.replace("gatewright.yaml", "syncs:\n", &format!("  ap: {{directory: {{path: ap}}}}\nsyncs:\n{more}"));
    let run = desk.run(&["sync", "--cluster", "ap"]).exits(0).says("sync other at ");
    assert!(!run.out.contains("sync gateways"), "{}", run.out);
    desk.run(&["sync", "gateways", "--cluster", "ap"])
        .exits(64)
        .complains("sync \"gateways\" does not select cluster \"ap\"");
}

#[test]
fn on_a_terminal_a_person_is_asked_before_an_api_server_is_changed() {
    let (server, namespace, sync) = (shared(), unique("asked"), unique("asked"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    let count = || {
        server
            .kubectl_ok(&[
                "get",
                "services",
                "-A",
                "-o",
                "name",
                "--field-selector",
                &format!("metadata.namespace={namespace}"),
            ])
            .lines()
            .count()
    };
    for answer in ["no\n", "y\n", "\n", "\u{3}"] {
        let (code, screen) = at_a_terminal(&desk, "sync", answer);
        assert_eq!((code, count()), (1, 0), "{answer:?}: {screen}");
        assert!(screen.contains(&format!("sync {sync:?} was cancelled, nothing was changed")), "{screen}");
    }
    let (code, screen) = at_a_terminal(&desk, "sync", "yes\n");
    assert_eq!((code, count()), (0, 1), "{screen}");
    assert!(screen.contains("\u{1b}[") && screen.contains("Only \"yes\" will be accepted: "), "{screen}");

    // Where nothing would change there is no question, nor after --yes.
    let (code, screen) = at_a_terminal(&desk, "sync", "");
    assert!(code == 0 && !screen.contains("accepted") && screen.contains("no changes"), "{code}: {screen}");
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 9090));
    let (code, screen) = at_a_terminal(&desk, "sync --yes --no-color", "");
    assert!(code == 0 && !screen.contains("accepted") && screen.contains(" updated, "), "{code}: {screen}");
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
}

#[test]
fn who_is_at_a_terminal_is_asked_wherever_input_and_output_go() {
    let (server, namespace, sync) = (shared(), unique("piped"), unique("piped"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    server.kubectl_ok(&["create", "namespace", &namespace]);
    let count = || server.kubectl_ok(&["-n", &namespace, "get", "services", "-o", "name"]).lines().count();
    let lines = ["| cat", "2>err | cat", ">out", "</dev/null", "</dev/null | cat", "--format json | cat"];
    for (number, line) in lines.iter().enumerate() {
        desk.write("specs/a.yaml", &gateway(&namespace, &format!("n{number}"), 8080));
        let screen = at_a_terminal(&desk, &format!("sync {line}"), "no\n").1;
        assert!(screen.contains("Only \"yes\" will be accepted: "), "{line}: {screen}");
        assert_eq!(count(), number.min(1), "{line}: {screen}");
        let screen = at_a_terminal(&desk, &format!("sync {line}"), "yes\n").1;
        assert_eq!(count(), 1, "{line}: {screen}");
        server.kubectl_ok(&["-n", &namespace, "get", "service", &format!("n{number}")]);
    }
    // Only the report is in the output, and where nobody is, nobody is waited for.
    desk.write("specs/a.yaml", &gateway(&namespace, "last", 8080));
    at_a_terminal(&desk, "sync --format json >out.json", "yes\n");
    serde_json::from_str::<Value>(&desk.read("out.json")).expect("it is JSON and nothing else");
    desk.write("specs/a.yaml", &gateway(&namespace, "script", 8080));
    desk.run(&["sync"]).exits(0).says("created");
}

#[test]
fn about_a_directory_nobody_is_asked() {
    let desk = desk("gateways", &[("fine", folder())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    let (code, screen) = at_a_terminal(&desk, "sync", "");
    assert!(code == 0 && !screen.contains("accepted") && screen.contains("4 objects created"), "{code}: {screen}");
}

#[test]
fn what_does_not_go_to_a_terminal_has_no_colors() {
    let desk = desk("gateways", &[("fine", folder())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    for arguments in [&["plan"][..], &["sync"], &["status"], &["history"], &["snyc"], &["sync", "--help"]] {
        let run = desk.run(arguments);
        assert!(!run.out.contains('\u{1b}') && !run.err.contains('\u{1b}'), "{arguments:?}");
    }
    desk.write("specs/a.yaml", &gateway("shop", "a", 9090));
    assert!(at_a_terminal(&desk, "plan", "").1.contains("\u{1b}[33m"));
    let (code, screen) = at_a_terminal(&desk, "NO_COLOR=1; plan", "");
    assert!(code == 0 && !screen.contains('\u{1b}'), "{screen:?}");
}

#[test]
fn whoever_waits_at_a_terminal_sees_for_whom() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = silent.local_addr().expect("a bound socket has an address");
    let known = fs::read_to_string(shared().kubeconfig("admin")).expect("the server has kubeconfigs");
    let clusters = [("fine", folder()), ("void", kubeconfig(Path::new("void.kubeconfig"), ", timeout: 5s"))];
    let desk = desk("gateways", &clusters);
    desk.write("void.kubeconfig", &known.replace(&shared().url(), &format!("https://{address}")));
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    let words = "of 2 clusters, waiting for ";
    let (code, screen) = at_a_terminal(&desk, "plan", "");
    assert!(code == 4 && screen.contains(words), "{code} {screen:?}");
    // Afterwards the line is gone, and it is on no screen that cannot take a line back.
    let last = screen.rfind(words).expect("it was there");
    assert!(screen[last..].contains("\r\u{1b}[2K"), "{screen:?}");
    let (code, screen) = at_a_terminal(&desk, "TERM=dumb; plan", "");
    assert!(code == 4 && !screen.contains("waiting for"), "{code} {screen:?}");
    let run = desk.run(&["plan"]).exits(4);
    assert!(!run.err.contains("waiting for") && !run.out.contains("waiting for"), "{}{}", run.out, run.err);
}

#[test]
fn a_round_waits_for_health_unless_it_is_told_not_to() {
    let (server, namespace, sync) = (shared(), unique("patience"), unique("patience"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    desk.replace("gatewright.yaml", "wait: {enabled: false}", "wait: {timeout: 2s}");
    let parameters = format!(
        "---\napiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\n\
         metadata: {{name: p, namespace: {namespace}}}\n\
         spec: {{kube: {{podTemplate: {{nodeSelector: {{no: such-node}}}}}}}}\n"
    );
    let reference =
        "  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: p}}\n";
    desk.write("specs/a.yaml", &format!("{}{reference}{parameters}", gateway(&namespace, "a", 8080)));
    desk.run(&["sync", "--no-wait"]).exits(0).says("4 objects created");
    desk.write("specs/a.yaml", &format!("{}{reference}{parameters}", gateway(&namespace, "a", 9090)));
    desk.run(&["sync"]).exits(1).says(&format!("Gateway {namespace}/a: Deployment {namespace}/a: "));
    desk.run(&["status"]).exits(0).says(&format!("Gateway {namespace}/a  unhealthy"));
}

#[test]
fn status_shows_where_each_gateway_can_be_reached() {
    let (server, namespace, sync) = (shared(), unique("reach"), unique("reach"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), "")), ("later", folder())]);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    desk.run(&["status"]).exits(0).says("on all 2 clusters (later, only): no round yet\n");
    desk.run(&["sync", "--cluster", "only"]).exits(0);
    let ingress =
        r#"{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"hostname": "edge.example.com"}]}}}"#;
    server.kubectl_ok(&[
        "patch",
        "service",
        "a",
        "-n",
        &namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        ingress,
    ]);
    desk.run(&["sync", "--cluster", "only"]).exits(0);
    let status = desk.run(&["status"]).exits(0).says(&format!("    Gateway {namespace}/a  "));
    status.says("  192.0.2.7,edge.example.com  8080").says("cluster later: no round yet\n");
    let status = json(&desk.run(&["status", &sync, "--format", "json"]).exits(0).out);
    let report = &status["syncs"][&sync]["only"];
    obeys_the_schema(report);
    assert_eq!(
        report["clusters"]["only"]["units"][0]["addresses"],
        serde_json::json!(["192.0.2.7", "edge.example.com"])
    );
    assert_eq!(report["clusters"]["only"]["units"][0]["ports"], serde_json::json!([8080]));
    assert!(status["syncs"][&sync]["later"].is_null());
}

#[test]
fn history_lists_what_happened_the_newest_first() {
    let desk = desk("gateways", &[("fine", folder())]);
    desk.run(&["history"]).exits(0).complains("there are no reports of rounds yet");
    for port in [8080, 8081, 8083] {
        desk.write("specs/a.yaml", &gateway("shop", "a", port));
        desk.run(&["sync"]).exits(0);
        desk.run(&["sync"]).exits(0);
        // What says nothing new is not kept, and a plan is no round.
        desk.run(&["sync"]).exits(0);
        desk.run(&["plan"]).exits(0);
    }
    let run = desk.run(&["history", "gateways"]).exits(0);
    let did: Vec<&str> = run.out.lines().filter_map(|line| line.split("  ").nth(4)).collect();
    assert_eq!(did, ["no changes", "update 2", "no changes", "update 2", "no changes", "create 5"], "{}", run.out);
    let newest = run.out.lines().next().and_then(|line| line.rsplit("  ").next()).expect("it ends with a file");
    assert!(fs::read_to_string(newest.replace(".json", ".txt")).is_ok_and(|text| text.contains("no changes")));
    let two = desk.run(&["history", "-n", "2"]).exits(0);
    assert_eq!(two.out.lines().collect::<Vec<_>>(), run.out.lines().take(2).collect::<Vec<_>>());
    let json_lines = desk.run(&["history", "-n", "1", "--format", "json"]).exits(0).out;
    assert_eq!(json(&json_lines)["sync"], "gateways");
}

#[test]
fn a_sync_that_only_reports_changes_nothing_by_hand_either() {
    let desk = desk("gateways", &[("fine", folder())]);
    desk.replace("gatewright.yaml", "createNamespaces", "mode: report\n    createNamespaces");
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.run(&["sync", "--yes"]).exits(0).says("plan: 4 objects to create, 1 namespace to create\n");
    assert!(!desk.path("rendered").exists());
    desk.run(&["history"]).exits(0).says("planned create 5");
}

#[test]
fn a_state_directory_that_cannot_be_used_is_an_error_before_anything_is_done() {
    let desk = desk("gateways", &[("fine", folder())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.replace("gatewright.yaml", "stateDir: state", "stateDir: gatewright.yaml/state");
    let hint = "\n  let this user write there, or name another folder by stateDir or $GATEWRIGHT_STATE_DIR\n";
    desk.run(&["plan"]).exits(1).complains("gatewright: cannot read ").complains("Not a directory").complains(hint);
    desk.run(&["sync"]).exits(1).complains("gatewright: cannot read ").complains("Not a directory").complains(hint);
    assert!(!desk.path("rendered").exists());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a real program ends in real time")]
fn an_interrupt_ends_a_command_that_waits_for_a_source() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let url = format!("https://{}/a.git", silent.local_addr().expect("a bound socket has an address"));
    let desk = desk("gateways", &[("fine", folder())]);
    desk.replace("gatewright.yaml", "{directory: {path: specs}}", &format!("{{git: {{url: \"{url}\", timeout: 5m}}}}"));
    let program = desk.command(&["sync"]).stderr(Stdio::piped()).spawn().expect("the program starts");
    let _connection = silent.accept().expect("it asks the source");
    let asked = Instant::now();
    command("kill").args(["-INT", &program.id().to_string()]).status().expect("kill is part of every system");
    let output = program.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stderr).expect("the program prints text");
    assert_eq!(
        (output.status.code(), text.contains("stopped by a signal, nothing was changed")),
        (Some(1), true),
        "{text}"
    );
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
}

#[test]
fn help_says_what_exit_codes_mean() {
    let desk = Desk::empty("gatewright.yaml");
    let help = |arguments: &[&str]| desk.run(&[arguments, &["--help"]].concat()).exits(0).out;
    let commands: [&[&str]; 18] = [
        &["run"],
        &["sync"],
        &["plan"],
        &["diff"],
        &["render"],
        &["check"],
        &["schema"],
        &["lsp"],
        &["explain"],
        &["defaults"],
        &["status"],
        &["history"],
        &["simulate"],
        &["config", "check"],
        &["config", "show"],
        &["config"],
        &["completions"],
        &["man"],
    ];
    for arguments in commands {
        let text = help(arguments);
        assert!(
            text.contains("Usage: ")
                && (arguments == ["config"] || text.contains("Exit codes: 0 ") || text.contains("Exit codes: 0, ")),
            "{text}"
        );
        let listed = arguments.len() == 2 || help(&[]).contains(&format!("  {}", arguments[0]));
        assert!(listed, "{arguments:?}");
    }
    let version = desk.run(&["--version"]).exits(0).out;
    assert_eq!(version, concat!("gatewright ", env!("CARGO_PKG_VERSION"), "\n"));
    desk.run(&[]).exits(64).complains("Usage: ");
}
