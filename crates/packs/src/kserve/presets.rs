//! The presets that a service gets, by what it asks for.

use super::types::{Parallelism, Spec, Workload};
use crate::json::items;

/// Plugins of a scheduler that count the tokens of prompts, which a tokenizer does for them.
const TOKEN_PLUGINS: [&str; 3] = ["token-producer", "precise-prefix-cache-producer", "precise-prefix-cache-scorer"];

/// The plugin that asks the latency predictor.
const LATENCY_PLUGIN: &str = "predicted-latency-producer";

/// Returns the names of presets without their prefix, the lowest first.
///
/// `spec` is what the service and all of its `baseRefs` ask for together.
pub(super) fn select(spec: &Spec, has_model: bool) -> Vec<String> {
    let asked = [
        (spec.scheduler().is_some_and(|scheduler| scheduler.foreign_pool().is_none()), "scheduler"),
        (has_tokenizer(spec), "tokenizer"),
        (has_plugin(spec, &[LATENCY_PLUGIN]), "scheduler-latency-predictor"),
        (spec.route().is_some_and(|route| route.http.as_ref().is_none_or(|http| http.refs.is_empty())), "router-route"),
        (spec.tracing.is_some(), "tracing"),
    ];
    let asked = asked.into_iter().filter(|(is_asked, _)| *is_asked);
    let mut names: Vec<String> = asked.map(|(_, name)| format!("config-llm-{name}")).collect();
    if has_model {
        names.extend(spec.prefill.as_ref().and_then(|prefill| workload(prefill, "prefill-")));
        names.extend(workload(&spec.workload, if spec.prefill.is_some() { "decode-" } else { "" }));
    }
    names
}

/// A worker that is parallel in no way gets no preset at all.
fn workload(workload: &Workload, role: &str) -> Option<String> {
    let kind = match (&workload.worker, &workload.parallelism) {
        (None, _) => "template",
        (_, Some(parallelism)) if parallelism.is_by_data() => "worker-data-parallel",
        (_, Some(Parallelism { pipeline: Some(1..), .. })) => "worker-pipeline-parallel",
        _ => return None,
    };
    Some(format!("config-llm-{role}{kind}"))
}

fn has_tokenizer(spec: &Spec) -> bool {
    spec.scheduler().is_some_and(|scheduler| scheduler.tokenizer.is_some()) || has_plugin(spec, &TOKEN_PLUGINS)
}

fn has_plugin(spec: &Spec, types: &[&str]) -> bool {
    let mut plugins = spec.picker().into_iter().flat_map(|config| items(&config["plugins"]));
    plugins.any(|plugin| plugin["type"].as_str().is_some_and(|found| types.contains(&found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(spec: &Value) -> Spec {
        serde_json::from_value(spec.clone()).expect("it is a spec")
    }

    fn check(spec: &Value, expected: &[&str]) {
        let expected: Vec<String> = expected.iter().map(|name| format!("config-llm-{name}")).collect();
        assert_eq!(select(&read(spec), true), expected, "{spec}");
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
        assert_eq!(select(&read(&json!({"router": {"scheduler": {}}})), false), ["config-llm-scheduler"]);
    }
}
