//! Findings of `check` as people see them: the line with the place marked, and no secret in any form.

use crate::program::Desk;

/// Class of all Gateways here.
const CLASS: &str = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\n\
                     spec: {controllerName: kgateway.dev/kgateway}\n";

fn desk() -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", "stateDir: ./state\n");
    desk.write("specs/class.yaml", CLASS);
    desk
}

fn gateway(name: &str, listeners: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  \
         gatewayClassName: edge\n  {listeners}\n"
    )
}

#[test]
fn a_mistake_is_shown_where_it_stands_with_what_to_write() {
    let desk = desk();
    desk.write("specs/edge.yaml", &gateway("edge", "listners: [] # soon"));
    let run = desk.run(&["check", "specs"]).exits(1);
    let expected = "specs/edge.yaml:6:3: error: Gateway shop/edge: unknown field \"listners\" in spec\n  \
                    |\n6 |   listners: [] # soon\n  |   ^^^^^^^^\n  |\n  = help: did you mean \"listeners\"?\n\n\
                    1 mistake can be mended: see `gatewright check --fix --dry-run`\n";
    assert_eq!(run.err, expected);
    let run = desk.run(&["check", "specs", "--format", "short"]).exits(1);
    let line = "specs/edge.yaml:6:3: error: Gateway shop/edge: unknown field \"listners\" in spec (did you mean \"listeners\"?)\n";
    assert_eq!(run.err, line);
    desk.write(
        "specs/edge.yaml",
        &gateway("edge", "listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}]"),
    );
    desk.run(&["check", "specs"])
        .exits(0)
        .complains("specs/edge.yaml:6:")
        .complains(": warning: ")
        .complains("[GW010]\n");
}

#[test]
fn long_lines_many_mistakes_and_odd_files_stay_readable() {
    let desk = desk();
    let long = gateway("long", &format!("listners: [{{name: {}}}]", "x".repeat(1_000_000)));
    desk.write("specs/long.yaml", &long);
    let run = desk.run(&["check", "specs"]).exits(1).complains("^^^^^^^^");
    assert!(run.err.len() < 1000, "{} bytes", run.err.len());
    desk.write("specs/long.yaml", &gateway("odd", "listners: [] # \u{202e}").replace('\n', "\r\n"));
    let run = desk.run(&["check", "specs"]).exits(1).complains("listners: [] # \\u{202e}\n");
    assert!(!run.err.contains('\r'), "{}", run.err);
    let many: Vec<String> = (0..1000).map(|number| gateway(&format!("g{number}"), "listners: []")).collect();
    desk.write("specs/long.yaml", &many.join("---\n"));
    let run = desk.run(&["check", "specs"]).exits(1).complains("900 more findings, without the lines of the files\n");
    assert_eq!(run.err.matches(": error: ").count(), 1000);
    assert_eq!(run.err.matches("^^^^^^^^").count(), 100);
}

/// Mistakes of all sorts, each close to a secret.
const CLOSE: [&str; 9] = [
    "apiVersion: v1\nkind: Secret\nmetadata: {name: 5, annotations: {a: hunter2-x}}\nstringData: {pw: hunter2-x}\n",
    "apiVersion: v1\nkind: SecretList\nitems: {a: {metadata: {name: a}, data: {pw: hunter2-x}}}\n",
    "apiVersion: v1\nkind: Secret\nstringData: {pw: hunter2-x}\n",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  pw: hunter2-x\n  pw: hunter2-x\n",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  pw: hunter2-x: hunter2-x\n",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pw: \"hunter2-x\n",
    "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"stringData\": {\"pw\": \"hunter2-x\"} \"metadata\": {}}\n",
    "apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceService\nmetadata: {name: a, namespace: shop}\nspec:\n  \
     model: {uri: \"hf://a/b\", name: a}\n  template: {containers: [{name: main, env: [{name: DB_PASSWORD, vlaue: hunter2-x}]}]}\n",
    "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: shop}\nspec: {gatewayClassName: edge, \
     listeners: [], passwrod: hunter2-x, password: {a: hunter2-x}}\n",
];

#[test]
fn no_form_shows_a_secret_that_stands_close_to_a_mistake() {
    let desk = desk();
    for text in CLOSE {
        desk.write("specs/close.yaml", text);
        for form in ["text", "short", "json", "sarif", "junit", "github"] {
            let run = desk.run(&["check", "specs", "--format", form]);
            let said = format!("{}{}", run.out, run.err);
            assert!(said.contains("close.yaml"), "{form} of {text}: {said}");
            assert!(!said.contains("hunter2"), "{form} of {text}: {said}");
        }
        let run = desk.run(&["check", "specs", "--fix", "--dry-run"]);
        assert!(!run.out.contains("hunter2") && !run.err.contains("hunter2"), "{text}: {}{}", run.out, run.err);
    }
}

#[test]
fn forms_that_kubectl_and_api_servers_take_are_taken() {
    let one = |name: &str, more: &str| {
        format!(
            "{{\"apiVersion\": \"gateway.networking.k8s.io/v1\", \"kind\": \"Gateway\", \
             \"metadata\": {{\"name\": \"{name}\", \"namespace\": \"shop\", \"labels\": null}}, \
             \"spec\": {{\"gatewayClassName\": \"edge\", \"listeners\": \
             [{{\"name\": \"http\", \"port\": 80, \"protocol\": \"HTTP\", \"hostname\": null, \"tls\": null}}]{more}}}}}"
        )
    };
    let pool = "apiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {name: p, namespace: shop}\n\
                spec:\n  selector: {matchLabels: {app: a}}\n  targetPorts: [{number: 8000}]\n  \
                endpointPickerRef: {name: epp, kind: null, group: null, port: {number: 9002}}\n";
    let list = |kind: &str, item: &str| {
        format!("{{\"apiVersion\": \"v1\", \"kind\": \"{kind}\", \"metadata\": {{}}, \"items\": [{item}]}}")
    };
    let desk = desk();
    desk.write("specs/nulls.yaml", &one("a", ", \"addresses\": null, \"infrastructure\": null, \"tls\": null"));
    desk.write("specs/list.yaml", &list("List", &one("b", "")));
    desk.write("specs/gateways.yaml", &list("GatewayList", &one("c", "")));
    desk.write("specs/several.json", &format!("{}\n{}{}", one("d", ""), one("e", ""), one("f", "")));
    desk.write("specs/pool.yaml", pool);
    let service = "apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceService\n\
                   metadata: {name: llm, namespace: models}\n\
                   spec: {model: {uri: 'hf://a/b'}, template: {nodeSelector: {a: b}}, router: {scheduler: {template: {}}}}\n";
    desk.write("specs/llm.yaml", service);
    desk.write("specs/kustomization.yaml", "resources: [list.yaml]\n");
    desk.write("specs/more/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n");
    desk.write("specs/.gitlab-ci.yml", "stages: [test]\n");
    desk.write("specs/.github/workflows/check.yaml", "on: push\njobs: {}\n");
    let run = desk.run(&["check", "specs"]).exits(0).says("from 8 specs");
    assert_eq!(run.err.matches("a kustomization is passed over").count(), 2, "{}", run.err);
    assert!(!run.err.contains("error:"), "{}", run.err);
    desk.write("specs/several.json", &format!("{}\n{}", one("d", ""), one("d", "")));
    desk.run(&["check", "specs"]).exits(1).complains("specs/several.json:2:1: error: Gateway shop/d: the same object");
}
