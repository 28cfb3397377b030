//! Overlays from end to end: one source, several clusters, and what each of them gets.

use std::fs;
use std::path::Path;

use gatewright_engine::yaml;
use serde_json::Value;

use crate::cluster::binaries::in_repository;
use crate::cluster::process::command;
use crate::errors::{desk, gateway};
use crate::program::Desk;

/// Two regions and a cluster without overlays of its own, and a source with a Gateway.
fn regions() -> Desk {
    let cluster = |name: &str, region: &str| format!("{{directory: {{path: {name}}}, labels: {{region: {region}}}}}");
    let clusters = [("eu-1", cluster("eu-1", "eu")), ("eu-2", cluster("eu-2", "eu")), ("us-1", cluster("us-1", "us"))];
    let desk = desk("gateways", &clusters);
    desk.write("specs/edge.yaml", &gateway("infra", "edge", 8080));
    desk.write(
        "specs/usual.yaml",
        &overlay("usual", "{priority: -1, parameters: {kube: {deployment: {replicas: 1}}}}"),
    );
    desk
}

fn overlay(name: &str, spec: &str) -> String {
    format!("apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

/// The Deployment that a cluster has.
fn deployment(desk: &Desk, cluster: &str) -> Value {
    let text = desk.read(&format!("{cluster}/infra/deployment-edge.yaml"));
    yaml::parse_values(&text).expect("what is written can be read").remove(0)
}

#[test]
fn clusters_get_different_objects_from_one_source() {
    let desk = regions();
    desk.write(
        "specs/eu.yaml",
        &overlay("eu", "{clusters: {matchLabels: {region: eu}}, parameters: {kube: {deployment: {replicas: 3}}}}"),
    );
    desk.run(&["sync"]).exits(0).says("on all 3 clusters (eu-1, eu-2, us-1)").says("4 objects created");
    let replicas = |cluster: &str| deployment(&desk, cluster)["spec"]["replicas"].clone();
    assert_eq!(["eu-1", "eu-2", "us-1"].map(replicas), [Value::from(3), Value::from(3), Value::from(1)]);
    desk.run(&["plan", "--detailed-exitcode"]).exits(0);

    desk.replace("specs/eu.yaml", "region: eu", "region: us");
    let by_cluster = "        spec.replicas differs by cluster:
          2 of 3 clusters (eu-1, eu-2): 3 -> 1";
    desk.run(&["sync"]).exits(0).says(by_cluster).says("\n          us-1: 1 -> 3");
    assert_eq!(["eu-1", "eu-2", "us-1"].map(replicas), [Value::from(1), Value::from(1), Value::from(3)]);
}

#[test]
fn a_problem_of_some_clusters_names_them_and_holds_only_there() {
    let desk = regions();
    desk.run(&["sync"]).exits(0);
    let wrong = "{clusters: {matchLabels: {region: eu}}, parameters: {kube: {deployment: {replica: 3}}}}";
    desk.write("specs/eu.yaml", &overlay("eu", wrong));
    desk.replace("specs/edge.yaml", "8080", "9090");
    let run = desk.run(&["sync"]).exits(1);
    let line = "specs/eu.yaml:4: ClusterOverlay eu: unknown field \"replica\" in spec.parameters.kube.deployment";
    let line = line.strip_prefix("specs/").unwrap_or(line);
    let run = run.says(line).says("; on clusters eu-1, eu-2\n").says("1 error\n");
    let port = |cluster: &str| desk.read(&format!("{cluster}/infra/service-edge.yaml")).contains("port: 9090");
    assert_eq!(["eu-1", "eu-2", "us-1"].map(port), [false, false, true], "{}", run.out);

    // A problem of all clusters is one of the source.
    desk.write("specs/eu.yaml", &overlay("eu", "{parameters: {kube: {deployment: {replica: 3}}}}"));
    let run = desk.run(&["plan"]).exits(1).says(line).says("1 error\n");
    assert!(!run.out.contains("; on "), "{}", run.out);
    let json: Value = serde_json::from_str(&desk.run(&["plan", "--format", "json"]).exits(1).out).expect("it is JSON");
    assert!(json["problems"][0].get("clusters").is_none(), "{json}");
}

#[test]
fn the_example_is_the_one_of_the_document() {
    let read = |path: &str| fs::read_to_string(in_repository(path)).expect(path);
    let (document, example) = (read("docs/overlays.md"), read("examples/fleet/specs/overlays.yaml"));
    assert!(document.contains(&format!("```yaml\n{example}```\n")));

    let desk = Desk::example("fleet");
    desk.run(&["check", "specs"]).exits(0).says("8 objects from 2 Gateways\n");
    desk.run(&["sync"]).exits(0);
    desk.run(&["plan", "--detailed-exitcode"]).exits(0);

    // As the document shows it, line by line.
    desk.replace("specs/gateways.yaml", "replicas: 2", "replicas: 12");
    let run = desk.run(&["plan"]).exits(1);
    let shown = document.lines().find(|line| line.starts_with("gateways.yaml:")).expect("the document shows a breach");
    let shown = shown.rsplit_once(" (").map_or(shown, |(problem, _)| problem);
    run.says(&format!("{shown}; on clusters eu-1, us-1\n"));
}

#[test]
fn specs_are_rendered_for_a_cluster_of_the_config() {
    let desk = regions();
    desk.write(
        "specs/eu.yaml",
        &overlay("eu", "{clusters: {matchLabels: {region: eu}}, parameters: {kube: {deployment: {replicas: 3}}}}"),
    );
    desk.run(&["render", "specs", "--cluster", "eu-2"]).exits(0).says("replicas: 3\n");
    desk.run(&["render", "specs", "--cluster", "us-1"]).exits(0).says("replicas: 1\n");
    desk.run(&["render", "specs"]).exits(0).says("replicas: 1\n");
    let run = desk.run(&["render", "specs", "--cluster", "eu-3"]).exits(64);
    run.complains("there is no cluster \"eu-3\"").complains("did you mean \"eu-1\"?");
}

#[test]
fn check_looks_at_every_cluster() {
    let desk = regions();
    desk.run(&["check", "specs"]).exits(0).says("4 objects from 1 Gateway\n");
    let wrong = "{clusters: {names: [eu-1, us-2]}, parameters: {kube: {deployment: {replica: 3}}}}";
    desk.write("specs/eu.yaml", &overlay("eu", wrong));
    let run = desk.run(&["check", "specs", "--format", "short"]).exits(1);
    let run = run.complains("did you mean \"replicas\"?); on cluster eu-1\n");
    let run = run.complains("there is no cluster \"us-2\" in the config (did you mean \"us-1\"?)");
    let run = run.says("cluster eu-1: 0 objects from 0 Gateways, 1 Gateway with problems\n");
    run.says("clusters eu-2, us-1: 4 objects from 1 Gateway\n");
}

#[test]
fn check_uses_the_config_file_beside_it_and_looks_at_every_overlay_without_one() {
    let desk = regions();
    let run = || {
        let mut command = command(Path::new(env!("CARGO_BIN_EXE_gatewright")));
        command
            .args(["check", "specs", "--format", "short"])
            .current_dir(desk.path(""))
            .env_remove("GATEWRIGHT_CONFIG");
        let output = command.output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let wrong = |clusters: &str| {
        let spec = format!("{{clusters: {clusters}, parameters: {{kube: {{deployment: {{replica: 3}}}}}}}}");
        desk.write("specs/eu.yaml", &overlay("eu", &spec));
        run()
    };
    let (code, _, complaints) = wrong("{matchLabels: {region: us}}");
    assert!(complaints.contains("did you mean \"replicas\"?); on cluster us-1\n"), "{complaints}");
    assert_eq!(code, Some(1));
    // Its settings are those of the file, too.
    desk.replace("gatewright.yaml", "syncs:", "sincs:");
    assert_eq!(run().0, Some(64));

    // Where nobody knows the clusters, in CI, each overlay is tried on one that it selects.
    std::fs::remove_file(desk.path("gatewright.yaml")).expect("it is there");
    let expressions =
        "{matchExpressions: [{key: region, operator: In, values: [eu]}, {key: old, operator: DoesNotExist}]}";
    for (clusters, name) in [
        ("{matchExpressions: [{key: old, operator: DoesNotExist}]}", "any"),
        ("{names: [eu-1]}", "eu-1"),
        ("{matchLabels: {region: eu}}", "region=eu"),
        (expressions, "region=eu"),
    ] {
        let (code, summary, complaints) = wrong(clusters);
        assert_eq!(code, Some(1), "{clusters}: {complaints}");
        assert!(complaints.contains(&format!("did you mean \"replicas\"?); on cluster {name}\n")), "{complaints}");
        assert!(summary.contains(&format!("cluster {name}: 0 objects")), "{summary}");
    }
    desk.write(
        "specs/eu.yaml",
        &overlay("eu", "{clusters: {names: [eu-1]}, parameters: {kube: {deployment: {replicas: 3}}}}"),
    );
    let (code, summary, complaints) = run();
    assert_eq!((code, summary.as_str(), complaints.as_str()), (Some(0), "4 objects from 1 Gateway\n", ""));
}

#[test]
fn what_an_unreadable_overlay_said_stays_in_force() {
    let desk = regions();
    let eu = "{clusters: {matchLabels: {region: eu}}, parameters: {kube: {deployment: {replicas: 3}}}}";
    desk.write("specs/eu.yaml", &overlay("eu", eu));
    desk.run(&["sync"]).exits(0);

    desk.write("specs/eu.yaml", "{{ no YAML }}");
    desk.replace("specs/edge.yaml", "8080", "9090");
    // Twice, because a round that does nothing must not forget why.
    for _ in 0..2 {
        let run = desk.run(&["sync"]).exits(1).says("kept: what the source says of it is not known: eu.yaml: ");
        run.says("cluster us-1");
    }
    let replicas = |cluster: &str| deployment(&desk, cluster)["spec"]["replicas"].clone();
    assert_eq!(["eu-1", "us-1"].map(replicas), [Value::from(3), Value::from(1)]);
    let has_port = |cluster: &str| desk.read(&format!("{cluster}/infra/service-edge.yaml")).contains("port: 9090");
    // The cluster that the overlay was not for goes on.
    assert_eq!(["eu-1", "us-1"].map(has_port), [false, true]);

    desk.write("specs/eu.yaml", &overlay("eu", eu));
    desk.run(&["sync"]).exits(0);
    assert_eq!(["eu-1", "us-1"].map(replicas), [Value::from(3), Value::from(1)]);
    assert_eq!(["eu-1", "us-1"].map(has_port), [true, true]);
}

/// Has an overlay of a team govern the Gateway of another, as far as `sync` lets it, and returns the replicas.
#[track_caller]
fn replicas_with(desk: &Desk, overlays: &str, code: i32) -> Value {
    let config = desk.read("gatewright.yaml");
    let (head, _) = config.split_once("overlays:").unwrap_or((config.trim_end(), ""));
    desk.write("gatewright.yaml", &format!("{}\n    {overlays}\n", head.trim_end()));
    let run = desk.run(&["sync"]).exits(code);
    if code == 1 {
        let line = "specs/teams/b/all.yaml:1: ClusterOverlay usual: overlays of this folder do not count";
        run.says(line.strip_prefix("specs/").unwrap_or(line)).says("name its folder in overlays.paths of the sync");
    }
    deployment(desk, "us-1")["spec"]["replicas"].clone()
}

#[test]
fn an_overlay_counts_only_from_folders_that_the_sync_names() {
    let desk = regions();
    fs::create_dir_all(desk.path("specs/teams/b")).expect("a new folder can be written");
    fs::create_dir_all(desk.path("specs/platform")).expect("a new folder can be written");
    fs::rename(desk.path("specs/usual.yaml"), desk.path("specs/platform/usual.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(0);

    // It takes the name of that of the platform, so that neither would count, and says more than it.
    let greedy = overlay("usual", "{priority: 9, parameters: {kube: {deployment: {replicas: 7}}}}");
    desk.write("specs/teams/b/all.yaml", &greedy);
    assert_eq!(replicas_with(&desk, "overlays: {paths: [platform]}", 1), 1);
    // Nor does one that is broken, of a kind that there is not, or nameless hold anybody.
    for (spoiled, port) in [
        (greedy.replace("replicas: 7", "replica: 7"), 9001),
        (greedy.replace("kind: ClusterOverlay", "kind: ClusterOverlays"), 9002),
        (greedy.replace("name: usual", "nam: usual"), 9003),
    ] {
        desk.write("specs/teams/b/all.yaml", &spoiled);
        desk.write("specs/edge.yaml", &gateway("infra", "edge", port));
        let run = desk.run(&["sync"]).exits(1).says("teams/b/all.yaml:").says("objects updated");
        assert!(!run.out.contains("kept:"), "{}", run.out);
    }
    desk.write("specs/teams/b/all.yaml", &greedy.replace("name: usual", "name: greedy"));
    assert_eq!(replicas_with(&desk, "overlays: {paths: [platform, teams/b]}", 0), 7);
    assert_eq!(replicas_with(&desk, "overlays: {paths: [.]}", 0), 7);
    fs::remove_file(desk.path("specs/teams/b/all.yaml")).expect("it is there");
    assert_eq!(replicas_with(&desk, "overlays: {}", 0), 1);
}

#[test]
fn no_overlay_of_a_source_for_some_namespaces_counts_unless_the_sync_says_so() {
    let desk = regions();
    desk.replace("gatewright.yaml", "source: ", "allow: {namespaces: [infra]}\n    source: ");
    desk.run(&["sync"]).exits(1).says("usual.yaml:1: ClusterOverlay usual: overlays of this folder do not count");
    desk.replace("gatewright.yaml", "source: ", "overlays: {paths: [.]}\n    source: ");
    desk.run(&["sync"]).exits(0);
}

#[test]
fn a_claim_that_no_pack_knows_gets_the_storage_of_its_cluster() {
    let desk = regions();
    let claim = "{accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}";
    desk.write(
        "specs/claim.yaml",
        &format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: cache, namespace: infra}}\nspec: {claim}\n"
        ),
    );
    let rows = "{eu-1: {class: fast}, eu-2: {class: fast}, us-1: {class: slow}}";
    let patch = r#"[{target: {kind: PersistentVolumeClaim}, patch: {spec: {storageClassName: "{{ values.class }}"}}}]"#;
    let target = "{specs: [{kind: PersistentVolumeClaim, name: cache}]}";
    let spec = format!("{{values: {{byCluster: {rows}}}, target: {target}, objectPatches: {patch}}}");
    desk.write("specs/storage.yaml", &overlay("storage", &spec));

    // Where such documents are not applied, the overlay says that it does nothing.
    let hint = "with unclaimed: apply the sync applies it, and the overlay has its say";
    desk.run(&["plan"]).says("1 PersistentVolumeClaim of the source cannot be reached: no pack claims it").says(hint);
    desk.run(&["check", "specs"]).exits(0);

    desk.replace("gatewright.yaml", "createNamespaces: true", "createNamespaces: true\n    unclaimed: apply");
    let plan = desk.run(&["sync"]).exits(0);
    assert!(!plan.out.contains("cannot be reached"), "{}", plan.out);
    let class = |cluster: &str| {
        let text = desk.read(&format!("{cluster}/infra/persistentvolumeclaim-cache.yaml"));
        yaml::parse_values(&text).expect("what is written can be read")[0]["spec"]["storageClassName"].clone()
    };
    assert_eq!(["eu-1", "eu-2", "us-1"].map(class), ["fast", "fast", "slow"].map(Value::from));
    desk.run(&["plan", "--detailed-exitcode"]).exits(0);
}
