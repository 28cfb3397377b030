//! Rules about pods, on what people write into the template of a service.

use gatewright_engine::pack::Packs;
use gatewright_engine::problem::Scope;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, render};

const SERVICE: &str = "\
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: qwen, namespace: models}
spec:
  model: {uri: 'pvc://weights'}
  template:
";

fn packs() -> Packs {
    super::only("kserve")
}

/// Returns what rules say of the template of a service, each as rule, weight, line and message.
fn found(packs: &Packs, template: &str, is_check: bool) -> Vec<String> {
    let tree = Tree::from_iter([("a.yaml", format!("{SERVICE}    {template}\n"))]);
    let rendering = render(&tree, packs, &Options { is_check, ..Options::default() });
    let found = rendering.problems.iter().filter_map(|problem| {
        let weight = if problem.scope == Scope::Warning { "warning" } else { "error" };
        Some(format!("{} {weight} {} {}", problem.rule?, problem.place.line, problem.message))
    });
    found.collect()
}

fn check(template: &str, expected: &[(&str, &str)]) {
    let found = found(&packs(), template, true);
    assert_eq!(found.len(), expected.len(), "{template}: {found:#?}");
    for (found, (begin, part)) in found.iter().zip(expected) {
        assert!(found.starts_with(begin) && found.contains(part), "{template}: {found}");
    }
}

#[test]
fn containers_are_judged_with_those_of_the_preset() {
    check("containers: [{name: main}]", &[]);
    check("containers: [{name: mian}]", &[("GW027 error 7", "\"mian\" has no image")]);
    check("containers: [{name: main, image: ''}]", &[]);
    check(
        "{initContainers: [{name: first}], containers: [{name: main}]}",
        &[("GW027 error 7", "\"first\" has no image")],
    );
    check("containers: [{name: main, volumeMounts: [{name: home, mountPath: /h}]}]", &[]);
    check("containers: [{name: main, volumeMounts: [{name: hme, mountPath: /h}]}]", &[("GW030 error 7", "\"hme\"")]);
}

#[test]
fn requests_and_limits_go_together() {
    let resources = |text: &str| format!("containers: [{{name: main, resources: {{{text}}}}}]");
    let check = |text: &str, expected: &[(&str, &str)]| check(&resources(text), expected);
    check("limits: {cpu: 1}, requests: {cpu: 1000m}", &[]);
    check("limits: {cpu: 1}, requests: {cpu: 1001m}", &[("GW029 error 7", "requests 1001m of \"cpu\"")]);
    check("limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: '2'}", &[]);
    check("requests: {nvidia.com/gpu: 1}", &[("GW029 error 7", "has no limit for it")]);
    check("limits: {amd.com/gpu: 2}, requests: {amd.com/gpu: 1}", &[("GW029 error 7", "its limit is 2")]);
    check("limits: {nvidia.com/mig-1g.5gb: 1, rdma/ib: 1, nvidia.com/gpu.shared: 1, ephemeral-storage: 1Gi}", &[]);
    check("limits: {nvidia.com/gpus: 1}", &[("GW028 warning 7", "no node is known to have")]);
    check("limits: {gpu: 1}", &[("GW028 error 7", "which is no resource")]);
    check("limits: {mem: 1Gi}", &[("GW028 error 7", "which is no resource")]);
}

#[test]
fn a_second_container_on_a_port_is_told_where_it_stands() {
    let side = |port: &str| format!("containers: [{{name: main}}, {{name: side, image: a/b:1, ports: [{port}]}}]");
    check(&side("{containerPort: 8000}"), &[("GW031 warning 7", "\"main\" and \"side\" both have port 8000")]);
    check(&side("{containerPort: 8000, protocol: UDP}"), &[]);
    let first =
        "{initContainers: [{name: first, image: a/b:1, ports: [{containerPort: 8000}]}], containers: [{name: main}]}";
    check(first, &[]);
    check(&first.replace("ports", "restartPolicy: Always, ports"), &[("GW031 warning", "both have port 8000")]);
}

#[test]
fn what_is_optional_or_in_the_source_is_not_missed() {
    let env = |text: &str| format!("containers: [{{name: main, envFrom: [{{secretRef: {{{text}}}}}]}}]");
    check(&env("name: token"), &[("GW033 warning 7", "names Secret models/token")]);
    check(&env("name: token, optional: true"), &[]);
    let secret = |name: &str| {
        let document = format!("---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: models}}");
        format!("{}\n{document}", env("name: token"))
    };
    check(&secret("token"), &[]);
    check(&secret("tokn"), &[("GW033 warning 7", "names Secret models/token")]);
    check("serviceAccountName: default", &[]);
    // The preset has volumes and variables of its own, and nobody has to bring what they name.
    check("containers: [{name: main}]", &[]);
}

#[test]
fn a_round_only_warns_of_what_the_api_server_judges() {
    let (packs, template) = (packs(), "containers: [{name: main, resources: {requests: {nvidia.com/gpu: 1}}}]");
    assert!(found(&packs, template, true)[0].starts_with("GW029 error 7"));
    assert!(found(&packs, template, false)[0].starts_with("GW029 warning 7"));
    let env = "containers: [{name: main, envFrom: [{secretRef: {name: token}}]}]";
    assert_eq!(found(&packs, env, false), [""; 0], "the cluster may have it");
}

#[test]
fn a_model_is_spread_over_devices_that_are_there() {
    let args = |args: &str, gpus: &str| {
        format!("containers: [{{name: main, args: [{args}], resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]")
    };
    let wide = [("GW034 warning 7", "over 4 devices, but may use 2")];
    for four in ["--tensor-parallel-size, '4'", "--tensor-parallel-size=4", "--tp, '4'", "'--x 1 --tp-size \"4\" --y'"]
    {
        check(&args(four, "2"), &wide);
        check(&args(four, "4"), &[]);
    }
    check(&args("--tpu, '4'", "2"), &[]);
    check("containers: [{name: main, args: [--tp, '4']}]", &[]);
}
