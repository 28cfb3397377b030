//! The library as those meet it who embed it.

use std::error::Error;
use std::fs;
use std::path::Path;

use gatewright_engine::pack::{Pack, PackError};
use serde_json::Value;

use crate::cluster::binaries::in_repository;

#[path = "../../examples/parameters.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod parameters;

#[path = "../../examples/plan_and_apply.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod plan_and_apply;

#[path = "../../examples/render.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod render;

/// Stands for what is left out of a comment.
const OMITTED: char = '…';

/// Tells whether a text is what a head comment promises.
fn is_as_promised(printed: &str, promised: &str) -> bool {
    let mut parts = promised.split(OMITTED);
    let rest = parts.next().and_then(|first| printed.strip_prefix(first));
    let rest = rest.and_then(|rest| parts.try_fold(rest, |rest, part| rest.split_once(part).map(|(_, after)| after)));
    rest.is_some_and(|rest| promised.ends_with(OMITTED) || rest.trim_end().is_empty())
}

/// Compares what an example prints with the block of text in its head comment.
#[track_caller]
fn check(name: &str, run: impl FnOnce(&mut Vec<u8>) -> Result<(), Box<dyn Error>>) {
    let source = fs::read_to_string(in_repository(&format!("examples/{name}.rs"))).expect("the example is there");
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    let comment = comment.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let block = comment.skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```");
    let promised = block.collect::<Vec<_>>().join("\n");
    assert!(!promised.is_empty(), "the head comment of {name} says what it prints");
    let mut printed = Vec::new();
    run(&mut printed).expect("an example runs");
    let printed = String::from_utf8(printed).expect("an example prints text");
    assert!(is_as_promised(&printed, &promised), "{name} prints\n{printed}");
}

#[test]
fn examples_print_what_they_say() {
    check("parameters", parameters::run);
    check("plan_and_apply", plan_and_apply::run);
    check("render", |out| render::run(Path::new("examples/quickstart/specs"), out));
}

#[test]
fn a_pack_is_read_from_its_folder() {
    let read = |folder: &str| Pack::read_dir(&in_repository(folder), &Value::Null);
    let pack = read("templates/endpoint-picker").expect("it is a pack");
    assert_eq!(pack.manifest.name, "endpoint-picker");
    assert!(matches!(read("templates/absent"), Err(PackError::Folder(_))));
    assert!(matches!(read("templates/endpoint-picker/absent"), Err(PackError::Folder(_))));
}
