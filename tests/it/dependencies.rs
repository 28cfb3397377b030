//! Dependencies between syncs: one changes nothing on a cluster before another one is through there.

use crate::cluster::{shared, unique};
use crate::errors::{gateway, kubeconfig};
use crate::program::{Desk, Run};

/// Three directories; by its name the sync that waits would come first.
fn folders(awaited: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources:\n  specs: {{directory: {{path: specs, settle: 0s}}}}\n  \
             more: {{directory: {{path: more, settle: 0s}}}}\n\
             clusters:\n  eu: {{directory: {{path: out/eu}}, labels: {{region: eu}}}}\n  \
             us: {{directory: {{path: out/us}}}}\n  mgmt: {{directory: {{path: out/mgmt}}}}\n\
             syncs:\n  kinds: {{source: specs, path: kinds, clusters: {{names: [eu, mgmt]}}, createNamespaces: true}}\n  \
             apps:\n    source: specs\n    path: apps\n    clusters: {{names: [eu, us]}}\n    createNamespaces: true\n    \
             dependsOn: [{awaited}]\n"
        ),
    );
    desk.write("specs/kinds/k.yaml", &gateway("shop", "k", 8080));
    desk.write("specs/apps/a.yaml", &gateway("shop", "a", 8080));
    desk
}

fn has(desk: &Desk, cluster: &str, text: &str) -> bool {
    std::fs::read_to_string(desk.path(&format!("out/{cluster}/shop/service-a.yaml"))).is_ok_and(|it| it.contains(text))
}

/// The token of the first hold.
fn token(run: &Run) -> String {
    let line = run.out.lines().find(|line| line.contains("gatewright approve ")).expect("it was said");
    line.split_whitespace().nth(2).expect("it is behind the command").to_owned()
}

#[test]
fn one_commit_reaches_what_comes_first_first() {
    let desk = folders("{sync: kinds}");
    // The other one does not go to this cluster.
    let alone = desk.run(&["sync", "apps"]).exits(3);
    alone.says("held by guard depends-on: sync \"kinds\" is waited for on cluster eu: it has had no round there yet");
    assert!(has(&desk, "us", "8080") && !has(&desk, "eu", "8080"));
    desk.run(&["plan"]).exits(3).says("held by guard depends-on");
    let run = desk.run(&["sync"]).exits(0);
    assert!(run.out.find("sync kinds at") < run.out.find("sync apps at"), "{}", run.out);
    assert!(has(&desk, "eu", "8080"));

    // Another revision, also of the part of the other: where nothing is to be done nothing is held.
    desk.write("specs/apps/a.yaml", &gateway("shop", "a", 8081));
    let run = desk.run(&["sync", "apps"]).exits(3).says("is waited for on cluster eu: it is at sha256:");
    assert!(has(&desk, "us", "8081") && has(&desk, "eu", "8080"));
    desk.run(&["approve", &token(&run)]).exits(0);
    desk.run(&["sync", "apps"]).exits(0).says("guard depends-on was approved: ");
    assert!(has(&desk, "eu", "8081"));
    desk.write("specs/kinds/k.yaml", &gateway("shop", "k", 8081));
    desk.run(&["sync", "apps"]).exits(0);

    // A plan that is kept goes in the order, too.
    desk.write("specs/apps/a.yaml", &gateway("shop", "a", 8082));
    desk.write("specs/apps/a.yaml", &gateway("shop", "a", 8085));
    desk.run(&["plan", "--out", "plan.json"]).exits(3);
    desk.run(&["apply", "plan.json"]).exits(0);
    assert!(has(&desk, "eu", "8085"));

    // What stands on the other goes before it.
    desk.run(&["destroy", "kinds", "--yes"])
        .exits(3)
        .complains("nothing was deleted: sync \"apps\" depends on sync \"kinds\"");
    desk.run(&["destroy", "apps", "--yes"]).exits(0);
    desk.run(&["destroy", "kinds", "--yes"]).exits(0);
    desk.run(&["sync", "apps"]).exits(3).says("on cluster eu: it was destroyed there");
}

#[test]
fn what_is_not_through_is_waited_for_whatever_the_reason() {
    let desk = folders("{sync: kinds, cluster: mgmt}");
    desk.replace("gatewright.yaml", "kinds: {source: specs, path: kinds", "kinds: {source: more, path: .");
    desk.write("more/k.yaml", &gateway("shop", "k", 8080));
    desk.write("more/l.yaml", &gateway("shop", "l", 8080));
    let waits = |why: &str| {
        desk.run(&["sync", "apps"]).exits(3).says(&format!("sync \"kinds\" is waited for on cluster mgmt: {why}"));
        assert!(!has(&desk, "eu", "8080") && !has(&desk, "us", "8080"), "{why}");
    };
    desk.run(&["sync", "kinds", "--cluster", "eu"]).exits(0);
    waits("it has had no round there yet");
    desk.run(&["sync", "kinds", "--only", "Gateway/shop/k"]).exits(0);
    waits("its last round there was about a part of it");
    desk.run(&["sync", "kinds"]).exits(0);
    desk.run(&["suspend", "kinds", "--reason", "night"]).exits(0);
    waits("it is suspended");
    desk.run(&["resume", "kinds"]).exits(0);
    desk.write(
        "more/l.yaml",
        "kind: Gateway\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: l, namespace: shop}\nspec: {x: 1}\n",
    );
    desk.run(&["sync", "kinds"]).exits(1);
    waits("its source has problems");
    std::fs::remove_file(desk.path("more/l.yaml")).expect("it is there");
    std::fs::remove_file(desk.path("more/k.yaml")).expect("it is there");
    desk.run(&["sync", "kinds"]).exits(3);
    waits("it is held there by guard ");
    desk.write("more/k.yaml", &gateway("shop", "k", 8081));
    desk.write("more/l.yaml", &gateway("shop", "l", 8080));
    desk.replace("gatewright.yaml", "names: [eu, mgmt]}", "names: [eu, mgmt]}, mode: report");
    desk.run(&["sync", "kinds"]).exits(0);
    waits("it only reports, and ");
    desk.replace("gatewright.yaml", "names: [eu, mgmt]}, mode: report", "names: [eu, mgmt]}");
    let done = desk.run(&["sync", "kinds"]).exits(0);
    let run = done.out.lines().find_map(|line| line.strip_prefix("run ")).expect("something was changed");
    desk.run(&["undo", run, "--yes"]).exits(0);
    waits("it is suspended");
    desk.run(&["resume", "kinds"]).exits(0);
    waits("its last round there was undo of ");
    desk.run(&["sync", "kinds"]).exits(0);
    // Another source may be at any revision.
    desk.run(&["sync", "apps"]).exits(0);
    assert!(has(&desk, "eu", "8080") && has(&desk, "us", "8080"));
}

#[test]
fn what_is_waited_for_waits_for_others_itself() {
    let desk = folders("{sync: middle, clusters: {matchLabels: {region: eu}}}");
    let config = desk.read("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &format!(
            "{config}  middle: {{source: specs, path: middle, clusters: {{names: [eu]}}, createNamespaces: true, \
             dependsOn: [{{sync: kinds, cluster: mgmt}}]}}\n"
        ),
    );
    desk.write("specs/middle/m.yaml", &gateway("shop", "m", 8080));
    desk.run(&["sync"]).exits(0);
    // Nothing is to be done in the middle, which says nothing of the first.
    desk.write("specs/apps/a.yaml", &gateway("shop", "a", 8081));
    desk.run(&["sync", "middle"]).exits(0);
    desk.run(&["sync", "apps"]).exits(3).says("sync \"kinds\" is waited for on cluster mgmt: it is at ");
    assert!(!has(&desk, "us", "8081"));
    desk.run(&["sync", "kinds"]).exits(0);
    desk.run(&["sync", "apps"]).exits(0);
    assert!(has(&desk, "us", "8081"));
}

#[test]
fn dependencies_that_lead_nowhere_are_errors_with_their_line() {
    let desk = folders("{sync: kinds}");
    let check = |dependency: &str, complaint: &str| {
        desk.replace("gatewright.yaml", "dependsOn: [{sync: kinds}]", &format!("dependsOn: [{dependency}]"));
        desk.run(&["plan"]).exits(64).complains(&format!("gatewright.yaml:16: {complaint}"));
        desk.replace("gatewright.yaml", &format!("dependsOn: [{dependency}]"), "dependsOn: [{sync: kinds}]");
    };
    check("{sync: kind}", "there is no sync \"kind\" (did you mean \"kinds\"?)");
    check("{sync: kinds, cluster: mgm}", "there is no cluster \"mgm\" (did you mean \"mgmt\"?)");
    check("{sync: kinds, cluster: us}", "sync \"kinds\" does not select cluster \"us\"");
    check("{sync: kinds, clusters: {names: [us]}}", "sync \"kinds\" has no cluster that is selected here");
    check("{sync: kinds, cluster: eu, clusters: {matchLabels: {}}}", "a dependency is on one cluster or on several");
    check("{sync: apps}", "sync \"apps\" depends on itself");
    desk.replace("gatewright.yaml", "names: [eu, mgmt]}", "names: [mgmt]}");
    check("{sync: kinds}", "syncs \"apps\" and \"kinds\" have no cluster in common");
    desk.replace("gatewright.yaml", "names: [mgmt]}", "names: [eu, mgmt]}, dependsOn: [{sync: apps}]");
    check("{sync: kinds}", "these syncs wait for each other for ever: apps → kinds → apps");
}

#[test]
fn what_is_not_healthy_on_a_cluster_is_waited_for_there() {
    let (desk, namespace) = (Desk::empty("gatewright.yaml"), unique("depends"));
    let (first, then) = (unique("x-first"), unique("then"));
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs, settle: 0s}}}}}}\n\
             clusters:\n  one: {}\n  lab: {{directory: {{path: out/lab}}}}\nsyncs:\n  \
             {first}: {{source: specs, path: first, clusters: {{matchLabels: {{}}}}, createNamespaces: true, \
             rollout: {{strategy: all}}, wait: {{timeout: 3s}}}}\n  \
             {then}: {{source: specs, path: then, clusters: {{matchLabels: {{}}}}, createNamespaces: true, \
             wait: {{timeout: 90s}}, dependsOn: [{{sync: {first}}}]}}\n",
            kubeconfig(&shared().kubeconfig("admin"), "")
        ),
    );
    let reference =
        "  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: p}}\n";
    let wants = |kube: &str| {
        let parameters = format!(
            "---\napiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\n\
             metadata: {{name: p, namespace: {namespace}}}\nspec: {{kube: {{{kube}}}}}\n"
        );
        desk.write("specs/first/a.yaml", &format!("{}{reference}{parameters}", gateway(&namespace, "a", 8080)));
    };
    let is_there = || {
        let found = shared().kubectl_ok(&["get", "services", "-n", &namespace, "-o", "name"]);
        [found.contains("service/b\n"), desk.path(&format!("out/lab/{namespace}/service-b.yaml")).exists()]
    };
    desk.write("specs/then/b.yaml", &gateway(&namespace, "b", 8080));
    wants("podTemplate: {nodeSelector: {no: such-node}}");
    let why = format!("sync {first:?} is waited for on cluster one: Gateway {namespace}/a is not healthy there");
    let run = desk.run(&["sync"]).exits(1).says(&why);
    assert_eq!(is_there(), [false, true], "a directory has no health");
    desk.run(&["status", &then]).exits(0).says("held by guard depends-on");

    // A person may want it all the same; and what is healthy again is waited for by nobody.
    desk.run(&["approve", &token(&run)]).exits(0);
    desk.run(&["sync", &then]).exits(0);
    assert_eq!(is_there(), [true, true]);
    desk.write("specs/then/b.yaml", &gateway(&namespace, "b", 8081));
    wants("podTemplate: {extraAnnotations: {edition: second}}");
    desk.replace("gatewright.yaml", "wait: {timeout: 3s}", "wait: {timeout: 90s}");
    desk.run(&["sync", &then]).exits(3).says("held by guard depends-on");
    desk.run(&["sync"]).exits(0);
    let service = shared().kubectl_ok(&["get", "service", "b", "-n", &namespace, "-o", "yaml"]);
    assert!(service.contains("8081"), "{service}");
}
