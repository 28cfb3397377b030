//! Secrets are in no output: whoever reads reports, logs or errors sees that one has changed, and nothing of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::memory::MemoryCluster;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright::basics::redact;
use gatewright::basics::sanitize;
use gatewright::cluster::Cluster;
use gatewright::report::text::{self, Look};
use gatewright::report::{ClusterReport, Report, html, junit, markdown};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::errors::{desk, gateway};
use crate::ownership::site::Site;
use crate::program::Run;
use crate::rounds::installation::{Installation, Specs};
use crate::support::receiver::Receiver;

/// No piece of a secret of this length is shown, in whatever form.
const PIECE: usize = 6;

/// Everything that a source may hold of one secret each.
#[derive(Clone, Debug)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Random secrets, long enough not to stand anywhere by chance.
    fn any() -> impl Strategy<Value = Self> {
        prop::collection::vec("[A-Z]{2}[a-z][0-9][A-Za-z0-9]{12,30}", 12).prop_map(Self)
    }

    /// Some that are as good as random.
    pub(crate) fn fixed(salt: &str) -> Self {
        let one = |number: usize| {
            let digest = gatewright_engine::text::digest(format!("{salt} {number}").as_bytes());
            let letters = digest.chars().map(|c| if c.is_ascii_digit() { c } else { c.to_ascii_uppercase() });
            format!("Kq{}", letters.take(24).collect::<String>())
        };
        Self((0..12).map(one).collect())
    }

    /// The key of a program, over some lines.
    fn pem(&self) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n{}\n-----END PRIVATE KEY-----\n", self.0[10], self.0[11])
    }

    /// The objects of a source that hold them, in a namespace.
    fn objects(&self, namespace: &str) -> [Value; 3] {
        let secret = &self.0;
        let metadata = |name: &str| json!({"name": name, "namespace": namespace});
        let mut annotated = metadata("vault");
        annotated["annotations"] = json!({"copy.example.com/of": secret[1]});
        let vault = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": annotated,
            "data": {"token": STANDARD.encode(&secret[0])}, "stringData": {"note": format!("a \"{}\"\nb", secret[1])},
        });
        let settings = format!("user: me\npassword: {}\nlevel: info\n", secret[2]);
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings"),
            "data": {
                "settings.yaml": settings, "tls.key": self.pem(), "user": "me",
                "url": format!("https://me:{}@example.com/x?access_token={}", secret[3], secret[4]),
                "settings.json": json!({"env": [{"name": "A_TOKEN", "value": secret[5]}]}).to_string(),
            },
        });
        let container = json!({
            "name": "a", "image": "registry.example.com/a:v1", "args": ["--level=info", "--api-key", secret[6]],
            "command": ["a", format!("--password={}", secret[7])],
            "env": [
                {"name": "DB_PASSWORD", "value": secret[8]},
                {"name": "HEADER", "value": format!("Authorization: Bearer {}", secret[9])},
            ],
        });
        let labels = json!({"app": "a"});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
        let app = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("app"),
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        });
        [vault, map, app]
    }

    pub(crate) fn specs(&self, namespace: &str) -> Specs {
        let file = |(index, object): (usize, &Value)| (format!("{index}.yaml"), object.to_string());
        self.objects(namespace).iter().enumerate().map(file).collect()
    }

    /// Asserts that a text has no piece of any of them, in any form.
    #[track_caller]
    pub(crate) fn are_not_in(&self, text: &str, what: &str) {
        for secret in &self.0 {
            for form in [secret.clone(), STANDARD.encode(secret), STANDARD.encode(format!("a \"{secret}\"\nb"))] {
                for piece in form.trim_end_matches('=').as_bytes().windows(PIECE.max(form.len() / 4)) {
                    let piece = String::from_utf8_lossy(piece);
                    assert!(!text.contains(&*piece), "{piece:?} of {form:?} is in {what}:\n{text}");
                }
            }
        }
    }
}

/// A report in all forms.
fn views(cluster: &ClusterReport) -> BTreeMap<&'static str, String> {
    let report = json!({
        "schema": "gatewright.dev/report/v1alpha1", "sync": "gateways", "source": "platform", "revision": "1",
        "mode": "plan", "started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:01Z",
        "problems": [], "unclaimed": [], "clusters": {"test": cluster},
    });
    let reports = [serde_json::from_value::<Report>(report).expect("it is a report")];
    let (mut page, mut suites) = (Vec::new(), Vec::new());
    html::write(&reports, &mut page).expect("memory takes everything");
    junit::write(&reports, &mut suites).expect("memory takes everything");
    BTreeMap::from([
        ("text", text::write(&reports[0], Look { verbose: true, ..Look::default() })),
        ("json", sanitize::json(&reports[0]).expect("a report is plain data")),
        ("markdown", markdown::write(&reports, markdown::ROOM)),
        ("html", String::from_utf8(page).expect("it is text")),
        ("junit", String::from_utf8(suites).expect("it is text")),
    ])
}

fn steps(report: &ClusterReport, action: &str) -> usize {
    report.steps.iter().filter(|step| step.action.word() == action).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_report_shows_that_secrets_change_and_nothing_of_them(old in Secrets::any(), new in Secrets::any()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::new("c"));
        let settings = json!({"unclaimed": "apply", "allow": {"kinds": ["*"], "namespaces": ["*"]}});
        let installation = Installation::new("edge", &settings);
        let made = runtime.block_on(installation.round(&old.specs("infra"), &cluster));
        prop_assert_eq!(steps(&made, "create"), 4, "{:?}", made);
        let planned = runtime.block_on(installation.plan(&new.specs("infra"), &cluster));
        prop_assert_eq!(steps(&planned, "update"), 3, "{:?}", planned);
        for step in &planned.steps {
            prop_assert!(step.differences.iter().all(|it| it.before != it.after), "{:?}", step.differences);
        }
        for report in [&made, &planned] {
            for (form, view) in views(report) {
                old.are_not_in(&view, form);
                new.are_not_in(&view, form);
            }
        }
    }

    #[test]
    fn what_a_server_or_a_program_says_is_quoted_without_secrets(secrets in Secrets::any()) {
        let objects = secrets.objects("infra");
        let words: Vec<String> = objects.iter().flat_map(|object| {
            let sent = gatewright_engine::mask::Masker::secrets(object);
            let go = format!("{:?}", object.to_string());
            [redact::said_of(&object.to_string(), &sent), redact::said_of(&format!("admission webhook said {go}"), &sent)]
        }).collect();
        secrets.are_not_in(&words.join("\n"), "the words of a server");
        let mut said = String::new();
        for secret in &secrets.0 {
            let lines = [
                format!("token={secret}"), format!("password: \"{secret}\""), format!("Bearer {secret}"),
                format!("https://me:{secret}@example.com"), format!("got {secret}"),
            ];
            for line in lines {
                writeln!(said, "{}", redact::excerpt(&line)).expect("memory takes everything");
            }
        }
        let long: Vec<String> = secrets.0.iter().filter(|secret| secret.len() >= 20).cloned().collect();
        Secrets(long).are_not_in(&said, "the words of a program");
        secrets.are_not_in(&redact::excerpt(&secrets.pem()), "a key");
    }
}

/// The output of the commands that are about a sync, in every form.
fn outputs(site: &Site) -> BTreeMap<String, Run> {
    let commands = [
        "plan",
        "plan --verbose",
        "plan --format json",
        "plan --format markdown",
        "plan --format html",
        "plan --format junit",
        "plan -o yaml",
        "plan --full --out kept.plan",
        "diff",
        "status",
        "status -o wide",
        "status --format json",
        "status -o yaml",
        "tree -o yaml",
        "events",
        "events -o json",
        "audit",
        "audit -o yaml",
        "history",
        "history -o yaml",
        "report show",
        "report show --format json",
        "explain Deployment/NAMESPACE/app",
        "explain Secret/NAMESPACE/vault -o json",
        "explain ConfigMap/NAMESPACE/settings -o json",
        "rollback NAMESPACE --list",
        "undo",
        "clusters -o wide",
        "inventory show",
        "orphans",
        "config show",
        "check specs",
        "check specs --format json",
        "check specs --format sarif",
        "check specs --format github",
    ];
    let run = |command: &&str| {
        let command = command.replace("NAMESPACE", &site.name);
        let run = site.run(&command.split(' ').collect::<Vec<_>>());
        (command, run)
    };
    commands.iter().map(run).collect()
}

/// Everything below a folder that is text, but for what the source itself holds.
fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
}

#[track_caller]
fn assert_silent(site: &Site, secrets: &[&Secrets]) {
    for (command, run) in outputs(site) {
        for secret in secrets {
            secret.are_not_in(&run.out, &command);
            secret.are_not_in(&run.err, &format!("the log of {command}"));
        }
    }
    let mut found = vec![("kept.plan".to_owned(), site.desk.read("kept.plan"))];
    files(&site.desk.path("state"), &mut found);
    assert!(found.iter().any(|(path, _)| path.contains("/reports/")), "no report was kept");
    // The last good snapshot is the source itself, for the time when that is down; only its owner may read it.
    let is_source = |path: &str| path.contains("/state/sources/");
    for (path, text) in found.into_iter().filter(|(path, _)| !is_source(path)) {
        for secret in secrets {
            secret.are_not_in(&text, &path);
        }
    }
}

#[test]
fn no_command_log_or_file_shows_a_secret_and_a_change_shows_as_one() {
    let site = Site::new("unclaimed: apply, events: true");
    let config = site.desk.read("gatewright.yaml");
    let receiver = Receiver::start();
    let webhook = |form: &str| format!("{form}: {{url: \"{}\", format: {form}}}", receiver.url(&format!("/{form}")));
    let webhooks = ["json", "cloudevents", "slack", "teams"].map(webhook).join(", ");
    let more = format!("reports: {{formats: [markdown, junit, html], webhooks: {{{webhooks}}}}}\n");
    site.desk.write("gatewright.yaml", &format!("{config}{more}log: {{level: trace, format: json}}\n"));
    let (ours, theirs) = (Secrets::fixed("ours"), Secrets::fixed("theirs"));
    for (file, text) in ours.specs(&site.name) {
        site.desk.write(&format!("specs/{file}"), &text);
    }
    assert_eq!(site.run(&["plan"]).exits(0).out.matches("+ create").count(), 3);
    assert!(!site.desk.path("state/key").exists(), "a plan has made a key");
    let made = site.sync().exits(0).says("3 objects created");
    ours.are_not_in(&format!("{}{}", made.out, made.err), "a sync");
    assert_silent(&site, &[&ours]);

    // Somebody sets all of them to something else.
    for object in theirs.objects(&site.name) {
        let object = object.to_string();
        site.server.kubectl_stdin(
            &["-n", &site.name, "apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-"],
            &object,
        );
    }
    let plan = site.run(&["plan"]).exits(0);
    assert_eq!(plan.out.matches("~ update").count(), 3, "{}", plan.out);
    assert_silent(&site, &[&ours, &theirs]);
    // The same value has the same fingerprint in every report, and another one another.
    let again = site.run(&["plan"]).exits(0);
    let lines = |run: &Run| run.out.lines().filter(|line| line.contains("***")).map(str::to_owned).collect::<Vec<_>>();
    assert!(lines(&plan).iter().any(|line| line.contains("data.token: \"*** (")), "{}", plan.out);
    assert_eq!(lines(&plan), lines(&again));
    let fixed = site.sync().exits(0).says("3 objects updated");
    ours.are_not_in(&fixed.out, "a sync");
    assert_eq!(lines(&plan), lines(&fixed), "a plan and the round after it show the same");
    assert_silent(&site, &[&ours, &theirs]);
    let told = receiver.received();
    assert_eq!(told.len(), 8, "each receiver is told of two rounds");
    for it in told {
        ours.are_not_in(&it.text, &it.path);
        theirs.are_not_in(&it.text, &it.path);
    }
    let events = site.kubectl(&["get", "events.events.k8s.io", "-o", "json"]);
    assert_eq!(events.matches("\"gatewright.dev/gatewright\"").count(), 6, "three objects made and changed: {events}");
    ours.are_not_in(&events, "the Events");
    theirs.are_not_in(&events, "the Events");
}

#[test]
fn a_server_that_quotes_what_it_was_sent_is_quoted_without_it() {
    let site = Site::new("unclaimed: apply, events: true");
    let secrets = Secrets::fixed("quoted");
    for (file, text) in secrets.specs(&site.name) {
        site.desk.write(&format!("specs/{file}"), &text);
    }
    let proxy = Proxy::start(site.server);
    let config = site.desk.read("gatewright.yaml");
    let through = format!("kubeconfig: {{path: {}, allowInsecureTls: true}}", proxy.kubeconfig().display());
    site.desk.write("gatewright.yaml", &config.replace("kubeconfig: {}", &through));
    for code in [400, 403, 422, 500] {
        proxy.recovers();
        for (object, kind) in secrets.objects(&site.name).into_iter().zip(["secrets", "configmaps", "deployments"]) {
            let quoted = format!("{object} and {:?}", object.to_string());
            let words = Box::leak(format!("admission webhook \"x\" denied it: {quoted}").into_boxed_str());
            let path = format!("/namespaces/{}/{kind}/", site.name);
            let is_it = move |seen: &Seen| seen.method == "PATCH" && seen.path.contains(&path);
            proxy.answer(99, is_it, Answer::Refused(code, words));
        }
        for arguments in [&["plan"][..], &["plan", "--format", "json"], &["sync"]] {
            let run = site.run(arguments);
            assert_ne!(run.code, 0, "{}", run.out);
            secrets.are_not_in(&format!("{}{}", run.out, run.err), "an error");
        }
    }
    secrets.are_not_in(&site.kubectl(&["get", "events", "-o", "json"]), "the Events");
    let mut kept = Vec::new();
    files(&site.desk.path("state/reports"), &mut kept);
    for (path, text) in kept {
        secrets.are_not_in(&text, &path);
    }
}

/// A kubeconfig with one user on one server.
fn one_user(server: &str, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    })
    .to_string()
}

#[test]
fn credentials_of_clusters_and_sources_are_in_no_output() {
    let secrets = Secrets::fixed("credentials");
    let of = |number: usize| secrets.0[number].as_str();
    let desk = desk(
        "edge",
        &[
            ("exec", "{kubeconfig: {path: exec.yaml, exec: {allow: [sh], env: [A]}}}".to_owned()),
            ("token", "{kubeconfig: {path: token.yaml, timeout: 2s}}".to_owned()),
        ],
    );
    desk.write("specs/a.yaml", &gateway("shop", "a", 8080));
    let script = format!(
        "echo '{{\"status\": {{\"token\": \"{}\"'; echo 'got {} for password={}' >&2; echo 'Bearer {}' >&2; exit 3",
        of(0),
        of(1),
        of(2),
        of(3)
    );
    let exec = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
        "env": [{"name": "A", "value": of(4)}], "interactiveMode": "Never",
    }});
    desk.write("exec.yaml", &one_user("https://127.0.0.1:1", &exec));
    let server = format!("https://me:{}@127.0.0.1:1", of(5));
    desk.write("token.yaml", &one_user(&server, &json!({"token": of(6)})));
    let check = |arguments: &[&str]| {
        let run = desk.run(arguments);
        secrets.are_not_in(&format!("{}{}", run.out, run.err), &arguments.join(" "));
        run
    };
    let lost = |run: Run| assert!(run.code != 0 && run.out.contains("cluster exec"), "{}{}", run.out, run.err);
    for format in ["text", "json", "markdown", "html", "junit"] {
        check(&["plan", "--format", format, "--log-level", "trace"]);
    }
    lost(check(&["plan"]));
    lost(check(&["sync", "--log-level", "trace"]));
    for arguments in [&["status"][..], &["history"], &["inventory", "show"], &["orphans"], &["config", "show"]] {
        check(arguments);
    }
    let mut kept = Vec::new();
    files(&desk.path("state"), &mut kept);
    for (path, text) in kept {
        secrets.are_not_in(&text, &path);
    }

    let address = format!("git: {{url: 'https://me:{}@127.0.0.1:1/a?token={}'}}", of(7), of(8));
    desk.replace("gatewright.yaml", "directory: {path: specs}", &address);
    for arguments in [&["plan"][..], &["sync"], &["config", "show"], &["config", "check"], &["status"]] {
        assert_ne!(check(arguments).code, 0, "{arguments:?}");
    }
}
