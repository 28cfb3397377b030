//! Traces of servers and schedulers, by OpenTelemetry.

use serde_json::{Value, json};

use super::pods::{add_args, add_env, words};
use super::types::Tracing;

/// Tells the container of a model server where its traces go. `role` is `decode` or `prefill`.
pub(super) fn server(container: &mut Value, tracing: &Tracing, role: &str, namespace: &str, service: &str) {
    let endpoint = &tracing.exporter_endpoint;
    if endpoint.is_empty() {
        return;
    }
    for (flag, value) in [("--otlp-traces-endpoint", endpoint.as_str()), ("--collect-detailed-traces", "all")] {
        if !words(container, "args").any(|arg| arg.split('=').next() == Some(flag)) {
            add_args(container, [flag, value]);
        }
    }
    add_env(container, variables(&format!("inference-server-{role}"), tracing, namespace, service));
}

/// The same for a scheduler.
pub(super) fn scheduler(container: &mut Value, tracing: &Tracing, namespace: &str, service: &str) {
    if !words(container, "args").any(|arg| matches!(arg, "--tracing=true" | "-tracing=true" | "--tracing")) {
        add_args(container, ["--tracing=true"]);
    }
    add_env(container, variables("inference-scheduler", tracing, namespace, service));
}

fn variables(name: &str, tracing: &Tracing, namespace: &str, service: &str) -> Vec<Value> {
    let plain = |name: &str, value: &str| json!({"name": name, "value": value});
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let attributes = format!(
        "k8s.namespace.name={namespace},k8s.node.name=$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME),\
         k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME),llmisvc.name={service}"
    );
    vec![
        plain("OTEL_SERVICE_NAME", name),
        plain("OTEL_EXPORTER_OTLP_ENDPOINT", &tracing.exporter_endpoint),
        plain("OTEL_TRACES_EXPORTER", &tracing.exporter),
        plain("OTEL_TRACES_SAMPLER", &tracing.sampler),
        plain("OTEL_TRACES_SAMPLER_ARG", &tracing.sampler_arg),
        field("OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "spec.nodeName"),
        field("OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "metadata.name"),
        plain("OTEL_RESOURCE_ATTRIBUTES", &attributes),
    ]
}
