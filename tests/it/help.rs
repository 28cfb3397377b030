//! The help of each command has examples, and each of them does what it says.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::cluster::process::command;
use crate::cluster::shared;
use crate::program::{Desk, Run};

/// Examples that end with another code than 0 here, because there is nothing of the kind, or something differs or waits.
const CODES: [(&str, i32); 11] = [
    ("gatewright approve k7wm-3xq9-hd2t", 1),
    ("gatewright clusters forget ap-1", 64),
    ("gatewright diff", 1),
    ("gatewright hosts", 64),
    ("gatewright import imported", 64),
    ("gatewright inventory claim gateways --cluster eu-1 --yes", 64),
    ("gatewright lsp specs", 1),
    ("gatewright release Gateway/infra/edge --dry-run", 64),
    ("gatewright rollout abort gateways --dry-run", 1),
    ("gatewright rollout approve gateways --yes", 1),
    ("gatewright sync gateways --cluster 'eu-*' --yes", 3),
];

/// The commands of the program, by their manual pages; those for itself are left out.
fn commands(desk: &Desk) -> Vec<Vec<String>> {
    desk.run(&["man", "pages"]).exits(0);
    let pages = fs::read_dir(desk.path("pages")).expect("it is there").map(|page| page.expect("it can be listed"));
    let names = pages.map(|page| page.file_name().into_string().expect("names are plain"));
    let mut commands: Vec<Vec<String>> = names
        .filter_map(|name| name.strip_suffix(".1")?.strip_prefix("gatewright-").map(str::to_owned))
        .map(|name| name.split('-').map(str::to_owned).collect())
        .collect();
    commands.sort();
    commands
}

fn help(desk: &Desk, command: &[String]) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    desk.run(&words).exits(0).out
}

/// A fleet after two rounds, with a change before it, a plan of that, and a pack.
fn prepared() -> Desk {
    let desk = Desk::example("fleet");
    let config = desk.read("gatewright.yaml").replace("syncs:\n  fleet:", "syncs:\n  gateways:");
    desk.write("gatewright.yaml", &format!("{config}http: {{listen: off}}\n"));
    desk.run(&["sync", "--yes"]).exits(0);
    desk.replace("specs/gateways.yaml", "port: 8080", "port: 8090");
    desk.run(&["sync", "--yes"]).exits(0);
    desk.replace("specs/gateways.yaml", "port: 8090", "port: 8091");
    desk.run(&["plan", "--out", "next.plan"]).exits(0);
    desk.run(&["pack", "new", "nginx", "--dir", "packs"]).exits(0);
    desk
}

/// Runs an example as it is written, in a copy of a desk.
fn run(prepared: &Desk, line: &str) -> Run {
    let desk = Desk::empty("gatewright.yaml");
    let all = command("cp").arg("-rT").args([prepared.path(""), desk.path("")]).status();
    assert!(all.is_ok_and(|status| status.success()));
    let words = shlex::split(line).expect(line);
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    if words[0] == "pack" && words[1] != "new" {
        fs::rename(desk.path("packs/nginx"), desk.path("nginx")).expect("it was made");
    }
    let wanted = if words.contains(&"./specs") { desk.without_config(&words) } else { desk.command(&words) };
    // The daemon is told to end.
    let mut command = command("timeout");
    command.args(["--preserve-status", "--signal", "TERM", if words[0] == "run" { "3" } else { "120" }]);
    command.arg(wanted.get_program()).args(wanted.get_args());
    command.current_dir(wanted.get_current_dir().expect("a desk runs its programs in its folder"));
    for (name, value) in wanted.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    command.env("KUBECONFIG", shared().kubeconfig("admin")).stdin(Stdio::null());
    Run::of(command.output().expect("timeout is there"))
}

#[test]
fn each_command_has_examples_and_each_is_run() {
    let desk = prepared();
    let mut wrong = Vec::new();
    let mut ran = 0;
    for command in commands(&desk) {
        let help = help(&desk, &command);
        let usage = help.lines().find(|line| line.starts_with("Usage: ")).expect("it has a usage");
        let is_group = usage.ends_with("<COMMAND>");
        let examples: Vec<&str> = match help.split_once("\nExamples:\n") {
            Some((_, examples)) => examples.lines().filter_map(|line| line.strip_prefix("  gatewright")).collect(),
            None => Vec::new(),
        };
        if examples.is_empty() != is_group {
            wrong.push(format!("{command:?} has {} examples", examples.len()));
        }
        for example in examples {
            let line = format!("gatewright{example}");
            let begins = format!("gatewright {}", command.join(" "));
            let code = CODES.iter().find(|(known, _)| *known == line).map_or(0, |(_, code)| *code);
            let run = run(&desk, &line);
            ran += 1;
            if run.code != code || !line.starts_with(&begins) {
                wrong.push(format!("{line}: {}\n{}{}", run.code, run.out, run.err));
            }
        }
    }
    assert!(ran > 60 && wrong.is_empty(), "{ran} were run; {}", wrong.join("\n\n"));
    assert!(Path::new(&desk.path("next.plan")).exists(), "examples are run in copies");
}
