//! Pages of `docs` that are walked through: each file of them is written, each command run, and what they show is seen.
//!
//! A block of YAML or JSON whose first line is `# NAME` is a file.
//! A block `console` has commands behind `$ ` and lines that each of them shows; `…` stands for what is left out, and a
//! line that ends with it for how a line begins.
//! A block `sh` has commands alone.
//! Every command has to go well; one that is meant to fail ends with `; echo "exit code $?"`.
//! Blocks `sh theirs` have commands of tools that tests do not have: they are read and not run.

mod coming;
mod getting_started;
mod operating;

use std::fs;

use crate::cluster::binaries::in_repository;
use crate::program::Run;
use crate::terminal::Terminal;

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

/// Reads all blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    read(&fs::read_to_string(in_repository(page)).expect("the page is there"))
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

/// What a reader takes over from the output of one command into the next: the words by which pages call them.
#[derive(Default)]
pub(crate) struct Noted {
    run: String,
    token: String,
}

impl Noted {
    fn fill(&self, command: &str) -> String {
        let words = command.split(' ').map(|word| match word {
            "RUN" => self.run.as_str(),
            "TOKEN" => self.token.as_str(),
            other => other,
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn note(&mut self, run: &Run) {
        for line in run.out.lines() {
            if let Some(name) = line.strip_prefix("run ") {
                name.clone_into(&mut self.run);
            }
            if let Some(rest) = line.trim().strip_prefix("gatewright approve ") {
                rest.split(' ').next().unwrap_or_default().clone_into(&mut self.token);
            }
        }
    }
}

/// Follows blocks to their end; `after` is told of each command and what it showed. Returns how many commands there were.
#[track_caller]
pub(crate) fn walk(
    terminal: &Terminal<'_>,
    noted: &mut Noted,
    blocks: Vec<Block>,
    mut after: impl FnMut(&str, &Run),
) -> usize {
    let mut number = 0;
    for block in blocks {
        let commands = match block {
            Block::File(name, text) => {
                terminal.write(&name, &text);
                continue;
            }
            Block::Commands(commands) => commands,
        };
        for (command, seen) in commands {
            let run = terminal.ok(&noted.fill(&command));
            assert_seen(&command, &run, &seen);
            noted.note(&run);
            after(&command, &run);
            number += 1;
        }
    }
    number
}
