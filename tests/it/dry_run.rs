//! `--dry-run`, as people know it from kubectl: what would be done is shown, and nothing is done.

use crate::errors::{desk, folder, gateway};

#[test]
fn a_sync_and_a_destroy_show_what_they_would_do() {
    let desk = desk("edge", &[("out", folder())]);
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    let plan = desk.run(&["plan"]).exits(0).out;
    let run = desk.run(&["sync", "--dry-run"]).exits(0).says("4 objects to create");
    assert_eq!(run.out, plan);
    assert!(!desk.path("rendered/shop").exists(), "nothing is made");
    desk.run(&["sync", "edge", "--dry-run", "--detailed-exitcode"]).exits(2);
    desk.run(&["sync", "--dry-run", "--yes"]).exits(64);
    desk.run(&["sync", "nothing", "--dry-run"]).exits(64).complains("no sync is called \"nothing\"");

    desk.run(&["sync"]).exits(0);
    desk.run(&["destroy", "edge", "--dry-run"]).exits(0).says("4 objects to prune");
    assert!(desk.path("rendered/shop").exists(), "nothing is deleted");
    desk.run(&["destroy", "edge", "--dry-run", "--yes"]).exits(64);
    let run = desk.run(&["destroy", "edge", "--yes"]).exits(0).says("4 objects deleted");
    assert!(!run.out.contains("to prune"), "whoever has agreed sees it once: {}", run.out);
}

#[test]
fn specs_are_named_as_for_kubectl() {
    let desk = desk("edge", &[("out", folder())]);
    desk.write("more/edge.yaml", &gateway("shop", "edge", 8080));
    for command in ["plan", "diff"] {
        let by_name =
            desk.run(&[command, "more"]).exits(64).complains("more is no sync, and specs go without --config");
        let by_flag = desk.run(&[command, "-f", "more"]).exits(64);
        assert_eq!(by_name.err, by_flag.err);
        desk.run(&[command, "-f", "lost"]).exits(64).complains("there is no file or folder \"lost\"");
        desk.run(&[command, "edge", "-f", "more"]).exits(64).complains("cannot be used with");
    }
}
