//! `check --fix`: what is mechanical is mended, byte by byte, and nothing else is.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::program::Desk;

/// Four mistakes that can be mended, and layout that nobody would write again.
const WRONG: &str = "# Ours\napiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\n\
    spec: {controllerName: kgateway.dev/kgateway}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind:   Gatewya # soon\n\
    metadata: {name: a, namespace: shop}\nspec:\n  gatewayClassName: edge\n  listeners:\n  - {name: http, port: 80, protocol: HTTP}\n\
    ---\r\napiVersion: \"gateway.networking.k8s.io/v1alpha2\"\r\nkind: Gateway\r\nmetadata: {name: b, namespace: shop}\r\nspec:\r\n  \
    gatewayClassName: edge\r\n  listeners: [{name: http, port: 80, protocol: HTTP}]\r\n---\n\
    apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: c, namespace: shop}\nspec:\n  \
    gatewayClassName: edge\n  'listners' : [ {name: http, prot: 80, protocol: HTTP} ]   # listners\n";

fn desk(text: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", "stateDir: ./state\n");
    desk.write("specs/edge.yaml", text);
    desk
}

#[test]
fn mistakes_are_mended_where_they_stand_and_all_else_stays() {
    let desk = desk(WRONG);
    let mode = |mode| std::fs::set_permissions(desk.path("specs/edge.yaml"), Permissions::from_mode(mode));
    mode(0o640).expect("a test may");
    let patch = desk.run(&["check", "specs", "--fix", "--dry-run"]).exits(1);
    assert_eq!(desk.read("specs/edge.yaml"), WRONG, "nothing is written");
    assert!(patch.out.starts_with("--- a/specs/edge.yaml\n+++ b/specs/edge.yaml\n@@ -5,"), "{}", patch.out);
    assert!(patch.out.contains("-kind:   Gatewya # soon\n+kind:   Gateway # soon\n"), "{}", patch.out);

    let run = desk.run(&["check", "specs", "--fix"]).exits(0);
    let run = run.complains("specs/edge.yaml:8: mended: \"Gatewya\" \u{2192} \"Gateway\"\n");
    let run = run.complains("specs/edge.yaml:27: mended: \"listners\" \u{2192} \"listeners\"\n");
    // A field within one with a slip is seen once that is mended.
    run.complains("specs/edge.yaml:27: mended: \"prot\" \u{2192} \"port\"\n");
    let right = WRONG.replace("Gatewya", "Gateway").replace("'listners'", "'listeners'");
    let right = right.replace("v1alpha2", "v1").replace("prot: 80", "port: 80");
    assert_eq!(desk.read("specs/edge.yaml"), right);
    let metadata = std::fs::metadata(desk.path("specs/edge.yaml")).expect("it is there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    desk.run(&["check", "specs", "--fix"]).exits(0).says("12 objects from 3 Gateways\n");
}

#[test]
fn what_would_do_harm_is_left_alone_with_the_reason() {
    let sound = WRONG.replace("Gatewya", "Gateway").replace("v1alpha2", "v1").replace("listners", "listeners");
    let sound = sound.replace("prot:", "port:");
    let desk = desk(&sound);
    desk.run(&["check", "specs", "--fix"]).exits(0);
    // The Gateway that it would be is there already, and neither would be used.
    let twice = sound.replace("kind:   Gateway ", "kind:   Gatewya ").replace("{name: b,", "{name: a,");
    desk.write("specs/edge.yaml", &twice);
    let run = desk.run(&["check", "specs", "--fix"]).exits(1);
    run.complains("not mended: \"Gatewya\" \u{2192} \"Gateway\": then there is another error");
    assert_eq!(desk.read("specs/edge.yaml"), twice);
    // The field is there already.
    let both = sound.replace("port: 80, protocol: HTTP} ]", "prot: 80, port: 81, protocol: HTTP} ]");
    desk.write("specs/edge.yaml", &both);
    desk.run(&["check", "specs", "--fix"]).exits(1).complains("the other one is there already");
    assert_eq!(desk.read("specs/edge.yaml"), both);
    // Another word is not a slip.
    let other = sound.replace("port: 80, protocol: HTTP} ]", "host: 80, protocol: HTTP} ]");
    desk.write("specs/edge.yaml", &other);
    let run = desk.run(&["check", "specs", "--fix"]).exits(1).complains("unknown field \"host\"");
    assert!(!run.err.contains("mended"), "{}", run.err);
}

#[test]
fn a_link_is_not_written_through() {
    let desk = desk("");
    desk.write("real.yaml", WRONG);
    symlink(desk.path("real.yaml"), desk.path("link.yaml")).expect("a test may");
    desk.run(&["check", "link.yaml", "--fix"]).exits(1).complains("it is a symbolic link");
    assert_eq!(desk.read("real.yaml"), WRONG);
    desk.run(&["check", "real.yaml", "--dry-run"]).exits(64);
    desk.run(&["check", "real.yaml", "--fix", "--watch"]).exits(64);
}
