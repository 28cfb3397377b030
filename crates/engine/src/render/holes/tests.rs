use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Templates, filled: `V` is where a value goes.
const TEMPLATES: [&str; 12] = [
    "a: V\nb: [V, x, V]\n",
    "a: {b: V, c: [V]}\n---\nd: V\n",
    "- V\n- x: V\n  z: V\n",
    "V\n",
    "a: |\n  text V\n    more: V\n\n  V\n",
    "a: >-\n  text V\n  more V\n",
    "a: 'V'\n",
    "a: &x V\nb: *x\n",
    "a: V # and V\n",
    "a: !!str V\n",
    "a: x-V\n",
    "# V\na: V\n",
];

fn fill(template: &str, value: &Value) -> String {
    let json = serde_json::to_string(value).expect("a value can be written");
    template.replace('V', &format!("{BEGIN}{json}{END}"))
}

/// Reads a filled template twice, the second time from memory.
fn read(filled: &str) -> Result<Vec<Value>, YamlError> {
    let texts = Texts::default();
    let first = texts.read(filled);
    assert_eq!(texts.read(filled), first);
    first
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z~:#{}\"' ]{0,6}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_read_is_what_the_yaml_says(value in values()) {
        for template in TEMPLATES {
            let filled = fill(template, &value);
            // Where a value would change the structure, the YAML says something else, or nothing; that is the point.
            let is_safe = !template.contains("x-V") && !template.contains("'V'");
            if let (true, Ok(expected), Ok(actual)) = (is_safe, yaml::parse_values(&closed(&filled)), read(&filled)) {
                prop_assert_eq!(actual, expected, "{}", template);
            }
        }
    }

    #[test]
    fn a_value_comes_out_as_it_went_in(value in values()) {
        let filled = fill("a: V\nb:\n  - [V]\n", &value);
        prop_assert_eq!(read(&filled), Ok(vec![json!({"a": value, "b": [[value]]})]));
    }

    #[test]
    fn a_value_in_a_text_stays_in_it(value in values()) {
        let documents = read(&fill("a: |\n  b: V\n  c: 1\n", &value)).expect("nothing can go wrong");
        let text = documents[0]["a"].as_str().expect("it is a text");
        prop_assert!(text.is_ascii() && text.lines().count() == 2, "{}", text);
        prop_assert_eq!(yaml::parse_values(text), Ok(vec![json!({"b": value, "c": 1})]));
    }
}

#[test]
fn a_text_is_read_once() {
    let texts = Texts::default();
    for name in ["a", "b: c\n", "{{ d }}"] {
        let filled = fill("a: V\nb: |\n  V\n", &json!(name));
        let quoted = ascii(&json!(name).to_string()).into_owned();
        assert_eq!(texts.read(&filled), Ok(vec![json!({"a": name, "b": format!("{quoted}\n")})]));
    }
    assert_eq!(texts.known.lock().expect("nobody panics").len(), 1);
}

#[test]
fn memory_has_an_end() {
    let texts = Texts::default();
    for number in 0..3 * MAX_TEXTS {
        let filled = fill(&format!("a: V\nb: {number}\n"), &json!("x"));
        assert_eq!(texts.read(&filled), Ok(vec![json!({"a": "x", "b": number})]));
    }
    assert!(texts.known.lock().expect("nobody panics").len() <= MAX_TEXTS);
}

#[test]
fn what_holes_do_not_fit_into_is_read_as_yaml() {
    let check = |template: &str, value: Value, expected: Value| {
        assert_eq!(read(&fill(template, &value)), Ok(vec![expected]), "{template}");
    };
    check("a: 80V\n", json!(80), json!({"a": 8080}));
    check("a: -V\n", json!(1), json!({"a": -1}));
    check("a: \"V\"\n", json!(80), json!({"a": "80"}));
    check("a: 'V'\n", json!("x"), json!({"a": "\"x\""}));
    check("a: !!binary V\n", json!("eA=="), json!({"a": "x"}));
    check("a:\n  <<: V\n  b: 1\n", json!({"c": 2}), json!({"a": {"b": 1, "c": 2}}));
    check("a: Vm\n", json!(100), json!({"a": "100m"}));
    check("a: 10000000000000000000\nb: V\n", json!(1), json!({"a": 10_000_000_000_000_000_000_u64, "b": 1}));
    check("a: x10000000000001000000\nb: V\n", json!("c"), json!({"a": "x10000000000001000000", "b": "c"}));
    check("a: 10000000000000000007\nb: V\n", json!(1), json!({"a": 10_000_000_000_000_000_007_u64, "b": 1}));
    check("a: '1000000000000'\nb: V\n", json!(1), json!({"a": "1000000000000", "b": 1}));
}

#[test]
fn mistakes_of_templates_are_found() {
    let fails = |template: &str, value: Value, line: u32, message: &str| {
        let error = read(&fill(template, &value)).expect_err(template);
        assert!(error.message.contains(message) && error.position.line == line, "{template}: {error:?}");
    };
    fails("b: 1\na: \"V\"\n", json!("x"), 2, "");
    fails("a: 1\nV: 1\nV: 2\n", json!("x"), 3, "a second time");
    fails("V: 1\na: 2\n", json!("a"), 2, "a second time");
    for stray in [BEGIN, END] {
        assert!(read(&fill(&format!("a: V\nb: {stray}\n"), &json!("x"))).is_err());
    }
}

#[test]
fn keys_are_filled_in() {
    let check = |template: &str, value: Value, expected: Value| {
        assert_eq!(read(&fill(template, &value)), Ok(vec![expected]), "{template}");
    };
    check("V: 1\n", json!("a: b"), json!({"a: b": 1}));
    check("V: 1\n", json!(80), json!({"80": 1}));
    check("{V: V}\n", json!("a"), json!({"a": "a"}));
    check("x-V: 1\n", json!(80), json!({"x-80": 1}));
}

#[test]
fn what_is_not_ascii_has_one_escape() {
    assert_eq!(ascii("\"é☃😀\u{7f}\""), "\"\\u00e9\\u2603\\U0001f600\\u007f\"");
    assert_eq!(yaml::parse_values(&ascii("\"é☃😀\u{7f}\"")), Ok(vec![json!("é☃😀\u{7f}")]));
}
