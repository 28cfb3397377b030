//! The config file: the one that names every setting, and what is said about files that cannot be used.

mod examine;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gatewright::config::environment::Environment;
use gatewright::config::settings::Settings;
use gatewright_engine::yaml;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::cluster::binaries::in_repository;
use crate::cluster::process::command;
use crate::program::Desk;

/// The file that names every setting.
const REFERENCE: &str = "config/gatewright.yaml";

/// Its entries again, with nothing but what has no default.
const ENTRIES: &str = "
sources:
  platform:
    git: {url: https://git.example.com/platform/gateways.git, ref: {branch: main}, auth: {tokenFile: git-token}}
  lab: {directory: {path: specs}}
clusters:
  eu-1: {kubeconfig: {path: eu-1.yaml, context: admin}, labels: {env: prod, region: eu}, annotations: {ip: 192.0.2.10}}
  preview: {directory: {path: /var/lib/gatewright/preview}}
syncs:
  gateways: {source: platform, clusters: {names: [eu-1]}}
  lab: {source: lab, clusters: {names: [preview]}}
";

/// The behaviour of a program without a setting that itself stays open until then; all of it is documented.
const OPEN: [(&str, &str); 9] = [
    ("/stateDir", "/var/lib/gatewright"),
    ("/packs/agentgateway/parameters", "{}"),
    ("/packs/kgateway/parameters", "{}"),
    ("/packs/kserve/parameters", "{}"),
    ("/sources/platform/poll", "30s"),
    ("/sources/lab/poll", "30s"),
    ("/syncs/gateways/schedule/interval", "5m"),
    ("/syncs/gateways/schedule/jitter", "10%"),
    ("/syncs/gateways/schedule/full", "1d"),
];

fn settings(text: &str) -> Value {
    let mut environment = Environment::default();
    environment.builtin = gatewright_packs::all().into();
    let config = gatewright::config::parse(&in_repository(REFERENCE), text, &environment);
    let config = config.map_err(|error| error.to_string()).expect("the file can be used");
    serde_json::to_value(&config.settings).expect("settings are data")
}

/// The values of two documents that differ, by JSON pointer.
fn differences(pointer: &str, a: &Value, b: &Value, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                differences(&format!("{pointer}/{key}"), &a[key], &b[key], found);
            }
        }
        _ if a == b => {}
        _ => found.push(format!("{pointer}: {a} and {b}")),
    }
}

#[test]
fn the_reference_file_states_defaults() {
    let text = fs::read_to_string(in_repository(REFERENCE)).expect("the file is there");
    let (stated, mut default) = (settings(&text), settings(ENTRIES));
    for (pointer, value) in OPEN {
        let place = default.pointer_mut(pointer).expect(pointer);
        if place.is_null() {
            *place = if value == "{}" { serde_json::json!({}) } else { value.into() };
        }
    }
    let mut found = Vec::new();
    differences("", &stated, &default, &mut found);
    assert_eq!(found, [""; 0], "stated and default");
}

/// The paths of all settings: `syncs/*/wait/timeout`. Below the parameters of a pack other documents say what there is.
fn paths(root: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let definition = schema["$ref"].as_str().and_then(|name| root.pointer(name.trim_start_matches('#')));
    let schema = definition.unwrap_or(schema);
    if path.ends_with("/parameters") {
        return;
    }
    for alternative in ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten() {
        paths(root, alternative, path, found);
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        found.insert(path.clone());
        paths(root, below, &path, found);
    }
    for (key, part) in [("additionalProperties", "/*"), ("items", "")] {
        if schema[key].is_object() {
            paths(root, &schema[key], &format!("{path}{part}"), found);
        }
    }
}

/// The paths that stand in the file, in comments too: `#username: git` shows a setting without stating it.
fn shown(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // The indentation and the path of each mapping around a line.
    let mut stack: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let line = uncommented(line);
        let rest = line.trim_start();
        let indent = line.len() - rest.len();
        let parent = |stack: &[(usize, String)]| stack.last().map_or(String::new(), |(_, path)| path.clone());
        let Some((key, value)) = rest.split_once(':').filter(|(key, _)| is_word(key)) else {
            // A list of flow mappings: `- {key: region, …}`.
            found.extend(keys(rest).map(|key| format!("{}/{key}", parent(&stack))));
            continue;
        };
        stack.retain(|(column, _)| *column < indent);
        let path = format!("{}/{key}", parent(&stack));
        found.extend(keys(value).map(|key| format!("{path}/{key}")));
        stack.push((indent, path.clone()));
        found.push(path);
    }
    found
}

/// Takes the number sign off a line that shows settings; prose has one space after it.
fn uncommented(line: &str) -> String {
    match line.split_once('#') {
        Some((before, after)) if before.trim().is_empty() && (!after.starts_with(' ') || after.starts_with("  ")) => {
            format!("{before}{after}")
        }
        Some((before, _)) if before.trim().is_empty() => String::new(),
        _ => line.to_owned(),
    }
}

/// The keys of flow mappings, of their first level; a comment beside one may show another: `{a: 1}  # or {b: 1}`.
fn keys(value: &str) -> impl Iterator<Item = &str> {
    let mappings = value.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    let pairs = mappings.flat_map(|inside| inside.split(", ")).filter_map(|pair| pair.split_once(':'));
    pairs.map(|(key, _)| key).filter(|key| is_word(key))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[test]
fn the_reference_file_shows_every_setting() {
    let text = fs::read_to_string(in_repository(REFERENCE)).expect("the file is there");
    let schema = SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<Settings>();
    let mut all = BTreeSet::new();
    paths(schema.as_value(), schema.as_value(), "", &mut all);
    assert!(all.contains("/syncs/*/schedule/timezone") && all.len() > 80, "{all:?}");
    let shown = shown(&text);
    let is_shown = |path: &&String| {
        let parts: Vec<&str> = path.split('/').collect();
        let fits = |shown: &String| {
            let shown: Vec<&str> = shown.split('/').collect();
            shown.len() == parts.len() && shown.iter().zip(&parts).all(|(shown, part)| *part == "*" || part == shown)
        };
        shown.iter().any(fits)
    };
    // What can be said of packs stands there once.
    let is_said_again = |path: &String| path.starts_with("/packOverrides/packs/");
    let missing: Vec<&String> = all.iter().filter(|path| !is_said_again(path) && !is_shown(path)).collect();
    assert_eq!(missing, [""; 0], "settings that {REFERENCE} does not show");
}

/// A configuration of six lines that is in order, with more at the end of one of its sections, or at its own end.
fn around(section: &str, more: &str) -> String {
    let sections = [
        ("sources", "  lab: {directory: {path: specs}}\n"),
        ("clusters", "  out: {directory: {path: rendered}}\n"),
        ("syncs", "  lab: {source: lab, clusters: {names: [out]}}\n"),
        ("", ""),
    ];
    let write = |(name, usual): (&str, &str)| {
        let head = if name.is_empty() { String::new() } else { format!("{name}:\n") };
        head + usual + if name == section { more } else { "" }
    };
    sections.map(write).concat()
}

/// A section, one mistake in it, and what is said about it after the name of the file. The section `-` is a whole file.
const MISTAKES: [(&str, &str, &str); 62] = [
    ("", "packOverrides: [{packs: {kgateway: {version: v1}}}]", "7: it is for all clusters and classes (name some"),
    ("", "packOverrides: [{clusters: {}, packs: {}}]", "7: it selects no cluster (name some, or select"),
    (
        "",
        "packOverrides: [{clusters: {names: [uot]}, packs: {}}]",
        r#"7: there is no cluster "uot" (did you mean "out"?)"#,
    ),
    (
        "",
        "packOverrides: [{classes: [a], packs: {kgateway: {versio: v1}}}]",
        r#"7: unknown field "versio" in packOverrides[0].packs.kgateway (did you mean "version"?)"#,
    ),
    (
        "",
        "packOverrides: [{classes: [a], packs: {kgatewy: {settings: {}}}}]",
        r#"7: there is no pack "kgatewy" (did you mean "kgateway"?)"#,
    ),
    (
        "",
        "packOverrides: [{classes: [a], packs: {kgateway: {parameters: {kube: {}}}}}]",
        "7: parameters of some clusters or classes stand in a ClusterOverlay",
    ),
    (
        "",
        "packOverrides: [{classes: [a], packs: {kgateway: {xds: {tls: {caFile: none.pem}}}}}]",
        "7: cannot read the certificates",
    ),
    (
        "",
        "packs: {endpoint-picker: {parameters: {inferenceExtension: {replica: 2}}}}",
        r#"7: unknown field "replica" in packs.endpoint-picker.parameters.inferenceExtension (did you mean "replicas"?)"#,
    ),
    (
        "",
        "packs: {kgateway: {enforce: [{rule: kube.deployment.replica < 9}]}}",
        r#"7: there is no field kube.deployment.replica (did you mean "replicas"?)"#,
    ),
    ("", "packs: {kgateway: {enforce: [{rule: 'true', messag: x}]}}", r#"7: unknown field "messag" in packs.kgateway"#),
    ("", "packs: {kgateway: {enforce: [{rule: 1 + 1}]}}", "7: the rule yields a sum, and not true or false"),
    ("", "lgo: {level: debug}", r#"7: unknown field "lgo" in the document (did you mean "log"?)"#),
    ("", "log: {level: inof}", r#"7: the log level "inof" is not known (write off, error, warn"#),
    ("", "log: {format: xml}", r#"7: log.format is the string "xml", but must be one of auto, text, json"#),
    ("", "http: {listen: nowhere}", r#"7: http.listen: "nowhere" is no address to listen on: write an IP"#),
    ("", "reports: {keep: 30}", "7: reports.keep is the number 30, but must be "),
    ("", "reports: {webhooks: {Ops: {url: 'https://a/'}}}", r#"7: "Ops" cannot be the name of a webhook (write up to"#),
    ("", "reports: {webhooks: {ops: {}}}", r#"7: webhook "ops": one of `url` and `urlFile` is needed"#),
    (
        "",
        "reports: {webhooks: {ops: {url: 'https://example.com/?token=hunter2'}}}",
        r#"7: webhook "ops": the address contains a query, which may be a secret (put the whole address into a file"#,
    ),
    (
        "",
        "reports: {webhooks: {ops: {url: 'http://example.com/', tokenFile: t}}}",
        r#"7: webhook "ops": a token is not sent over http: use https"#,
    ),
    (
        "",
        "reports: {webhooks: {ops: {urlFile: 'credential:hook'}}}",
        r#"7: the credential "hook" is not there, because"#,
    ),
    (
        "",
        "reports: {webhooks: {ops: {url: 'https://a/', syncs: [lba]}}}",
        r#"7: there is no sync "lba" (did you mean "lab"?)"#,
    ),
    ("sources", "a: {directory: {path: .}}", r#"3: source "a" has the folder of cluster "out" in it, and would read"#),
    ("sources", "Lab_2: {directory: {path: lab}}", r#"3: "Lab_2" cannot be the name of a source (write up to 40"#),
    ("sources", "a: {poll: 5s}", r#"3: source "a" has neither git nor directory (add one of the two)"#),
    ("sources", "a: {git: {url: x}, directory: {path: x}}", r#"3: source "a" has both git and directory (remove"#),
    ("sources", "a: {git: {url: 'git@example.com:a'}}", r#"3: source "a": ssh needs `auth.sshKeyFile`"#),
    ("sources", "a: {git: {url: 'https://u:hunter2@example.com/a'}}", "3: sources.a.git.url: "),
    ("sources", "a: {git: {url: a, ref: {branch: '-b'}}}", r#"3: sources.a.git.ref.branch: "-b" cannot be the name"#),
    (
        "sources",
        "a: {git: {url: 'https://example.com/a', auth: {tokenFile: 'credential:t'}}}",
        r#"3: the credential "t" is not there, because $CREDENTIALS_DIRECTORY is not set (add LoadCredential="#,
    ),
    ("clusters", "a: {labels: {}}", r#"5: cluster "a" has neither kubeconfig nor directory (add one of the two; "#),
    ("clusters", "a: {kubeconfig: {}, directory: {path: a}}", r#"5: cluster "a" has both kubeconfig and directory"#),
    ("clusters", "a: {kubeconfig: {contxt: b}}", r#"5: unknown field "contxt" in clusters.a.kubeconfig (did you mean"#),
    ("syncs", "b: {source: lab}", r#"7: syncs.b has no "clusters""#),
    ("syncs", "b: {source: lba, clusters: {names: [out]}}", r#"7: there is no source "lba" (did you mean "lab"?)"#),
    (
        "syncs",
        "b:\n    source: lab\n    clusters:\n      names:\n      - out\n      - elsewhere",
        r#"12: there is no cluster "elsewhere" (there are: out)"#,
    ),
    ("syncs", "b: {source: lab, clusters: {matchLabels: {a: b}}}", r#"7: sync "b" selects no cluster (name clusters"#),
    (
        "sync",
        "conflicts: [{manager: a, policy: fail}, {manager: b, paths: [spec.a, /spec/replicas], policy: take}]",
        r#"7: "/spec/replicas" begins with a slash; write "spec.replicas" (write it as in a plan: "#,
    ),
    (
        "sync",
        "ignore: [{kind: Service, path: 'spec.ports['}]",
        r#"7: "spec.ports[" has a bracket without its other half"#,
    ),
    (
        "sync",
        "allow: {kinds: [apps/Deployment]}",
        r#"7: "apps/Deployment" names no kind (write Deployment, Deployment.ap"#,
    ),
    ("sync", "allow: {clusterKinds: [ClusterRole.]}", r#"7: "ClusterRole." names no kind (write Deployment, "#),
    (
        "sync",
        "overlays: {paths: [../platform]}",
        r#"7: "../platform" is no folder of a source (write it from the root"#,
    ),
    (
        "sync",
        "conflicts: [{manager: a, policy: force}]",
        r#"7: syncs.b.conflicts[0].policy is the string "force", but must be one of take, yield, fail"#,
    ),
    (
        "sync",
        "mode: aply",
        r#"7: syncs.b.mode is the string "aply", but must be one of apply, report (did you mean "apply"?)"#,
    ),
    (
        "sync",
        "createNamespaces: sure",
        r#"7: syncs.b.createNamespaces is the string "sure", but must be true or false"#,
    ),
    (
        "sync",
        "prune: {maxDelete: {percent: 101}}",
        "7: syncs.b.prune.maxDelete.percent is 101, but must be between 0 and 100",
    ),
    ("sync", "schedule: {interval: 5m, cron: '@daily'}", "7: a schedule has an interval or a cron pattern, not both"),
    ("sync", "schedule: {interval: 1s}", "7: the interval 1s is shorter than 10s"),
    (
        "sync",
        "schedule: {cron: '0 2 * * *', timezone: Europe/Berln}",
        r#"7: there is no time zone "Europe/Berln" (did you mean "Europe/Berlin"?)"#,
    ),
    ("xds", "tls: {}", "7: packs.kgateway.xds.tls must have exactly one of ca, caFile"),
    (
        "xds",
        "tls: {ca: a, caFile: b}",
        "7: packs.kgateway.xds.tls has ca and caFile, but must have exactly one of ca, ",
    ),
    (
        "xds",
        "tls: {ca: hello}",
        "7: cannot use the certificates: there is no certificate in it: it must hold -----BEGIN ",
    ),
    ("xds", "tls: {caFile: absent.pem}", "7: cannot read the certificates \""),
    ("xds", "tls: {caFile: empty.pem}", "7: cannot use the certificates \""),
    (
        "xds",
        "tls: {caFile: 'credential:ca'}",
        "7: the credential \"ca\" is not there, because $CREDENTIALS_DIRECTORY is ",
    ),
    (
        "xds",
        "tls: {ca: '-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----'}",
        "7: cannot use the certificates: there is a private key in it, which every pod and every reader of ConfigMaps ",
    ),
    (
        "",
        "packs: {kgateway: {listenerCertificates: {path: certificates}}}",
        r#"7: packs.kgateway.listenerCertificates.path is "certificates", but must be an absolute path without a colon"#,
    ),
    (
        "",
        "packs: {kgateway: {rbac: {rules: [{resource: [pods]}]}}}",
        r#"7: unknown field "resource" in packs.kgateway.rbac.rules[0] (did you mean "resources"?)"#,
    ),
    ("-", "sources: {}\nsources: {}", r#"2: the key "sources" stands here a second time"#),
    ("-", "sources: [", "1: unclosed bracket '['"),
    ("-", "hello", r#"1: the document is the string "hello", but must be an object"#),
    ("-", "a: b\n---\na: b", " the file holds more than one document"),
];

#[test]
fn a_mistake_has_a_line_and_a_suggestion() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("empty.pem", "");
    for (section, mistake, message) in MISTAKES {
        let text = match section {
            "-" => format!("{mistake}\n"),
            "" => around("", &format!("{mistake}\n")),
            "sync" => around("syncs", &format!("  b: {{source: lab, clusters: {{names: [out]}}, {mistake}}}\n")),
            "xds" => around("", &format!("packs: {{kgateway: {{xds: {{{mistake}}}}}}}\n")),
            section => around(section, &format!("  {mistake}\n")),
        };
        desk.write("gatewright.yaml", &text);
        let run = desk.run(&["config", "check"]).exits(64).complains("gatewright: the configuration cannot be used:\n");
        let run = run.complains(&format!("gatewright.yaml:{message}"));
        assert!(run.err.lines().count() == 2 && !run.err.contains("hunter2"), "{}", run.err);
    }
    desk.write("gatewright.yaml", "");
    desk.run(&["sync"]).exits(64).complains("gatewright.yaml: the file is empty\n");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &around("syncs", "  b: {source: lab, clusters: {names: [out]}, mode: aply, wiat: {}}\n"),
    );
    let run =
        desk.run(&["sync"]).exits(64).complains(":7: unknown field \"wiat\" in syncs.b (did you mean \"wait\"?)\n");
    run.complains(":7: syncs.b.mode is the string \"aply\"");
    desk.write(
        "gatewright.yaml",
        &around("syncs", "  b: {source: lba, clusters: {names: [uot]}}\n  c: {source: a, clusters: {names: [out]}}\n"),
    );
    let run = desk.run(&["plan"]).exits(64).complains(":7: there is no source \"lba\"");
    run.complains(":7: there is no cluster \"uot\"").complains(":8: there is no source \"a\" (there are: lab)");
}

#[test]
fn without_a_config_file_it_says_where_it_looked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |arguments: &[&str]| {
        let mut program = command(Path::new(env!("CARGO_BIN_EXE_gatewright")));
        let output = program.args(arguments).current_dir(folder.path()).env_remove("GATEWRIGHT_CONFIG").output();
        let output = output.expect("the program starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("it prints text"))
    };
    let (code, text) = run(&["sync"]);
    let message = "gatewright: there is no config file: neither ./gatewright.yaml nor \
                   /etc/gatewright/gatewright.yaml exists\n  name one with --config FILE";
    assert!(code == Some(64) && text.starts_with(message), "{code:?}: {text}");
    let (code, text) = run(&["sync", "--config", "other.yaml"]);
    let message = "gatewright: cannot read the config file \"other.yaml\": No such file or directory (os error 2)\n  \
                   pass its path with --config FILE, and make it readable\n";
    assert_eq!((code, text.as_str()), (Some(64), message));
    fs::write(folder.path().join("gatewright.yaml"), around("", "")).expect("the folder can be written");
    assert_eq!(run(&["config", "check"]).0, Some(0));
}

#[test]
fn what_is_shown_is_a_config_file_again() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.write("gatewright.yaml", &fs::read_to_string(in_repository(REFERENCE)).expect("the file is there"));
    desk.write("eu-1.yaml", &examine::kubeconfig("https://192.0.2.1:6443"));
    desk.run(&["config", "check"]).exits(0).says("gatewright.yaml is valid: 2 sources, 2 clusters, 2 syncs\n");
    let first = desk.run(&["config", "show"]).exits(0);
    desk.write("gatewright.yaml", &first.out);
    let second = desk.run(&["config", "show"]).exits(0);
    assert_eq!(second.out, first.out);
    let flags = desk.run(&["config", "show", "--log-level", "debug"]).exits(0);
    assert_eq!(flags.out, first.out.replace("level: info", "level: debug"));
}

#[test]
fn the_environment_overrides_the_file_and_flags_override_both() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", &around("", "stateDir: here\nlog: {level: warn, format: text}\n"));
    let show = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut program = desk.command(&[&["config", "show"], arguments].concat());
        let output = program.envs(variables.iter().copied()).output().expect("the program starts");
        let text = String::from_utf8(if output.status.success() { output.stdout } else { output.stderr });
        (output.status.code(), text.expect("it prints text"))
    };
    let value = |text: &str| yaml::parse_values(text).expect("it is YAML").remove(0);
    let plain = value(&show(&[], &[]).1);
    assert_eq!(plain["stateDir"], desk.path("here").to_string_lossy().as_ref());
    let variables = [
        ("GATEWRIGHT_STATE_DIR", "/there"),
        ("GATEWRIGHT_LOG_LEVEL", "debug"),
        ("GATEWRIGHT_LOG_FORMAT", "json"),
        ("GATEWRIGHT_HTTP_LISTEN", "[::1]:9000"),
    ];
    let shown = value(&show(&variables, &[]).1);
    assert_eq!((&shown["stateDir"], &shown["reports"]["dir"]), (&"/there".into(), &"/there/reports".into()));
    assert_eq!(shown["log"], serde_json::json!({"level": "debug", "format": "json"}));
    assert_eq!(shown["http"]["listen"], "[::1]:9000");
    assert_eq!(value(&show(&variables, &["--log-level", "error"]).1)["log"]["level"], "error");
    for (name, text, message) in [
        ("GATEWRIGHT_LOG_LEVEL", "loud", "the log level \"loud\" is not known"),
        ("GATEWRIGHT_LOG_FORMAT", "xml", "\"xml\" is not one of auto, text, json"),
        ("GATEWRIGHT_HTTP_LISTEN", "here", "\"here\" is no address to listen on"),
    ] {
        let (code, said) = show(&[(name, text)], &[]);
        assert!(code == Some(64) && said.contains(&format!("\n  {name}: {message}")), "{code:?}: {said}");
    }

    // A credential is a file in the folder that systemd names.
    desk.write(
        "gatewright.yaml",
        &around("sources", "  a: {git: {url: \"https://example.com/a\", auth: {tokenFile: \"credential:git\"}}}\n"),
    );
    let shown = value(&show(&[("CREDENTIALS_DIRECTORY", "/run/credentials/gatewright.service")], &[]).1);
    assert_eq!(shown["sources"]["a"]["git"]["auth"]["tokenFile"], "/run/credentials/gatewright.service/git");
}

#[test]
fn the_authorities_of_a_control_plane_come_from_a_file() {
    let desk = Desk::quickstart("gatewright.yaml");
    let certificate = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n";
    desk.write("certificates/ca.pem", certificate);
    desk.write("gatewright.yaml", &around("", "packs: {kgateway: {xds: {tls: {caFile: certificates/ca.pem}}}}\n"));
    let objects = yaml::parse_values(&desk.run(&["render", "specs"]).exits(0).out).expect("it is YAML");
    let maps: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "ConfigMap").collect();
    assert!(maps.len() > 2 && maps.iter().all(|map| map["data"]["ca.crt"] == certificate), "{maps:?}");
    let shown = yaml::parse_values(&desk.run(&["config", "show"]).exits(0).out).expect("it is YAML").remove(0);
    let path = desk.path("certificates/ca.pem");
    assert_eq!(shown["packs"]["kgateway"]["xds"]["tls"], serde_json::json!({"caFile": path}));
}
