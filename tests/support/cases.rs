//! Cases of the real systems: what a user writes, and what the real system made of it.
//!
//! They lie outside this repository, in the folders that `GATEWRIGHT_CASES` names (see `folders`):
//! `<suite>/<case>/in.yaml` beside `out.yaml` or `expected-error.yaml`, in folders however deep. In place of the input
//! there may be the `values.yaml` of a chart.
//! A suite whose cases have other file names says so in `files`; a case with an `in.yaml` never has them.
//! A suite is known if `tests/conformance/suites` has a file of its name; that file says with which settings the
//! outputs were made, so that cases nobody has seen before need nothing here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gatewright_engine::error::Chain;
use gatewright_engine::object::Object;
use gatewright_engine::pack::{PackError, Packs};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options, Rendering, Unit};
use gatewright_engine::yaml::{self, Node};
use serde::Deserialize;
use serde_json::{Value, json};

#[path = "folders.rs"]
mod folders;

pub(crate) use folders::folders;
use folders::{die, in_repository, put_over, read, read_values, sorted};

/// The settings of a suite.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Suite {
    /// Its name, which is that of its file and of its folder.
    #[serde(skip)]
    pub(crate) name: String,
    /// The folders of its cases, those only that are there.
    #[serde(skip)]
    pub(crate) folders: Vec<PathBuf>,
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
    /// Folders of the suite whose documents every case has beside its own, and their namespace. One that is not beside
    /// the cases is taken from the folder `goldens` beside theirs.
    #[serde(default)]
    sources: BTreeMap<String, String>,
    /// Files of the suite whose documents every case has beside its own, where a folder of cases has them.
    #[serde(default)]
    documents: Vec<String>,
    /// Objects that no output has although they were made: how their version and kind begin.
    #[serde(default)]
    left_out: Vec<String>,
    /// Lists whose order means nothing, by the name of their field.
    #[serde(default)]
    pub(crate) unordered: Vec<String>,
    /// The differences that are meant to be, and why.
    #[serde(default)]
    pub(crate) differences: Vec<Deliberate>,
    /// The number of cases that may be otherwise, of which the first counts that is about a case.
    #[serde(default)]
    pub(crate) limits: Vec<Limit>,
}

/// The number of cases that may be otherwise.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Limit {
    /// Names of cases; `*` at the end stands for any rest.
    pub(crate) cases: Vec<String>,
    /// The number.
    pub(crate) most: usize,
    /// Whether a case that we refuse with a reason counts without being listed.
    #[serde(default)]
    pub(crate) refusals: bool,
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
#[derive(Clone, Debug, Deserialize)]
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
    /// The kinds that their outputs hold, in place of those of the suite.
    #[serde(default)]
    kinds: Vec<String>,
    /// Objects that their outputs leave out although they were made: version, kind and name.
    #[serde(default)]
    left_out: Vec<String>,
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

/// Reads all suites that are known here, in the order of their names.
pub(crate) fn suites(roots: &[PathBuf]) -> Vec<Suite> {
    let files = sorted(&in_repository("tests/conformance/suites"));
    files.iter().map(|file| Suite::read(file, roots)).collect()
}

/// Tells whether a name is meant by one of these, of which `*` at the end stands for any rest.
pub(crate) fn is_meant(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    })
}

impl Suite {
    fn read(file: &Path, roots: &[PathBuf]) -> Self {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let document = read_values(file).into_iter().next().unwrap_or_default();
        let suite: Self = serde_json::from_value(document)
            .unwrap_or_else(|error| die(&file.display().to_string(), &error.to_string()));
        let folders = roots.iter().map(|root| root.join(&name)).filter(|folder| folder.is_dir()).collect();
        Self { name, folders, ..suite }
    }

    /// Returns the folders of its cases, however deep, in the order of their names.
    pub(crate) fn cases(&self) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        for folder in &self.folders {
            folders::find(folder, "", &["in.yaml", &self.files.input], &mut found);
        }
        found
    }

    /// Renders a case.
    pub(crate) fn case(&self, stem: &str, folder: &Path) -> Case {
        let own = ("in.yaml".to_owned(), self.input(folder));
        let tree: Tree = self.documents_of(stem, folder).into_iter().chain([own]).collect();
        let files = self.files_of(folder);
        let refused = folder.join("expected-error.yaml").exists();
        let expected: Option<Vec<Value>> = (!refused).then(|| read_values(&folder.join(&files.output)));
        let mut settings = self.settings.clone();
        if !files.settings.is_empty() {
            for above in &read_values(&folder.join(&files.settings)) {
                put_over(&mut settings, above);
            }
        }
        let settings = self.settings_of(stem, folder, settings, expected.as_deref().unwrap_or_default());
        let name = || format!("{}/{stem}", self.name);
        let packs = self.packs(&settings).unwrap_or_else(|error| die(&name(), &Chain(&error).to_string()));
        let rendering = unit::render(&tree, &packs, &Options::default());
        Case { rendering, expected }
    }

    /// Returns the kinds that the output of a case holds; none for all.
    pub(crate) fn kinds_of(&self, stem: &str) -> &[String] {
        let own = self.exceptions_of(stem).find(|exception| !exception.kinds.is_empty());
        own.map_or(&self.kinds, |exception| &exception.kinds)
    }

    /// Tells whether the output of a case leaves an object out, given by its version, kind and name.
    pub(crate) fn leaves_out(&self, stem: &str, id: &str) -> bool {
        self.left_out.iter().any(|left_out| id.starts_with(left_out.as_str()))
            || self.exceptions_of(stem).any(|exception| exception.left_out.iter().any(|left_out| left_out == id))
    }

    /// Returns the place of the limit that is about a case.
    pub(crate) fn limit_of(&self, stem: &str) -> Option<usize> {
        self.limits.iter().position(|limit| is_meant(&limit.cases, stem))
    }

    fn exceptions_of(&self, stem: &str) -> impl Iterator<Item = &Exception> {
        self.exceptions.iter().filter(move |exception| is_meant(&exception.cases, stem))
    }

    fn has_input(folder: &Path) -> bool {
        folder.join("in.yaml").exists()
    }

    fn files_of(&self, folder: &Path) -> Files {
        if Self::has_input(folder) { Files::default() } else { self.files.clone() }
    }

    /// Returns the pack, with what the settings say of parameters as the layer of the config file.
    fn packs(&self, settings: &Value) -> Result<Packs, PackError> {
        let pack = gatewright_packs::pack(&self.pack, settings)?;
        let layer = settings.get("parameters").map(Node::of_value);
        Packs::new(vec![pack.with_settings("settings", layer.unwrap_or_else(|| Node::of_value(&json!({}))))])
    }

    /// Returns what a person wrote for a case: its input, and the documents that it names and that are not beside it.
    pub(crate) fn written(&self, stem: &str, folder: &Path) -> String {
        let documents = self.exceptions_of(stem).flat_map(|exception| &exception.documents);
        documents.map(ToString::to_string).chain([self.input(folder)]).collect()
    }

    fn input(&self, folder: &Path) -> String {
        let file = folder.join(self.files_of(folder).input);
        let Some(parameters) = self.values.as_ref().filter(|_| !Self::has_input(folder)) else { return read(&file) };
        let Parameters { api_version, kind, name, namespace } = parameters;
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": read_values(&file).into_iter().next().unwrap_or_default(),
        })
        .to_string()
    }

    /// Returns what a case has beside its own documents, as files.
    fn documents_of(&self, stem: &str, case: &Path) -> Vec<(String, String)> {
        let root = self.root_of(case);
        let mut found = Vec::new();
        for (folder, namespace) in &self.sources {
            for file in sorted(&folders::in_suite(root, &self.name, folder)) {
                for mut document in read_values(&file).into_iter().filter(|it| it["metadata"]["name"].is_string()) {
                    document["metadata"]["namespace"] = namespace.as_str().into();
                    found.push(document);
                }
            }
        }
        let files = self.documents.iter().map(|file| root.join(file)).filter(|file| file.exists());
        found.extend(files.flat_map(|file| read_values(&file)));
        found.extend(self.exceptions_of(stem).flat_map(|exception| exception.documents.clone()));
        let file = |(n, document): (usize, &Value)| (format!("beside-{n}.yaml"), yaml::to_string(document));
        found.iter().enumerate().map(file).collect()
    }

    /// Returns the folder of the suite in which a case is.
    fn root_of(&self, case: &Path) -> &Path {
        let root = self.folders.iter().find(|folder| case.starts_with(folder));
        root.unwrap_or_else(|| die(&case.display().to_string(), "the case is in no folder of its suite"))
    }

    fn settings_of(&self, stem: &str, case: &Path, mut settings: Value, output: &[Value]) -> Value {
        let root = self.root_of(case);
        for exception in self.exceptions_of(stem) {
            put_over(&mut settings, &exception.settings);
            let files = exception.texts.iter().map(|(at, file)| (at, read(&root.join(file))));
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
