//! The text of a config file for a beginning: one sync, from one source to one cluster.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value, json};

use crate::cluster::kubeconfig;
use crate::config::settings::Mode;

/// The name of the config file.
pub(super) const FILE: &str = "gatewright.yaml";

/// A config file with one sync.
pub(super) struct FirstConfig {
    /// The name of the cluster, and of the sync.
    pub(super) name: String,
    /// The settings of the source.
    pub(super) source: Value,
    /// The settings of the kubeconfig that are not those of every one.
    pub(super) kubeconfig: Value,
    /// Settings of packs.
    pub(super) packs: BTreeMap<String, Value>,
    pub(super) mode: Mode,
}

impl FirstConfig {
    /// Returns the text.
    pub(super) fn text(&self) -> String {
        let Self { source, kubeconfig, .. } = self;
        let name = json!(self.name);
        let packs = if self.packs.is_empty() {
            String::new()
        } else {
            let line = |(pack, settings)| format!("  {pack}: {settings}\n");
            let lines: String = self.packs.iter().map(line).collect();
            format!(
                "\n# The settings with which the Gateways there were made: with others their pods would restart.\npacks:\n{lines}"
            )
        };
        let mode = match self.mode {
            Mode::Apply => "    mode: apply\n",
            Mode::Report => {
                "    # Compares, and never writes to the cluster. Without this line a sync applies the specs.\n    \
                 mode: report\n"
            }
        };
        format!(
            "# Relative paths are relative to this file.\n\
             stateDir: ./state\n\
             \n\
             sources:\n  \
               specs: {source}\n\
             \n\
             clusters:\n  \
               {name}:\n    \
                 kubeconfig: {kubeconfig}\n\
             {packs}\
             \n\
             syncs:\n  \
               {name}:\n    \
                 source: specs\n    \
                 clusters: {{names: [{name}]}}\n\
             {mode}"
        )
    }
}

/// Returns the settings that are not those of every kubeconfig.
pub(super) fn said(settings: &kubeconfig::Settings) -> io::Result<Value> {
    let fields = |settings: &kubeconfig::Settings| match serde_json::to_value(settings) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(io::Error::other(error)),
    };
    let usual = fields(&kubeconfig::Settings::default())?;
    let said = fields(settings)?.into_iter().filter(|(field, value)| usual.get(field) != Some(value));
    Ok(said.collect::<Map<_, _>>().into())
}
