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
    if !has_flag(container, "--otlp-traces-endpoint") {
        add_args(container, ["--otlp-traces-endpoint".to_owned(), endpoint.clone()]);
    }
    if !has_flag(container, "--collect-detailed-traces") {
        add_args(container, ["--collect-detailed-traces".to_owned(), "all".to_owned()]);
    }
    add_env(container, variables(&format!("inference-server-{role}"), tracing, namespace, service));
}

/// The same for a scheduler.
pub(super) fn scheduler(container: &mut Value, tracing: &Tracing, namespace: &str, service: &str) {
    if !["--tracing=true", "-tracing=true", "--tracing"]
        .iter()
        .any(|flag| words(container, "args").any(|arg| arg == *flag))
    {
        add_args(container, ["--tracing=true".to_owned()]);
    }
    add_env(container, variables("inference-scheduler", tracing, namespace, service));
}

fn has_flag(container: &Value, flag: &str) -> bool {
    words(container, "args")
        .any(|arg| arg.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
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
