//! Do JSON Schemas for editors refuse what they can, and nothing that is valid?
//!
//! Of `<folder>/validation/VERDICTS.tsv` they must refuse what a server refuses by its schema (layer `schema`) and the
//! fields that it drops (`pruned`); they must take what it takes, and everything in `<folder>/gateway-api`. Of what real
//! systems have taken they may refuse only what `check` has a word about, too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::editor;
use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::Source;
use gatewright_engine::yaml;
use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::say;
use crate::validation::{files, packs, with_values};

/// The schemas, by `apiVersion` and kind.
struct Schemas(BTreeMap<(String, String), Validator>);

impl Schemas {
    fn compiled(packs: &Packs) -> Self {
        let compile = |of: editor::KindVersion| {
            let schema = editor::schema(packs, &of).expect("what is listed has a schema");
            let options = jsonschema::options().with_draft(Draft::Draft7).should_validate_formats(true);
            let validator = options.build(&schema).unwrap_or_else(|error| unusable(&of, &error.to_string()));
            ((of.api_version(), of.kind), validator)
        };
        Self(editor::kinds(packs).into_iter().map(compile).collect())
    }

    /// Returns what they say of documents; nothing of those that they do not know.
    fn said(&self, text: &str) -> Vec<String> {
        let documents = yaml::parse_values(&with_values(text)).unwrap_or_default();
        let of = |document: &Value| {
            let word = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
            let validator = self.0.get(&(word("apiVersion"), word("kind")));
            let errors = validator.map(|it| it.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())));
            errors.map(Iterator::collect::<Vec<_>>).unwrap_or_default()
        };
        documents.iter().flat_map(of).collect()
    }
}

#[expect(clippy::panic, reason = "a schema that is none fails with its name")]
fn unusable(of: &editor::KindVersion, why: &str) -> ! {
    panic!("the schema of {of:?} cannot be used: {why}")
}

/// Checks all folders and the inputs of other suites, and tells whether all is as it should be.
pub(super) fn run(folders: &[PathBuf], inputs: &[PathBuf]) -> bool {
    let packs = packs(gatewright_packs::definitions());
    let schemas = Schemas::compiled(&packs);
    let mut verdicts: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for folder in folders {
        let validation = folder.join("validation");
        let listed = fs::read_to_string(validation.join("VERDICTS.tsv")).unwrap_or_default();
        verdicts.extend(listed.lines().skip(1).filter_map(|line| verdict(&validation, line)));
        verdicts.extend(files(&folder.join("gateway-api")).into_iter().map(|path| (path, false)));
    }
    let wrong: Vec<String> = verdicts.iter().filter_map(|(path, refused)| judged(path, *refused, &schemas)).collect();
    let alarms: Vec<String> = inputs.iter().filter_map(|path| alarm(path, &schemas, &packs)).collect();
    wrong.iter().chain(&alarms).for_each(|line| say(line));
    let (all, kinds) = (verdicts.len(), schemas.0.len());
    say(&format!("schemas: {kinds} compile, {} of {all} verdicts are right", all - wrong.len()));
    say(&format!("schemas: {} inputs of other suites, {} alarms", inputs.len(), alarms.len()));
    wrong.is_empty() && alarms.is_empty()
}

/// Reads a line: the file, and whether a schema is to refuse it; nothing of what only a server can tell.
fn verdict(folder: &Path, line: &str) -> Option<(PathBuf, bool)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let (file, layer, said) = (fields.first()?, fields.get(1)?, fields.get(2)?);
    let is_of_schema = layer.starts_with("schema") || *layer == "pruned";
    (is_of_schema || *said == "ACCEPT").then(|| (folder.join(file), is_of_schema))
}

fn judged(path: &Path, is_refused: bool, schemas: &Schemas) -> Option<String> {
    let said = schemas.said(&fs::read_to_string(path).ok()?);
    match (is_refused, said.is_empty()) {
        (true, true) => Some(format!("{}: no schema refuses it", path.display())),
        (false, false) => Some(format!("{}: it is valid, and a schema says: {}", path.display(), said.join("; "))),
        _ => None,
    }
}

fn alarm(path: &Path, schemas: &Schemas, packs: &Packs) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let said = schemas.said(&text);
    let specs = Source::load(&Tree::from_iter([("it.yaml", text.as_str())]), packs, None).specs;
    let is_checked = specs.problems.is_empty() && specs.refused.is_empty();
    (is_checked && !said.is_empty()).then(|| format!("{}: only a schema says: {}", path.display(), said.join("; ")))
}
