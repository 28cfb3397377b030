//! The configuration of a scheduler: the one that a service gives, or one by what its pods do.

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::migrate;
use super::pods::{add_args, list, list_items, words};
use super::types::Spec;

/// Flags with which a template brings a configuration along; a single dash is allowed before each too.
const FLAGS: [&str; 4] = ["--config-text", "--configText", "--config-file", "--configFile"];

/// The plugin that prefers pods with the adapter of a request.
const ADAPTER_SCORER: &str = "lora-affinity-scorer";

/// A configuration that cannot be used, or flags that have nowhere to go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The configuration is wrong.
    Config(String),
    /// The release refuses flags of the command line, and the configuration that would say the same is not here.
    Flags,
}

/// Puts the configuration of a scheduler onto the command line of its container, in the words of its release.
///
/// `tokenizer` is the address of the tokenizer, if there is one; `defaults` are the configurations for schedulers that
/// bring none along, if they are to get one.
pub(super) fn configure(
    spec: &Spec,
    container: &mut Value,
    tokenizer: Option<&str>,
    defaults: Option<&Value>,
) -> Result<(), Fault> {
    let version = spec.scheduler().map(migrate::version).unwrap_or_default();
    let flags = migrate::Flags::take(container, version);
    let finished = |mut config: Value| {
        migrate::apply(&mut config, version, &flags);
        if let Some(address) = tokenizer {
            count_tokens(&mut config, address);
        }
        yaml::to_string(&config)
    };
    let config = match (spec.picker(), defaults) {
        (Some(inline @ Value::Object(_)), _) => inline.clone(),
        (Some(Value::String(text)), _) => parsed(text).map_err(Fault::Config)?,
        (Some(_), _) => return Err(Fault::Config("it must be a mapping".to_owned())),
        (None, Some(defaults)) if !has_own(container) => default(spec, defaults),
        (None, _) => {
            return match own_text(container) {
                Some(text) => {
                    // What is no configuration at all is the scheduler's to judge.
                    if let Ok(config) = parsed(text) {
                        *text = finished(config);
                    }
                    Ok(())
                }
                None if flags.is_empty() => Ok(()),
                None => Err(Fault::Flags),
            };
        }
    };
    add_args(container, ["--config-text".to_owned(), finished(config)]);
    Ok(())
}

/// Returns the text of a configuration that stands in the arguments.
fn own_text(container: &mut Value) -> Option<&mut String> {
    let args = container.get_mut("args")?.as_array_mut()?;
    let is_flag = |word: &Value| {
        let word = word.as_str().unwrap_or_default();
        FLAGS[..2].iter().any(|flag| word == *flag || word == &flag[1..])
    };
    let index = args.iter().position(is_flag)?;
    match args.get_mut(index + 1)? {
        Value::String(text) => Some(text),
        _ => None,
    }
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

/// Tells plugins that count tokens which tokenizer does it for them.
fn count_tokens(config: &mut Value, address: &str) {
    for plugin in list_items(config, "plugins") {
        if plugin["type"] == "token-producer" && plugin["parameters"].is_null() {
            plugin["parameters"] = json!({"modelName": "/mnt/models/base", "vllm": {"url": address}});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(spec: &Value, mut container: Value) -> Result<Value, Fault> {
        let spec = serde_json::from_value(spec.clone()).expect("it is a spec");
        configure(&spec, &mut container, None, Some(&Value::Null))?;
        Ok(container["args"].take())
    }

    #[test]
    fn a_configuration_is_written_as_operators_write_it() {
        let inline = json!({"plugins": [{"type": "pd-profile-handler", "parameters": {"deciderPluginName": "d", "hashBlockSize": 5}}],
                            "schedulingProfiles": [{"name": "default", "plugins": [{"pluginRef": "pd-profile-handler"}]}]});
        let scheduler = json!({"config": {"inline": inline}, "annotations": {"app.kubernetes.io/version": "0.10.0"}});
        let expected = "plugins:\n- parameters:\n    deciders:\n      prefill: d\n  type: disagg-profile-handler\n\
                        schedulingProfiles:\n- name: default\n  plugins:\n  - pluginRef: disagg-profile-handler\n";
        let args = configured(&json!({"router": {"scheduler": scheduler}}), json!({}));
        assert_eq!(args, Ok(json!(["--config-text", expected])));
    }

    #[test]
    fn a_scheduler_that_brings_one_along_gets_no_other() {
        for args in [json!(["--config-file", "/x"]), json!(["-configText=x"]), json!(["--config-text", "x"])] {
            assert_eq!(configured(&json!({}), json!({ "args": args.clone() })), Ok(args));
        }
        let scheduler = json!({"annotations": {"app.kubernetes.io/version": "0.10.0"}});
        let spec = json!({"router": {"scheduler": scheduler}});
        let args = json!(["-configText", "plugins: [{type: pd-profile-handler}]"]);
        let expected = json!(["-configText", "plugins:\n- type: disagg-profile-handler\n"]);
        assert_eq!(configured(&spec, json!({ "args": args })), Ok(expected));
        let args = json!(["--config-file", "/x", "--model-server-metrics-scheme=https"]);
        assert_eq!(configured(&spec, json!({ "args": args })), Err(Fault::Flags));
    }

    #[test]
    fn a_text_must_be_a_mapping() {
        let spec = |inline: &str| json!({"router": {"scheduler": {"config": {"inline": inline}}}});
        assert_eq!(configured(&spec("a: 1"), json!({})), Ok(json!(["--config-text", "a: 1\n"])));
        assert_eq!(configured(&spec("- 1"), json!({})), Err(Fault::Config("it must be a mapping".to_owned())));
    }
}
