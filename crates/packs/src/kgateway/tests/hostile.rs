//! Hostile texts in every field of `GatewayParameters` that takes one: they arrive as they are, and change nothing else.
//!
//! The fields are read off the schema, so that a new one is tested without a line here.

use std::collections::BTreeSet;

use gatewright_engine::object::Object;
use gatewright_engine::pack::Packs;
use gatewright_engine::schema::{Additional, Rule, Schema};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, render};
use gatewright_engine::yaml;
use serde_json::{Map, Value, json};

use super::super::parameters::GatewayParameters;
use super::packs;

/// Patches of objects, which are no values of templates.
const OVERLAYS: [&str; 6] = [
    "deploymentOverlay",
    "horizontalPodAutoscaler",
    "podDisruptionBudget",
    "serviceAccountOverlay",
    "serviceOverlay",
    "verticalPodAutoscaler",
];

const TEXTS: [&str; 16] = [
    "a: b\n- c\n  d: [e, {f: g}]",
    "{{ name }}{% if x %}{# y #}{% endraw %}{{",
    "\"'`\\\"\\",
    "\r\n\t\u{b}\u{c}",
    "\u{85}\u{2028}\u{2029}\u{feff}",
    "\u{1}\"a\"\u{2}\u{3}\u{7}\u{8}\u{1b}\u{1f}\u{7f}\u{80}\u{9f}",
    "---\nkind: Secret\n...\n",
    "*a &b !!str <<",
    "~",
    "yes",
    "0644",
    "10000000000001000000",
    " # no comment ",
    "😀é\u{0301}\u{202e}",
    "$(POD_NAME) ${HOME} `id`; sleep",
    "\n\n  ",
];

/// YAML reads no longer one without a question mark (1.2.2, section 7.4.2).
const LONGEST_KEY: Option<u64> = Some(512);

const NEVER_RENDERED: &str = "kube.istio.customSidecars";

/// Makes a document with a text of its own in every field that takes one.
struct Filler<'a> {
    schema: &'a Schema,
    /// The number of the alternative that is taken, of several.
    choice: usize,
    /// The path of each field, and how long its text may be. The position is the number in the text.
    fields: Vec<(String, Option<u64>)>,
}

impl Filler<'_> {
    fn text(&mut self, path: &str, longest: Option<u64>) -> String {
        self.fields.push((path.to_owned(), longest));
        mark(self.fields.len() - 1)
    }

    fn value(&mut self, rule: &Rule, path: &str) -> Value {
        let rule = self.schema.resolve(rule);
        let is = |name: &str| rule.types.iter().any(|known| known == name);
        if let Some(alternative) = rule.any_of.get(self.choice % rule.any_of.len().max(1)) {
            return self.value(alternative, path);
        }
        if let Some(first) = rule.values.first() {
            return first.clone();
        }
        if let Some(items) = &rule.items {
            return json!([self.value(items, &format!("{path}[]"))]);
        }
        if is("object") || !rule.properties.is_empty() {
            return Value::Object(self.object(rule, path));
        }
        match (is("string") || rule.types.is_empty(), &rule.pattern) {
            (true, Some(_)) => "1".into(),
            (true, None) => self.text(path, rule.length.max).into(),
            (false, _) if is("boolean") => true.into(),
            (false, _) => 1.into(),
        }
    }

    fn object(&mut self, rule: &Rule, path: &str) -> Map<String, Value> {
        let chosen = rule.one_of.get(self.choice % rule.one_of.len().max(1));
        let mut object = Map::new();
        for (name, below) in &rule.properties {
            let is_another = rule.one_of.contains(name) && Some(name) != chosen;
            let is_overlay = path == "kube" && OVERLAYS.contains(&name.as_str());
            if !is_another && !is_overlay {
                object.insert(name.clone(), self.value(below, &format!("{path}.{name}")));
            }
        }
        match &rule.additional {
            Additional::Obeying(below) => {
                let key = self.text(&format!("{path}{{key}}"), LONGEST_KEY);
                object.insert(key, self.value(below, &format!("{path}{{}}")));
            }
            Additional::Free if rule.properties.is_empty() => {
                let key = self.text(&format!("{path}{{key}}"), LONGEST_KEY);
                object.insert(key, self.text(&format!("{path}{{}}"), None).into());
            }
            Additional::Free | Additional::Forbidden => {}
        }
        object
    }
}

fn mark(number: usize) -> String {
    format!("M{number}E")
}

/// Puts texts in the place of marks, in keys too.
fn replaced(value: &Value, text_of: &impl Fn(usize) -> Option<String>) -> Value {
    match value {
        Value::String(text) => Value::String(replaced_in(text, text_of)),
        Value::Array(items) => items.iter().map(|item| replaced(item, text_of)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (replaced_in(key, text_of), replaced(value, text_of))).collect()
        }
        other => other.clone(),
    }
}

fn replaced_in(text: &str, text_of: &impl Fn(usize) -> Option<String>) -> String {
    let mut pieces = text.split('M');
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let number = piece.split_once('E').and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        match number.and_then(|(number, rest)| Some((text_of(number)?, rest))) {
            Some((text, rest)) => whole.extend([text.as_str(), rest]),
            None => whole.extend(["M", piece]),
        }
    }
    whole
}

/// Returns all objects, with Envoy's configuration read.
fn objects(packs: &Packs, kube: &Value) -> Value {
    let parameters = json!({
        "apiVersion": "gateway.kgateway.dev/v1alpha1", "kind": "GatewayParameters",
        "metadata": {"name": "edge", "namespace": "infra"}, "spec": {"kube": kube},
    });
    let tree = Tree::from_iter([("gateway.yaml", super::GATEWAY), ("parameters.yaml", &yaml::to_string(&parameters))]);
    let rendering = render(&tree, packs, &Options::default());
    assert!(rendering.broken.is_empty(), "{:?}", rendering.problems);
    let unfolded = |object: &Object| {
        let mut body = object.body().clone();
        if let Some(text) = body.pointer_mut("/data/envoy.yaml") {
            let bootstrap = yaml::parse_values(text.as_str().expect("a file is text")).expect("the bootstrap is YAML");
            *text = Value::Array(bootstrap);
        }
        body
    };
    rendering.units.iter().flat_map(|unit| &unit.objects).map(unfolded).collect()
}

/// Returns `spec.kube` with every field in it, and the fields that have marks.
fn filled(schema: &Schema, choice: usize) -> (Value, Vec<(String, Option<u64>)>) {
    let mut filler = Filler { schema, choice, fields: Vec::new() };
    let spec = schema.resolve(&schema.root().properties["spec"]);
    let kube = filler.value(&spec.properties["kube"], "kube");
    (kube, filler.fields)
}

fn cut(text: &str, longest: Option<u64>) -> String {
    text.chars().take(longest.and_then(|longest| usize::try_from(longest).ok()).unwrap_or(usize::MAX)).collect()
}

fn istio() -> Packs {
    packs(&json!({"istio": {"autoMtls": true}}))
}

fn schema() -> Schema {
    Schema::of::<GatewayParameters>().expect("the schema can be used")
}

#[test]
fn every_field_of_the_parameters_arrives_in_an_object() {
    let mut lost = BTreeSet::new();
    for choice in 0..5 {
        let (kube, fields) = filled(&schema(), choice);
        assert!(fields.len() > 300, "there are only {} fields", fields.len());
        let text = objects(&istio(), &kube).to_string();
        let is_lost = |(number, _): &(usize, &(String, _))| !text.contains(&mark(*number));
        lost.extend(fields.iter().enumerate().filter(is_lost).map(|(_, (path, _))| path.clone()));
    }
    lost.retain(|path| !path.starts_with(NEVER_RENDERED));
    assert_eq!(lost, BTreeSet::new(), "fields that no object shows");
}

#[test]
fn no_text_in_parameters_changes_a_structure() {
    let packs = istio();
    for choice in 0..5 {
        let (kube, fields) = filled(&schema(), choice);
        let usual = objects(&packs, &kube);
        for text in TEXTS {
            let text_of = |number: usize| fields.get(number).map(|(_, longest)| cut(text, *longest));
            let rendered = objects(&packs, &replaced(&kube, &text_of));
            assert!(rendered == replaced(&usual, &text_of), "{text:?}, alternative {choice}");
        }
    }
}

#[test]
fn a_text_of_a_megabyte_arrives_as_it_is() {
    const AT_ONCE: usize = 30;
    let packs = istio();
    let long = format!("a: {{{{b}}}} \u{2028}\n{}", "x".repeat(1 << 20));
    let (kube, fields) = filled(&schema(), 0);
    let usual = objects(&packs, &kube);
    let rendered = |number: &usize| !fields[*number].0.starts_with(NEVER_RENDERED);
    let numbers: Vec<usize> = (0..fields.len()).filter(rendered).collect();
    for numbers in numbers.chunks(AT_ONCE) {
        let text_of = |number: usize| numbers.contains(&number).then(|| cut(&long, fields[number].1));
        let rendered = objects(&packs, &replaced(&kube, &text_of));
        assert!(rendered == replaced(&usual, &text_of), "fields {numbers:?}");
    }
}
