//! Documents with one mistake or two, drawn from a seed.

use serde_json::{Map, Value, json};

/// The seed: `GATEWRIGHT_SEED`, or always the same.
#[expect(clippy::disallowed_methods, reason = "a switch of this test, for the person who runs it")]
pub(crate) fn seed() -> u64 {
    std::env::var("GATEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20)
}

/// Draws numbers, and changes documents by them.
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number of `SplitMix64`, below a bound.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap_or_default()
    }

    /// Changes something of a document: a value, a field, an item. Who it is and what kind it has stays.
    pub(crate) fn mutated(&mut self, valid: &Value) -> Value {
        let mut document = valid.clone();
        for _ in 0..=self.below(2) {
            let mut pointers = Vec::new();
            collect(&document, "", &mut pointers);
            let pointer = pointers[self.below(pointers.len())].clone();
            if let Some(value) = document.pointer_mut(&pointer) {
                self.change(value);
            }
        }
        document
    }

    fn change(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) if self.below(4) > 0 => self.change_fields(fields),
            Value::Array(items) if !items.is_empty() && self.below(4) > 0 => self.change_items(items),
            Value::String(text) if self.below(3) > 0 => *text = self.text(text),
            Value::Number(_) if self.below(3) > 0 => {
                *value = [json!(0), json!(-1), json!(1), json!(65535), json!(65536), json!(1.5)][self.below(6)].clone();
            }
            _ => *value = self.other(),
        }
    }

    fn change_fields(&mut self, fields: &mut Map<String, Value>) {
        let names: Vec<String> = fields.keys().cloned().collect();
        let name = names.get(self.below(names.len())).cloned().unwrap_or_default();
        match self.below(4) {
            0 => drop(fields.insert(format!("{name}x"), json!("a"))),
            1 => drop(fields.remove(&name)),
            2 => {
                let value = self.other();
                drop(fields.insert(name, value));
            }
            _ => {
                if let Some(value) = fields.get_mut(&name) {
                    self.change(value);
                }
            }
        }
    }

    fn change_items(&mut self, items: &mut Vec<Value>) {
        let index = self.below(items.len());
        match self.below(4) {
            0 => items.push(items[index].clone()),
            1 => drop(items.remove(index)),
            2 => items.extend(std::iter::repeat_n(items[index].clone(), 70)),
            _ => self.change(&mut items[index]),
        }
    }

    fn text(&mut self, text: &str) -> String {
        match self.below(9) {
            0 => String::new(),
            1 => text.to_uppercase(),
            2 => format!("{text}-"),
            3 => format!("{text} {text}"),
            4 => "a".repeat(300),
            5 => format!("{text}/"),
            6 => "*".to_owned(),
            7 => "10.0.0.300".to_owned(),
            _ => text.chars().rev().collect(),
        }
    }

    fn other(&mut self) -> Value {
        let others = [
            json!(null),
            json!("text"),
            json!("7"),
            json!(7),
            json!(-7),
            json!(true),
            json!([]),
            json!({}),
            json!(["a"]),
            json!({"a": "b"}),
        ];
        others[self.below(others.len())].clone()
    }
}

/// Collects the pointers to all that may be changed.
fn collect(value: &Value, pointer: &str, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            for (key, below) in fields {
                let path = format!("{pointer}/{}", escaped(key));
                // Without these nobody knows where the document belongs, or the server puts it elsewhere.
                if !["/apiVersion", "/kind", "/metadata", "/metadata/name"].contains(&path.as_str()) {
                    found.push(path.clone());
                    collect(below, &path, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                found.push(format!("{pointer}/{index}"));
                collect(below, &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}
