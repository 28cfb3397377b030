//! The config file as a JSON Schema, for editors.
//!
//! It says less than the check of the file: whether names stand somewhere, and files are there, is not in it.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::settings::Settings;

/// Returns the schema of the config file (draft 7, which editors know best).
pub fn json_schema() -> Value {
    let settings = SchemaSettings::draft07().for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Settings>().to_value();
    schema["title"] = "gatewright.yaml".into();
    schema
}
