//! Rules about rendered objects, on what people write into overlays and into documents that no pack claims.

use gatewright_engine::pack::Packs;
use gatewright_engine::problem::Scope;
use gatewright_engine::rules::policies::{ImagePolicy, PodSecurity, Policies};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, render};

const GATEWAY: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec:
  controllerName: kgateway.dev/kgateway
  parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: edge, namespace: infra}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: edge
  listeners: [{name: http, port: 80, protocol: HTTP}]
";

const PARAMETERS: &str = "\
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: edge, namespace: infra}
spec:
";

fn packs() -> Packs {
    super::only("kgateway")
}

/// Returns what rules say, each as rule, weight, line, column and message, in the order of the places.
fn found(files: &[(&str, &str)], options: &Options) -> Vec<String> {
    let tree: Tree = files.iter().copied().collect();
    let rendering = render(&tree, &packs(), options);
    let line = |problem: &gatewright_engine::problem::Problem| {
        let weight = if problem.scope == Scope::Warning { "warning" } else { "error" };
        let rule = problem.rule.map(|rule| rule.to_string()).unwrap_or_default();
        let hint = problem.hint.as_deref().unwrap_or("no hint");
        let place = &problem.place;
        format!("{rule} {weight} {}:{}:{} {} ({hint})", place.file, place.line, place.column, problem.message)
    };
    rendering.problems.iter().map(line).collect()
}

#[track_caller]
fn check(files: &[(&str, &str)], options: &Options, expected: &[(&str, &str)]) {
    let found = found(files, options);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, (begin, part)) in found.iter().zip(expected) {
        assert!(found.starts_with(begin) && found.contains(part), "{found}");
    }
}

fn checking() -> Options {
    Options { is_check: true, ..Options::default() }
}

/// Checks parameters; each line of `spec` begins below `spec`.
#[track_caller]
fn check_parameters(spec: &str, expected: &[(&str, &str)]) {
    check(&[("g.yaml", GATEWAY), ("p.yaml", &format!("{PARAMETERS}{spec}"))], &checking(), expected);
}

#[track_caller]
fn check_patch(patch: &str, expected: &[(&str, &str)]) {
    let overlay = format!(
        "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: big}}\nspec:\n  \
         objectPatches:\n    - {patch}\n"
    );
    let parameters = format!("{PARAMETERS}  kube: {{}}\n");
    check(&[("g.yaml", GATEWAY), ("o.yaml", &overlay), ("p.yaml", &parameters)], &checking(), expected);
}

#[test]
fn fields_of_overlays_are_told_where_they_stand() {
    check_parameters(
        "  kube:\n    deploymentOverlay:\n      spec:\n        minReadySecond: 1\n        template:\n          spec:\n            \
         containers:\n              - {name: kgateway-proxy, imagePullPolicyy: Always}\n",
        &[
            ("GW035 error p.yaml:8:9 ", "unknown field \"minReadySecond\" in spec (did you mean \"minReadySeconds\"?)"),
            ("GW035 error p.yaml:12:40 ", "in spec.template.spec.containers[0] (did you mean \"imagePullPolicy\"?)"),
        ],
    );
    let service = |spec: &str| format!("  kube:\n    serviceOverlay:\n      spec: {{{spec}}}\n");
    check_parameters(&service("loadBalancerclass: a.b/c"), &[("GW035 error p.yaml:7:14 ", "\"loadBalancerClass\"?")]);
    check_parameters(
        &service("zzz: 1"),
        &[("GW035 error p.yaml:7:14 ", "(Kubernetes 1.35 has no such field; a newer")],
    );
    check_parameters(&service("publishNotReadyAddresses: true"), &[]);
}

#[test]
fn a_line_for_many_gateways_is_one_warning_of_a_round_and_an_error_for_each() {
    let second = GATEWAY.split_once("---\n").map_or("", |(_, gateway)| gateway).replace("name: edge,", "name: west,");
    let gateways = format!("{GATEWAY}---\n{second}");
    let parameters = format!("{PARAMETERS}  kube:\n    serviceOverlay: {{spec: {{zzz: 1}}}}\n");
    let files = [("g.yaml", gateways.as_str()), ("p.yaml", parameters.as_str())];
    check(
        &files,
        &checking(),
        &[("GW035 error p.yaml:6:29 ", "Service infra/edge"), ("GW035 error", "Service infra/west")],
    );
    check(&files, &Options::default(), &[("GW035 warning p.yaml:6:29 ", "\"zzz\" in spec")]);
}

#[test]
fn values_of_another_type_are_told_without_the_value() {
    let container = |field: &str| {
        format!(
            "  kube:\n    deploymentOverlay:\n      spec:\n        template:\n          spec:\n            containers:\n              \
             - name: kgateway-proxy\n                {field}\n"
        )
    };
    let env = container("env: [{name: A, value: 17}]");
    check_parameters(&env, &[("GW035 error p.yaml:12:40 ", "is an integer, but must be a string (put it in quotes")]);
    let limits = container("resources: {limits: {cpu: [1]}}");
    check_parameters(&limits, &[("GW035 error p.yaml:12:43 ", "but must be a quantity, such as 500m, 1.5 or 2Gi")]);
    check_parameters(&container("resources: {limits: {cpu: 1.5}}"), &[]);
    check_parameters(&container("env: [{name: A, value: null}]"), &[]);
    check_parameters(&container("livenessProbe: {httpGet: {port: http, path: /}}"), &[]);
    let port = container("livenessProbe: {httpGet: {port: '80', path: /}}");
    check_parameters(&port, &[("GW032 error p.yaml:12:", "")]);
}

/// Parameters have the container under another name than its own.
#[test]
fn a_variable_is_told_where_it_is_written_whatever_its_container_is_called_there() {
    let env = "  kube:\n    envoyContainer:\n      env:\n        - {name: B, value: b}\n        \
               - {name: A, value: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n";
    check_parameters(env, &[("GW032 error p.yaml:9:11 ", "has both value and valueFrom")]);
}

#[test]
fn patches_of_every_sort_are_told_where_they_stand() {
    let merge = "target: {kind: Deployment}\n      patch: {spec: {template: {spec: {hostnetwork: true}}}}";
    check_patch(merge, &[("GW035 error o.yaml:7:40 ", "did you mean \"hostNetwork\"?")]);
    let json = "target: {kind: Service}\n      patch:\n        - {op: add, path: /spec/ipFamily, value: IPv4}";
    check_patch(json, &[("GW035 error o.yaml:8:50 ", "unknown field \"ipFamily\" in spec")]);
    let nested = "target: {kind: Service}\n      patch:\n        - {op: add, path: /spec/ports/0, value: {port: a}}";
    check_patch(nested, &[("GW035 error o.yaml:8:56 ", "spec.ports[0].port is a string, but must be an integer")]);
}

#[test]
fn documents_that_no_pack_claims_are_compared_as_well() {
    let document =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: infra}\nspec:\n  replicsa: 2\n";
    let said = "unknown field \"replicsa\" in spec (did you mean \"replicas\"?)";
    check(&[("d.yaml", document)], &checking(), &[("GW035 warning d.yaml:5:3 ", said)]);
    let applied = Options { apply_unclaimed: true, ..checking() };
    check(&[("d.yaml", document)], &applied, &[("GW035 error d.yaml:5:3 ", said)]);
    let round = Options { is_check: false, ..applied };
    check(&[("d.yaml", document)], &round, &[("GW035 warning d.yaml:5:3 ", said)]);
    check(&[("d.yaml", document)], &Options::default(), &[]);
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: infra}\ndata: hunter2\n";
    let found = found(&[("d.yaml", secret)], &checking());
    assert!(found.len() == 1 && found[0].contains("data is a string, but must be an object"), "{found:?}");
}

#[test]
fn what_only_templates_have_made_is_not_looked_at() {
    check_parameters("  kube: {deployment: {replicas: 2}}\n", &[]);
}

#[test]
fn names_and_labels_of_overlays_are_told_where_they_stand() {
    let labels = |labels: &str| format!("  kube:\n    deploymentOverlay:\n      metadata: {{labels: {{{labels}}}}}\n");
    check_parameters(&labels("team: shop floor"), &[("GW036 error p.yaml:7:33 ", "the value \"shop floor\"")]);
    check_parameters(&labels("'a b': c"), &[("GW036 error p.yaml:7:27 ", "the key of label \"a b\"")]);
    check_parameters(&labels("example.com/team: shop"), &[]);
    let template = |labels: &str| {
        format!(
            "  kube:\n    deploymentOverlay:\n      spec:\n        template:\n          metadata:\n            \
             labels: {{{labels}}}\n"
        )
    };
    check_parameters(&template("a: b-"), &[("GW036 error p.yaml:10:25 ", "label \"a\" has the value \"b-\"")]);
    let other = template("gateway.networking.k8s.io/gateway-name: other");
    check_parameters(
        &other,
        &[("GW036 error g.yaml:8:1 ", "do not have the label \"gateway.networking.k8s.io/gateway-name\"")],
    );
}

#[test]
fn fields_of_services_and_autoscalers_go_together() {
    let service = |spec: &str| {
        format!("  kube:\n    service: {{type: ClusterIP}}\n    serviceOverlay:\n      spec: {{{spec}}}\n")
    };
    let check_service = |spec: &str, expected: &[(&str, &str)]| check_parameters(&service(spec), expected);
    check_service(
        "loadBalancerClass: a.b/c",
        &[("GW036 error p.yaml:8:33 ", "does not go together with the type ClusterIP")],
    );
    check_service("type: LoadBalancer, loadBalancerClass: a.b/c", &[]);
    check_service("type: loadbalancer", &[("GW036 error p.yaml:8:20 ", "did you mean \"LoadBalancer\"?")]);
    let scaler = "  kube:\n    horizontalPodAutoscaler:\n      spec: {minReplicas: 3, maxReplicas: 2}\n";
    check_parameters(scaler, &[("GW036 error p.yaml:7:27 ", "spec.minReplicas is 3, and spec.maxReplicas is 2")]);
    let budget = "  kube:\n    podDisruptionBudget:\n      spec: {minAvailable: 1, maxUnavailable: 1}\n";
    check_parameters(budget, &[("GW036 error p.yaml:7:47 ", "must have one at most")]);
}

/// Returns what is wrong with a Gateway with parameters under policies.
fn under(parameters: &str, policies: Policies) -> Vec<String> {
    let parameters = format!("{PARAMETERS}{parameters}");
    let tree = Tree::from_iter([("g.yaml", GATEWAY), ("p.yaml", &parameters)]);
    let problems = render(&tree, &packs().with_policies(policies), &Options::default()).problems;
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn proxies_of_kgateway_keep_to_restricted_with_a_seccomp_profile() {
    let said =
        |parameters: &str, level| under(parameters, Policies { pod_security: Some(level), ..Policies::default() });
    assert_eq!(said("  kube: {}\n", PodSecurity::Baseline), [""; 0]);
    let found = said("  kube: {}\n", PodSecurity::Restricted);
    assert!(found.len() == 1 && found[0].contains("seccompProfile of the container \"kgateway-proxy\""), "{found:#?}");
    let profile = "  kube: {podTemplate: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}\n";
    assert_eq!(said(profile, PodSecurity::Restricted), [""; 0]);
    let host = "  kube: {deploymentOverlay: {spec: {template: {spec: {hostNetwork: true}}}}}\n";
    let found = said(host, PodSecurity::Baseline);
    // What the deployer sets for low ports is none of a pod's own settings there, so that an API server refuses it.
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("net.ipv4.ip_unprivileged_port_start") && found[0].ends_with("[GW032]"), "{found:#?}");
    assert!(found[1].starts_with("p.yaml:5: ") && found[1].contains("hostNetwork is true"), "{found:#?}");
}

#[test]
fn images_are_from_the_registries_of_the_policy_and_have_a_digest() {
    let images = ImagePolicy { registries: vec!["cr.kgateway.dev".to_owned()], digests: false };
    let said = |parameters: &str, images: &ImagePolicy| {
        under(parameters, Policies { images: images.clone(), ..Policies::default() })
    };
    assert_eq!(said("  kube: {}\n", &images), [""; 0]);
    let overlay = |spec: &str| format!("  kube: {{deploymentOverlay: {{spec: {{template: {{spec: {{{spec}}}}}}}}}}}\n");
    let found = said(&overlay("initContainers: [{name: a, image: 'a.example/b:1'}]"), &images);
    assert!(found.len() == 1 && found[0].contains("the image \"a.example/b:1\" of the container \"a\""), "{found:#?}");
    let found = said(&overlay("volumes: [{name: v, image: {reference: 'a.example/v:1'}}]"), &images);
    assert!(found.len() == 1 && found[0].contains("the image \"a.example/v:1\" of the volume \"v\""), "{found:#?}");
    let found = said("  kube: {}\n", &ImagePolicy { digests: true, ..images });
    assert!(found.len() == 1 && found[0].contains("of the container \"kgateway-proxy\" has no digest"), "{found:#?}");
}
