//! Errors as a person reads them: one sentence that says what, where and what to do, and nothing deleted.
//!
//! Each mistake stands beside something that is in order, which has to go on.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use crate::cluster::{ApiServer, shared, unique};
use crate::program::{Desk, Run};
use crate::support::git_server::{HttpsServer, Repository, SshServer};
use crate::support::process::Folder;

/// A Gateway of kgateway's own class: four objects.
pub(crate) fn gateway(namespace: &str, name: &str, port: u16) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n\
         metadata: {{name: {name}, namespace: {namespace}}}\n\
         spec:\n  gatewayClassName: kgateway\n  listeners:\n  - name: http\n    port: {port}\n    protocol: HTTP\n"
    )
}

/// A desk whose sync applies `specs` to the given clusters, each an entry of `clusters` in the config file.
pub(crate) fn desk(sync: &str, clusters: &[(&str, String)]) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    let names: Vec<&str> = clusters.iter().map(|(name, _)| *name).collect();
    let entries: Vec<String> = clusters.iter().map(|(name, entry)| format!("{name}: {entry}")).collect();
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{directory: {{path: specs}}}}}}\nclusters:\n  {}\n\
             syncs:\n  {sync}:\n    source: specs\n    clusters: {{names: [{}]}}\n    createNamespaces: true\n    \
             wait: {{enabled: false}}\n",
            entries.join("\n  "),
            names.join(", ")
        ),
    );
    desk
}

pub(crate) fn folder() -> String {
    "{directory: {path: rendered}}".to_owned()
}

pub(crate) fn kubeconfig(path: &Path, more: &str) -> String {
    format!("{{kubeconfig: {{path: {}{more}}}}}", path.display())
}

impl Run {
    /// Asserts that no line says one thing twice, as an error does that repeats its cause.
    #[track_caller]
    fn reads_well(self) -> Self {
        for line in self.out.lines().chain(self.err.lines()) {
            let parts: Vec<&str> = line.trim().split(": ").filter(|part| part.len() > 3).collect();
            let is_twice = |(index, part): (usize, &&str)| parts[..index].iter().any(|before| before.contains(*part));
            assert!(!parts.iter().enumerate().any(is_twice), "{line:?} says something twice");
            let what = ["cannot read", "cannot apply", "cannot dry-run"];
            assert!(what.iter().all(|words| line.matches(words).count() < 2), "{line:?} says something twice");
        }
        self
    }

    #[track_caller]
    fn keeps_quiet_about(self, text: &str) -> Self {
        assert!(!self.out.contains(text) && !self.err.contains(text), "{text:?} in\n{}\n{}", self.out, self.err);
        self
    }
}

/// The objects of a namespace that carry our marks, with what changes when somebody writes them.
fn objects(server: &ApiServer, namespace: &str) -> Vec<String> {
    let kinds = "serviceaccounts,configmaps,services,deployments";
    let columns =
        "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation}{\"\\n\"}{end}";
    let lines = server.kubectl_ok(&["get", kinds, "-n", namespace, "-l", "gatewright.dev/sync", "-o", columns]);
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn an_unreachable_cluster_delays_and_changes_no_other() {
    let mut fleet = ApiServer::fleet(&["eu", "us"]);
    let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = silent.local_addr().expect("a bound socket has an address");
    let known = fs::read_to_string(fleet[0].kubeconfig("admin")).expect("the server has kubeconfigs");
    let clusters = [
        ("eu", kubeconfig(&fleet[0].kubeconfig("admin"), "")),
        ("us", kubeconfig(&fleet[1].kubeconfig("admin"), "")),
        ("void", kubeconfig(Path::new("void.kubeconfig"), ", timeout: 2s")),
    ];
    let desk = desk("gateways", &clusters);
    // Nothing becomes healthy here, because no controllers run.
    desk.replace("gatewright.yaml", "wait: {enabled: false}", "wait: {enabled: false}\n    rollout: {strategy: all}");
    desk.write("void.kubeconfig", &known.replace(&fleet[0].url(), &format!("https://{address}")));
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.run(&["sync", "--cluster", "eu", "--cluster", "us"]).exits(0);
    let before = objects(&fleet[1], "shop");
    assert_eq!((objects(&fleet[0], "shop").len(), before.len()), (8, 8));

    // One is stopped and one never answers; a Gateway has changed, and another one is gone.
    fleet[1].stop();
    desk.write("specs/a.yaml", &gateway("shop", "a", 9090));
    fs::remove_file(desk.path("specs/b.yaml")).expect("it is there");
    let run = desk.run(&["sync"]).exits(4).reads_well();
    let run = run.says("cluster eu").says("done: 2 objects updated, 4 objects deleted, 2 unchanged");
    let run = run.says("cluster us\n  unreachable: ").says("Connection refused");
    let run = run.says("    check that the API server runs, and the address and proxy-url in the kubeconfig");
    run.says("cluster void\n  unreachable: ").says(&format!("https://{address}"));
    assert_eq!(objects(&fleet[0], "shop").len(), 4);
    // On a busy machine the silent one is told to have given no answer, and not in one line with the other.
    let status = desk.run(&["status"]).exits(0).says("cluster eu: done").says(": unreachable at ");
    let status = status.says("    check that the API server runs").says("void");
    status.says("no connection to ").says(&format!("https://{address}"));
    desk.run(&["plan", "--cluster", "us"]).exits(4);

    // What could not be deleted is deleted when the cluster is back.
    fleet[1].restart();
    assert_eq!(objects(&fleet[1], "shop"), before);
    desk.run(&["sync", "--cluster", "us"]).exits(0).says("2 objects updated, 4 objects deleted, 2 unchanged");
}

/// A kubeconfig whose user logs in through a program.
const PLUGIN: &str = r#"
apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: main, user: me}}]
clusters: [{name: main, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}}}]
"#;

#[test]
fn a_kubeconfig_that_is_no_use_says_what_is_wrong_with_it() {
    let real = shared().kubeconfig("admin");
    let context = format!("there are: {:?}", shared().name());
    let cases = [
        (kubeconfig(&real, ", context: amdin"), "it has no context \"amdin\"", context.as_str()),
        (
            kubeconfig(Path::new("lost.kubeconfig"), ""),
            "lost.kubeconfig\": it cannot be read: No such file",
            "correct the path",
        ),
        ("{kubeconfig: {}}".to_owned(), ".kube/config\": there is no such file", "kubeconfig.path"),
        (
            kubeconfig(Path::new("plugin.kubeconfig"), ""),
            "the credential plugin \"aws\" is not allowed to run",
            "if you trust it, add \"aws\" to clusters.broken.kubeconfig.exec.allow",
        ),
    ];
    for (entry, message, hint) in cases {
        let desk = desk("gateways", &[("broken", entry), ("fine", folder())]);
        desk.write("plugin.kubeconfig", PLUGIN);
        desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
        let run = desk.run(&["sync"]).exits(1).reads_well().says("cluster broken").says(message).says(hint);
        run.says("cluster fine").says("done: 4 objects created, 1 namespace created");
        desk.run(&["status"]).exits(0).says("cluster broken: failed").says(hint).says("cluster fine: done");
    }
}

/// Lets `nobody` do everything to what we render but see Services, and then see but not write them.
fn grant(server: &ApiServer, name: &str, services: &str) {
    let all = "[get, list, create, update, patch, delete]";
    let rules = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules:\n\
         - {{apiGroups: [\"\"], resources: [namespaces, configmaps, serviceaccounts], verbs: {all}}}\n\
         - {{apiGroups: [apps], resources: [deployments], verbs: {all}}}\n\
         - {{apiGroups: [\"\"], resources: [services], verbs: {services}}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: nobody}}]\n"
    );
    server.kubectl_stdin(&["apply", "-f", "-"], &rules);
}

#[test]
fn a_missing_right_holds_the_units_that_need_it_and_is_named() {
    let (server, namespace, sync) = (shared(), unique("rights"), unique("rights"));
    server.kubectl_ok(&["create", "namespace", &namespace]);
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("nobody"), ""))]);
    desk.write("specs/a.yaml", &gateway(&namespace, "a", 8080));
    desk.write("specs/b.yaml", &gateway(&namespace, "b", 8080));

    let name = unique("partial");
    grant(server, &name, "[watch]");
    let run = desk.run(&["sync"]).exits(1).reads_well();
    let words =
        format!("User \"nobody\" cannot get resource \"services\" in API group \"\" in the namespace {namespace:?}");
    let run = run.says(&format!("    ! Service {namespace}/a: cannot read it: services \"a\" is forbidden: {words}\n"));
    let run = run
        .says("    ! 3 objects: withheld: another object of the unit was refused\n")
        .says("grant the missing rights")
        .says("8 objects refused");
    let (a, b) = (run.out.find(&format!("Gateway {namespace}/a\n")), run.out.find(&format!("Gateway {namespace}/b\n")));
    assert!(a.is_some() && a < b, "the units are in order:\n{}", run.out);
    assert_eq!(objects(server, &namespace), [""; 0]);
    let status = desk.run(&["status"]).exits(0);
    status.says(&format!("Gateway {namespace}/a  held")).says("Service").says("is forbidden");

    grant(server, &name, "[get, list]");
    let run = desk.run(&["plan"]).exits(1).reads_well();
    let words = "the credentials do not allow it: services \"a\" is forbidden: User \"nobody\" cannot patch resource";
    run.says(&format!("    ! Service {namespace}/a: {words} \"services\""));
    assert_eq!(objects(server, &namespace), [""; 0]);

    grant(server, &name, "[get, list, patch, create, delete]");
    desk.run(&["sync"]).exits(0).says("8 objects created");

    grant(server, &name, "[watch]");
    fs::remove_file(desk.path("specs/b.yaml")).expect("it is there");
    // What cannot be seen is not deleted.
    desk.run(&["sync"]).exits(1).reads_well().says(&format!("    ! Service {namespace}/b: cannot read it: "));
    let after = objects(server, &namespace);
    assert!(after.iter().any(|line| line.starts_with("Service/b ")), "{after:?}");
    grant(server, &name, "[get, list, patch, create, delete]");
    desk.run(&["sync"]).exits(0).says(" deleted, 4 unchanged");
    assert!(objects(server, &namespace).iter().all(|line| line.contains("/a ")));
}

/// Breaks the file of Gateway `a`; what the sync says of it, with its place.
fn broken_documents(namespace: &str) -> Vec<(String, String, &'static str)> {
    let good = gateway(namespace, "a", 8080);
    let reference =
        "  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: smal}}\n";
    let id = format!("Gateway {namespace}/a");
    vec![
        (good.replace("8080", "80800"), format!("a.yaml:8: {id}: spec.listeners[0].port is 80800, but must be "), ""),
        (
            good.replace("    protocol", "    hostnme: example.com\n    protocol"),
            format!("a.yaml:9: {id}: unknown field \"hostnme\" in spec.listeners[0]\n"),
            "    did you mean \"hostname\"?\n",
        ),
        (
            format!("{good}{reference}"),
            format!("a.yaml:10: {id}: InvalidParameters: there is no GatewayParameters {namespace}/smal in the source"),
            "",
        ),
        (format!("{good}---\nfoo: [bar\n"), "a.yaml:11: unclosed bracket '['\n".to_owned(), ""),
        (
            good.replace("spec:", "spec:\n  gatewayClassName: other"),
            "a.yaml:6: the key \"gatewayClassName\" stands here a second time\n".to_owned(),
            "",
        ),
        (
            good.replace("kgateway", "kgatway"),
            format!("a.yaml:5: {id}: there is no GatewayClass \"kgatway\" in the source [GW001]\n"),
            "    did you mean \"kgateway\"?\n",
        ),
    ]
}

#[test]
fn a_broken_document_holds_what_it_feeds_and_the_rest_goes_on() {
    let (server, namespace, sync) = (shared(), unique("broken"), unique("broken"));
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    for (name, port) in [("a", 8080), ("b", 8080), ("c", 8080)] {
        desk.write(&format!("specs/{name}.yaml"), &gateway(&namespace, name, port));
    }
    desk.run(&["sync"]).exits(0).says("12 objects created");
    let held: Vec<String> = objects(server, &namespace).into_iter().filter(|line| line.contains("/a ")).collect();
    for ((text, message, hint), port) in broken_documents(&namespace).into_iter().zip(9000..) {
        desk.write("specs/a.yaml", &text);
        desk.write("specs/b.yaml", &gateway(&namespace, "b", port));
        let run = desk.run(&["sync"]).exits(1).reads_well().says("1 error\n").says(hint);
        // Where not everything is new it is said of what is.
        let dated = message.replace('\n', "  (new)\n");
        let run = if run.out.contains(&dated) { run } else { run.says(&message) };
        let run = run.says(&format!("  Gateway {namespace}/a\n    ! 4 objects: "));
        run.says("done: ").says(" updated, ").says(" unchanged, 4 objects kept\n");
        let at = ["get", "service", "b", "-n", &namespace, "-o", "jsonpath={.spec.ports[0].port}"];
        assert_eq!(server.kubectl_ok(&at), port.to_string());
        desk.run(&["status"]).exits(0).says("1 error in the source: ").says(&format!("Gateway {namespace}/a  held"));
    }
    // A file that cannot be read holds its own Gateways, and no others: this one is really gone.
    desk.write("specs/a.yaml", "{{ no YAML }}\n");
    fs::remove_file(desk.path("specs/c.yaml")).expect("it is there");
    desk.run(&["sync"]).exits(1).says("held by guard withdrawal").says("4 objects deleted");
    let left = objects(server, &namespace);
    let left_of =
        |name: &str| left.iter().filter(|line| line.contains(&format!("/{name} "))).cloned().collect::<Vec<_>>();
    assert_eq!((left_of("a"), left_of("b").len(), left_of("c").len()), (held, 4, 0));
}

#[test]
fn an_object_that_the_api_server_does_not_take_is_refused_in_the_servers_words() {
    let (server, namespace, sync) = (shared(), unique("invalid"), unique("invalid"));
    server.kubectl_ok(&["create", "namespace", &namespace]);
    let desk = desk(&sync, &[("only", kubeconfig(&server.kubeconfig("admin"), ""))]);
    let reference =
        "  infrastructure: {parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: p}}\n";
    let parameters = |kube: &str| {
        let head = "---\napiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters";
        format!("{head}\nmetadata: {{name: p, namespace: {namespace}}}\nspec: {{kube: {{{kube}}}}}\n")
    };
    let write = |kube: &str| {
        let text = format!("{}{reference}{}", gateway(&namespace, "a", 8080), parameters(kube));
        desk.write("specs/a.yaml", &text);
    };
    desk.write("specs/b.yaml", &gateway(&namespace, "b", 8080));
    write("serviceOverlay: {spec: {ipFamilies: [IPv6]}}");
    let run = desk.run(&["plan"]).exits(1).reads_well();
    let words = "the cluster does not take it: Service \"a\" is invalid: spec.ipFamilies[0]: Invalid value: ";
    run.says(&format!("    ! Service {namespace}/a: {words}")).says("plan: 4 objects to create, 4 objects refused\n");

    // A dry run does not look at the range of node ports, so this shows only when it is done.
    write("service: {type: NodePort, ports: [{port: 8080, nodePort: 9}]}");
    desk.run(&["plan"]).exits(0);
    let run = desk.run(&["sync"]).exits(1).reads_well();
    let words = "FAILED: Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 9: ";
    let run = run.says(&format!("    + create Service {namespace}/a  {words}"));
    let run = run.says(&format!("    + create Deployment {namespace}/a  not tried\n"));
    run.says("failed: 6 objects created, 1 object failed, 1 object not tried\n").keeps_quiet_about("it is not healthy");
    desk.run(&["history"]).exits(0).says("  create 6  exit 1  ");
}

/// Sources, by name, of which only the last can be read.
fn sources(repository: &Repository, https: &HttpsServer, ssh: &SshServer) -> [(&'static str, String); 6] {
    let bare = repository.bare.display();
    [
        ("branch", format!("{{git: {{url: {bare}, ref: {{branch: mian}}}}}}")),
        ("folder", format!("{{git: {{url: {bare}, path: gatewys}}}}")),
        ("gone", "{directory: {path: nowhere}}".to_owned()),
        (
            "host",
            format!(
                "{{git: {{url: \"{}{bare}\", auth: {{sshKeyFile: {}, knownHostsFile: known_hosts}}}}}}",
                ssh.url,
                ssh.user_key.display()
            ),
        ),
        (
            "token",
            format!(
                "{{git: {{url: \"{}/infra.git\", auth: {{tokenFile: wrong-token, caFile: {}}}}}}}",
                https.url,
                https.authority.display()
            ),
        ),
        ("whole", "{directory: {path: specs}}".to_owned()),
    ]
}

#[test]
fn a_source_that_cannot_be_read_holds_its_syncs_and_no_others() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    repository.write("gateways/a.yaml", &gateway("shop", "a", 8080));
    repository.push();
    let (https, ssh) = (HttpsServer::start(folder.path(), "s3cr3t", ""), SshServer::start(folder.path(), ""));
    let desk = Desk::empty("gatewright.yaml");
    desk.write("wrong-token", "hunter2hunter2\n");
    desk.write("known_hosts", "");
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    let sources = sources(&repository, &https, &ssh);
    let entries: Vec<String> = sources.iter().map(|(name, entry)| format!("  {name}: {entry}\n")).collect();
    let sync =
        |name: &str| format!("  {name}: {{source: {name}, createNamespaces: true, clusters: {{names: [out]}}}}\n");
    let syncs: Vec<String> = sources.iter().map(|(name, _)| sync(name)).collect();
    let clusters = "clusters: {out: {directory: {path: rendered}}}";
    let (entries, syncs) = (entries.concat(), syncs.concat());
    desk.write("gatewright.yaml", &format!("stateDir: state\nsources:\n{entries}{clusters}\nsyncs:\n{syncs}"));

    let run = desk.run(&["sync"]).exits(1).reads_well().keeps_quiet_about("hunter2").keeps_quiet_about("s3cr3t");
    let run = run.says("sync whole at ").says("4 objects created");
    let run = run
        .complains("no round of sync \"token\": cannot read source \"token\" (https://127.0.0.1:")
        .complains("wrong-token is valid");
    let run = run
        .complains("no round of sync \"branch\"")
        .complains("there is no branch \"mian\"\n  Correct `ref`. There are branches such as main.");
    let run = run.complains("the commit has no \"gatewys\"\n  Correct `path`");
    let run = run.complains("nowhere): No such file or directory").complains("  Create ");
    let scan = format!("run `ssh-keyscan -p {} 127.0.0.1 >> {}`", ssh.port, desk.path("known_hosts").display());
    run.complains("is not known; it showed the key ssh-ed25519 SHA256:").complains(&scan);
    assert_eq!(desk.run(&["sync", "whole"]).exits(0).err, "");
}

#[test]
fn a_name_that_is_nowhere_is_wrong_usage() {
    let desk = desk("gateways", &[("eu", folder()), ("us", "{directory: {path: other}}".to_owned())]);
    desk.write("specs/a.yaml", &gateway("shop", "storefront", 8080));
    let cases: [(&[&str], &str); 10] = [
        (&["sync", "gatways"], "there is no sync \"gatways\"\n  did you mean \"gateways\"?\n"),
        (&["sync", "other"], "there is no sync \"other\"\n  there are: gateways\n"),
        (
            &["plan", "other"],
            "no sync is called \"other\", and there is no file or folder \"other\"\n  the syncs are: gateways\n",
        ),
        (&["status", "gatways"], "there is no sync \"gatways\"\n  did you mean"),
        (&["history", "gatways"], "there is no sync \"gatways\"\n  did you mean"),
        (&["sync", "--cluster", "uk"], "there is no cluster \"uk\"\n  did you mean \"us\"?\n"),
        (
            &["sync", "--only", "Gateway/shop/storefrnt"],
            "Gateway/shop/storefrnt is in no source of these syncs\n  did you mean \"Gateway/shop/storefront\"?\n",
        ),
        (&["sync", "--only", "storefront"], "an object is written as KIND/NAMESPACE/NAME, such as Gateway/infra/edge"),
        (&["sync", "--only", "shop/storefront"], "shop/storefront is in no source of these syncs\n  there are: "),
        (&["snyc"], "unrecognized subcommand 'snyc'"),
    ];
    for (arguments, message) in cases {
        desk.run(arguments).exits(64).complains(message).reads_well();
    }
    assert!(!desk.path("rendered").exists(), "nothing was applied");
}

#[test]
fn nothing_to_render_is_said() {
    let desk = Desk::empty("gatewright.yaml");
    fs::create_dir(desk.path("empty")).expect("it can be made");
    desk.write("other/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    desk.write("gatewright.yaml", "stateDir: state\n");
    let render = |path: &str| desk.run(&["render", path]);
    render("empty").exits(64).complains("there are no YAML or JSON files in empty\n  name a folder with specs");
    render("nowhere").exits(64).complains("cannot read \"nowhere\": No such file or directory");
    render("other").exits(0).complains("there is nothing to render in what was named");
}
