//! JSON Schemas for editors: are they schemas, do they say what `check` says, and can they be written and named?

use std::collections::BTreeMap;

use gatewright_engine::editor;
use gatewright_engine::yaml;
use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};

use crate::admission::{mutation::Mutator, packs, said, valid};
use crate::cluster::binaries::in_repository;
use crate::program::Desk;

/// The documents that are tried.
const DOCUMENTS: u64 = 2_000;

fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().with_draft(Draft::Draft7).should_validate_formats(true);
    options.build(schema).expect("it is a schema")
}

/// All schemas, by `apiVersion` and kind.
fn validators() -> BTreeMap<(String, String), Validator> {
    let compile = |of: editor::KindVersion| {
        let schema = editor::schema(packs(), &of).expect("what is listed has a schema");
        ((of.api_version(), of.kind), validator(&schema))
    };
    editor::kinds(packs()).into_iter().map(compile).collect()
}

#[test]
fn what_a_schema_refuses_is_refused_by_check_as_well() {
    let validators = validators();
    let valid = valid();
    let validator = |document: &Value| {
        let word = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
        validators.get(&(word("apiVersion"), word("kind")))
    };
    for document in &valid {
        let errors: Vec<String> = validator(document)
            .expect("its kind has a schema")
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, [""; 0], "{document}");
    }
    let (mut mutator, mut refused) = (Mutator::new(DOCUMENTS), 0);
    for index in 0..DOCUMENTS {
        let document = mutator.mutated(&valid[usize::try_from(index).expect("it is small") % valid.len()]);
        let Some(validator) = validator(&document) else { continue };
        if let Err(error) = validator.validate(&document) {
            refused += 1;
            assert_ne!(said(&document), [""; 0], "only the schema says: {error} of {document}");
        }
    }
    assert!(refused * 4 > DOCUMENTS, "only {refused} of {DOCUMENTS} were refused, so that this shows little");
}

#[test]
fn schemas_are_listed_printed_and_written() {
    let desk = Desk::quickstart("gatewright.yaml");
    let listed = desk.run(&["schema"]).exits(0).says("config\n").says("gateway.networking.k8s.io/v1/Gateway\n");
    let printed =
        |name: &str| -> Value { serde_json::from_str(&desk.run(&["schema", name]).exits(0).out).expect("it is JSON") };
    assert_eq!(printed("gateway")["title"], "gateway.networking.k8s.io/v1 Gateway", "the newest version");
    assert_eq!(printed("gateway.networking.k8s.io/v1beta1/Gateway")["properties"]["kind"]["enum"], json!(["Gateway"]));
    desk.run(&["schema", "Gatewya"]).exits(64).complains("did you mean \"Gateway\"?");
    desk.run(&["schema", "--all"]).exits(64).complains("--output-dir");

    let folder = desk.path("schemas");
    desk.run(&["schema", "--all", "--output-dir", "schemas"]).exits(0).says("schemas written to schemas");
    let read = |path: &str| -> Value { serde_json::from_str(&desk.read(path)).expect("it is JSON") };
    for line in listed.out.lines().filter(|line| *line != "config") {
        let [group, version, kind] = line.split('/').collect::<Vec<_>>()[..] else {
            unreachable!("{line} is of a group");
        };
        let path = format!("{group}/{kind}_{version}.json").to_lowercase();
        assert!(folder.join(&path).is_file(), "{path}");
    }
    assert_eq!(printed("Gateway"), read("schemas/gateway.networking.k8s.io/gateway_v1.json"));
    assert_eq!(printed("config"), read("schemas/gatewright.json"));
}

#[test]
fn the_schema_of_all_picks_one_by_kind() {
    let kinds = editor::kinds(packs());
    let base = |path: &str| format!("file:///schemas/{path}");
    let mut registry = Registry::new();
    for of in &kinds {
        let schema = editor::schema(packs(), of).expect("what is listed has a schema");
        registry = registry.add(base(&of.path()), schema).expect("it can be named");
    }
    let registry = registry.prepare().expect("they refer to nothing else");
    let mut all = editor::choice(&kinds);
    all["$id"] = base("all.json").into();
    let options = jsonschema::options().with_draft(Draft::Draft7).with_registry(&registry);
    let validator = options.build(&all).expect("it is a schema");
    let gateway = |kind: &str, port: Value| {
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": {"name": "a"}, "spec":
            {"gatewayClassName": "a", "listeners": [{"name": "a", "port": port, "protocol": "HTTP"}]}})
    };
    assert!(validator.is_valid(&gateway("Gateway", json!(80))));
    assert!(!validator.is_valid(&gateway("Gateway", json!("80"))));
    assert!(validator.is_valid(&gateway("Unknown", json!("80"))));
    assert!(!validator.is_valid(&json!({"kind": "Gateway"})));
}

/// Examples of config files obey the schema, and what `config check` calls an unknown field does not.
#[test]
fn config_files_obey_their_schema() {
    let validator = validator(&gatewright::config::schema::json_schema());
    let mut number = 0;
    for folder in ["examples", "config"] {
        for path in yaml_files(&in_repository(folder)) {
            let text = std::fs::read_to_string(&path).expect("it can be read");
            // Templates of packs are no YAML.
            let documents = yaml::parse_values(&text).unwrap_or_default();
            let [config] = documents.as_slice() else { continue };
            if config.get("apiVersion").is_some() || (config.get("syncs").is_none() && config.get("sources").is_none())
            {
                continue;
            }
            let errors: Vec<String> =
                validator.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert_eq!(errors, [""; 0], "{}", path.display());
            number += 1;
        }
    }
    assert!(number > 2, "only {number} config files were found");
    assert!(!validator.is_valid(&json!({"sorces": {}})));
    assert!(!validator.is_valid(&json!({"syncs": {"a": {"source": 1}}})));
}

fn yaml_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("it can be listed").map(|entry| entry.expect("it can be listed").path());
    let below = |path: std::path::PathBuf| if path.is_dir() { yaml_files(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).collect()
}
