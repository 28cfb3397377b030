//! `--watch`: what a command shows, again whenever it is different.

use crate::check_watch::Watch;
use crate::program::Desk;

#[test]
fn status_is_shown_again_when_a_round_has_changed_it() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut text = Watch::start(&desk, &["status", "--watch"]);
    let mut json = Watch::start(&desk, &["status", "-w", "-o", "json"]);
    text.until(&["no installation in state directory"]);
    json.until(&["\"installation\":null"]);
    desk.run(&["sync"]).exits(0);
    text.until(&["Gateway infra/edge"]);
    json.until(&["\"storefront\""]);
    // What cannot be read for a moment is waited for.
    let installation = desk.read("state/installation");
    desk.write("state/installation", "\u{0}");
    desk.replace("specs/shop/storefront.yaml", "port: 8443", "prot: 8443");
    desk.write("state/installation", &installation);
    desk.run(&["sync"]).exits(1);
    text.until(&["errors in the source", "shop/storefront.yaml:"]);
}

#[test]
fn a_rollout_is_watched_as_it_goes() {
    let desk = Desk::example("fleet");
    let mut watch = Watch::start(&desk, &["rollout", "status", "--watch"]);
    watch.until(&["sync ", ": nothing is under way"]);
    desk.run(&["rollout", "pause", "fleet", "--reason", "friday"]).exits(0);
    watch.until(&["sync fleet", "friday"]);
    desk.run(&["rollout", "resume", "fleet"]).exits(0);
    watch.until(&["sync fleet: nothing is under way"]);
}

#[test]
fn rounds_are_listed_as_they_end() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut watch = Watch::start(&desk, &["history", "--watch"]);
    desk.run(&["sync"]).exits(0);
    watch.until(&["quickstart", "exit 0"]);
    desk.replace("specs/shop/storefront.yaml", "port: 8443", "prot: 8443");
    desk.run(&["sync"]).exits(1);
    watch.until(&["exit 1"]);
}

/// The source is read again as well.
#[test]
fn a_tree_is_shown_again_when_it_has_changed() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut watch = Watch::start(&desk, &["tree", "--watch"]);
    watch.until(&["Deployment infra/edge  it is not there"]);
    desk.run(&["sync"]).exits(0);
    desk.replace("specs/shop/storefront.yaml", "name: storefront", "name: window");
    watch.until(&["Deployment shop/window  it is not there"]);
}

/// Nobody asks a cluster for ever because nobody has looked whether a signal came.
#[test]
fn a_signal_ends_it_at_once() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    for command in ["tree", "status", "history", "rollout status"] {
        let arguments: Vec<&str> = command.split(' ').chain(["--watch"]).collect();
        for signal in ["INT", "TERM"] {
            let mut watch = Watch::start(&desk, &arguments);
            // It is at work as soon as anything is shown.
            watch.until(&[]);
            watch.ends_by(signal);
        }
    }
}
