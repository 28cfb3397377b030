//! The configuration of a scheduler: the one that a service gives, or one by what its pods do.

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::pods::{list, list_items, words};
use super::types::{Scheduler, Spec};

/// Flags with which a template brings a configuration along; a single dash is allowed before each too.
const FLAGS: [&str; 4] = ["--config-text", "--configText", "--config-file", "--configFile"];

/// The plugin that prefers pods with the adapter of a request.
const ADAPTER_SCORER: &str = "lora-affinity-scorer";

/// Returns the text for `--config-text`, if the scheduler is to get one, or what is wrong with the one that is given.
///
/// `tokenizer` is the address of the tokenizer, if there is one; `defaults` are the configurations for schedulers that
/// bring none along, if they are to get one.
pub(super) fn text(
    spec: &Spec,
    container: &Value,
    tokenizer: Option<&str>,
    defaults: Option<&Value>,
) -> Result<Option<String>, String> {
    let mut config = match (spec.picker(), defaults) {
        (Some(inline @ Value::Object(_)), _) => inline.clone(),
        (Some(Value::String(text)), _) => parsed(text)?,
        (Some(_), _) => return Err("it must be a mapping".to_owned()),
        (None, Some(defaults)) if !has_own(container) => default(spec, defaults),
        (None, _) => return Ok(None),
    };
    migrate(&mut config, spec.scheduler().map(version).unwrap_or_default());
    if let Some(address) = tokenizer {
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

/// The configuration of a scheduler that nobody configures.
fn default(spec: &Spec, defaults: &Value) -> Value {
    let mut config = defaults[if spec.prefill.is_some() { "disaggregated" } else { "single" }].clone();
    if spec.adapters().is_empty() {
        let is_kept = |plugin: &Value| ["type", "pluginRef"].iter().all(|field| plugin[field] != ADAPTER_SCORER);
        list(&mut config, "plugins").retain(is_kept);
        for profile in list(&mut config, "schedulingProfiles") {
            list(profile, "plugins").retain(is_kept);
        }
    }
    config
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
    list_items(config, "plugins").for_each(change);
}

fn rename(config: &mut Value, old: &str, new: &str) {
    let put = |value: &mut Value, field: &str| {
        if value[field] == old {
            value[field] = new.into();
        }
    };
    each(config, |plugin| ["type", "name"].iter().for_each(|field| put(plugin, field)));
    let profiles = list_items(config, "schedulingProfiles");
    profiles.flat_map(|profile| list_items(profile, "plugins")).for_each(|plugin| put(plugin, "pluginRef"));
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
        text(&spec, container, None, Some(&Value::Null))
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
