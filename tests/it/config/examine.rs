//! `config check` looks at more than the file: kubeconfigs, clusters that are one, labels that no cluster has.

use crate::program::Desk;

/// A kubeconfig with the context `admin`.
pub(super) fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: admin\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\ncontexts: [{{name: admin, context: {{cluster: c, user: u}}}}]\n"
    )
}

/// Three clusters, and a sync that selects them so.
fn desk(selectors: &[&str]) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let syncs = selectors.iter().enumerate();
    let sync = |(index, selector): (usize, &&str)| format!("  s{index}: {{source: lab, clusters: {selector}}}\n");
    let syncs = syncs.map(sync).collect::<Vec<_>>().concat();
    let cluster =
        |name: &str, labels: &str| format!("  {name}: {{kubeconfig: {{path: {name}.yaml}}, labels: {{{labels}}}}}\n");
    let clusters = [cluster("a", "tier: prod"), cluster("b", "tier: prod"), cluster("c", "tier: lab")].concat();
    let text = format!("sources:\n  lab: {{directory: {{path: specs}}}}\nclusters:\n{clusters}syncs:\n{syncs}");
    desk.write("gatewright.yaml", &text);
    for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
        desk.write(&format!("{name}.yaml"), &kubeconfig(&format!("https://192.0.2.{number}:6443")));
    }
    desk
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_a_mistake_of_the_config() {
    let desk = desk(&["{names: [a, b, c]}"]);
    let run = desk.run(&["config", "check"]).exits(0).says("gatewright.yaml is valid: 1 source, 3 clusters, 1 sync\n");
    assert_eq!(run.err, "");
    std::fs::remove_file(desk.path("a.yaml")).expect("it is there");
    desk.replace("b.yaml", "current-context: admin", "current-context: nobody");
    desk.write("c.yaml", "{{{");
    let run = desk.run(&["config", "check"]).exits(64);
    let run = run.complains("gatewright.yaml:4: cluster \"a\": kubeconfig ").complains("No such file or directory");
    run.complains("gatewright.yaml:5: cluster \"b\": ").complains("gatewright.yaml:6: cluster \"c\": ");
    // Where kubectl would look there is nothing either.
    desk.replace("gatewright.yaml", "{path: a.yaml}", "{}");
    desk.run(&["config", "check"]).exits(64).complains("there is no such file");
}

#[test]
fn two_names_for_one_api_server_are_told() {
    let desk = desk(&["{names: [a, c]}", "{names: [b]}"]);
    for server in ["https://192.0.2.1:6443", "https://192.0.2.1:6443/"] {
        desk.write("b.yaml", &kubeconfig(server));
        let run = desk.run(&["config", "check"]).exits(0).says("is valid");
        run.complains("warning: ")
            .complains(":5: clusters \"a\" and \"b\" have one API server, https://192.0.2.1:6443 (");
    }
    for (one, other) in
        [("https://API.example.com", "https://api.example.com:443"), ("https://[::1]:1", "https://[::1]:1")]
    {
        desk.write("a.yaml", &kubeconfig(one));
        desk.write("c.yaml", &kubeconfig(other));
        let run =
            desk.run(&["config", "check"]).exits(64).complains(":6: clusters \"a\" and \"c\" have one API server");
        run.complains("and sync \"s0\" selects both (select one of them");
    }
    // Who only reports makes nothing under either name.
    desk.replace("gatewright.yaml", "s0: {", "s0: {mode: report, ");
    desk.run(&["config", "check"]).exits(0).complains("warning: ").says("is valid");
}

#[test]
fn labels_that_no_cluster_has_are_told() {
    let expressions = "{matchExpressions: [{key: tire, operator: NotIn, values: [lab]}, \
                       {key: tier, operator: In, values: [prod, lap]}, {key: tier, operator: NotIn, values: [old]}]}";
    let desk = desk(&[expressions]);
    let run = desk.run(&["config", "check"]).exits(0);
    let run = run.complains("sync \"s0\": no cluster has the label \"tire\" (did you mean \"tier\"?)\n");
    let run = run.complains("no cluster has the label \"tier=lap\" (did you mean \"lab\"?)\n");
    run.complains("no cluster has the label \"tier=old\"\n");
}

#[test]
fn a_file_that_a_setting_names_and_that_cannot_be_read_is_a_warning() {
    let desk = Desk::quickstart("gatewright.yaml");
    let check = || desk.run(&["config", "check"]).exits(0);
    assert_eq!(check().err, "");
    let git =
        "directory: {path: ./specs}\n  other: {git: {url: 'https://example.com/a.git', auth: {tokenFile: token}}}";
    desk.replace("gatewright.yaml", "directory: {path: ./specs}", git);
    let run =
        check().complains("gatewright.yaml:8: tokenFile is ").complains("token\", which cannot be read here: No such");
    run.complains("put it there, or make it readable for the user of the daemon");
    std::fs::create_dir(desk.path("token")).expect("it can be made");
    check().complains("which cannot be read here: it is a folder");
    std::fs::remove_dir(desk.path("token")).expect("it is there");
    desk.write("token", "sesame");
    assert_eq!(check().err, "");
}
