//! The paths of the real programs that the tests run: the test cluster's, Envoy, Prometheus, axe-core, Helm, and Kubernetes'
//! way to merge patches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use super::process::command;

/// The programs of the test cluster.
#[derive(Debug)]
pub(crate) struct Binaries {
    pub(crate) etcd: PathBuf,
    pub(crate) kube_apiserver: PathBuf,
    pub(crate) kube_controller_manager: PathBuf,
    pub(crate) kube_scheduler: PathBuf,
    pub(crate) kubectl: PathBuf,
    pub(crate) kwok: PathBuf,
}

impl Binaries {
    /// Returns the programs from `KUBEBUILDER_ASSETS`, or else builds them, which takes minutes the first time.
    ///
    /// Panics if there is no way to have them: a run that leaves these tests out would be green for no reason.
    pub(crate) fn locate() -> &'static Self {
        static FOUND: OnceLock<Binaries> = OnceLock::new();
        FOUND.get_or_init(|| {
            let paths = build(&[]);
            let path = |name| paths.get(name).cloned().expect("tests/cluster/build lists every program");
            Self {
                etcd: path("etcd"),
                kube_apiserver: path("kube-apiserver"),
                kube_controller_manager: path("kube-controller-manager"),
                kube_scheduler: path("kube-scheduler"),
                kubectl: path("kubectl"),
                kwok: path("kwok"),
            }
        })
    }
}

/// Returns the path of a real Envoy, which is installed the first time.
///
/// Panics if it cannot be installed, for the same reason as [`Binaries::locate`].
pub(crate) fn envoy() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| PathBuf::from(output_of("tests/cluster/envoy", &[]).trim_end()))
}

/// Returns the path of a real Prometheus, which is fetched the first time.
///
/// Panics if it cannot be fetched, for the same reason as [`Binaries::locate`].
pub(crate) fn prometheus() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| PathBuf::from(output_of("tests/cluster/prometheus", &[]).trim_end()))
}

/// Returns the path of the program that checks rules for Prometheus, which comes with it.
///
/// Panics if it cannot be fetched, for the same reason as [`Binaries::locate`].
pub(crate) fn promtool() -> PathBuf {
    prometheus().with_file_name("promtool")
}

/// Returns the path of axe-core, a script that looks for barriers in web pages, which is fetched the first time.
///
/// Panics if it cannot be fetched, for the same reason as [`Binaries::locate`].
pub(crate) fn axe() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| PathBuf::from(output_of("tests/axe", &[]).trim_end()))
}

/// Returns the path of a program that merges patches as API servers do, which is built the first time.
///
/// Panics if it cannot be built, for the same reason as [`Binaries::locate`].
pub(crate) fn strategic_merge() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let found = build(&["strategic-merge"]).remove("strategic-merge");
        found.expect("tests/cluster/build lists every program that it is asked for")
    })
}

/// Returns the path of a real OpenTelemetry collector, which is built the first time.
///
/// Panics if it cannot be built, for the same reason as [`Binaries::locate`].
pub(crate) fn otel_collector() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let found = build(&["otel-collector"]).remove("otel-collector");
        found.expect("tests/cluster/build lists every program that it is asked for")
    })
}

/// Returns the path of a real Helm, that of the benches, which is built the first time.
///
/// Panics if it cannot be built, for the same reason as [`Binaries::locate`].
pub(crate) fn helm() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let listing = output_of("benches/peers/build", &["helm"]);
        PathBuf::from(listing.trim_end().strip_prefix("helm ").expect("it prints the name and the path"))
    })
}

/// Builds these programs, or all, and returns where they are.
fn build(names: &[&str]) -> BTreeMap<String, PathBuf> {
    let listing = output_of("tests/cluster/build", names);
    let paths = listing.lines().filter_map(|line| line.split_once(' '));
    paths.map(|(name, path)| (name.to_owned(), PathBuf::from(path))).collect()
}

/// Returns a file or folder of the repository.
pub(crate) fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a script of the repository; its progress, on standard error, is for the person who waits.
fn output_of(script: &str, arguments: &[&str]) -> String {
    let mut command = command(in_repository(script));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit());
    let output = command.output().expect("the scripts in tests can be run, which takes bash");
    assert!(
        output.status.success(),
        "{script} failed ({}), so the tests lack programs that they need; its output is above, and tests/cluster/README.md \
         says what it takes",
        output.status
    );
    String::from_utf8(output.stdout).expect("the paths of this repository are text")
}
