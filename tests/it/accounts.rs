//! Accounts that requests are made as, on API servers with RBAC: what a sync may do is what its account may.

use std::fs;

use serde_json::{Value, json};

use crate::cluster::ApiServer;
use crate::cluster::audit::{Audited, Request};
use crate::clusters::clusters;
use crate::errors::{desk, gateway, kubeconfig};
use crate::program::Desk;

/// The number of times that something is tried that depends on rights: authorizers hear of them a moment later.
const TRIES: usize = 200;

/// The service account of a team, as API servers have it.
const TEAM: &str = "system:serviceaccount:team-a:gitops";

/// A server with the namespaces of two teams, and the service account of one.
fn teams(server: &ApiServer) {
    for namespace in ["team-a", "team-b"] {
        server.kubectl_ok(&["create", "namespace", namespace]);
    }
    server.kubectl_ok(&["create", "serviceaccount", "gitops", "-n", "team-a"]);
}

/// A desk with a sync that acts as the service account of the team; `user` is that of the kubeconfig.
fn desk_of_team(server: &ApiServer, user: &str) -> Desk {
    let desk = desk("edge", &[("only", kubeconfig(&server.kubeconfig(user), ""))]);
    let account = "impersonate: {serviceAccount: team-a/gitops}";
    desk.replace("gatewright.yaml", "createNamespaces: true", account);
    desk.write("specs/a.yaml", &gateway("team-a", "a", 8080));
    desk
}

/// Gives what the program prints.
fn grant(server: &ApiServer, desk: &Desk, user: &str) {
    let printed = desk.run(&["rbac", "edge", "--user", user]).exits(0).out;
    server.kubectl_stdin(&["apply", "-f", "-"], &printed);
}

fn lacking(desk: &Desk) -> Value {
    clusters(desk, 0, &["--timeout", "30s"])["only"]["syncs"]["edge"]["missingRights"].clone()
}

#[test]
fn a_sync_does_what_its_account_may_and_no_more() {
    let audited = Audited::start();
    let server = &audited.server;
    teams(server);
    let desk = desk_of_team(server, "nobody");

    // What is missing first is the right to act as the account, and the message says who lacks it.
    let impersonate = json!({
        "namespace": "team-a", "group": "", "resource": "serviceaccounts", "verb": "impersonate", "name": "gitops",
    });
    let missing = lacking(&desk);
    assert!(missing.as_array().is_some_and(|missing| missing.contains(&impersonate)), "{missing}");
    desk.run(&["clusters"]).exits(0).says("only: sync edge acts as service account team-a/gitops\n");
    assert_eq!(
        clusters(&desk, 0, &["--offline"])["only"]["syncs"]["edge"]["impersonates"],
        "service account team-a/gitops"
    );

    grant(server, &desk, "nobody");
    assert!((0..TRIES).any(|_| lacking(&desk) == json!([])), "{}", lacking(&desk));
    desk.run(&["sync"]).exits(0).says("4 objects created");
    desk.run(&["sync"]).exits(0).says("no changes, 4 objects up to date");
    check_users(&audited.requests());

    // Nothing beyond: neither for the account, nor for the user behind it.
    let may = |verb: &str, what: &str, namespace: &str, user: &str| {
        server.kubectl(&["auth", "can-i", verb, what, "-n", namespace, "--as", user]).status.success()
    };
    assert!(
        may("patch", "deployments.apps", "team-a", TEAM) && may("get", "configmaps", "gatewright-system", "nobody")
    );
    for (verb, what, namespace, user) in [
        ("patch", "deployments.apps", "team-b", TEAM),
        ("get", "configmaps", "gatewright-system", TEAM),
        ("list", "configmaps", "team-b", TEAM),
        ("patch", "deployments.apps", "team-a", "nobody"),
    ] {
        assert!(!may(verb, what, namespace, user), "{user} may {verb} {what} in {namespace}");
    }
}

/// Objects are the business of the account; what is kept for ourselves is that of the user.
fn check_users(requests: &[Request]) {
    let writes: Vec<&Request> = requests.iter().filter(|request| request.is_write()).collect();
    let (records, objects): (Vec<&Request>, Vec<&Request>) =
        writes.iter().partition(|request| request.uri.contains("/namespaces/gatewright-system/"));
    assert!(!records.is_empty() && records.iter().all(|it| it.user == "nobody" && it.acting.is_empty()), "{records:?}");
    assert!(!objects.is_empty() && objects.iter().all(|it| it.user == "nobody" && it.acting == TEAM), "{objects:?}");
    let labelled = |it: &&Request| it.verb == "list" && it.uri.contains("labelSelector=gatewright.dev%2Fsync");
    let lists: Vec<&Request> = requests.iter().filter(labelled).collect();
    assert!(!lists.is_empty() && lists.iter().all(|it| it.acting.is_empty()), "{lists:?}");
    let rules = requests.iter().filter(|it| it.resource == "selfsubjectrulesreviews" && it.uri.contains("rules"));
    assert!(rules.clone().any(|it| it.acting == TEAM) && rules.clone().any(|it| it.acting.is_empty()));
}

#[test]
fn a_sync_of_an_administrator_is_bound_by_its_account() {
    let server = ApiServer::start();
    teams(&server);
    let desk = desk_of_team(&server, "admin");
    grant(&server, &desk, "admin");
    assert!((0..TRIES).any(|_| lacking(&desk) == json!([])), "{}", lacking(&desk));
    desk.run(&["sync"]).exits(0).says("4 objects created");

    desk.write("specs/b.yaml", &gateway("team-b", "b", 8080));
    let run = desk.run(&["sync"]).exits(1);
    run.says(&format!(
        "User \"{TEAM}\" cannot get resource \"services\" in API group \"\" in the namespace \"team-b\""
    ))
    .says("grant the missing rights to the user that the server names");
    let there = server.kubectl_ok(&["get", "services,deployments,configmaps", "-n", "team-b", "-o", "name"]);
    assert!(!there.contains("/b"), "{there}");

    // Without the account the same user may.
    desk.replace("gatewright.yaml", "impersonate: {serviceAccount: team-a/gitops}", "createNamespaces: false");
    desk.run(&["sync"]).exits(0).says("4 objects created");
}

#[test]
fn whoever_may_not_act_as_an_account_is_named() {
    let server = ApiServer::start();
    teams(&server);
    let roles = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: look}\n\
                 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n\
                 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: acted}]\n";
    server.kubectl_stdin(&["apply", "-f", "-"], roles);
    let path = server.kubeconfig("viewer");
    let desk = desk("edge", &[("only", kubeconfig(&path, ", impersonate: {user: acted, groups: [ops]}"))]);
    desk.write("specs/a.yaml", &gateway("team-a", "a", 8080));
    let run = desk.run(&["sync"]).exits(1);
    let run =
        run.says("cannot impersonate").says("grant the right to impersonate users acted, impersonate groups ops ");
    run.says(&format!("to the user of kubeconfig \"{}\"", path.display()))
        .says("which is to act as user \"acted\" of group \"ops\" (clusters.only.kubeconfig.impersonate)");
    let found = clusters(&desk, 1, &["--timeout", "30s"]);
    assert_eq!(
        (&found["only"]["state"], &found["only"]["impersonates"]),
        (&json!("refused"), &json!("user \"acted\" of group \"ops\""))
    );
    desk.run(&["clusters"]).exits(1).says("only: requests are made as user \"acted\" of group \"ops\"\n");

    let grants = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: act}\nrules:\n\
                  - {apiGroups: [\"\"], resources: [users], resourceNames: [acted], verbs: [impersonate]}\n\
                  - {apiGroups: [\"\"], resources: [groups], resourceNames: [ops], verbs: [impersonate]}\n---\n\
                  apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: act}\n\
                  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: act}\n\
                  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}]\n";
    server.kubectl_stdin(&["apply", "-f", "-"], grants);
    let synced = (0..TRIES).find(|_| desk.run(&["sync"]).code == 0);
    assert!(synced.is_some(), "{}", desk.run(&["sync"]).out);
    server.kubectl_ok(&["get", "deployment", "-n", "team-a", "a"]);
}

#[test]
fn nothing_of_a_kubeconfig_that_names_an_account_is_lost() {
    let audited = Audited::start();
    teams(&audited.server);
    let known = fs::read_to_string(audited.server.kubeconfig("admin")).expect("the server has kubeconfigs");
    let mut known: Value = serde_json::from_str(&known).expect("kubeconfigs of tests are JSON");
    let user = &mut known["users"][0]["user"];
    user["as"] = json!("alice");
    user["as-groups"] = json!(["first", "system:masters"]);
    user["as-uid"] = json!("u-1");
    user["as-user-extra"] = json!({"example.com/team": ["a", "b"]});
    let desk = desk("edge", &[("only", "{kubeconfig: {path: known}}".to_owned())]);
    desk.write("known", &known.to_string());
    desk.write("specs/a.yaml", &gateway("team-a", "a", 8080));
    desk.run(&["sync"]).exits(0).says("4 objects created");
    let requests = audited.requests();
    assert!(!requests.is_empty() && requests.iter().all(|it| it.acting == "alice"), "{requests:?}");
    let seen = audited.impersonated();
    assert_eq!(
        seen,
        json!({
            "username": "alice", "uid": "u-1", "groups": ["first", "system:masters", "system:authenticated"],
            "extra": {"example.com/team": ["a", "b"]},
        })
    );

    // Groups without a user would be passed over, or refused as if we had sent something else.
    known["users"][0]["user"]["as"] = json!("");
    desk.write("known", &known.to_string());
    desk.run(&["sync"]).exits(1).says("as-groups, as-uid or as-user-extra without as");
}

#[test]
fn half_an_account_is_a_mistake_in_the_settings() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        "clusters:\n  a: {kubeconfig: {path: a, impersonate: {groups: [b]}}}\n  \
         b: {kubeconfig: {path: b, impersonate: {serviceAccount: bot}}}\nclusterFolderAccess: {impersonate: {user: \"\"}}\n\
         sources: {specs: {directory: {path: specs}}}\nsyncs:\n  edge: {source: specs, clusters: {names: [a]},\n    \
         impersonate: {user: a, serviceAccount: b/c}}\n",
    );
    let run = desk.run(&["config", "check"]).exits(64);
    let all = [
        "gatewright.yaml:2: nobody can be impersonated so: one of user and serviceAccount is needed, and only one",
        "gatewright.yaml:3: nobody can be impersonated so: \"bot\" is no service account",
        "gatewright.yaml:4: nobody can be impersonated so: the user is empty",
        "gatewright.yaml:8: nobody can be impersonated so: one of user and serviceAccount",
        "serviceAccount: NAMESPACE/NAME",
    ];
    all.iter().fold(run, |run, says| run.complains(says));
}
