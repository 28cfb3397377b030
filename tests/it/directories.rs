//! Clusters that are directories, with the default settings.

use std::fs;

use crate::errors::{desk, folder, gateway};

#[test]
fn a_directory_has_the_namespaces_that_every_cluster_has() {
    let desk = desk("gateways", &[("only", folder())]);
    desk.replace("gatewright.yaml", "    createNamespaces: true\n", "");
    desk.write("specs/edge.yaml", &gateway("default", "edge", 8080));
    desk.run(&["plan"]).exits(0).says("4 objects to create");
    desk.run(&["sync"]).exits(0).says("4 objects created");
    assert!(desk.path("rendered/default/service-edge.yaml").exists());
    assert!(!desk.path("rendered/_cluster").exists(), "nobody has to make it");

    desk.write("specs/other.yaml", &gateway("shop", "other", 8080));
    desk.run(&["sync"]).exits(1).says("namespace \"shop\" does not exist");
}

#[test]
fn a_file_that_somebody_else_has_written_is_not_adopted() {
    let desk = desk("gateways", &[("only", folder())]);
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    let file = "rendered/shop/configmap-edge.yaml";
    let theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: edge, namespace: shop}\n";
    desk.write(file, theirs);
    let run = desk.run(&["sync"]).exits(3).says("gatewright has not written this file");
    assert!(!run.out.contains("gatewright approve"), "{}", run.out);
    assert_eq!(desk.read(file), theirs);
    desk.replace(
        "gatewright.yaml",
        "createNamespaces: true\n",
        "createNamespaces: true\n    adopt: {policy: always}\n",
    );
    desk.run(&["sync"]).exits(0).says("1 object adopted");
}

#[test]
fn a_directory_that_does_not_say_which_it_is_is_left_alone() {
    let desk = desk("edges", &[("fine", folder())]);
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.run(&["sync"]).exits(0);
    fs::remove_file(desk.path("rendered/.gatewright/identity")).expect("it is there");
    fs::remove_file(desk.path("specs/a.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(3).says("held by guard cluster-identity").says("inventory repair edges --cluster fine");
    assert!(desk.path("rendered/shop/service-a.yaml").exists());
    desk.run(&["inventory", "repair", "edges", "--cluster", "fine", "--yes"]).exits(0);
    desk.run(&["sync"]).exits(0).says("4 objects deleted");
}

/// Two projects that read their own `specs` and write into one folder, as two people with one sync may.
#[test]
fn another_project_with_the_same_words_deletes_nothing() {
    let (one, two) = (desk("edges", &[("fine", folder())]), desk("edges", &[("fine", folder())]));
    let shared = format!("directory: {{path: {}}}", one.path("rendered").display());
    two.replace("gatewright.yaml", "directory: {path: rendered}", &shared);
    one.write("specs/a.yaml", &gateway("shop", "a", 8080));
    two.write("specs/b.yaml", &gateway("shop", "b", 8080));
    one.run(&["sync"]).exits(0);
    two.run(&["sync"]).exits(3).says("held by guard other-installation");
    assert!(one.path("rendered/shop/service-a.yaml").exists());
    one.run(&["sync"]).exits(0).says("no changes");
    two.run(&["inventory", "claim", "edges", "--cluster", "fine", "--yes"]).exits(0).says("4 objects claimed");
    two.run(&["plan"]).exits(3).says("held by guard source-identity").says("4 objects to create");
    one.run(&["inventory", "claim", "edges", "--cluster", "fine", "--yes"]).exits(0).says("4 objects claimed");

    // One state directory makes them one installation, and no source of what the other has made.
    two.replace("gatewright.yaml", "stateDir: state", &format!("stateDir: {}", one.path("state").display()));
    let held = two.run(&["sync"]).exits(3).says("held by guard source-identity").says("of another project");
    held.says("4 objects created");
    assert!(one.path("rendered/shop/service-a.yaml").exists());
}
