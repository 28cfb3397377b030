//! Plans that are kept, looked at, and carried out later, on a real API server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use gatewright_engine::text::digest;
use serde_json::{Value, json};

use crate::guards::token;
use crate::ownership::site::{Site, version};
use crate::support::git_server::Repository;

fn kept() -> Site {
    let site = Site::new("");
    site.want(&["a", "b", "c"], 80);
    site.sync().exits(0).says("12 objects created");
    site
}

/// The source of a site as a repository of git.
fn with_git(site: &Site) -> Repository {
    let repository = Repository::new(&site.desk.path(""), "specs");
    let url = repository.bare.display().to_string();
    site.desk.replace("gatewright.yaml", "{directory: {path: ./specs}}", &format!("{{git: {{url: {url:?}}}}}"));
    repository
}

#[test]
fn a_plan_is_carried_out_as_it_was_seen() {
    let site = kept();
    site.want(&["a", "b"], 81);
    site.drop(&["c"]);
    let plan = site.run(&["plan", "--out", "plan.json"]).exits(0).says("4 objects to prune");
    plan.complains("the plan is kept in plan.json");
    let mode = fs::metadata(site.desk.path("plan.json")).expect("it was written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // What only reports has moved nothing.
    let before = version(&site.get("deployment/a"));
    let status = json!({"status": {"observedGeneration": 1, "replicas": 1}}).to_string();
    site.kubectl(&["patch", "deployment", "a", "--subresource=status", "--type=merge", "-p", &status]);
    assert_ne!(version(&site.get("deployment/a")), before);
    site.run(&["apply", "plan.json"]).exits(0).says("4 objects updated").says("4 objects deleted");
    assert_eq!((site.get("service/a")["spec"]["ports"][0]["port"].as_u64(), site.left_of("c").len()), (Some(81), 0));

    // What is done is done: the plan is about what was there before.
    let after = site.versions();
    site.run(&["apply", "plan.json"]).exits(1).says("stale: since the plan was made things have changed");
    assert_eq!(site.versions(), after);
}

#[test]
fn a_unit_that_has_moved_is_refused_and_the_others_go_ahead() {
    let site = kept();
    site.want(&["a", "b"], 81);
    site.drop(&["c"]);
    site.run(&["plan", "--out", "plan.json"]).exits(0);
    site.kubectl(&["scale", "deployment", "a", "--replicas=3"]);
    site.kubectl(&["label", "service", "c", "team=edge"]);
    let before = site.versions();
    let run = site.run(&["apply", "plan.json"]).exits(1).says("2 objects updated");
    run.says("stale: since the plan was made things have changed").says("was changed on the cluster; plan again");
    let after = site.versions();
    let changed: Vec<&str> =
        before.iter().filter(|(key, old)| after.get(*key) != Some(*old)).map(|(key, _)| key.as_str()).collect();
    assert_eq!(changed, ["Deployment/b", "Service/b"]);

    // Nothing replaces what was refused, and drift that nobody has seen is left alone.
    site.run(&["plan", "--only", &format!("Gateway/{}/a", site.name), "--out", "part.json"]).exits(0);
    site.kubectl(&["scale", "deployment", "b", "--replicas=3"]);
    site.run(&["apply", "part.json", "--no-wait"]).exits(0).says("2 objects updated");
    assert_eq!(site.get("deployment/b")["spec"]["replicas"], 3);
}

#[test]
fn the_commit_of_a_plan_is_rendered_again() {
    let site = Site::new("");
    let repository = with_git(&site);
    let gateway = |port| crate::rounds::installation::gateway(&site.name, "edge", port);
    repository.write("edge.yaml", &gateway(80));
    repository.push();
    site.run(&["plan", "--out", "plan.json"]).exits(0).says("4 objects to create");
    // The branch moves on, with another file, and with another port.
    repository.write("edge.yaml", &gateway(81));
    repository.write("new.yaml", &crate::rounds::installation::gateway(&site.name, "new", 80));
    repository.push();
    site.run(&["apply", "plan.json"]).exits(0).says("4 objects created");
    assert_eq!(site.get("service/edge")["spec"]["ports"][0]["port"], 80);
    assert_eq!(site.left_of("new"), [""; 0]);
    site.sync().exits(0).says("2 objects updated").says("4 objects created");
}

#[test]
fn a_plan_is_refused_where_it_is_not_at_home() {
    let site = kept();
    site.want(&["a"], 81);
    site.run(&["plan", "--out", "plan.json"]).exits(0);
    let before = site.versions();
    let text = site.desk.read("plan.json");
    for (name, text, complaint) in [
        ("cut", text[..text.len() / 2].to_owned(), "is no plan of gatewright, or was cut off"),
        ("other", "{}".to_owned(), "is no plan of gatewright"),
        ("newer", text.replacen("plan/v1alpha1", "plan/v2", 1), "has the form \"gatewright.dev/plan/v2\""),
        ("changed", text.replacen("\"update\"", "\"create\"", 1), "is damaged"),
    ] {
        let name = format!("{name}.json");
        site.desk.write(&name, &text);
        site.run(&["apply", &name]).exits(64).complains(complaint);
    }
    site.run(&["apply", "nowhere.json"]).exits(64).complains("cannot read the plan");

    let copy = site.copied();
    copy.desk.write("plan.json", &text);
    copy.run(&["apply", "plan.json"]).exits(64).complains("the plan was made by installation");

    // Another folder than was planned.
    site.want(&["b"], 81);
    site.run(&["apply", "plan.json"]).exits(1).complains("by now, and the plan was made at sha256:");
    site.want(&["b"], 80);
    // Another cluster by the same name.
    let other = crate::cluster::ApiServer::start();
    let run = site.desk.run_with(&other.kubeconfig("admin"), &["apply", "plan.json"]).exits(1);
    run.says("the plan was made for cluster ");
    assert_eq!(site.versions(), before);
    site.desk.replace("gatewright.yaml", &format!("  {}:", site.name), "  renamed:");
    site.run(&["apply", "plan.json"]).exits(64).complains("which is not configured");
    site.configure(&site.name, "");
    site.run(&["apply", "plan.json"]).exits(0).says("2 objects updated");
}

/// Changes what a plan says, and makes its digest right again.
fn forged(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut file: Value = serde_json::from_str(text).expect("it is JSON");
    change(&mut file["plan"]);
    file["digest"] = digest(file["plan"].to_string().as_bytes()).into();
    file.to_string()
}

#[test]
fn a_plan_that_somebody_has_changed_is_refused() {
    let site = Site::new("");
    let repository = with_git(&site);
    let gateway = |port| crate::rounds::installation::gateway(&site.name, "edge", port);
    repository.write("edge.yaml", &gateway(80));
    repository.push();
    site.run(&["plan", "--out", "plan.json"]).exits(0).says("4 objects to create");
    let text = site.desk.read("plan.json");
    // A commit that nobody has merged, which renders to the same names.
    repository.git(&["checkout", "-q", "-b", "unreviewed"]);
    repository.write("edge.yaml", &gateway(6666));
    repository.git(&["commit", "-q", "-a", "-m", "unreviewed"]);
    repository.git(&["push", "-q", "origin", "unreviewed"]);
    let commit = repository.git(&["rev-parse", "HEAD"]);
    for (name, changed) in [
        ("commit", forged(&text, |plan| plan["syncs"][0]["revision"] = format!("main@sha1:{commit}").into())),
        ("steps", forged(&text, |plan| plan["syncs"][0]["clusters"]["c"]["steps"] = json!([]))),
        ("adopt", forged(&text, |plan| plan["adopt"] = json!(true))),
        ("unsigned", forged(&text.replace("\"signature\"", "\"sign\""), |_| ())),
    ] {
        let file = format!("{name}.json");
        site.desk.write(&file, &changed);
        let run = site.run(&["apply", &file, "--adopt"]).exits(64);
        run.complains("is not as this installation has written it").complains("plan again");
    }
    assert_eq!(site.versions().len(), 0, "{:?}", site.versions());
    site.run(&["apply", "plan.json"]).exits(0).says("4 objects created");
}

#[test]
fn a_plan_does_not_permit_to_take_over_from_deployers() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.run(&["plan", "--adopt", "--out", "plan.json"]).exits(0);
    let run = site.run(&["apply", "plan.json"]).exits(64);
    run.complains("the plan takes objects over from deployers, which sync").complains("add --adopt if that is meant");
    assert_eq!(site.versions().len(), 0);
    site.run(&["apply", "plan.json", "--adopt"]).exits(0).says("4 objects created");

    site.configure(&site.name, "adopt: {deployer: true}");
    site.want(&["edge"], 81);
    site.run(&["plan", "--adopt", "--out", "plan.json"]).exits(0);
    site.run(&["apply", "plan.json"]).exits(0).says("2 objects updated");
}

#[test]
fn guards_hold_a_plan_as_they_hold_a_round() {
    let site = Site::new("");
    let names = ["a", "b", "c", "d"];
    site.want(&names, 80);
    site.sync().exits(0);
    site.drop(&["a", "b", "c"]);
    let plan = site.run(&["plan", "--out", "plan.json"]).exits(3).says("held by guard max-delete");
    let file: Value = serde_json::from_str(&site.desk.read("plan.json")).expect("it is JSON");
    assert_eq!(file["plan"]["syncs"][0]["clusters"]["c"]["holds"][0]["token"], token(&plan));
    site.run(&["apply", "plan.json"]).exits(3).says("held by guard max-delete");
    site.run(&["approve", &token(&plan)]).exits(0);
    site.run(&["apply", "plan.json"]).exits(0).says("12 objects deleted");

    // Also what waits for a person within a plan.
    site.kubectl(&["annotate", "service", "d", "gatewright.dev/prune=confirm"]);
    site.want(&["e"], 80);
    site.drop(&["d"]);
    let plan = site.run(&["plan", "--out", "plan.json"]).exits(3).says("4 objects to create");
    site.run(&["approve", &token(&plan)]).exits(0);
    site.run(&["apply", "plan.json"]).exits(0).says("4 objects created").says("4 objects deleted");
}

#[test]
fn a_plan_holds_no_secret() {
    let site = Site::new("unclaimed: apply");
    let secret = |word: &str| {
        let metadata = json!({"name": "key", "namespace": site.name});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": word}}).to_string()
    };
    site.spec("key", &secret("first-word"));
    site.sync().exits(0);
    site.spec("key", &secret("second-word"));
    site.run(&["plan", "--out", "plan.json"]).exits(0).says("1 object to update");
    let text = site.desk.read("plan.json");
    // In base64 as well.
    for word in ["first-word", "second-word", "Zmlyc3Qtd29yZA", "c2Vjb25kLXdvcmQ"] {
        assert!(!text.contains(word), "{text}");
    }
    site.run(&["apply", "plan.json"]).exits(0).says("1 object updated");
}
