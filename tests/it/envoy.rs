//! Every rendered bootstrap is one that the real Envoy takes, and with a control plane it gets ready.

mod control_plane;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gatewright_engine::object::Object;
use gatewright_engine::unit::Rendering;
use serde_json::Value;

use crate::cases;
use crate::cluster::binaries;
use crate::cluster::process::{Folder, Process, command, free_port};
use crate::golden;
use crate::support::git_server::run;
use control_plane::ControlPlane;

/// The longest that Envoy may take on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_mins(1);
/// A token that HPACK's code for short texts would make longer, so that it is sent as it is.
const TOKEN: &str = "{{{{{{{{{{";

/// Arguments that Envoy does not have: those of a case that is about the characters in them, and of a real one.
const ARGUMENTS_OF_NOBODY: [(&str, &str); 10] = [
    ("text_changes_no_structure", "--a: b"),
    ("text_changes_no_structure", "- c"),
    ("text_changes_no_structure", "{}"),
    ("text_changes_no_structure", " "),
    ("text_changes_no_structure", "\n"),
    ("text_changes_no_structure", "# d"),
    ("both-gwc-and-gw-have-envoy-extra-args", "--disable-test-feature"),
    ("both-gwc-and-gw-have-envoy-extra-args", "from-gatewayclass"),
    ("both-gwc-and-gw-have-envoy-extra-args", "--enable-test-feature"),
    ("both-gwc-and-gw-have-envoy-extra-args", "from-gateway"),
];

/// The places where the bootstrap expects things, and those where the tests have them.
struct Places {
    folder: PathBuf,
    replacements: Vec<(String, String)>,
}

impl Places {
    fn new(folder: &Path) -> Self {
        let here = folder.display().to_string();
        let replacements = ["/etc/envoy", "/var/run/secrets/tokens"].map(|path| (path.to_owned(), here.clone()));
        Self { folder: folder.to_owned(), replacements: replacements.to_vec() }
    }

    fn with(mut self, from: &str, to: &str) -> Self {
        self.replacements.push((from.to_owned(), to.to_owned()));
        self
    }

    fn with_port(self, from: u16, to: u16) -> Self {
        self.with(&format!("port_value: {from}"), &format!("port_value: {to}"))
    }

    /// Writes the files of a ConfigMap, and the token that a kubelet would put beside them.
    fn write(&self, config_map: &Object) -> PathBuf {
        let data = config_map.body()["data"].as_object().expect("the ConfigMap holds files");
        for (name, text) in data {
            let mut text = text.as_str().expect("a file is text").to_owned();
            for (from, to) in &self.replacements {
                text = text.replace(from, to);
            }
            fs::write(self.folder.join(name), text).expect("a new folder can be written");
        }
        fs::write(self.folder.join("xds-token"), TOKEN).expect("a new folder can be written");
        if data.contains_key("ca.crt") {
            self.write_authority();
        }
        self.folder.join("envoy.yaml")
    }

    /// Puts an authority in the place of the one of a case, which may have expired or never have been one.
    fn write_authority(&self) {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout";
        let (key, certificate) = (path("ca.key"), path("ca.crt"));
        run("openssl", new.split(' ').chain([key.as_str(), "-out", &certificate]));
    }
}

/// Returns the arguments that the Deployment gives to Envoy, and its bootstrap.
fn args(deployment: &Object, bootstrap: &Path) -> Vec<String> {
    let containers = deployment.body()["spec"]["template"]["spec"]["containers"].as_array();
    // Overlays put containers of their own before it.
    let proxy = containers.and_then(|all| all.iter().find(|container| container["name"] == "kgateway-proxy"));
    let args = &proxy.expect("there is a proxy")["args"];
    let args = args.as_array().expect("the container has arguments").iter().map(|arg| arg.as_str().unwrap_or_default());
    let args = args.map(|arg| arg.replace("$(POD_NAME)", "pod").replace("$(POD_NAMESPACE)", "namespace"));
    args.chain(["--config-path".to_owned(), bootstrap.display().to_string()]).collect()
}

/// Returns what belongs to each proxy of a rendering: its ConfigMap and its Deployment.
fn proxies(rendering: &Rendering) -> impl Iterator<Item = (&Object, &Object)> {
    rendering.units.iter().filter_map(|unit| {
        let of_kind = |kind: &str| unit.objects.iter().find(|object| object.id().kind == kind);
        of_kind("ConfigMap").filter(|it| it.body()["data"]["envoy.yaml"] != Value::Null).zip(of_kind("Deployment"))
    })
}

/// Asks for a path and returns the status and the body, or `None` if nobody listens.
fn get(port: u16, path: &str) -> Option<(u16, String)> {
    request("GET", port, path)
}

fn request(method: &str, port: u16, path: &str) -> Option<(u16, String)> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let head = "Host: test\r\nContent-Length: 0\r\nConnection: close";
    write!(&stream, "{method} {path} HTTP/1.1\r\n{head}\r\n\r\n").ok()?;
    let mut answer = BufReader::new(&stream);
    let (mut head, mut body) = (String::new(), Vec::new());
    while !head.ends_with("\r\n\r\n") {
        answer.read_line(&mut head).ok().filter(|length| *length > 0)?;
    }
    // While it drains, Envoy does not close the connection although it was asked to: the end is read off the answer.
    if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()) {
        answer.take(length).read_to_end(&mut body).ok()?;
    } else {
        while !body.ends_with(b"\r\n0\r\n\r\n") && answer.read_until(b'\n', &mut body).ok()? > 0 {}
    }
    Some((head.split(' ').nth(1)?.parse().ok()?, String::from_utf8_lossy(&body).into_owned()))
}

/// Asserts that Envoy takes every bootstrap of a rendering, and returns how many there are.
fn accepts(name: &str, rendering: &Rendering) -> usize {
    let mut count = 0;
    for (config_map, deployment) in proxies(rendering) {
        let folder = Folder::new();
        let bootstrap = Places::new(folder.path()).write(config_map);
        let mut args = args(deployment, &bootstrap);
        args.retain(|arg| !ARGUMENTS_OF_NOBODY.contains(&(name, arg.as_str())));
        let output = command(binaries::envoy()).args(["--mode", "validate"]).args(args).output();
        let output = output.expect("envoy can be run");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{log}", config_map.id());
        count += 1;
    }
    count
}

#[test]
fn envoy_accepts_every_bootstrap() {
    let count: usize = golden::cases().iter().map(|case| accepts(&case.name, &case.rendering)).sum();
    assert!(count > 60, "only {count} bootstraps were found");
}

#[test]
fn envoy_accepts_the_bootstraps_of_real_cases() {
    for suite in cases::suites(&cases::folders()) {
        for (stem, folder) in suite.cases() {
            accepts(&stem, &suite.case(&stem, &folder).rendering);
        }
    }
}

#[test]
fn envoy_boots_and_gets_ready() {
    let case = golden::cases().iter().find(|case| case.name == "a_gateway_without_parameters");
    let case = case.expect("the simplest case is there");
    let (config_map, deployment) = proxies(&case.rendering).next().expect("it renders a proxy");
    let [admin, readiness, metrics] = [free_port(), free_port(), free_port()];
    let control_plane = ControlPlane::start();
    let folder = Folder::new();
    let places = Places::new(folder.path()).with("0.0.0.0", "127.0.0.1");
    let places = places.with_port(19000, admin).with_port(8082, readiness).with_port(9091, metrics);
    let places = places.with("kgateway.kgateway-system.svc.cluster.local.", "127.0.0.1");
    let bootstrap = places.with_port(9977, control_plane.port()).write(config_map);

    let mut envoy = Process::start(binaries::envoy(), &args(deployment, &bootstrap), folder.path());
    // Before the control plane has answered, Envoy opens no port but that of its administration, and is not ready:
    // a proxy without configuration gets no traffic.
    envoy.wait_until("administration", LIMIT, || get(admin, "/ready").is_some());
    assert!(matches!(get(admin, "/ready"), Some((503, _))), "it is ready without its control plane");
    assert_eq!(get(readiness, "/ready"), None);

    control_plane.answer();
    envoy.wait_until("readiness", LIMIT, || matches!(get(readiness, "/ready"), Some((200, _))));
    let body = |port, path| get(port, path).unwrap_or_default();
    assert!(body(readiness, "/ready").1.contains("LIVE"));
    for path in ["/metrics", "/stats/prometheus"] {
        let (status, text) = body(metrics, path);
        assert!(status == 200 && text.contains("# TYPE envoy_"), "{path}: {status}: {text}");
    }
    assert_eq!(body(readiness, "/envoy-hc").0, 200);
    assert_eq!(body(readiness, "/stats").0, 404, "the readiness port serves nothing else");
    assert!(control_plane.has_seen(&format!("Bearer {TOKEN}")), "Envoy shows its token to the control plane");

    // What the hook before the end of a container does: health checks send new requests elsewhere.
    assert!(matches!(request("POST", admin, "/healthcheck/fail"), Some((200, _))));
    envoy.wait_until("draining", LIMIT, || matches!(get(readiness, "/envoy-hc"), Some((503, _))));
    assert_eq!(body(readiness, "/ready").0, 503);
}
