//! The proxy's config file: what users wrote, and what the typed parameters say over it.

use gatewright_engine::merge::origin::{LayerName, Merged};
use gatewright_engine::merge::{Table, over};
use gatewright_engine::text::safe_name;
use serde_json::{Value, json};

use super::identity::Spiffe;
use super::parameters::{ModelCatalogConfigMap, Spec};
use crate::json::{said, without_nulls};

/// The folder in which catalogs are mounted.
const CATALOGS: &str = "/etc/agentgateway/model-catalog";

/// Returns the whole file as a value.
pub(super) fn file(spec: &Spec, spiffe: Option<&Spiffe>, catalogs: &[Value]) -> Value {
    let paths: Vec<Value> = catalogs.iter().map(|catalog| json!({"file": catalog["path"]})).collect();
    let typed = without_nulls(json!({
        "logging": spec.logging.format.map(|format| json!({"format": format})),
        "spiffe": spiffe.map(|spiffe| json!({"endpoint": spiffe.endpoint()})),
        "modelCatalog": Some(paths).filter(|paths| !paths.is_empty()),
    }));
    let typed = if typed == json!({}) { typed } else { json!({"config": typed}) };
    let part = |value: &Value| Merged::of_value(LayerName::Builtin, "", value);
    let raw = spec.raw_config.as_ref().map_or_else(Merged::empty, part);
    match over(raw, part(&typed), &Table::default()).to_value() {
        Value::Object(file) if file.is_empty() => json!({"config": {}}),
        file => file,
    }
}

/// Returns what is mounted for each source of the catalog.
pub(super) fn catalogs(spec: &Spec) -> Vec<Value> {
    let sources = spec.model_catalog.sources.iter().filter_map(|source| source.config_map.as_ref());
    let catalog = |source: &ModelCatalogConfigMap| {
        let name = &source.name;
        let (folder, file) = (format!("{CATALOGS}/{name}"), format!("{name}.json"));
        json!({
            // The name of a volume has no dots and at most 63 characters.
            "volume": safe_name(&format!("model-catalog-{}", name.replace('.', "-"))),
            "configMap": name,
            "key": source.key.as_deref().and_then(said).unwrap_or("catalog.json"),
            "path": format!("{folder}/{file}"),
            "folder": folder,
            "file": file,
        })
    };
    sources.map(catalog).collect()
}

/// Tells whether there is a catalog that does not count: its `ConfigMap`s stand beside a Gateway, and so must its name.
pub(super) fn is_catalog_ignored(parameters: &Merged) -> bool {
    parameters.at("modelCatalog.sources").is_some_and(|sources| sources.origin.layer != LayerName::Gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, expected: &Value) {
        let spec: Spec = serde_json::from_value(spec).expect("parameters");
        assert_eq!(file(&spec, None, &catalogs(&spec)), *expected);
    }

    #[test]
    fn typed_fields_go_over_the_file_of_the_user() {
        check(json!({}), &json!({"config": {}}));
        check(json!({"rawConfig": {}}), &json!({"config": {}}));
        check(json!({"rawConfig": {"binds": []}}), &json!({"binds": []}));
        let raw = json!({"binds": [1], "config": {"logging": {"format": "json", "level": "x"}, "modelCatalog": [1]}});
        let sources = json!([{"configMap": {"name": "a.b"}}, {}]);
        check(
            json!({"rawConfig": raw, "logging": {"format": "text"}, "modelCatalog": {"sources": sources}}),
            &json!({"binds": [1], "config": {
                "logging": {"format": "text", "level": "x"},
                "modelCatalog": [{"file": "/etc/agentgateway/model-catalog/a.b/a.b.json"}],
            }}),
        );
    }
}
