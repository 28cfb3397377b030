//! Which presets a service gets, by what it asks for.

use serde_json::Value;

/// Plugins of a scheduler that count the tokens of prompts, which a tokenizer does for them.
const TOKEN_PLUGINS: [&str; 3] = ["token-producer", "precise-prefix-cache-producer", "precise-prefix-cache-scorer"];

/// The plugin that asks the latency predictor.
const LATENCY_PLUGIN: &str = "predicted-latency-producer";

/// Returns the names of presets without their prefix, the lowest first.
///
/// `spec` is what the service and all of its `baseRefs` ask for together.
pub(super) fn select(spec: &Value, has_model: bool) -> Vec<&'static str> {
    let mut names = Vec::new();
    let scheduler = &spec["router"]["scheduler"];
    if scheduler.is_object() && !scheduler["pool"]["ref"].is_object() {
        names.push("config-llm-scheduler");
    }
    if has_tokenizer(spec) {
        names.push("config-llm-tokenizer");
    }
    if has_plugin(spec, &[LATENCY_PLUGIN]) {
        names.push("config-llm-scheduler-latency-predictor");
    }
    let route = &spec["router"]["route"];
    if route.is_object() && route["http"]["refs"].as_array().is_none_or(Vec::is_empty) {
        names.push("config-llm-router-route");
    }
    if spec["tracing"].is_object() {
        names.push("config-llm-tracing");
    }
    if has_model {
        names.extend(workloads(spec));
    }
    names
}

fn workloads(spec: &Value) -> Vec<&'static str> {
    let kinds = |prefill: bool| match prefill {
        false if spec["prefill"].is_object() => [
            "config-llm-decode-template",
            "config-llm-decode-worker-data-parallel",
            "config-llm-decode-worker-pipeline-parallel",
        ],
        false => ["config-llm-template", "config-llm-worker-data-parallel", "config-llm-worker-pipeline-parallel"],
        true => [
            "config-llm-prefill-template",
            "config-llm-prefill-worker-data-parallel",
            "config-llm-prefill-worker-pipeline-parallel",
        ],
    };
    let mut names = Vec::new();
    if spec["prefill"].is_object() {
        names.extend(workload(&spec["prefill"], kinds(true)));
    }
    names.extend(workload(spec, kinds(false)));
    names
}

/// A worker that is parallel in no way gets no preset at all.
fn workload(spec: &Value, [single, data, pipeline]: [&'static str; 3]) -> Option<&'static str> {
    let count = |field: &str| spec["parallelism"][field].as_i64().unwrap_or_default();
    if !spec["worker"].is_object() {
        Some(single)
    } else if count("data") > 0 || count("dataLocal") > 0 {
        Some(data)
    } else if count("pipeline") > 0 {
        Some(pipeline)
    } else {
        None
    }
}

/// Tells whether a service has a tokenizer.
pub(super) fn has_tokenizer(spec: &Value) -> bool {
    let scheduler = &spec["router"]["scheduler"];
    scheduler.is_object() && (scheduler["tokenizer"].is_object() || has_plugin(spec, &TOKEN_PLUGINS))
}

fn has_plugin(spec: &Value, types: &[&str]) -> bool {
    let plugins = spec.pointer("/router/scheduler/config/inline/plugins").and_then(Value::as_array);
    let mut found = plugins.into_iter().flatten().filter_map(|plugin| plugin["type"].as_str());
    found.any(|found| types.contains(&found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(spec: &Value, expected: &[&str]) {
        let expected: Vec<String> = expected.iter().map(|name| format!("config-llm-{name}")).collect();
        assert_eq!(select(spec, true), expected, "{spec}");
    }

    #[test]
    fn a_service_gets_the_presets_of_what_it_asks_for() {
        check(&json!({}), &["template"]);
        check(&json!({"router": {"route": {}, "scheduler": {}}}), &["scheduler", "router-route", "template"]);
        check(&json!({"router": {"route": {"http": {"refs": [{"name": "r"}]}}}}), &["template"]);
        check(&json!({"router": {"scheduler": {"pool": {"ref": {"name": "p"}}}}}), &["template"]);
        check(&json!({"tracing": {}, "prefill": {}}), &["tracing", "prefill-template", "decode-template"]);
        let inline = json!({"plugins": [{"type": "predicted-latency-producer"}, {"type": "token-producer"}]});
        let scheduler = json!({"router": {"scheduler": {"config": {"inline": inline}}}});
        check(&scheduler, &["scheduler", "tokenizer", "scheduler-latency-predictor", "template"]);
    }

    #[test]
    fn workers_have_presets_by_how_they_are_parallel() {
        let worker = |parallelism: Value| json!({"worker": {}, "parallelism": parallelism});
        check(&worker(json!({"data": 4})), &["worker-data-parallel"]);
        check(&worker(json!({"pipeline": 2})), &["worker-pipeline-parallel"]);
        check(&worker(json!({})), &[]);
        let both = json!({"worker": {}, "parallelism": {"dataLocal": 8}, "prefill": {"worker": {}, "parallelism": {"data": 2}}});
        check(&both, &["prefill-worker-data-parallel", "decode-worker-data-parallel"]);
    }

    #[test]
    fn a_service_without_a_model_gets_none_for_its_workload() {
        assert_eq!(select(&json!({"router": {"scheduler": {}}}), false), ["config-llm-scheduler"]);
    }
}
