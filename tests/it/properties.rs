//! Properties of all specs: nothing depends on the order of files, text stays text, and nothing makes us panic.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gatewright_engine::merge::origin::{Layer, LayerName};
use gatewright_engine::merge::{Table, merge};
use gatewright_engine::object::Object;
use gatewright_engine::overlay::Assignment;
use gatewright_engine::pack::{Packs, Provision};
use gatewright_engine::problem::{Problem, Scope};
use gatewright_engine::resolve::{Resolution, resolve};
use gatewright_engine::tree::{Entry, Tree};
use gatewright_engine::unit::{self, Options, Rendering, Source};
use gatewright_engine::yaml::{self, Node};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use serde_json::{Map, Value, json};

use crate::cluster::binaries::in_repository;

/// Specs with much in them: the parameters of both levels, and most fields that there are.
const RICH: &str = "tests/golden/class_and_gateway_parameters_merge/in";
const QUICKSTART: &str = "examples/quickstart/specs";

fn packs() -> Packs {
    let pack = gatewright_packs::pack("kgateway", &Value::Null).expect("the built-in pack can be used");
    Packs::new(vec![pack]).expect("the built-in pack can be used")
}

fn render(tree: &Tree) -> Rendering {
    unit::render(tree, &packs(), &Options::default())
}

fn tree(folder: &str) -> Tree {
    Tree::read_dir(&in_repository(folder)).expect("the folder is there")
}

/// Returns the documents of a folder as texts.
fn documents(folder: &str) -> Vec<String> {
    let mut documents = Vec::new();
    for (file, entry) in tree(folder).files() {
        let Entry::Text(text) = entry else { continue };
        documents.extend(yaml::parse(text).expect(file).iter().map(|node| yaml::to_string(&node.to_value())));
    }
    documents
}

fn objects(rendering: &Rendering) -> Vec<&Object> {
    rendering.units.iter().flat_map(|unit| &unit.objects).collect()
}

/// Any text, and more often than chance has it what means something to YAML, to templates or to a shell.
fn text() -> impl Strategy<Value = String> {
    let meaning = prop_oneof![
        Just("---\nkind: Secret\n"),
        Just("{{ name }}"),
        Just("{% for x in y %}"),
        Just("{#"),
        Just("\u{1}\"a\"\u{2}"),
        Just("10000000000001000000"),
        Just("\"}]"),
        Just("'"),
        Just("\\"),
        Just(": "),
        Just(" #"),
        Just("\n  - "),
        Just("\r\n"),
        Just("\t"),
        Just("*a &b !c"),
        Just("~"),
        Just("yes"),
        Just("0644"),
        Just("1e3"),
        Just("<<"),
        Just("\u{feff}"),
        Just("\u{85}\u{2028}\u{2029}"),
        Just("\0\u{1b}\u{7f}"),
        Just("😀"),
    ];
    let piece = prop_oneof![meaning.prop_map(str::to_owned), any::<String>(), "[a-z ]{1,8}"];
    vec(piece, 1..5).prop_map(|pieces| pieces.concat()).prop_filter("some text", |text| !text.is_empty())
}

/// A value below a key that says of which type it is, as a schema would.
fn typed(depth: u32) -> BoxedStrategy<Value> {
    let scalars = btree_map("s[0-2]", prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from)], 0..3);
    let lists = btree_map("l[0-1]", vec(any::<i8>(), 0..3).prop_map(Value::from), 0..2);
    let both = (scalars, lists);
    let maps =
        if depth == 0 { Just(BTreeMap::new()).boxed() } else { btree_map("m[0-1]", typed(depth - 1), 0..3).boxed() };
    (both, maps).prop_map(|((scalars, lists), maps)| scalars.into_iter().chain(lists).chain(maps).collect()).boxed()
}

fn node(value: &Value) -> Node {
    match yaml::parse(&yaml::to_string(value)).expect("it was just written").pop() {
        Some(node) => node,
        None => unreachable!("a mapping is a document"),
    }
}

fn merged(values: &[&Value]) -> Value {
    let nodes: Vec<Node> = values.iter().map(|value| node(value)).collect();
    let layers: Vec<Layer<'_>> = nodes.iter().map(|node| Layer::new(LayerName::Gateway, "a.yaml", node)).collect();
    let before = nodes.clone();
    let merged = merge(&layers, &Table::default()).to_value();
    assert_eq!(nodes, before, "merging leaves its inputs alone");
    merged
}

/// Calls a function with every text in a value.
fn each_text(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns an object with Envoy's configuration read, so that it can be compared as a value.
fn unfolded(object: &Object) -> Value {
    let mut body = object.body().clone();
    if let Some(text) = body.pointer_mut("/data/envoy.yaml") {
        let bootstrap = yaml::parse_values(text.as_str().expect("a file is text")).expect("the bootstrap is YAML");
        *text = Value::Array(bootstrap);
    }
    body
}

/// A Gateway with a text in every field that takes any.
fn gateway_with(text: &str) -> [Value; 2] {
    let annotations = json!({"example.com/text": text});
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge", "namespace": "infra"},
        "spec": {
            "gatewayClassName": "kgateway",
            "listeners": [{"name": "http", "protocol": "HTTP", "port": 8080}],
            "infrastructure": {
                "annotations": annotations,
                "parametersRef": {"group": "gateway.kgateway.dev", "kind": "GatewayParameters", "name": "edge"},
            },
        },
    });
    let extra = json!({"extraAnnotations": {"example.com/extra": text}});
    let parameters = json!({
        "apiVersion": "gateway.kgateway.dev/v1alpha1", "kind": "GatewayParameters",
        "metadata": {"name": "edge", "namespace": "infra"},
        "spec": {"kube": {
            "podTemplate": extra, "service": extra, "serviceAccount": extra,
            "envoyContainer": {
                "bootstrap": {"logFormat": {"json": {"text": text, "nested": {"text": text}}}},
                "env": [{"name": "TEXT", "value": text}],
            },
            "stats": {"matcher": {"inclusionList": [{"exact": text}]}},
        }},
    });
    [gateway, parameters]
}

/// Writes JSON as many programs do: what is not ASCII as escapes, and characters beyond 16 bits as two.
fn ascii_json(value: &Value) -> String {
    let json = serde_json::to_string(value).expect("a value can be written");
    let mut ascii = String::new();
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte < 0x7f => ascii.push(char::from(byte)),
            _ => write!(ascii, "\\u{unit:04x}").expect("a text takes all that is written"),
        }
    }
    ascii
}

/// Says what stands at every path of the objects of a rendering, texts left out.
fn shape(rendering: &Rendering) -> Vec<Value> {
    let shape = |object: &&Object| {
        let mut value = unfolded(object);
        each_text(&mut value, &mut String::clear);
        value
    };
    objects(rendering).iter().map(shape).collect()
}

fn checks_text(text: &str, files: impl Fn(&[Value; 2]) -> Tree) -> Result<(), TestCaseError> {
    let rendering = render(&files(&gateway_with(text)));
    // An API server takes no annotations of a megabyte, and that is a warning.
    let is_length = |problem: &Problem| problem.scope == Scope::Warning && problem.message.contains("256 KiB");
    let problems: Vec<&Problem> = rendering.problems.iter().filter(|problem| !is_length(problem)).collect();
    prop_assert!(problems.is_empty(), "{:?}", problems);
    prop_assert_eq!(shape(&rendering), shape(&render(&files(&gateway_with("x")))));
    let mut found = 0;
    for object in objects(&rendering) {
        each_text(&mut unfolded(object), &mut |said| found += usize::from(said == text));
    }
    // The annotation on five objects and templates, three extra ones, the variable, the matcher and the two of the log.
    prop_assert!(found >= 5 + 3 + 1 + 1 + 2, "{} of them", found);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_files_is_irrelevant(names in subsequence((0..40).collect::<Vec<u32>>(), 12), files in vec(any::<Index>(), 12)) {
        let documents = [documents(QUICKSTART), documents(RICH)].concat();
        let expected = render(&Tree::from_iter([("all.yaml", documents.join("---\n"))]));
        let mut shuffled: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (document, file) in documents.iter().zip(files) {
            shuffled.entry(format!("{}/f.yaml", file.get(&names))).or_default().push(document);
        }
        let tree: Tree = shuffled.into_iter().map(|(name, documents)| (name, documents.join("---\n"))).collect();
        let rendering = render(&tree);
        prop_assert_eq!(objects(&rendering), objects(&expected));
        prop_assert_eq!(rendering.problems.len(), expected.problems.len());
    }

    #[test]
    fn text_stays_what_it_is_and_where_it_is(text in text()) {
        checks_text(&text, |documents| Tree::from_iter([("a.yaml", documents.each_ref().map(yaml::to_string).join("---\n"))]))?;
    }

    #[test]
    fn text_in_json_does_too(text in text()) {
        checks_text(&text, |[one, other]| Tree::from_iter([("a.json", ascii_json(one)), ("b.json", ascii_json(other))]))?;
    }

    #[test]
    fn no_value_of_a_template_changes_the_structure(texts in vec(text(), 1..20)) {
        let (tree, packs, options) = (tree(RICH), packs(), Options::default());
        let specs = Source::load(&tree, &packs, None).specs;
        for (_, resolution) in resolve(&specs, &packs, &Assignment::default()) {
            let Resolution::Ready(resolved) = resolution else { continue };
            let subject = unit::subject(&resolved, &options);
            let Ok(Provision::Values(values)) = unit::values(&resolved, &subject) else {
                return Err(TestCaseError::fail("it is ours and can be rendered"));
            };
            // First a name for every text, then any text: the one must come out wherever the other did.
            let (mut named, mut count) = (values.clone(), 0);
            each_text(&mut named, &mut |text| {
                *text = format!("text-{count}");
                count += 1;
            });
            let replace = |text: &mut String| {
                let number = text.strip_prefix("text-").and_then(|number| number.parse::<usize>().ok());
                if let Some(number) = number {
                    text.clone_from(&texts[number % texts.len()]);
                }
            };
            let mut filled = named.clone();
            each_text(&mut filled, &mut { replace });
            let render = |values| resolved.pack.renderer.render(values).expect("it renders");
            for (named, filled) in render(&named).iter().zip(render(&filled)) {
                let mut expected = unfolded(named);
                each_text(&mut expected, &mut { replace });
                prop_assert_eq!(unfolded(&filled), expected);
            }
        }
    }

    #[test]
    fn merging_has_an_identity_and_is_associative(a in typed(2), b in typed(2), c in typed(2)) {
        let nothing = Value::Object(Map::new());
        let plain = merged(&[&a]);
        prop_assert_eq!(&merged(&[&nothing, &a]), &plain);
        prop_assert_eq!(&merged(&[&a, &nothing]), &plain);
        prop_assert_eq!(&merged(&[&a, &a]), &plain);
        let all = merged(&[&a, &b, &c]);
        prop_assert_eq!(&merged(&[&merged(&[&a, &b]), &c]), &all);
        prop_assert_eq!(&merged(&[&a, &merged(&[&b, &c])]), &all);
    }

    #[test]
    fn bytes_that_are_no_spec_do_no_harm(bytes in vec(any::<u8>(), 0..400)) {
        let rendering = render(&Tree::from_iter([("a.yaml", bytes)]));
        prop_assert!(rendering.units.is_empty());
    }

    #[test]
    fn a_damaged_spec_does_no_harm(edits in vec((any::<Index>(), any::<u8>()), 1..6), cut in any::<Index>()) {
        let mut bytes = documents(RICH).join("---\n").into_bytes();
        for (index, byte) in edits {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        drop(render(&Tree::from_iter([("a.yaml", bytes.clone())])));
        bytes.truncate(cut.index(bytes.len()));
        drop(render(&Tree::from_iter([("a.yaml", bytes)])));
    }
}

#[test]
fn a_text_of_a_megabyte_comes_through() {
    let text = "{{ a }}: \"b\"\n# é😀\t".repeat(50_000);
    assert!(text.len() > 1_000_000);
    let files =
        |documents: &[Value; 2]| Tree::from_iter([("a.yaml", documents.each_ref().map(yaml::to_string).join("---\n"))]);
    checks_text(&text, files).expect("it is text like any other");
}

#[test]
fn rendering_again_gives_the_same_bytes() {
    for folder in [QUICKSTART, RICH] {
        let bytes =
            || objects(&render(&tree(folder))).iter().map(|object| yaml::to_string(object.body())).collect::<Vec<_>>();
        assert_eq!(bytes(), bytes());
    }
}
