//! Rules and their pages: each has one in `docs/rules`, whose first example breaks it and nothing else, and whose second
//! one breaks nothing.

use std::fs;

use gatewright::config::packs::{build, folders};
use gatewright_engine::pack::Packs;
use gatewright_engine::problem::Scope;
use gatewright_engine::rules::policies::{PodSecurity, Policies};
use gatewright_engine::rules::{ALL, Rule, Severity};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options};

use crate::cluster::ApiServer;
use crate::cluster::binaries::in_repository;
use crate::cluster::process::Folder;
use crate::golden::blesses;
use crate::program::Desk;

const PAGES: &str = "docs/rules";

/// The day on which certificates are looked at: the first of July 2026.
const NOW: i64 = 1_782_864_000;

/// The first rule about pods.
const FIRST_OF_PODS: &str = "GW027";

fn packs() -> Packs {
    let folders = folders(&gatewright_packs::all().into(), []).expect("there are none");
    build(None, &folders).expect("they load")
}

/// Returns packs under the policy that a page puts in force, if it does.
fn packs_for(page: &str) -> Packs {
    let text = block(page, "In force by", "yaml");
    let settings = gatewright_engine::yaml::parse_values(text).expect("it is YAML").pop().unwrap_or_default();
    let policies: Option<Policies> = serde_json::from_value(settings["policies"].clone()).expect("they are policies");
    packs().with_policies(policies.unwrap_or_default())
}

fn page(rule: &Rule) -> String {
    let path = in_repository(&format!("{PAGES}/{}.md", rule.id));
    fs::read_to_string(&path).unwrap_or_else(|error| format!("there is no page: {error}"))
}

/// Returns the text of a block below a heading.
fn block<'a>(page: &'a str, heading: &str, language: &str) -> &'a str {
    let below = page.split_once(&format!("\n## {heading}\n")).map_or("", |(_, below)| below);
    let below = below.split("\n## ").next().unwrap_or_default();
    let inside = below.split_once(&format!("```{language}\n")).map_or("", |(_, inside)| inside);
    inside.split_once("```").map_or("", |(inside, _)| inside)
}

fn lines(text: &str, packs: &Packs) -> (String, bool) {
    let rendering = unit::render(
        &Tree::from_iter([("gateway.yaml", text)]),
        packs,
        &Options { is_check: true, apply_unclaimed: true, now: Some(NOW), ..Options::default() },
    );
    let is_error = rendering.problems.iter().any(|problem| problem.scope != Scope::Warning);
    let lines = rendering.problems.iter().flat_map(|problem| [problem.to_string(), "\n".to_owned()]);
    (lines.collect(), is_error)
}

#[test]
fn each_rule_has_a_page_and_each_page_a_rule() {
    let index = fs::read_to_string(in_repository(&format!("{PAGES}/README.md"))).expect("it is there");
    for rule in &ALL {
        let Rule { id, name, severity, summary, .. } = rule;
        let page = page(rule);
        assert!(page.starts_with(&format!("# {id}: {name}\n\n{summary}\n")), "{id}: {page}");
        let shown = |text: &str| if text.is_empty() { "none".to_owned() } else { format!("`{text}`") };
        let row = format!("\n| {severity} | {} | {} |\n", shown(rule.condition), shown(rule.reason));
        assert!(page.contains(&row), "{id} has no line {row}");
        let mark = if rule.is_fixed { "*" } else { "" };
        let row = format!("\n| [{id}]({id}.md) | `{name}` | {severity}{mark} | {summary} |\n");
        assert!(index.contains(&row), "the index has no line {row}");
    }
    let entries = fs::read_dir(in_repository(PAGES)).expect("they can be listed");
    let names = entries.map(|entry| entry.expect("they can be listed").file_name().to_string_lossy().into_owned());
    let is_known = |name: &String| ALL.iter().any(|rule| *name == format!("{}.md", rule.id)) || name == "README.md";
    assert_eq!(names.filter(|name| !is_known(name)).collect::<Vec<_>>(), [""; 0]);
}

/// The text below the first example is what is said about it; `GATEWRIGHT_BLESS=1` writes it again.
#[test]
fn the_first_example_of_a_page_breaks_its_rule_and_the_second_none() {
    for rule in &ALL {
        let (id, page) = (rule.id, page(rule));
        let packs = packs_for(&page);
        let wrong = block(&page, "Wrong", "yaml");
        let (said, is_error) = lines(wrong, &packs);
        assert!(!said.is_empty() && said.lines().all(|line| line.ends_with(&format!(" [{id}]"))), "{id}: {said}");
        assert_eq!(is_error, rule.severity == Severity::Error, "{id}: {said}");
        let shown = block(&page, "Wrong", "text");
        if blesses() {
            let path = in_repository(&format!("{PAGES}/{id}.md"));
            fs::write(path, page.replacen(shown, &said, 1)).expect("it can be written");
        } else {
            assert_eq!(shown, said, "{id}");
        }
        let mended = block(&page, "Mended", "yaml");
        assert!(!mended.is_empty() && mended != wrong, "{id}");
        assert_eq!(lines(mended, &packs).0, "", "{id}");
    }
}

#[test]
fn the_last_example_of_a_page_can_be_written_into_a_config_file() {
    let desk = Desk::quickstart("gatewright.yaml");
    let usual = desk.read("gatewright.yaml");
    for rule in ALL.iter().filter(|rule| !rule.is_fixed) {
        let page = page(rule);
        let settings = block(&page, "Another severity", "yaml");
        assert!(settings.contains(&rule.id.to_string()), "{}", rule.id);
        desk.write("gatewright.yaml", &format!("{usual}{settings}"));
        desk.run(&["config", "check"]).exits(0);
        desk.write("wrong/gateway.yaml", block(&page, "Wrong", "yaml"));
        let run = desk.run(&["check", "wrong"]);
        assert!(run.code == 0 || rule.id == gatewright_engine::rules::UNSUPPORTED_ADDRESS_TYPE, "{}", run.err);
    }
}

#[test]
fn a_rule_that_is_turned_up_holds_in_every_command() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0).says("12 objects created");
    desk.replace("specs/shop/storefront.yaml", "cert-manager.io/cluster-issuer", "example.com/other");
    desk.run(&["check", "specs"]).exits(0).complains("names Secret shop/shop-example-com").complains("[GW010]\n");
    let plan = desk.run(&["plan", "--detailed-exitcode"]).exits(0);
    assert!(!plan.out.contains("GW010"), "a cluster may have the Secret: {}", plan.out);
    let usual = desk.read("gatewright.yaml");
    desk.write("gatewright.yaml", &format!("{usual}rules: {{GW010: {{severity: error}}}}\n"));
    desk.replace("specs/shop/storefront.yaml", "port: 8080", "port: 8081");
    desk.run(&["check", "specs"]).exits(1).complains("[GW010]\n");
    desk.run(&["sync"]).says("[GW010]\n").says("8 objects up to date, 4 objects kept");
    desk.write("gatewright.yaml", &format!("{usual}rules: {{GW010: {{severity: off, reason: a test}}}}\n"));
    let run = desk.run(&["sync"]).exits(0).says("2 objects updated");
    assert!(!run.out.contains(" problem"), "{}", run.out);
}

#[test]
fn a_config_file_names_rules_that_there_are_and_says_why() {
    let desk = Desk::quickstart("gatewright.yaml");
    let usual = desk.read("gatewright.yaml");
    for (setting, message) in [
        ("GW01: {severity: off}", "there is no rule \"GW01\" (did you mean \"GW001\"?)"),
        ("GW010: {severity: off}", "GW010 (certificate-not-found) is usually a warning, and less needs a reason"),
        (
            "GW010: {severity: loud}",
            "rules.GW010.severity is the string \"loud\", but must be one of off, warning, error",
        ),
        ("GW001: {severity: off, reason: a test}", "GW001 (class-not-found) stays an error"),
    ] {
        desk.write("gatewright.yaml", &format!("{usual}rules:\n  {setting}\n"));
        let line = usual.lines().count() + 2;
        desk.run(&["config", "check"]).exits(64).complains(&format!("gatewright.yaml:{line}: {message}"));
    }
}

/// Returns what is rendered of a text as Deployments, as a round would send them.
fn deployments(text: &str, packs: &Packs) -> Vec<serde_json::Value> {
    let rendering = unit::render(&Tree::from_iter([("it.yaml", text)]), packs, &Options::default());
    let objects = rendering.units.iter().flat_map(|unit| &unit.objects);
    objects.filter(|object| object.id().is_a("apps", "Deployment")).map(|object| object.body().clone()).collect()
}

/// Templates of pods, one on a line, each with one value that is wrong.
const WRONG_TEMPLATES: &str = include_str!("rules/wrong-templates.txt");

/// The service whose template they are.
const SERVICE: &str = "\
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: llama, namespace: models}
spec:
  model: {uri: 'pvc://weights'}
  template:
    ";

/// Rules about pods say in a check what the API server says in a round, where they are warnings.
#[test]
fn an_error_in_a_pod_is_one_that_an_api_server_refuses() {
    let (server, packs) = (ApiServer::start(), packs());
    server.kubectl_ok(&["create", "namespace", "models"]);
    server.kubectl_ok(&["create", "namespace", "infra"]);
    let folder = Folder::new();
    let file = folder.path().join("it.json");
    let takes = |text: &str| {
        let deployments = deployments(text, &packs);
        !deployments.is_empty()
            && deployments.iter().all(|deployment| {
                fs::write(&file, deployment.to_string()).expect("it can be written");
                server.kubectl(&["apply", "--dry-run=server", "--filename", &file.to_string_lossy()]).status.success()
            })
    };
    for rule in ALL.iter().filter(|rule| rule.id.to_string().as_str() >= FIRST_OF_PODS) {
        let page = page(rule);
        // What is forbidden by nobody else is no matter of this server, and what has no pods none of this test.
        if !block(&page, "In force by", "yaml").is_empty() || rule.name == "unknown-kind" {
            continue;
        }
        assert_eq!(takes(block(&page, "Wrong", "yaml")), rule.severity == Severity::Warning, "{}", rule.id);
        assert!(takes(block(&page, "Mended", "yaml")), "{}", rule.id);
    }
    assert!(takes(&format!("{SERVICE}containers: [{{name: main}}]\n")));
    let wrong = WRONG_TEMPLATES.lines().map(|template| format!("{SERVICE}{template}\n"));
    let verdicts: Vec<(String, bool, bool)> =
        wrong.map(|text| (text.clone(), takes(&text), lines(&text, &packs).1)).collect();
    let apart: Vec<_> = verdicts.iter().filter(|(_, is_taken, is_error)| *is_taken || !*is_error).collect();
    assert!(apart.is_empty(), "{apart:#?}");
}

/// Documents that no API server takes, each on a line.
const WRONG_OBJECTS: &str = include_str!("rules/wrong-objects.txt");

/// Documents that every API server takes, and that are written in a way that people should not copy.
const RIGHT_OBJECTS: &str = include_str!("rules/right-objects.txt");

/// Types of Services, the usual one among them.
const SERVICE_TYPES: [&str; 5] =
    ["", "type: ClusterIP, ", "type: NodePort, ", "type: LoadBalancer, ", "type: ExternalName, externalName: a.b, "];

/// Fields that some types of Services take, and others do not.
const SERVICE_FIELDS: [&str; 17] = [
    "allocateLoadBalancerNodePorts: true",
    "clusterIP: None",
    "clusterIP: ''",
    "clusterIP: None, clusterIPs: [None]",
    "externalIPs: [192.0.2.1], externalTrafficPolicy: Cluster",
    "externalName: Some_Name",
    "externalTrafficPolicy: Local",
    "externalTrafficPolicy: Local, healthCheckNodePort: 30081",
    "externalTrafficPolicy: Cluster, healthCheckNodePort: 30081",
    "internalTrafficPolicy: Local",
    "ipFamilies: [IPv4]",
    "ipFamilyPolicy: PreferDualStack",
    "loadBalancerClass: a.b/c",
    "loadBalancerIP: 192.0.2.1",
    "loadBalancerSourceRanges: []",
    "loadBalancerSourceRanges: [10.0.0.0/8]",
    "sessionAffinity: None, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10}}",
];

/// Ports of Services.
const SERVICE_PORTS: [&str; 4] =
    ["", "ports: [{port: 80}]", "ports: [{port: 80, nodePort: 30080}]", "ports: [{port: 80}, {port: 81}]"];

/// Returns Services of every type with every field.
fn services() -> Vec<String> {
    let service = |spec: &str| {
        format!("{{apiVersion: v1, kind: Service, metadata: {{name: a, namespace: models}}, spec: {{{spec}}}}}")
    };
    let of_type = |ty: &&'static str| {
        let fields = SERVICE_FIELDS.map(|field| service(&format!("{ty}{field}, ports: [{{port: 80}}]")));
        let ports = SERVICE_PORTS.map(|ports| service(&format!("{ty}{ports}")));
        [&fields[..], &ports[..]].concat()
    };
    SERVICE_TYPES.iter().flat_map(of_type).collect()
}

/// A check and an API server say the same of documents that go to a cluster as they are.
#[test]
fn an_error_in_an_object_is_one_that_an_api_server_refuses() {
    let (server, packs) = (ApiServer::start(), packs());
    server.kubectl_ok(&["create", "namespace", "models"]);
    let folder = Folder::new();
    let file = folder.path().join("it.yaml");
    let takes = |text: &str| {
        fs::write(&file, text).expect("it can be written");
        let path = file.to_string_lossy();
        server.kubectl(&["apply", "--server-side", "--dry-run=server", "--filename", &path]).status.success()
    };
    let options = Options { apply_unclaimed: true, is_check: true, ..Options::default() };
    let is_error = |text: &str| {
        let rendering = unit::render(&Tree::from_iter([("it.yaml", text)]), &packs, &options);
        rendering.problems.iter().any(|problem| problem.scope != Scope::Warning)
    };
    let objects = WRONG_OBJECTS.lines().map(|text| (text, false)).chain(RIGHT_OBJECTS.lines().map(|text| (text, true)));
    let verdicts = objects.map(|(text, is_right)| (text, is_right, takes(text), !is_error(text)));
    let apart: Vec<_> = verdicts.filter(|(_, right, server, check)| right != server || right != check).collect();
    let verdicts = services().into_iter().map(|text| (takes(&text), !is_error(&text), text));
    let services: Vec<_> = verdicts.filter(|(server, check, _)| server != check).collect();
    let none = (apart.is_empty(), services.is_empty());
    assert_eq!(none, (true, true), "right for a person, the server, the check: {apart:#?}; Services: {services:#?}");
}

/// Pods, each on a line, of which levels of the Pod Security Standards say different things.
const LEVELS: &str = include_str!("rules/levels.txt");

/// A pod keeps to a level here exactly if an API server takes it in a namespace where that level is enforced.
#[test]
fn a_level_of_pod_security_is_that_of_an_api_server() {
    let server = ApiServer::start();
    let folder = Folder::new();
    let file = folder.path().join("it.yaml");
    let mut apart = Vec::new();
    for (namespace, level) in [("baseline", PodSecurity::Baseline), ("restricted", PodSecurity::Restricted)] {
        server.kubectl_ok(&["create", "namespace", namespace]);
        server.kubectl_ok(&["create", "serviceaccount", "default", "--namespace", namespace]);
        let label = format!("pod-security.kubernetes.io/enforce={namespace}");
        server.kubectl_ok(&["label", "namespace", namespace, &label]);
        let packs = packs().with_policies(Policies { pod_security: Some(level), ..Policies::default() });
        let options = Options { apply_unclaimed: true, is_check: true, ..Options::default() };
        for spec in LEVELS.lines() {
            let pod =
                format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: {namespace}}}, spec: {spec}}}");
            fs::write(&file, pod).expect("it can be written");
            let path = file.to_string_lossy();
            let taken = server.kubectl(&["apply", "--dry-run=server", "--filename", &path]).status.success();
            let deployment = format!(
                "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a, namespace: models}}, spec: {{selector: \
                 {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {spec}}}}}}}"
            );
            let rendering = unit::render(&Tree::from_iter([("it.yaml", deployment)]), &packs, &options);
            let said: Vec<String> = rendering.problems.iter().map(ToString::to_string).collect();
            if taken != said.is_empty() {
                apart.push((namespace, spec, taken, said));
            }
        }
    }
    assert!(apart.is_empty(), "level, pod, whether the server takes it, what is said: {apart:#?}");
}
