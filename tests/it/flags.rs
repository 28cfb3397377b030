//! Command lines: would the programs that we start take what we write for them?
//!
//! A program that does not know a flag exits, and a pool without its picker serves nobody; no API server notices. So each
//! command line of the cases of the real systems and of our own is tried against the table of flags of the program and
//! version that it starts ([`tables`]). Flags that a person wrote into the specs are that person's business.
//! The numbers of those that were tried, and the programs without a table, are written to `command-lines.txt` in
//! `target/tmp`.

mod lines;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cases;
use crate::golden;
use lines::Line;
use tables::{Complaint, Tables};

/// The command lines that were tried, by program and version, and those without a table, each with its first case.
#[derive(Default)]
struct Tally {
    tried: BTreeMap<String, usize>,
    without_table: BTreeMap<String, (usize, String)>,
    complaints: Vec<String>,
}

impl Tally {
    /// Tries the command lines of the containers of an object; `written` is what a person wrote. What a real system has
    /// rendered may have flags that are going to be taken away, what only we have not.
    fn add(&mut self, tables: &Tables, case: &str, object: &Value, written: &str, is_real: bool) {
        for line in containers(object).into_iter().flat_map(lines::of) {
            let Some(table) = tables.of(&line) else {
                self.without_table.entry(line.name()).or_insert_with(|| (0, case.to_owned())).0 += 1;
                continue;
            };
            *self.tried.entry(format!("{} by {} {}", line.name(), table.program, table.version)).or_default() += 1;
            let is_ours = |it: &Complaint| !(it.is_written_in(written) || it.is_deprecation && is_real);
            let ours = tables.judge(table, &line.arguments).into_iter().filter(is_ours);
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            self.complaints.extend(ours.map(|it| format!("{case}: {} {name}: {}: {it}", object["kind"], line.name())));
        }
    }

    fn text(&self) -> String {
        let mut text = String::from("tried\n");
        for (program, number) in &self.tried {
            let _ = writeln!(text, "{number:6} {program}");
        }
        text.push_str("without a table\n");
        for (program, (number, case)) in &self.without_table {
            let _ = writeln!(text, "{number:6} {program}, as in {case}");
        }
        text
    }
}

/// Returns all containers of an object, wherever its templates of pods are.
fn containers(object: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    match object {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::Array(items) if key == "containers" || key == "initContainers" => found.extend(items),
                    _ => found.extend(containers(value)),
                }
            }
        }
        Value::Array(items) => found.extend(items.iter().flat_map(containers)),
        _ => {}
    }
    found
}

#[test]
fn programs_take_the_command_lines_that_are_rendered() {
    let Some(tables) = Tables::read(&cases::folders()) else { return };
    let mut tally = Tally::default();
    for suite in cases::suites(&cases::folders()) {
        for (stem, folder) in suite.cases() {
            let (name, written) = (format!("{}/{stem}", suite.name), suite.written(&stem, &folder));
            for object in suite.case(&stem, &folder).objects() {
                tally.add(&tables, &name, object.body(), &written, true);
            }
        }
    }
    for case in golden::cases() {
        let written: String = case.tree.files().filter_map(|(path, _)| case.tree.text(path)).collect();
        for object in case.rendering.units.iter().flat_map(|unit| &unit.objects) {
            tally.add(&tables, &case.name, object.body(), &written, false);
        }
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command-lines.txt");
    fs::write(file, tally.text()).expect("the folder for this can be written");
    assert!(tally.complaints.is_empty(), "{}", tally.complaints.join("\n"));
    assert!(tally.tried.values().sum::<usize>() > 50, "{}", tally.text());
}

/// Returns what is wrong with the command line of a container.
fn complaints(tables: &Tables, image: &str, arguments: &[&str]) -> Vec<String> {
    let container = json!({"image": image, "command": ["/app/epp"], "args": arguments});
    let judged = |line: Line| tables.of(&line).map(|table| tables.judge(table, &line.arguments)).unwrap_or_default();
    lines::of(&container).into_iter().flat_map(judged).map(|it| it.to_string()).collect()
}

#[test]
fn flags_that_end_a_program_are_found() {
    let tables = Tables::of_texts(&[
        r#"{"program": "llm-d-epp", "version": "v0.10.0", "unknownFlags": "exit", "parser": "pflag", "flags": [
            {"name": "pool-name", "type": "string"}, {"name": "grpc-port", "type": "int"},
            {"name": "secure-serving", "type": "bool", "valueOptional": true},
            {"name": "v", "type": "level", "shorthand": "v"}, {"name": "old", "type": "string", "refused": true},
            {"name": "late", "type": "string", "deprecated": true}]}"#,
        r#"{"program": "llm-d-epp", "version": "v0.4.0", "unknownFlags": "exit", "parser": "flag", "flags": [
            {"name": "pool-name", "type": "string"}, {"name": "secure-serving", "type": "bool"}]}"#,
    ]);
    let (new, old) =
        ("example.com/llm-d-router-endpoint-picker:v0.10.0", "example.com/llm-d-inference-scheduler:v0.4.0");
    for (image, arguments, expected) in [
        (new, &["--pool-name", "a", "--grpc-port=9002", "-v=4", "--secure-serving"][..], None),
        (new, &["--model-server-metrics-scheme=https"], Some("--model-server-metrics-scheme is not known")),
        (new, &["-pool-name", "a"], Some("-pool-name has one dash, which is for flags of one letter")),
        (new, &["--pool-name"], Some("--pool-name has no value")),
        (new, &["--grpc-port", "many"], Some("--grpc-port is no whole number: \"many\"")),
        (new, &["--old=1"], Some("--old is refused")),
        (new, &["--late", "1"], Some("--late is deprecated")),
        (old, &["-pool-name", "a"], None),
        (old, &["--secure-serving", "true", "--pool-name=a"], Some("\"true\" hides --pool-name=a")),
    ] {
        let found = complaints(&tables, image, arguments);
        assert_eq!(found.first().map(String::as_str), expected, "{arguments:?}: {found:?}");
    }
}
