//! Asks Kubernetes' own code.

use std::io::Write;
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use super::generate::Pair;
use crate::cluster::binaries::strategic_merge;
use crate::cluster::process::command;

/// The object that comes of a patch, or the reason why none does.
pub(super) type Answer = Result<Value, String>;

/// Returns what Kubernetes makes of these pairs.
pub(super) fn answers(pairs: &[Pair]) -> Vec<Answer> {
    let question = |Pair { api_version, kind, original, patch }: &Pair| {
        json!({"kind": format!("{api_version}.{kind}"), "original": original, "patch": patch}).to_string()
    };
    let questions: Vec<String> = pairs.iter().map(question).collect();
    let lines = run(&[], questions.join("\n"));
    let answers: Vec<Answer> = lines.lines().map(answer).collect();
    assert_eq!(answers.len(), pairs.len(), "there is an answer to each question");
    answers
}

/// Returns what Kubernetes' types say about patches, as the engine has it in a file.
pub(super) fn types() -> String {
    run(&["types"], String::new())
}

fn answer(line: &str) -> Answer {
    let mut answer: Value = serde_json::from_str(line).expect("an answer is JSON");
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => Ok(answer["result"].take()),
    }
}

fn run(arguments: &[&str], input: String) -> String {
    let mut command = command(strategic_merge());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("what was just built can be run");
    let mut stdin = child.stdin.take().expect("it was asked for");
    // It answers while it is asked, so nobody may wait for the other.
    let asking = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it runs");
    asking.join().expect("writing does not panic").expect("it reads all questions");
    assert!(output.status.success(), "it ends well");
    String::from_utf8(output.stdout).expect("JSON is text")
}
