//! Mistakes that people make in packs: `pack lint` says each with its line, before there is a case that shows it.

use std::fs;

use super::{Desk, with};
use crate::cluster::binaries::in_repository;

/// Replaces a text in a file of a pack that was just begun, and asserts on what `pack lint` says about that line.
#[track_caller]
fn check(file: &str, from: &str, to: &str, expected: &str) {
    let mut number = 0;
    let [lint, _] = with(file, |text| {
        let start = text.find(from).expect("it is in the file");
        number = text[..start].matches('\n').count() + 1 + to.len() - to.trim_start_matches('\n').len();
        text.replacen(from, to, 1)
    });
    let expected = format!("mine/{file}:{number}: {expected}");
    assert!(lint.1.contains(&expected), "{to:?}: no {expected:?} in\n{}", lint.1);
    assert_eq!(lint.0, 1, "{}", lint.1);
}

#[test]
fn an_argument_that_a_filter_does_not_have_is_an_error() {
    let ports = "{%- for port in gateway.ports %}";
    let with_filter = |filter: &str| ports.replace(" %}", &format!(" | {filter} %}}"));
    let unique = "the filter \"unique\" has no argument";
    check(
        "service.yaml",
        ports,
        &with_filter("unique(attribute=\"port\")"),
        &format!("{unique} \"attribute\" (it compares"),
    );
    check("service.yaml", ports, &with_filter("unique(nonsense=1)"), &format!("{unique} \"nonsense\" (it has none)"));
    check(
        "service.yaml",
        ports,
        &with_filter("sort(atribute=\"port\")"),
        "the filter \"sort\" has no argument \"atribute\" (did you mean \"attribute\"?)",
    );
    check(
        "deployment.yaml",
        "params.image | json",
        "params.image | json(a=1)",
        "the filter \"json\" has no argument \"a\"",
    );
    check("pack.yaml", "name ~ \"-mine\"", "name | truncate(len=3)", "the filter \"truncate\" has no argument \"len\"");
}

#[test]
fn a_pack_with_such_an_argument_is_not_loaded() {
    let [_, test] =
        with("service.yaml", |text| text.replace("gateway.ports", "gateway.ports | unique(attribute=\"port\")"));
    assert_eq!(test.0, 1);
    assert!(test.1.contains("service.yaml:10: the filter \"unique\" has no argument \"attribute\""), "{}", test.1);
}

#[test]
fn a_misspelt_value_is_found() {
    let meant = "there is no value \"wrokload\" (did you mean \"workload\"?)";
    check("deployment.yaml", "{{ workload | json }}", "{{ wrokload | json }}", meant);
    check(
        "deployment.yaml",
        "      containers:",
        "\n{%- if wrokload is defined %}{% endif %}\n      containers:",
        meant,
    );
    check("pack.yaml", "name ~ \"-mine\"", "nmae ~ \"-mine\"", "there is no value \"nmae\" (did you mean \"name\"?)");
    check(
        "pack.yaml",
        "name ~ \"-mine\"",
        "selector ~ name",
        "there is no value \"selector\" (it is computed, but further down)",
    );
    check(
        "pack.yaml",
        "  - service.yaml",
        "  - {file: service.yaml, when: parms.service}",
        "there is no value \"parms\" (did you mean \"params\"?)",
    );
    check(
        "service.yaml",
        "{{ port.name | json }}",
        "{{ prot.name | json }}",
        "there is no value \"prot\" (did you mean \"port\"?)",
    );
}

#[test]
fn a_field_that_the_gateway_does_not_have_is_found() {
    let meant = "gateway has no field \"prots\" (did you mean \"ports\"?)";
    check("service.yaml", "in gateway.ports", "in gateway.prots", meant);
    let meant = "an item of gateway.ports has no field \"protocol\"";
    check("service.yaml", "port.transport", "port.protocol", meant);
    let meant = "an item of gateway.listeners has no field \"transport\"";
    check(
        "service.yaml",
        "in gateway.ports %}\n    - {name: {{ port.name | json }}",
        "in gateway.listeners | sort(attribute=\"name\") %}{{ port.transport | json }}\n    - {name: {{ port.name | json }}",
        meant,
    );
}

#[test]
fn a_value_without_an_encoding_filter_is_found() {
    let meant = "a value is printed without an encoding filter (write it as {{ name | json }}";
    check("deployment.yaml", "{{ params.replicas | json }}", "{{ params.replicas }}", meant);
    check("deployment.yaml", "{{ workload | json }}", "{{ workload ~ \"-a\" | json }}", meant);
    check("service.yaml", "{{ port.name | json }}", "{{ port.name | upper }}", meant);
}

#[test]
fn an_overlay_without_a_path_or_a_kind_is_found() {
    let overlays = |line: &str| format!("\noverlays:\n  - {line}\ntemplates:");
    let check = |line: &str, expected: &str| {
        let mut at = 0;
        let [lint, _] = with("pack.yaml", |text| {
            let text = text.replacen("\ntemplates:", &overlays(line), 1);
            at = text.lines().position(|it| it.contains(line)).expect("it was put there") + 1;
            text
        });
        let expected = format!("mine/pack.yaml:{at}: {expected}");
        assert!(lint.1.contains(&expected), "no {expected:?} in\n{}", lint.1);
        assert_eq!(lint.0, 1);
    };
    check("{path: servce, kind: Service}", "the schema of the parameters has no servce (did you mean \"service\"?)");
    check("{path: service.patch, kind: Service}", "the schema of the parameters has no service.patch");
    check("{path: service, kind: Servcie}", "no template renders a Servcie (did you mean \"Service\"?)");
    check("{path: service, kind: DaemonSet}", "no template renders a DaemonSet (they render Deployment, Service)");
    check("{path: service, kind: Job, creates: true}", "an overlay cannot make a Job (it can make");
}

#[test]
fn lint_and_test_say_all_mistakes_at_once() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["pack", "new", "mine"]).0, 0);
    let change = |file: &str, from: &str, to: &str| {
        let path = desk.path().join("mine").join(file);
        let text = fs::read_to_string(&path).expect("it was written");
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replace(from, to)).expect("it can be written");
    };
    change("service.yaml", "workload | json", "wrokload | json");
    change("deployment.yaml", "params.image", "params.imgae");
    let (_, _, lint) = desk.run(&["pack", "lint", "mine"]);
    let (_, out, test) = desk.run(&["pack", "test", "mine"]);
    assert!(out.contains("a_gateway: DIFFERENT"), "{out}");
    for said in [&lint, &test] {
        assert!(said.contains("wrokload") && said.contains("imgae"), "{said}");
    }
    change("service.yaml", "wrokload | json }}", "workload | jsno }}");
    change("deployment.yaml", "params.imgae | json }}", "params.image | }}");
    let (code, _, lint) = desk.run(&["pack", "lint", "mine"]);
    assert_eq!(code, 1);
    for line in ["mine/service.yaml:4: Unknown filter `jsno`", "mine/deployment.yaml:16: "] {
        assert!(lint.contains(line), "no {line:?} in\n{lint}");
    }
}

#[test]
fn test_says_every_place_that_differs() {
    let [_, test] =
        with("deployment.yaml", |text| text.replace("name: proxy", "name: other").replace("apps/v1", "apps/v2"));
    for part in ["expected: apiVersion: apps/v1", "rendered: apiVersion: apps/v2", "rendered:         name: other"] {
        assert!(test.1.contains(part), "no {part:?} in\n{}", test.1);
    }
}

#[test]
fn a_port_or_container_that_is_there_twice_is_said_before_a_server_says_it() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["pack", "new", "mine"]).0, 0);
    let path = desk.path().join("mine/service.yaml");
    let service = fs::read_to_string(&path).expect("it was written") + "    - {name: more, port: 8080}\n";
    fs::write(&path, service).expect("it can be written");
    let said = "Service infra/edge-mine has 2 ports with the port 8080 and protocol \"TCP\"";
    for arguments in [
        &["pack", "test", "mine"][..],
        &["--packs", "mine", "check", "mine/cases/a_gateway/in"],
        &["--packs", "mine", "render", "mine/cases/a_gateway/in"],
    ] {
        let (code, out, complaints) = desk.run(arguments);
        assert_eq!(code, 1, "{arguments:?}: {out}");
        assert!((out.clone() + &complaints).contains(said), "{arguments:?}: {out}{complaints}");
    }
    let [_, test] = with("deployment.yaml", |text| text + "        - {name: proxy, image: b}\n");
    assert!(test.1.contains("has 2 containers with the name \"proxy\""), "{}", test.1);
}

#[test]
fn a_pack_may_have_its_parameters_in_a_config_map() {
    let desk = Desk::new();
    let (code, _, complaints) = desk.run(&["pack", "new", "mine", "--parameters", "ConfigMap"]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert_eq!(
        desk.run(&["pack", "test", "mine"]),
        (0, "a_gateway: ok\n1 case, 0 different\n".to_owned(), String::new())
    );
    let (code, out, complaints) = desk.run(&["pack", "lint", "mine"]);
    assert_eq!((code, out.as_str(), complaints.as_str()), (0, "pack mine: nothing is wrong\n", ""));
    let manifest = fs::read_to_string(desk.path().join("mine/pack.yaml")).expect("it was written");
    assert!(manifest.contains("  group: \"\"\n  kind: ConfigMap\n  versions: [v1]\n"), "{manifest}");
}

#[test]
fn lint_finds_nothing_wrong_with_the_packs_that_are_built_in() {
    let desk = Desk::new();
    for pack in ["agentgateway", "body-based-router", "dynamo", "endpoint-picker", "kgateway", "kserve"] {
        let folder = in_repository(&format!("templates/{pack}"));
        let (code, _, complaints) = desk.run(&["pack", "lint", folder.to_str().expect("the path is text")]);
        assert_eq!(code, 0, "{complaints}");
    }
}

#[test]
fn a_file_that_replaces_one_of_a_built_in_pack_is_examined() {
    let desk = Desk::new();
    let text = fs::read_to_string(in_repository("templates/kgateway/serviceaccount.yaml")).expect("it is there");
    let folder = desk.path().join("kgateway");
    fs::create_dir(&folder).expect("it can be written");
    fs::write(folder.join("serviceaccount.yaml"), &text).expect("it can be written");
    assert_eq!(desk.run(&["pack", "lint", "kgateway"]).0, 0);
    let line = text.lines().position(|line| line.contains("| json }}")).expect("it has values") + 1;
    fs::write(folder.join("serviceaccount.yaml"), text.replacen("| json }}", "}}", 1)).expect("it can be written");
    let (code, _, complaints) = desk.run(&["pack", "lint", "kgateway"]);
    let expected = format!("kgateway/serviceaccount.yaml:{line}: a value is printed without an encoding filter");
    assert!(code == 1 && complaints.contains(&expected), "{complaints}");
}
