//! Cases of the real systems: what a user writes, and what the real system made of it.
//!
//! They lie outside this repository, in the folder that `GATEWRIGHT_CASES` names (`../shared/goldens` if it names
//! none): `<suite>/<case>/in.yaml` beside `out.yaml` or `expected-error.yaml`. In place of the input there may be the
//! `values.yaml` of a chart.
//! A suite whose cases have other file names says so in `files`.
//! A suite is known if `tests/conformance/suites` has a file of its name; that file says with which settings the
//! outputs were made, so that cases nobody has seen before need nothing here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gatewright_engine::error::Chain;
use gatewright_engine::object::Object;
use gatewright_engine::pack::{PackError, Packs};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options, Rendering, Unit};
use gatewright_engine::yaml::{self, Node};
use serde::Deserialize;
use serde_json::{Value, json};

/// The settings of a suite.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Suite {
    /// Its name, which is that of its file and of its folder.
    #[serde(skip)]
    pub(crate) name: String,
    /// The folder of its cases, if there are any.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
    /// The pack that renders it.
    pack: String,
    /// `packs.<pack>` of the config, with which the outputs were made.
    #[serde(default)]
    settings: Value,
    /// The document whose `spec` the `values.yaml` of a case becomes.
    #[serde(default)]
    values: Option<Parameters>,
    /// The names of the files of a case.
    #[serde(default)]
    files: Files,
    /// The kinds that the outputs hold, where they leave out the rest; none for all.
    #[serde(default)]
    pub(crate) kinds: Vec<String>,
    /// The settings that are otherwise in some cases.
    #[serde(default)]
    exceptions: Vec<Exception>,
    /// Annotations and data that no two systems would write alike: keys of mappings, `*` at the end for any rest.
    #[serde(default)]
    pub(crate) opaque: Vec<String>,
    /// Folders of the suite whose documents every case has beside its own, and their namespace.
    #[serde(default)]
    sources: BTreeMap<String, String>,
    /// Objects that no output has although they were made: how their version and kind begin.
    #[serde(default)]
    pub(crate) left_out: Vec<String>,
    /// Lists whose order means nothing, by the name of their field.
    #[serde(default)]
    pub(crate) unordered: Vec<String>,
    /// The differences that are meant to be, and why.
    #[serde(default)]
    pub(crate) differences: Vec<Deliberate>,
}

/// The document that values of a chart are written into.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Parameters {
    api_version: String,
    kind: String,
    name: String,
    namespace: String,
}

/// The names of the files of a case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Files {
    /// The file that a user writes.
    input: String,
    /// The file that the real system made of it.
    output: String,
    /// Settings of the pack beside the case, which go over those of the suite; empty for none.
    settings: String,
}

impl Default for Files {
    fn default() -> Self {
        Self { input: "in.yaml".to_owned(), output: "out.yaml".to_owned(), settings: String::new() }
    }
}

/// Settings of some cases.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Exception {
    /// Names of cases; `*` at the end stands for any rest.
    cases: Vec<String>,
    /// The settings that go over those of the suite.
    #[serde(default)]
    settings: Value,
    /// Documents that a case needs and does not bring along.
    #[serde(default)]
    documents: Vec<Value>,
    /// Texts that settings take from files: a JSON pointer into the settings, and a path from the suite's folder.
    #[serde(default)]
    texts: BTreeMap<String, String>,
    /// Texts that stand nowhere but in the output: a JSON pointer into the settings, and a key of a ConfigMap.
    #[serde(default)]
    outputs: BTreeMap<String, String>,
}

/// A difference that is meant to be.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Deliberate {
    /// Names of cases; `*` at the end stands for any rest.
    pub(crate) cases: Vec<String>,
    /// The difference: the beginning of the lines that would tell of it.
    pub(crate) line: String,
    /// The reason.
    pub(crate) reason: String,
}

/// One case.
pub(crate) struct Case {
    /// The rendering of its specs.
    pub(crate) rendering: Rendering,
    /// The objects that the real system made, or `None` if it refused.
    pub(crate) expected: Option<Vec<Value>>,
}

impl Case {
    /// Returns all objects, those included of which a value is made on each cluster.
    pub(crate) fn objects(&self) -> Vec<Object> {
        let object = |unit: &Unit, object: &Object| match unit.generated(object.id()) {
            Some(generated) => generated.value.filled(object, "bWFkZSBvbiBlYWNoIGNsdXN0ZXI="),
            None => object.clone(),
        };
        self.rendering.units.iter().flat_map(|unit| unit.all().map(move |it| object(unit, it))).collect()
    }
}

/// Returns the folder that holds the cases, which need not be there.
#[expect(clippy::disallowed_methods, reason = "the one switch of these tests, for the person who runs them")]
pub(crate) fn folder() -> PathBuf {
    let named = std::env::var_os("GATEWRIGHT_CASES").filter(|path| !path.is_empty());
    named.map_or_else(|| in_repository("../shared/goldens"), PathBuf::from)
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Reads all suites that are known here, in the order of their names.
pub(crate) fn suites(root: &Path) -> Vec<Suite> {
    let files = sorted(&in_repository("tests/conformance/suites"));
    files.iter().map(|file| Suite::read(file, root)).collect()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| die(&folder.display().to_string(), &error.to_string()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| die(&file.display().to_string(), &error.to_string()))
}

#[expect(clippy::panic, reason = "what cannot be read at all fails with its name")]
fn die(what: &str, message: &str) -> ! {
    panic!("{what}: {message}")
}

/// Tells whether a name is meant by one of these, of which `*` at the end stands for any rest.
pub(crate) fn is_meant(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    })
}

impl Suite {
    fn read(file: &Path, root: &Path) -> Self {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let path = file.display().to_string();
        let documents = yaml::parse_values(&read(file)).unwrap_or_else(|error| die(&path, &error.to_string()));
        let document = documents.into_iter().next().unwrap_or_default();
        let suite: Self = serde_json::from_value(document).unwrap_or_else(|error| die(&path, &error.to_string()));
        Self { folder: root.join(&name), name, ..suite }
    }

    /// Returns the folders of its cases, however deep, in the order of their names.
    pub(crate) fn cases(&self) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        if self.folder.is_dir() {
            find(&self.folder, "", &self.files.input, &mut found);
        }
        found
    }

    /// Renders a case.
    pub(crate) fn case(&self, stem: &str, folder: &Path) -> Case {
        let name = format!("{}/{stem}", self.name);
        let own = ("in.yaml".to_owned(), self.input(folder));
        let tree: Tree = self.documents_of(stem).into_iter().chain([own]).collect();
        let refused = folder.join("expected-error.yaml").exists();
        let expected: Option<Vec<Value>> = (!refused).then(|| {
            let documents = yaml::parse_values(&read(&folder.join(&self.files.output)));
            let documents = documents.unwrap_or_else(|error| die(&name, &error.to_string()));
            documents.into_iter().filter(|document| !document.is_null()).collect()
        });
        let mut settings = self.settings.clone();
        if !self.files.settings.is_empty() {
            let text = read(&folder.join(&self.files.settings));
            let documents = yaml::parse_values(&text).unwrap_or_else(|error| die(&name, &error.to_string()));
            for above in &documents {
                put_over(&mut settings, above);
            }
        }
        let settings = self.settings_of(stem, settings, expected.as_deref().unwrap_or_default());
        let packs = self.packs(&settings).unwrap_or_else(|error| die(&name, &Chain(&error).to_string()));
        let rendering = unit::render(&tree, &packs, &Options::default());
        Case { rendering, expected }
    }

    /// Returns the pack, with what the settings say of parameters as the layer of the config file.
    fn packs(&self, settings: &Value) -> Result<Packs, PackError> {
        let pack = gatewright_packs::pack(&self.pack, settings)?;
        let layer = settings.get("parameters").map(Node::of_value);
        Packs::new(vec![pack.with_settings("settings", layer.unwrap_or_else(|| Node::of_value(&json!({}))))])
    }

    fn input(&self, folder: &Path) -> String {
        let Some(parameters) = &self.values else { return read(&folder.join(&self.files.input)) };
        let Parameters { api_version, kind, name, namespace } = parameters;
        let values = yaml::parse_values(&read(&folder.join(&self.files.input)));
        let values = values.unwrap_or_else(|error| die(&folder.display().to_string(), &error.to_string()));
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": values.into_iter().next().unwrap_or_default(),
        })
        .to_string()
    }

    /// Returns what a case has beside its own documents, as files.
    fn documents_of(&self, stem: &str) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for (folder, namespace) in &self.sources {
            for file in sorted(&self.folder.join(folder)) {
                let documents = yaml::parse_values(&read(&file));
                let documents = documents.unwrap_or_else(|error| die(&file.display().to_string(), &error.to_string()));
                for mut document in documents.into_iter().filter(|document| document["metadata"]["name"].is_string()) {
                    document["metadata"]["namespace"] = namespace.as_str().into();
                    files.push((format!("beside-{}.yaml", files.len()), yaml::to_string(&document)));
                }
            }
        }
        let exceptions = self.exceptions.iter().filter(|exception| is_meant(&exception.cases, stem));
        for document in exceptions.flat_map(|exception| &exception.documents) {
            files.push((format!("beside-{}.yaml", files.len()), yaml::to_string(document)));
        }
        files
    }

    fn settings_of(&self, stem: &str, mut settings: Value, output: &[Value]) -> Value {
        for exception in self.exceptions.iter().filter(|exception| is_meant(&exception.cases, stem)) {
            put_over(&mut settings, &exception.settings);
            let files = exception.texts.iter().map(|(at, file)| (at, read(&self.folder.join(file))));
            let in_output = |key: &String| {
                let found = output.iter().find_map(|object| object["data"][key].as_str());
                found.unwrap_or_else(|| die(stem, &format!("no ConfigMap of the output has {key:?}"))).to_owned()
            };
            let outputs = exception.outputs.iter().map(|(at, key)| (at, in_output(key)));
            for (pointer, text) in files.chain(outputs) {
                let at = settings.pointer_mut(pointer);
                *at.unwrap_or_else(|| die(&self.name, &format!("the settings have no {pointer}"))) = text.into();
            }
        }
        settings
    }
}

fn find(folder: &Path, name: &str, input: &str, found: &mut Vec<(String, PathBuf)>) {
    if folder.join(input).exists() {
        return found.push((name.to_owned(), folder.to_owned()));
    }
    for below in sorted(folder).iter().filter(|path| path.is_dir()) {
        let part = below.file_name().map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
        let name = if name.is_empty() { part } else { format!("{name}/{part}") };
        find(below, &name, input, found);
    }
}

fn put_over(settings: &mut Value, above: &Value) {
    match (settings, above) {
        (Value::Object(fields), Value::Object(above)) => {
            above.iter().for_each(|(key, value)| put_over(fields.entry(key.as_str()).or_insert(Value::Null), value));
        }
        (_, Value::Null) => {}
        (settings, above) => *settings = above.clone(),
    }
}
