//! Manual pages and completions, which packages install: they are complete, and shells can read them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::cluster::process::command;
use crate::program::{Desk, Run};

/// The commands that help lists.
fn listed(desk: &Desk) -> BTreeSet<String> {
    let help = desk.run(&["--help"]).exits(0).out;
    let (_, rest) = help.split_once("\nCommands:\n").expect("it lists commands");
    let (commands, _) = rest.split_once("\n\n").expect("something follows");
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let desk = Desk::empty("gatewright.yaml");
    let folder = desk.path("share/man1");
    desk.run(&["man", &folder.display().to_string()]).exits(0);
    let files = fs::read_dir(&folder).expect("the folder is made").flatten();
    let pages: BTreeSet<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    let commands = listed(&desk);
    assert!(commands.len() > 25, "{commands:?}");
    for name in &commands {
        assert!(pages.contains(&format!("gatewright-{name}.1")), "{name} has a page");
    }
    assert!(pages.contains("gatewright.1") && pages.contains("gatewright-rollout-status.1"), "{pages:?}");
    assert!(!pages.contains("gatewright-git-fetch.1"), "what the program calls itself for has none");
    let page = desk.read("share/man1/gatewright-plan.1");
    assert!(page.contains(".TH gatewright-plan 1") && page.contains("Exit codes: 0 planned"), "{page}");
    desk.write("file", "");
    desk.run(&["man", "file"]).exits(1).complains("cannot write manual pages to file: ");
}

#[test]
fn the_version_is_a_command_too() {
    let desk = Desk::empty("gatewright.yaml");
    let version = desk.run(&["version"]).exits(0).out;
    assert!(version.starts_with("gatewright ") && version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    assert_eq!(version, desk.run(&["--version"]).exits(0).out);
}

#[test]
fn shells_complete_commands() {
    let desk = Desk::empty("gatewright.yaml");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = desk.run(&["completions", shell]).exits(0).out;
        let missing: Vec<String> = listed(&desk).into_iter().filter(|name| !script.contains(name)).collect();
        assert!(missing.is_empty() && !script.contains("git-fetch"), "{shell}: {missing:?}");
        desk.write(shell, &script);
    }
    // The function gets what bash gives it: the command, the word that is begun, and the word before it.
    let asked = "source ./bash; COMP_WORDS=(gatewright ro) COMP_CWORD=1; _gatewright gatewright ro gatewright; \
                 echo ${COMPREPLY[@]}";
    let mut bash = command(Path::new("bash"));
    bash.args(["-euc", asked]).current_dir(desk.path(""));
    Run::of(bash.output().expect("bash starts")).exits(0).says("rollback rollout\n");
    desk.run(&["completions", "csh"]).exits(64).complains("bash, elvish, fish, powershell, zsh");
}
