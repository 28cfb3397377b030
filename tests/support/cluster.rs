//! Real API servers for tests: a kube-apiserver on an etcd, if wanted with the controllers and a simulated machine.
//!
//! Start with [`shared`]: one server with controllers for all tests of a test program, each in namespaces of its own.
//! A test that stops its server, counts requests or needs several clusters starts its own [`ApiServer`].
//! There is no cluster network and no container: a Service has an address that leads nowhere, a Pod only says that it runs.
//!
//! Everything listens on the loopback address only and is gone when the test process is, however that ends.

pub(crate) mod audit;
pub(crate) mod binaries;
pub(crate) mod controllers;
pub(crate) mod crds;
pub(crate) mod credentials;
pub(crate) mod etcd;
mod kubectl;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod reading;
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use binaries::Binaries;
use etcd::Etcd;
use process::{Folder, Process, free_port};

/// The options that an API server is started with beyond what every one gets.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The name of the cluster and of the context in its kubeconfigs; on one etcd it tells the servers apart.
    pub(crate) name: String,
    /// Whether controllers, a scheduler and a simulated Node run, without which Deployments have no Pods, namespaces
    /// stay in deletion and nothing is garbage-collected.
    pub(crate) controllers: bool,
    /// Further arguments for kube-apiserver, such as `--audit-log-path=…`.
    pub(crate) args: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: "test".to_owned(), controllers: false, args: Vec::new() }
    }
}

/// A running API server, which ends with this value.
#[derive(Debug)]
pub(crate) struct ApiServer {
    // The order matters: fields are dropped from the top, and folders go after who writes to them.
    controllers: Vec<Process>,
    server: Option<Process>,
    port: u16,
    options: Options,
    etcd: Arc<Etcd>,
    folder: Folder,
}

/// Kills a server that was made for one test, when that test is over; also at rest it takes CPU from the others.
#[derive(Debug)]
pub(crate) struct ServerGuard(&'static ApiServer);

impl Drop for ServerGuard {
    fn drop(&mut self) {
        self.0.controllers.iter().chain(&self.0.server).for_each(Process::kill);
        self.0.etcd.kill();
    }
}

/// The longest that a server may take to be ready on a machine that is busy with builds and other servers.
const LIMIT: Duration = Duration::from_mins(2);

/// Returns the server with controllers that all tests of this program share.
///
/// Use names from [`unique`] for namespaces and for all that is in none.
pub(crate) fn shared() -> &'static ApiServer {
    static SHARED: OnceLock<ApiServer> = OnceLock::new();
    SHARED.get_or_init(ApiServer::with_controllers)
}

/// Returns a name that starts with `stem` and that no other test of this program gets.
pub(crate) fn unique(stem: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{stem}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl ApiServer {
    /// Starts a server without controllers on an etcd of its own.
    pub(crate) fn start() -> Self {
        Self::start_on(&Arc::new(Etcd::start()), Options::default())
    }

    /// Starts a server with controllers on an etcd of its own.
    pub(crate) fn with_controllers() -> Self {
        Self::start_on(&Arc::new(Etcd::start()), Options { controllers: true, ..Options::default() })
    }

    /// The same for one test, which may refer to it like to a shared one.
    pub(crate) fn for_one_test() -> (&'static Self, ServerGuard) {
        let server: &'static Self = Box::leak(Box::new(Self::with_controllers()));
        (server, ServerGuard(server))
    }

    /// Starts servers without controllers, one for each name, that share one etcd and nothing else.
    pub(crate) fn fleet(names: &[&str]) -> Vec<Self> {
        let etcd = Arc::new(Etcd::start());
        let options = |name: &&str| Options { name: (*name).to_owned(), ..Options::default() };
        // They start side by side: all are launched before the first is waited for.
        let mut servers: Vec<Self> = names.iter().map(|name| Self::launch(&etcd, options(name))).collect();
        servers.iter_mut().for_each(Self::complete);
        servers
    }

    /// Starts a server on an etcd that others may use too, and waits until it is ready.
    pub(crate) fn start_on(etcd: &Arc<Etcd>, options: Options) -> Self {
        let mut server = Self::launch(etcd, options);
        server.complete();
        server
    }

    /// Starts a server on what an earlier one with the same options has stored, and waits until it is ready.
    pub(crate) fn resume_on(etcd: &Arc<Etcd>, options: Options) -> Self {
        let mut server = Self::launch(etcd, options);
        server.wait_until_ready();
        server.start_controllers();
        server
    }

    /// Ends the server and its controllers at once, as if their machine had failed; what was stored stays.
    pub(crate) fn stop(&mut self) {
        self.controllers.clear();
        self.server = None;
    }

    /// Starts the server again after [`stop`](Self::stop), at the same address with the same certificate and objects.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.server = Some(self.spawn());
        self.wait_until_ready();
        self.start_controllers();
    }

    /// Returns the name of the cluster.
    pub(crate) fn name(&self) -> &str {
        &self.options.name
    }

    /// Returns the address, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Returns the number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.as_ref().expect("the server runs").id()
    }

    /// Returns the bearer token of one of the [users](credentials::USERS).
    pub(crate) fn token(&self, user: &str) -> String {
        credentials::token(self.name(), user)
    }

    /// Returns the path of a kubeconfig for one of the [users](credentials::USERS).
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        let path = self.folder().join(format!("{user}.kubeconfig"));
        assert!(path.exists(), "cluster {:?} has no kubeconfig for user {user:?}", self.name());
        path
    }

    /// Returns where the logs are and where a test may put files of its own.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn create(&self, object: &serde_json::Value) {
        // Without validation it need not fetch the schema of everything first.
        self.kubectl_stdin(&["create", "--validate=false", "-f", "-"], &object.to_string());
    }

    fn launch(etcd: &Arc<Etcd>, options: Options) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let tokens = credentials::token_file(&options.name);
        fs::write(folder.path().join("tokens.csv"), tokens).expect("a new folder can be written");
        let mut server = Self { controllers: Vec::new(), server: None, port, options, etcd: Arc::clone(etcd), folder };
        server.server = Some(server.spawn());
        server
    }

    fn complete(&mut self) {
        self.wait_until_ready();
        self.create(&credentials::viewer_role());
        if self.options.controllers {
            self.create(&controllers::node());
        }
        self.start_controllers();
    }

    /// They start again with each start of the server: after an outage they would wait ever longer between tries.
    fn start_controllers(&mut self) {
        if self.options.controllers {
            self.controllers = controllers::start(self);
        }
    }

    /// The server makes this key for its certificate, and before it looks for one to sign service account tokens with.
    fn key(&self) -> PathBuf {
        self.folder().join("apiserver.key")
    }

    fn spawn(&self) -> Process {
        let folder = self.folder().display();
        let key = self.key().display().to_string();
        let mut args = vec![
            format!("--etcd-servers={}", self.etcd.url()),
            format!("--etcd-prefix=/{}", self.name()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            format!("--cert-dir={folder}"),
            // Else it would look for an address that other machines can reach, and there may be none.
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={key}"),
            format!("--service-account-signing-key-file={key}"),
            format!("--token-auth-file={folder}/tokens.csv"),
            "--authorization-mode=RBAC".to_owned(),
            // It would turn away every Pod of a namespace whose ServiceAccount no controller has made yet.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // As clusters have it: drivers and model servers ask for it.
            "--allow-privileged=true".to_owned(),
        ];
        args.extend(self.options.args.iter().cloned());
        Process::start(&Binaries::locate().kube_apiserver, &args, self.folder())
    }

    fn wait_until_ready(&mut self) {
        let mut server = self.server.take().expect("the server was spawned before");
        let (folder, key, url) = (self.folder(), self.key(), self.url());
        server.wait_until("certificate", LIMIT, || {
            // The key is written last, so that both are there when it is.
            fs::metadata(&key).is_ok_and(|file| file.len() > 0)
        });
        for (user, _) in credentials::USERS {
            let kubeconfig = credentials::kubeconfig(self.name(), &url, &folder.join("apiserver.crt"), user);
            fs::write(folder.join(format!("{user}.kubeconfig")), kubeconfig).expect("a new folder can be written");
        }
        server.wait_until("readiness", LIMIT, || {
            // The namespace is made by the server itself, and only after it calls itself ready.
            self.ask("/readyz").is_ok() && self.read("/api/v1/namespaces/default").is_ok()
        });
        self.server = Some(server);
    }
}
