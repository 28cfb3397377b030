//! The configuration of a command that is given specs and no config file: one sync of them to one cluster.
//!
//! It is that of the quick start on a real cluster (`examples/quickstart/gatewright-kube.yaml`), with a state directory
//! that lasts no longer than the command.

use std::path::Path;

use serde_json::json;

use super::environment::Environment;
use super::settings::{ClusterSettings, Settings};
use super::{Config, ConfigError, parse};
use crate::cluster::kubeconfig;

/// The name of the only source and of the only sync.
pub(crate) const SPECS: &str = "specs";

/// The name of the only cluster.
pub(crate) const CLUSTER: &str = "local";

/// The name of the config file that there is none of, where a message has to name one.
const NO_FILE: &str = "the command line";

/// Returns the configuration for specs on the cluster that a kubeconfig leads to.
pub(crate) fn of(
    kubeconfig: kubeconfig::Settings,
    state_dir: &Path,
    environment: &Environment,
) -> Result<Config, ConfigError> {
    let text = json!({
        "stateDir": state_dir,
        "sources": {SPECS: {"directory": {"path": "specs"}}},
        "clusters": {CLUSTER: {"kubeconfig": {}}},
        "syncs": {SPECS: {"source": SPECS, "clusters": {"names": [CLUSTER]}, "createNamespaces": true}},
    });
    let environment = environment.clone().without_state_dir();
    let mut config = parse(Path::new(NO_FILE), &text.to_string(), &environment)?;
    let cluster = ClusterSettings { kubeconfig: Some(kubeconfig), ..ClusterSettings::default() };
    config.settings = Settings { clusters: [(CLUSTER.to_owned(), cluster)].into(), ..config.settings };
    Ok(config)
}

#[cfg(test)]
mod tests {
    use gatewright_engine::yaml;

    use super::*;

    #[test]
    fn it_is_that_of_the_quick_start_but_for_names_and_places() {
        let file = "examples/quickstart/gatewright-kube.yaml";
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("it is there");
        let renamed =
            text.replace("quickstart", SPECS).replace("./specs", "specs").replace("    wait: {timeout: 2m}\n", "");
        let environment = Environment::default();
        let other = parse(Path::new(NO_FILE), &renamed, &environment).expect("it is one");
        let state = other.state_dir.clone();
        let config = of(kubeconfig::Settings::default(), &state, &environment).expect("it is one");
        let written = |config: &Config| {
            let settings = Settings { state_dir: None, ..config.settings.clone() };
            yaml::to_string(&serde_json::to_value(settings).expect("settings are data"))
        };
        assert_eq!(written(&config), written(&other));
    }

    #[test]
    fn the_state_directory_of_config_files_is_left_alone() {
        let mut environment = Environment::default();
        environment.overrides.push(("GATEWRIGHT_STATE_DIR", "/var/lib/theirs".to_owned()));
        let config = of(kubeconfig::Settings::default(), Path::new("/tmp/ours"), &environment).expect("it is one");
        assert_eq!(config.state_dir, Path::new("/tmp/ours"));
        assert_eq!(config.reports_dir, Path::new("/tmp/ours/reports"));
    }
}
