//! Clusters that get another name: what this host knows of them goes on under it.

use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::cluster::{ApiServer, shared, unique};
use crate::errors::{desk, gateway, kubeconfig};
use crate::program::{Desk, Run};
use crate::rollout::{BAD, fleet};

/// Gives a cluster another name in the entry of the config file and in the selector of the sync; `moved` goes into the entry.
fn rename(desk: &Desk, old: &str, new: &str, moved: &str) {
    let line = |line: &str| match line.strip_prefix(&format!("  {old}: {{")) {
        Some(rest) => {
            let rest = rest.split_once(", moved: ").map_or_else(|| &rest[..rest.len() - 1], |(rest, _)| rest);
            format!("  {new}: {{{rest}, moved: [{moved}]}}")
        }
        None if line.starts_with("    clusters: ") => {
            line.replace(&format!("[{old}]"), &format!("[{new}]")).replace(&format!("[{old}, "), &format!("[{new}, "))
        }
        None => line.to_owned(),
    };
    let config: Vec<String> = desk.read("gatewright.yaml").lines().map(line).collect();
    desk.write("gatewright.yaml", &format!("{}\n", config.join("\n")));
}

fn run_of(run: &Run) -> String {
    run.out.lines().find_map(|line| line.strip_prefix("run ")).expect("something was changed").to_owned()
}

/// The files of the state that bear a name; records for undo keep theirs, and so do the files that are locked.
fn files_of(desk: &Desk, cluster: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![desk.path("state")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there").flatten() {
            let path = entry.path();
            let text = path.strip_prefix(desk.path("state")).expect("it is below it").display().to_string();
            let is_kept = ["undo", "rounds", "reports"].iter().any(|folder| text.starts_with(folder));
            let is_its = path.file_name() == Some(format!("{cluster}.json").as_ref())
                || path.parent().and_then(|it| it.file_name()) == Some(cluster.as_ref());
            if path.is_dir() {
                folders.push(path);
            } else if is_its && !is_kept {
                found.push(text);
            }
        }
    }
    found
}

#[test]
fn a_renamed_cluster_is_neither_new_nor_gone() {
    let (namespace, sync) = (unique("renamed"), unique("renamed"));
    let desk = desk(&sync, &[("one", kubeconfig(&shared().kubeconfig("admin"), ""))]);
    for name in ["a", "b", "c", "d", "e"] {
        desk.write(&format!("specs/{name}.yaml"), &gateway(&namespace, name, 8080));
    }
    desk.run(&["sync"]).exits(0);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8081));
    let first = run_of(&desk.run(&["sync"]).exits(0));

    rename(&desk, "one", "uno", "one");
    desk.run(&["status"]).exits(0).says("cluster uno: done at ");
    desk.run(&["plan"]).exits(0).says("no changes");
    desk.run(&["sync"]).exits(0).says("no changes");
    assert_eq!(files_of(&desk, "one"), [""; 0]);
    let told = desk.run(&["clusters"]).exits(0);
    assert!(!told.out.contains("gone") && !told.err.contains("gone"), "{}{}", told.out, told.err);

    // A cluster that was new would lose nothing in its first round.
    fs::remove_file(desk.path("specs/b.yaml")).expect("it is there");
    rename(&desk, "uno", "eins", "uno, one");
    desk.run(&["sync"]).exits(0).says("4 objects deleted");

    // What was done by the oldest name.
    desk.run(&["undo", &first, "--yes"]).exits(0).says("cluster eins");
    let port =
        || shared().kubectl_ok(&["get", "service", "a", "-n", &namespace, "-o", "jsonpath={.spec.ports[0].port}"]);
    assert_eq!(port(), "8080");
    desk.run(&["resume", &sync]).exits(0);
    desk.run(&["sync"]).exits(0);
    assert_eq!(port(), "8081");
    desk.run(&["rollback", &sync, "--yes"]).exits(0).says("4 objects created");

    // Another cluster by that name is not it.
    desk.run(&["resume", &sync]).exits(0);
    desk.run(&["sync"]).exits(0);
    let other = ApiServer::start();
    let (ours, theirs) = (shared().kubeconfig("admin"), other.kubeconfig("admin"));
    desk.replace("gatewright.yaml", &ours.display().to_string(), &theirs.display().to_string());
    rename(&desk, "eins", "zwei", "eins");
    desk.run(&["sync"]).exits(3).says("held by guard cluster-identity: this host has worked on cluster ");
}

#[test]
fn what_a_person_has_approved_and_how_far_rollouts_are_keeps_its_cluster() {
    let fleet = fleet("");
    let desk = &fleet.desk;
    desk.run(&["sync"]).exits(0);
    fleet.wants(BAD);
    desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 3s");
    let run = desk.run(&["sync"]).exits(1);
    let line = run.out.lines().find(|line| line.contains("gatewright approve ")).expect("it was said");
    let token = line.split_whitespace().nth(2).expect("it is behind the command").to_owned();
    desk.run(&["approve", &token, "--cluster", "lab"]).exits(0);
    rename(desk, "canary", "bird", "canary");
    desk.replace(
        "gatewright.yaml",
        "  lab: {directory: {path: out/lab}}",
        "  work: {directory: {path: out/lab}, moved: [lab]}",
    );
    desk.replace("gatewright.yaml", "edge, lab]", "edge, work]");
    desk.run(&["plan"]).exits(3).says("went to cluster bird first, and is not healthy there: ");
    desk.run(&["sync"]).exits(1).says("on 2 of 4 clusters (dr, edge)\n");
    assert_eq!(fleet.with("such-node"), ["canary", "lab"], "their folders keep the names");
    desk.run(&["rollout", "status"]).exits(0).says("    not healthy on cluster bird: ");
}

#[test]
fn a_name_that_says_nothing_is_refused() {
    let folder = |path: &str| format!("{{directory: {{path: out/{path}}}}}");
    let desk = desk("gateways", &[("one", folder("one")), ("two", folder("two"))]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    // A directory says who it is once it was written to.
    desk.run(&["sync"]).exits(0);
    desk.run(&["sync"]).exits(0);
    let config = desk.read("gatewright.yaml");
    let check = |one: &str, two: &str, complaint: &str| {
        let with = |config: &str, name: &str, moved: &str| {
            let entry = format!("path: out/{name}}}");
            if moved.is_empty() {
                config.to_owned()
            } else {
                config.replace(&entry, &format!("{entry}, moved: [{moved}]"))
            }
        };
        desk.write("gatewright.yaml", &with(&with(&config, "one", one), "two", two));
        desk.run(&["sync"]).exits(64).complains(&format!("gatewright.yaml:{complaint}"));
        desk.write("gatewright.yaml", &config);
    };
    check("two", "", "4: cluster \"two\" is still there");
    check("one", "", "4: cluster \"one\" cannot have moved from its own name");
    check("old", "old", "5: cluster \"one\" has moved from \"old\" too");
    check("../seen", "", "4: \"../seen\" cannot be the name of a cluster");

    // Two that this host has worked on are not one.
    desk.replace("gatewright.yaml", "  one: {directory: {path: out/one}}\n", "");
    desk.replace("gatewright.yaml", "path: out/two}", "path: out/two}, moved: [one]");
    desk.replace("gatewright.yaml", "[one, two]", "[two]");
    desk.run(&["sync"]).exits(1).complains("this host has worked on two clusters by these names");
    assert!(!files_of(&desk, "one").is_empty(), "nothing was moved");
}

/// An act of a person or a crash between two looks.
#[derive(Clone, Debug)]
enum Deed {
    /// Another name, and so many values carried over when the process was killed.
    Rename(usize),
    /// Another port, and a round.
    Change,
    /// A Gateway comes or goes, and a round.
    Toggle,
    /// The last round that changed something is undone.
    Undo,
}

#[test]
fn no_order_of_renames_rounds_and_kills_loses_or_deletes_anything() {
    let deed =
        prop_oneof![(0..5_usize).prop_map(Deed::Rename), Just(Deed::Change), Just(Deed::Toggle), Just(Deed::Undo)];
    let config = Config { cases: 4, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&prop::collection::vec(deed, 4..9), |deeds| {
        walk(&deeds);
        Ok(())
    });
    assert!(run.is_ok(), "{run:?}");
}

#[test]
fn who_undoes_again_and_again_is_in_no_fight() {
    walk(&[Deed::Undo, Deed::Undo, Deed::Undo, Deed::Undo, Deed::Rename(0)]);
    walk(&[Deed::Change, Deed::Undo, Deed::Undo, Deed::Undo, Deed::Undo, Deed::Rename(2)]);
}

#[test]
fn a_set_that_is_damaged_keeps_no_other_from_going_on() {
    let desk = desk("gateways", &[("one", "{directory: {path: out}}".to_owned())]);
    for port in 8101..8104 {
        desk.write("specs/a.yaml", &gateway("shop", "a", port));
        desk.run(&["sync"]).exits(0);
    }
    let listed = |word: &str| desk.run(&["rollback", "gateways", "--list"]).exits(0).out.matches(word).count();
    assert_eq!(listed("  4 objects  "), 3);
    let sets = fs::read_dir(desk.path("state/rendered/gateways/one")).expect("it is there").flatten();
    let set = sets.map(|entry| entry.path()).find(|path| !path.ends_with("index")).expect("there are some");
    fs::write(set, "cut").expect("a test may");
    rename(&desk, "one", "uno", "one");
    desk.run(&["plan"]).exits(0).complains("a set cannot be carried over");
    assert_eq!((listed("cluster uno\n"), listed("  4 objects  ")), (1, 2));
}

/// Gives the cluster its next name, has so many values carried over as by a process that was killed, and runs a round.
fn rename_and_kill(desk: &Desk, names: usize, carried: usize) {
    let (old, new) = (format!("c{names}"), format!("c{}", names + 1));
    let before: Vec<String> = (0..=names).map(|it| format!("c{it}")).collect();
    rename(desk, &old, &new, &before.join(", "));
    for folder in ["clusters", "known/gateways", "fights/gateways", "asked/gateways"].into_iter().take(carried) {
        let path = |name: &str| desk.path(&format!("state/{folder}/{name}.json"));
        drop(fs::rename(path(&old), path(&new)));
    }
    desk.run(&["sync"]).exits(0).says("no changes");
    assert_eq!(files_of(desk, &old), [""; 0], "{names} {carried}");
}

fn walk(deeds: &[Deed]) {
    let desk = desk(
        "gateways",
        &[("c0", "{directory: {path: out}}".to_owned()), ("same", "{directory: {path: same}}".to_owned())],
    );
    let (mut names, mut port, mut is_there) = (0, 8100, true);
    desk.write("specs/a.yaml", &gateway("shop", "a", port));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.write("specs/c.yaml", &gateway("shop", "c", 8080));
    let mut last = run_of(&desk.run(&["sync", "--yes"]).exits(0));
    let service =
        |name: &str| fs::read_to_string(desk.path(&format!("out/shop/service-{name}.yaml"))).unwrap_or_default();
    for deed in deeds {
        match deed {
            Deed::Rename(carried) => {
                rename_and_kill(&desk, names, *carried);
                names += 1;
            }
            Deed::Change => {
                port += 1;
                desk.write("specs/a.yaml", &gateway("shop", "a", port));
                last = run_of(&desk.run(&["sync"]).exits(0));
            }
            Deed::Toggle => {
                if is_there {
                    fs::remove_file(desk.path("specs/b.yaml")).expect("it is there");
                } else {
                    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
                }
                is_there = !is_there;
                last = run_of(&desk.run(&["sync"]).exits(0));
            }
            Deed::Undo => {
                let code = desk.run(&["undo", &last, "--yes"]);
                assert!(code.err.contains("is suspended"), "{deeds:?}: {}{}", code.out, code.err);
                desk.run(&["resume", "gateways"]).exits(0);
                let back = desk.run(&["sync"]).exits(0);
                last = run_of(&back);
            }
        }
        assert!(service("a").contains(&port.to_string()) && service("c").contains("8080"), "{deeds:?}");
        assert_eq!(service("b").is_empty(), !is_there, "{deeds:?}");
        let told = desk.run(&["clusters"]).exits(0);
        assert!(!told.out.contains("gone") && !told.err.contains("gone"), "{deeds:?}: {}{}", told.out, told.err);
    }
}
