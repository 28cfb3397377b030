//! The configuration of a scheduler: the one that a service gives, or one by what its pods do.

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::pods::words;
use super::types::{Scheduler, Spec};

/// Flags with which a template brings a configuration along; a single dash is allowed before each too.
const FLAGS: [&str; 4] = ["--config-text", "--configText", "--config-file", "--configFile"];

/// The facts that decide about the configuration of a scheduler.
pub(super) struct Picker<'a> {
    /// The merged spec.
    pub(super) spec: &'a Spec,
    /// The address of the tokenizer, if there is one.
    pub(super) tokenizer: Option<String>,
    /// Whether a scheduler that brings none along gets one.
    pub(super) has_default: bool,
}

/// Returns the text for `--config-text`, if the scheduler is to get one, or what is wrong with the one that is given.
pub(super) fn text(picker: &Picker<'_>, container: &Value) -> Result<Option<String>, String> {
    let scheduler = picker.spec.scheduler();
    let mut config = match scheduler.and_then(|scheduler| scheduler.config.as_ref()?.inline.as_ref()) {
        Some(inline @ Value::Object(_)) => inline.clone(),
        Some(Value::String(text)) => parsed(text)?,
        None if has_own(container) || !picker.has_default => return Ok(None),
        None => default(picker.spec),
        Some(_) => return Err("it must be a mapping".to_owned()),
    };
    migrate(&mut config, scheduler.map(version).unwrap_or_default());
    if let Some(address) = &picker.tokenizer {
        count_tokens(&mut config, address);
    }
    Ok(Some(yaml::to_string(&config)))
}

fn parsed(text: &str) -> Result<Value, String> {
    match yaml::parse_values(text).as_deref() {
        Ok([config @ Value::Object(_)]) => Ok(config.clone()),
        Ok(_) => Err("it must be a mapping".to_owned()),
        Err(error) => Err(format!("line {} of the text is no YAML: {error}", error.position.line)),
    }
}

fn has_own(container: &Value) -> bool {
    let is_flag = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        FLAGS.iter().any(|flag| name == *flag || name == &flag[1..])
    };
    words(container, "command").chain(words(container, "args")).any(is_flag)
}

/// The plugins of a scheduler that nobody configures.
fn default(spec: &Spec) -> Value {
    let has_adapters = !spec.adapters().is_empty();
    let adapters = |weighted: bool| match (has_adapters, weighted) {
        (false, _) => Vec::new(),
        (true, false) => vec![json!({"type": "lora-affinity-scorer"})],
        (true, true) => vec![json!({"pluginRef": "lora-affinity-scorer", "weight": 4})],
    };
    let (plugins, profiles) = if spec.prefill.is_some() { disaggregated(adapters) } else { single(adapters) };
    json!({
        "apiVersion": "llm-d.ai/v1alpha1",
        "kind": "EndpointPickerConfig",
        "plugins": plugins,
        "schedulingProfiles": profiles,
    })
}

type Plugins = Vec<Value>;

fn types(names: &[&str]) -> Plugins {
    names.iter().map(|name| json!({"type": name})).collect()
}

fn profile(name: &str, first: Plugins, plugins: &[(&str, u32)]) -> Value {
    let plugins = plugins.iter().map(|&(name, weight)| match weight {
        0 => json!({"pluginRef": name}),
        weight => json!({"pluginRef": name, "weight": weight}),
    });
    json!({"name": name, "plugins": first.into_iter().chain(plugins).collect::<Vec<_>>()})
}

fn single(adapters: impl Fn(bool) -> Plugins) -> (Plugins, Plugins) {
    let mut plugins = types(&[
        "single-profile-handler",
        "queue-scorer",
        "kv-cache-utilization-scorer",
        "prefix-cache-scorer",
        "no-hit-lru-scorer",
        "max-score-picker",
    ]);
    plugins.extend(adapters(false));
    let scorers = [
        ("queue-scorer", 2),
        ("kv-cache-utilization-scorer", 2),
        ("prefix-cache-scorer", 3),
        ("no-hit-lru-scorer", 2),
        ("max-score-picker", 0),
    ];
    (plugins, vec![profile("default", adapters(true), &scorers)])
}

fn disaggregated(adapters: impl Fn(bool) -> Plugins) -> (Plugins, Plugins) {
    let mut plugins = types(&[
        "disagg-headers-handler",
        "prefill-filter",
        "decode-filter",
        "queue-scorer",
        "kv-cache-utilization-scorer",
        "active-request-scorer",
        "prefix-cache-scorer",
        "max-score-picker",
        "always-disagg-pd-decider",
    ]);
    let deciders = json!({"deciders": {"prefill": "always-disagg-pd-decider"}});
    plugins.push(json!({"type": "disagg-profile-handler", "parameters": deciders}));
    plugins.extend(adapters(false));
    let filtered = |filter: &str| std::iter::once(json!({"pluginRef": filter})).chain(adapters(true)).collect();
    let prefill =
        [("prefix-cache-scorer", 3), ("queue-scorer", 2), ("kv-cache-utilization-scorer", 2), ("max-score-picker", 0)];
    let decode = [("active-request-scorer", 2), ("prefix-cache-scorer", 3), ("max-score-picker", 0)];
    let profiles = vec![
        profile("prefill", filtered("prefill-filter"), &prefill),
        profile("decode", filtered("decode-filter"), &decode),
    ];
    (plugins, profiles)
}

/// The version that the annotation of a preset names; the oldest if it names none.
fn version(scheduler: &Scheduler) -> (u32, u32) {
    let version = scheduler.annotations.get("app.kubernetes.io/version").map(String::as_str);
    let mut numbers =
        version.unwrap_or_default().trim_start_matches('v').split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Writes a configuration for older releases in the words of the scheduler's own.
fn migrate(config: &mut Value, version: (u32, u32)) {
    if version >= (0, 7) {
        rename(config, "prefill-header-handler", "disagg-headers-handler");
        rename(config, "pd-profile-handler", "disagg-profile-handler");
        each(config, |plugin| {
            let parameters = plugin.get_mut("parameters").and_then(Value::as_object_mut);
            parameters.map(|parameters| parameters.remove("hashBlockSize"));
            name_decider(plugin);
        });
    }
    if version >= (0, 8) {
        rename(config, "model-server-protocol-metrics", "core-metrics-extractor");
    }
    if version >= (0, 9) && config["apiVersion"] == "inference.networking.x-k8s.io/v1alpha1" {
        config["apiVersion"] = "llm-d.ai/v1alpha1".into();
    }
}

fn each(config: &mut Value, change: impl FnMut(&mut Value)) {
    config.get_mut("plugins").and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
}

fn rename(config: &mut Value, old: &str, new: &str) {
    let put = |value: &mut Value, field: &str| {
        if value[field] == old {
            value[field] = new.into();
        }
    };
    each(config, |plugin| ["type", "name"].iter().for_each(|field| put(plugin, field)));
    let profiles = config.get_mut("schedulingProfiles").and_then(Value::as_array_mut).into_iter().flatten();
    for plugin in profiles.filter_map(|profile| profile.get_mut("plugins")?.as_array_mut()).flatten() {
        put(plugin, "pluginRef");
    }
}

/// `deciderPluginName` became a map.
fn name_decider(plugin: &mut Value) {
    let is_handler = plugin["type"] == "disagg-profile-handler" && plugin["parameters"]["deciders"].is_null();
    let Some(parameters) = plugin.get_mut("parameters").and_then(Value::as_object_mut).filter(|_| is_handler) else {
        return;
    };
    if let Some(name) = parameters.remove("deciderPluginName") {
        parameters.remove("threshold");
        parameters.insert("deciders".to_owned(), json!({ "prefill": name }));
    }
}

/// Tells plugins that count tokens which tokenizer does it for them.
fn count_tokens(config: &mut Value, address: &str) {
    each(config, |plugin| {
        if plugin["type"] == "token-producer" && plugin["parameters"].is_null() {
            plugin["parameters"] = json!({"modelName": "/mnt/models/base", "vllm": {"url": address}});
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(spec: &Value, container: &Value) -> Result<Option<String>, String> {
        let spec = serde_json::from_value(spec.clone()).expect("it is a spec");
        text(&Picker { spec: &spec, tokenizer: None, has_default: true }, container)
    }

    #[test]
    fn a_configuration_is_written_as_operators_write_it() {
        let inline = json!({"plugins": [{"type": "pd-profile-handler", "parameters": {"deciderPluginName": "d", "hashBlockSize": 5}}],
                            "schedulingProfiles": [{"name": "default", "plugins": [{"pluginRef": "pd-profile-handler"}]}]});
        let scheduler = json!({"config": {"inline": inline}, "annotations": {"app.kubernetes.io/version": "0.10.0"}});
        let expected = "plugins:\n- parameters:\n    deciders:\n      prefill: d\n  type: disagg-profile-handler\n\
                        schedulingProfiles:\n- name: default\n  plugins:\n  - pluginRef: disagg-profile-handler\n";
        let text = text_of(&json!({"router": {"scheduler": scheduler}}), &Value::Null);
        assert_eq!(text, Ok(Some(expected.to_owned())));
    }

    #[test]
    fn a_scheduler_that_brings_one_along_gets_none() {
        for args in [json!(["--config-file", "/x"]), json!(["-configText=x"])] {
            assert_eq!(text_of(&json!({}), &json!({"args": args})), Ok(None));
        }
    }

    #[test]
    fn a_text_must_be_a_mapping() {
        let spec = |inline: &str| json!({"router": {"scheduler": {"config": {"inline": inline}}}});
        assert_eq!(text_of(&spec("a: 1"), &Value::Null), Ok(Some("a: 1\n".to_owned())));
        assert_eq!(text_of(&spec("- 1"), &Value::Null), Err("it must be a mapping".to_owned()));
    }
}
