//! Clusters that the config file has by two names.

use std::fs;
use std::os::unix::fs::symlink;

use crate::cluster::unique;
use crate::errors::gateway;
use crate::ownership::site::server;
use crate::program::Desk;

/// Two syncs, each on a cluster of its own name, and the entries of both clusters.
fn two(first: &str, second: &str) -> (Desk, String) {
    let (desk, name) = (Desk::empty("gatewright.yaml"), unique("twin"));
    let sync = |letter: &str, cluster: &str| {
        let more = "createNamespaces: true, wait: {enabled: false}";
        format!("  {name}-{letter}: {{source: {letter}, clusters: {{names: [{cluster}]}}, {more}}}\n")
    };
    let config = format!(
        "stateDir: state\nsources:\n  a: {{directory: {{path: a}}}}\n  b: {{directory: {{path: b}}}}\n\
         clusters:\n  one: {first}\n  two: {second}\nsyncs:\n{}{}",
        sync("a", "one"),
        sync("b", "two"),
    );
    desk.write("gatewright.yaml", &config);
    for letter in ["a", "b"] {
        desk.write(&format!("{letter}/{letter}.yaml"), &gateway(&name, letter, 8080));
    }
    (desk, name)
}

#[test]
fn two_clusters_in_one_directory_are_an_error_of_the_config_file() {
    let message = "clusters \"one\" and \"two\" share a directory, or one lies in that of the other (give each";
    for (first, second) in [
        ("out", "out"),
        ("out", "./x/../out/"),
        ("out", "out/two"),
        ("out/one/deep", "out"),
        ("out", "link"),
        ("link/one", "out/one"),
        ("link/not/there", "out/not"),
    ] {
        let entry = |path: &str| format!("{{directory: {{path: {path}}}}}");
        let (desk, _) = two(&entry(first), &entry(second));
        fs::create_dir(desk.path("out")).expect("a new folder can be written");
        symlink("out", desk.path("link")).expect("a new folder can be written");
        desk.run(&["config", "check"]).exits(64).complains(&format!(":7: {message}"));
        desk.run(&["sync"]).exits(64).complains(message);
    }
    let (desk, _) = two("{directory: {path: out}}", "{directory: {path: out-two}}");
    desk.run(&["config", "check"]).exits(0);
}

#[test]
fn a_directory_that_has_become_a_link_to_another_is_noticed() {
    let (desk, name) = two("{directory: {path: out/one}}", "{directory: {path: out/two}}");
    desk.run(&["sync", &format!("{name}-a")]).exits(0).says("4 objects created");
    symlink("one", desk.path("out/two")).expect("the folder can be written");
    desk.run(&["sync"]).exits(64).complains("share a directory");
}

#[test]
fn a_cluster_with_two_names_is_held_under_both() {
    let server = server();
    let (desk, name) = two("{kubeconfig: {path: one.yaml}}", "{kubeconfig: {path: two.yaml}}");
    server.kubectl_ok(&["create", "namespace", &name]);
    let kubeconfig = fs::read_to_string(server.kubeconfig("admin")).expect("it is there");
    desk.write("one.yaml", &kubeconfig);
    // The same one by another file and with other words.
    desk.write("two.yaml", &format!("{kubeconfig}\n"));
    let objects = || {
        let kinds = "serviceaccounts,configmaps,services,deployments";
        let listed = server.kubectl_ok(&["-n", &name, "get", kinds, "-l", "gatewright.dev/sync", "-o", "name"]);
        listed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let held = |arguments: &[&str]| {
        let run = desk.run(arguments).exits(3).says("held by guard cluster-identity");
        let run = run.says("clusters \"one\" and \"two\" of the config file are the same one, ");
        run.says("clusters \"two\" and \"one\" of the config file").says("keep one of the two names")
    };
    // From the very first round, whoever is first.
    held(&["plan"]);
    held(&["sync"]);
    assert_eq!(objects(), [""; 0]);

    // One name for both syncs is all it takes.
    desk.replace("gatewright.yaml", "names: [two]", "names: [one]");
    desk.run(&["sync"]).exits(0).says("4 objects created");
    let before = objects();
    assert_eq!(before.len(), 8);

    // A second name that comes later, while one spec goes and another one moves.
    desk.replace(
        "gatewright.yaml",
        &format!("{name}-b: {{source: b, clusters: {{names: [one]"),
        &format!("{name}-b: {{source: b, clusters: {{names: [two]"),
    );
    fs::rename(desk.path("a/a.yaml"), desk.path("b/a.yaml")).expect("it is there");
    fs::remove_file(desk.path("b/b.yaml")).expect("it is there");
    for _ in 0..2 {
        held(&["sync"]);
        assert_eq!(objects(), before);
    }
    held(&["sync", "--full"]);
    // Under a name that leads elsewhere by now nobody is held.
    desk.write("two.yaml", &kubeconfig.replace("127.0.0.1", "127.0.0.2"));
    desk.run(&["sync", &format!("{name}-a")]).exits(3).says("cluster-identity");
}

#[test]
fn a_sync_that_only_reports_may_have_a_name_of_its_own_for_a_cluster() {
    let server = server();
    let (desk, name) = two("{kubeconfig: {path: one.yaml}}", "{kubeconfig: {path: one.yaml}}");
    server.kubectl_ok(&["create", "namespace", &name]);
    let kubeconfig = fs::read_to_string(server.kubeconfig("admin")).expect("it is there");
    desk.write("one.yaml", &kubeconfig);
    desk.replace("gatewright.yaml", "names: [two]}", "names: [two]}, mode: report");
    let run = desk.run(&["sync", &format!("{name}-a")]).exits(0).says("4 objects created");
    assert!(!run.out.contains("cluster-identity"), "{}", run.out);
}
