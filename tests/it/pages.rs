//! Pages of `docs` that are walked through: each file of them is written, each command run, and what they show is seen.
//!
//! A block of YAML or JSON whose first line is `# NAME` is a file.
//! A block `console` has commands behind `$ ` and lines that each of them shows; `…` stands for what is left out, and a
//! line that ends with it for how a line begins.
//! A block `sh` has commands alone.

use std::fs;

use crate::cluster::binaries::in_repository;
use crate::program::Run;

/// A fenced block of a page.
pub(crate) enum Block {
    /// A file: its name and its text.
    File(String, String),
    /// Commands, each with the lines that it shows.
    Commands(Vec<(String, Vec<String>)>),
}

/// Reads the blocks of a page, from a heading on to the next one of two `#`.
pub(crate) fn section(page: &str, heading: &str) -> Vec<Block> {
    let text = fs::read_to_string(in_repository(page)).expect("the page is there");
    let section = text.split_once(&format!("\n{heading}\n")).expect("the page has the section").1;
    read(section.split("\n## ").next().unwrap_or_default())
}

fn read(text: &str) -> Vec<Block> {
    let (mut lines, mut blocks) = (text.lines(), Vec::new());
    while let Some(line) = lines.next() {
        let Some((indent, kind)) = line.split_once("```") else { continue };
        let plain = lines.by_ref().map(|line| line.strip_prefix(indent).unwrap_or(line));
        let body: Vec<&str> = plain.take_while(|line| *line != "```").collect();
        match (kind, body.first().and_then(|line| line.strip_prefix("# "))) {
            ("yaml" | "json", Some(name)) => blocks.push(Block::File(name.to_owned(), body[1..].join("\n") + "\n")),
            ("console", _) => blocks.push(Block::Commands(commands(&body))),
            ("sh", _) => {
                let line = |line: &&str| (!line.starts_with('#')).then(|| ((*line).to_owned(), Vec::new()));
                blocks.push(Block::Commands(body.iter().filter_map(line).collect()));
            }
            _ => {}
        }
    }
    blocks
}

fn commands(lines: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command.to_owned(), Vec::new())),
            None => commands.last_mut().expect("a command comes first").1.push((*line).to_owned()),
        }
    }
    commands
}

/// Says that a run showed these lines, in this order; `…` stands for what is left out.
#[track_caller]
pub(crate) fn assert_seen(command: &str, run: &Run, expected: &[String]) {
    let all = format!("{}{}", run.out, run.err);
    let mut lines = all.lines().map(str::trim);
    for line in expected.iter().map(|line| line.trim()).filter(|line| *line != "…") {
        let is_it = |seen: &str| seen == line || line.strip_suffix('…').is_some_and(|start| seen.starts_with(start));
        assert!(lines.any(is_it), "{command} does not show {line:?}:\n{all}");
    }
}
