//! Configurations of schedulers for older releases, in the words of the release that runs.
//!
//! A release drops plugins, parameters and flags, and exits on those that it does not know. The release is the one that
//! an annotation of the preset names; without one nothing is rewritten.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::pods::{list, list_items};
use super::types::Scheduler;

/// A release of the scheduler: its first two numbers.
pub(super) type Version = (u32, u32);

/// Flags that name metrics, which releases from 0.7 refuse, and the parameters that took their place.
const METRICS: [(&str, &str); 5] = [
    ("total-queued-requests-metric", "queuedRequestsSpec"),
    ("total-running-requests-metric", "runningRequestsSpec"),
    ("kv-cache-usage-percentage-metric", "kvUsageSpec"),
    ("lora-info-metric", "loraSpec"),
    ("cache-info-metric", "cacheInfoSpec"),
];

/// Flags about the way to the metrics of servers, which releases from 0.10 do not know, and the parameters that took
/// their place.
const SOURCE: [(&str, &str); 3] = [
    ("model-server-metrics-scheme", "scheme"),
    ("model-server-metrics-path", "path"),
    ("model-server-metrics-https-insecure-skip-verify", "insecureSkipVerify"),
];

/// A flag of the same releases that nothing took the place of: the port is that of the pool.
const PORT: &str = "model-server-metrics-port";

const SOURCE_PLUGIN: &str = "metrics-data-source";
const OLD_EXTRACTOR: &str = "model-server-protocol-metrics";
const EXTRACTOR: &str = "core-metrics-extractor";
const OLD_PREFIX_SCORER: &str = "precise-prefix-cache-scorer";
const PREFIX_SCORER: &str = "prefix-cache-scorer";
const PREFIX_PRODUCER: &str = "precise-prefix-cache-producer";
const TOKEN_PRODUCER: &str = "token-producer";

/// Flags that a release does not take any more, as they were taken off its command line.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// Parameters that name metrics.
    metrics: Map<String, Value>,
    /// Parameters of the plugin that fetches metrics.
    source: Map<String, Value>,
}

impl Flags {
    /// Takes them off the command line of a container.
    pub(super) fn take(container: &mut Value, version: Version) -> Self {
        let mut found = BTreeMap::new();
        for field in ["command", "args"] {
            let known = |name: &str| {
                let is_of = |flags: &[(&str, &str)]| flags.iter().any(|(flag, _)| *flag == name);
                (version >= (0, 7) && is_of(&METRICS)) || (version >= (0, 10) && (is_of(&SOURCE) || name == PORT))
            };
            take(container, field, known, &mut found);
        }
        let of = |flags: &[(&str, &str)]| -> Map<String, Value> {
            let taken = flags.iter().filter_map(|(flag, field)| Some(((*field).to_owned(), found.get(*flag)?.clone())));
            taken.collect()
        };
        let mut source = of(&SOURCE);
        // It is what the plugin does without being told.
        if source.get("scheme").is_some_and(|scheme| scheme == "http") {
            source.remove("scheme");
        }
        Self { metrics: of(&METRICS), source }
    }

    /// Tells whether there is nothing that the configuration would have to say instead.
    pub(super) fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.source.is_empty()
    }
}

fn take(container: &mut Value, field: &str, known: impl Fn(&str) -> bool, found: &mut BTreeMap<String, Value>) {
    let Some(words) = container.get_mut(field).and_then(Value::as_array_mut) else { return };
    let mut kept = Vec::new();
    let mut rest = std::mem::take(words).into_iter().peekable();
    while let Some(word) = rest.next() {
        let text = word.as_str().filter(|text| text.starts_with('-')).unwrap_or_default().trim_start_matches('-');
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
        if !known(name) {
            kept.push(word);
            continue;
        }
        let is_switch = name.ends_with("-skip-verify");
        let follows = |next: &Value| next.as_str().is_some_and(|next| !next.starts_with('-'));
        let value = match value {
            Some(value) => Some(value),
            None if is_switch => Some("true".to_owned()),
            None => rest.next_if(follows).and_then(|next| next.as_str().map(str::to_owned)),
        };
        let value = value.unwrap_or_default();
        found.insert(name.to_owned(), if is_switch { (value != "false").into() } else { value.into() });
    }
    *words = kept;
}

/// Returns the version that the annotation of a preset names; the oldest if it names none.
pub(super) fn version(scheduler: &Scheduler) -> Version {
    let version = scheduler.annotations.get("app.kubernetes.io/version").map(String::as_str);
    let mut numbers =
        version.unwrap_or_default().trim_start_matches('v').split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Writes a configuration for older releases in the words of this one.
pub(super) fn apply(config: &mut Value, version: Version, flags: &Flags) {
    if version >= (0, 7) {
        rename(config, "prefill-header-handler", "disagg-headers-handler");
        rename(config, "pd-profile-handler", "disagg-profile-handler");
        name_deciders(config);
        for plugin in list_items(config, "plugins") {
            remove_parameters(plugin, |name| name == "hashBlockSize");
        }
        name_metrics(config, flags);
    }
    if version >= (0, 8) {
        rename(config, OLD_EXTRACTOR, EXTRACTOR);
    }
    if version >= (0, 9) {
        if config["apiVersion"] == "inference.networking.x-k8s.io/v1alpha1" {
            config["apiVersion"] = "llm-d.ai/v1alpha1".into();
        }
        split_precise_scorer(config);
        for plugin in list_items(config, "plugins").filter(|plugin| plugin["type"] == PREFIX_SCORER) {
            remove_parameters(plugin, |name| name != "prefixMatchInfoProducerName");
        }
    }
    if version >= (0, 10) {
        name_source(config, flags);
    }
}

fn remove_parameters(plugin: &mut Value, is_gone: impl Fn(&str) -> bool) {
    let Some(fields) = plugin.as_object_mut() else { return };
    let Some(parameters) = fields.get_mut("parameters").and_then(Value::as_object_mut) else { return };
    let had_any = !parameters.is_empty();
    parameters.retain(|name, _| !is_gone(name));
    if had_any && parameters.is_empty() {
        fields.remove("parameters");
    }
}

fn rename(config: &mut Value, old: &str, new: &str) {
    let put = |value: &mut Value, field: &str| {
        if value[field] == old {
            value[field] = new.into();
        }
    };
    list_items(config, "plugins").for_each(|plugin| ["type", "name"].iter().for_each(|field| put(plugin, field)));
    each_reference(config, |plugin| put(plugin, "pluginRef"));
}

fn each_reference(config: &mut Value, change: impl FnMut(&mut Value)) {
    let profiles = list_items(config, "schedulingProfiles");
    profiles.flat_map(|profile| list_items(profile, "plugins")).for_each(change);
}

/// `deciderPluginName` and `threshold` became a mapping, and a threshold a plugin of its own, which must stand before
/// the handler that names it.
fn name_deciders(config: &mut Value) {
    let mut wanted = Vec::new();
    let mut first = None;
    for (index, plugin) in list_items(config, "plugins").enumerate() {
        if plugin["type"] != "disagg-profile-handler" {
            continue;
        }
        first.get_or_insert(index);
        let Some(parameters) = plugin.get_mut("parameters").and_then(Value::as_object_mut) else { continue };
        if parameters.contains_key("deciders") {
            continue;
        }
        let (named, threshold) = (parameters.remove("deciderPluginName"), parameters.remove("threshold"));
        let decider = named.or_else(|| {
            let plugin = decider(&threshold?);
            let name = plugin["type"].clone();
            wanted.push(plugin);
            Some(name)
        });
        if let Some(decider) = decider {
            parameters.insert("deciders".to_owned(), json!({ "prefill": decider }));
        }
    }
    for plugin in wanted.into_iter().rev() {
        let plugins = list(config, "plugins");
        if !plugins.iter().any(|other| other["type"] == plugin["type"]) {
            plugins.insert(first.unwrap_or_default(), plugin);
        }
    }
}

/// The threshold was in characters, and a token is about four of them.
fn decider(threshold: &Value) -> Value {
    let characters = threshold.as_f64().or_else(|| threshold.as_str()?.parse().ok()).unwrap_or_default();
    if characters == 0.0 {
        return json!({"type": "always-disagg-pd-decider"});
    }
    let tokens: u64 = format!("{:.0}", (characters / 4.0).ceil()).parse().unwrap_or_default();
    json!({"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": tokens.max(1)}})
}

/// Names of metrics were flags, and are parameters of a plugin.
fn name_metrics(config: &mut Value, flags: &Flags) {
    let plugins = list_items(config, "plugins").filter_map(|plugin| plugin["type"].as_str());
    let has_own = plugins.into_iter().any(|kind| [OLD_EXTRACTOR, EXTRACTOR].contains(&kind));
    if flags.metrics.is_empty() || has_own {
        return;
    }
    let mut engine = flags.metrics.clone();
    engine.insert("name".to_owned(), "vllm".into());
    list(config, "plugins").push(json!({
        "name": OLD_EXTRACTOR,
        "type": OLD_EXTRACTOR,
        "parameters": {
            "engineLabelKey": "inference.networking.k8s.io/engine-type",
            "defaultEngine": "vllm",
            "engineConfigs": [engine],
        },
    }));
}

/// The way to metrics was in flags, and is in the parameters of the plugin that fetches them.
fn name_source(config: &mut Value, flags: &Flags) {
    if flags.source.is_empty() {
        return;
    }
    let plugins = list(config, "plugins");
    if !plugins.iter().any(|plugin| plugin["type"] == SOURCE_PLUGIN) {
        plugins.push(json!({ "type": SOURCE_PLUGIN }));
    }
    for plugin in plugins.iter_mut().filter(|plugin| plugin["type"] == SOURCE_PLUGIN) {
        let parameters = &mut plugin["parameters"];
        if parameters.is_null() {
            *parameters = json!({});
        }
        // What is no mapping the scheduler refuses, and not this.
        let Some(parameters) = parameters.as_object_mut() else { continue };
        for (name, value) in &flags.source {
            let said = parameters.entry(name.clone()).or_insert(Value::Null);
            if said.is_null() {
                said.clone_from(value);
            }
        }
    }
}

/// One plugin counted tokens, kept an index and scored; now there is one for each.
fn split_precise_scorer(config: &mut Value) {
    let plugins = list(config, "plugins");
    let Some(index) = plugins.iter().position(|plugin| plugin["type"] == OLD_PREFIX_SCORER) else { return };
    let mut old = plugins.remove(index);
    let has = |kind: &str| plugins.iter().any(|plugin| plugin["type"] == kind);
    let name = old["name"].as_str().filter(|name| *name != OLD_PREFIX_SCORER).map(str::to_owned);
    // Where there is another scorer of the new type, the name tells them apart.
    let name = name.or_else(|| has(PREFIX_SCORER).then(|| OLD_PREFIX_SCORER.to_owned()));
    let mut parameters = old["parameters"].take();
    if let Some(indexer) = parameters.get_mut("indexerConfig").and_then(Value::as_object_mut) {
        indexer.remove("tokenizersPoolConfig");
        let processor = indexer.remove("tokenProcessorConfig");
        if let Some(processor) = processor.filter(|_| parameters["tokenProcessorConfig"].is_null()) {
            parameters["tokenProcessorConfig"] = processor;
        }
    }
    let mut scorer = json!({"type": PREFIX_SCORER, "parameters": {"prefixMatchInfoProducerName": PREFIX_PRODUCER}});
    let mut producer = json!({ "type": PREFIX_PRODUCER });
    if parameters.is_object() {
        producer["parameters"] = parameters;
    }
    let is_renamed = name.is_none();
    if let Some(name) = name {
        scorer["name"] = name.into();
    }
    let before = [json!({ "type": TOKEN_PRODUCER }), producer];
    let missing = before.into_iter().filter(|plugin| !has(plugin["type"].as_str().unwrap_or_default()));
    let added: Vec<Value> = missing.chain([scorer]).collect();
    plugins.splice(index..index, added);
    if is_renamed {
        rename(config, OLD_PREFIX_SCORER, PREFIX_SCORER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, command: &[&str], plugins: &Value, expected: &Value) -> Vec<Value> {
        let mut container = json!({ "args": command });
        let flags = Flags::take(&mut container, version);
        let mut config = json!({ "plugins": plugins });
        apply(&mut config, version, &flags);
        assert_eq!(&config["plugins"], expected);
        list(&mut container, "args").clone()
    }

    #[test]
    fn a_threshold_becomes_a_plugin_before_its_handler() {
        let handler = |parameters: Value| json!([{"type": "pd-profile-handler", "parameters": parameters}]);
        let decided = |decider: Value, name: &str| {
            let handler = json!({"type": "disagg-profile-handler", "parameters": {"deciders": {"prefill": name}}});
            if decider.is_null() { json!([handler]) } else { json!([decider, handler]) }
        };
        let tokens = json!({"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": 3}});
        check((0, 10), &[], &handler(json!({"threshold": 9})), &decided(tokens, "prefix-based-pd-decider"));
        let always = json!({"type": "always-disagg-pd-decider"});
        check((0, 10), &[], &handler(json!({"threshold": 0})), &decided(always, "always-disagg-pd-decider"));
        check((0, 7), &[], &handler(json!({"deciderPluginName": "d", "threshold": 0})), &decided(Value::Null, "d"));
        check((0, 6), &[], &handler(json!({"threshold": 9})), &handler(json!({"threshold": 9})));
    }

    #[test]
    fn a_precise_scorer_becomes_three_plugins() {
        let parameters =
            json!({"indexerConfig": {"tokenizersPoolConfig": {}, "tokenProcessorConfig": {"blockSize": 8}}});
        let old = json!([{"type": "precise-prefix-cache-scorer", "parameters": parameters}]);
        let producer = json!({"type": "precise-prefix-cache-producer",
                              "parameters": {"indexerConfig": {}, "tokenProcessorConfig": {"blockSize": 8}}});
        let scorer = json!({"type": "prefix-cache-scorer",
                            "parameters": {"prefixMatchInfoProducerName": "precise-prefix-cache-producer"}});
        check((0, 9), &[], &old, &json!([{"type": "token-producer"}, producer, scorer]));
        check((0, 8), &[], &old, &old);
    }

    #[test]
    fn parameters_that_nothing_reads_are_left_out() {
        let old = json!([{"type": "prefix-cache-scorer", "parameters": {"hashBlockSize": 64, "blockSizeTokens": 16}}]);
        check((0, 9), &[], &old, &json!([{"type": "prefix-cache-scorer"}]));
    }

    #[test]
    fn flags_become_parameters() {
        let flags = ["--grpc-port", "9002", "--model-server-metrics-scheme", "https", "--lora-info-metric=a"];
        let switches = ["--model-server-metrics-https-insecure-skip-verify", "--secure-serving"];
        let extractor = json!({"name": "core-metrics-extractor", "type": "core-metrics-extractor", "parameters": {
            "engineLabelKey": "inference.networking.k8s.io/engine-type", "defaultEngine": "vllm",
            "engineConfigs": [{"name": "vllm", "loraSpec": "a"}],
        }});
        let source =
            json!({"type": "metrics-data-source", "parameters": {"scheme": "https", "insecureSkipVerify": true}});
        let command = [&flags[..], &switches].concat();
        let left = check((0, 10), &command, &json!([]), &json!([extractor, source]));
        assert_eq!(left, ["--grpc-port", "9002", "--secure-serving"]);
        assert_eq!(check((0, 6), &command, &json!([]), &json!([])), command);
        let plain = check((0, 10), &["--model-server-metrics-scheme=http", ""], &json!([]), &json!([]));
        assert_eq!(plain, [""]);
    }
}
