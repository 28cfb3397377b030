//! An API server that writes down every request, and by whom.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::etcd::Etcd;
use super::process::Folder;
use super::{ApiServer, Options};

/// The server, and where it writes.
pub(crate) struct Audited {
    pub(crate) server: ApiServer,
    log: PathBuf,
    _folder: Folder,
}

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `get`, `list`, `patch`.
    pub(crate) verb: String,
    /// Path and parameters. A dry run is asked for there.
    pub(crate) uri: String,
    /// The user who has asked.
    pub(crate) user: String,
    /// The user as whom it was asked for, where that is another one.
    pub(crate) acting: String,
    /// The kind of resource, such as `deployments`; empty if it is about none.
    pub(crate) resource: String,
    /// The name of the object.
    pub(crate) name: String,
    /// The holder that is written into a Lease.
    pub(crate) holder: String,
    /// The answer.
    pub(crate) code: u64,
}

impl Audited {
    /// Starts a server without controllers.
    pub(crate) fn start() -> Self {
        let folder = Folder::new();
        let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
        let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n\
                     - {level: Request, omitStages: [RequestReceived], resources: [{group: coordination.k8s.io}]}\n\
                     - {level: Metadata, omitStages: [RequestReceived]}\n";
        fs::write(&policy, rules).expect("a new folder can be written");
        let args =
            vec![format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
        let server = ApiServer::start_on(&Arc::new(Etcd::start()), Options { args, ..Options::default() });
        Self { server, log, _folder: folder }
    }

    /// Returns our own requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let ours = self.events();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let request = |event: Value| Request {
            verb: text(&event["verb"]),
            uri: text(&event["requestURI"]),
            user: text(&event["user"]["username"]),
            acting: text(&event["impersonatedUser"]["username"]),
            resource: text(&event["objectRef"]["resource"]),
            name: text(&event["objectRef"]["name"]),
            holder: text(&event["requestObject"]["spec"]["holderIdentity"]),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        };
        ours.into_iter().map(request).collect()
    }

    /// Returns all that the last of our own requests said of the user as whom it was asked for.
    pub(crate) fn impersonated(&self) -> Value {
        self.events().pop().map(|mut event| event["impersonatedUser"].take()).unwrap_or_default()
    }

    fn events(&self) -> Vec<Value> {
        let log = fs::read_to_string(&self.log).expect("the server writes what it was told to write");
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("the server writes JSON"));
        let is_ours = |event: &Value| event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("gatewright/"));
        events.filter(is_ours).collect()
    }
}

impl Request {
    /// Tells whether it may have changed something; what asks about oneself does not, although it is a creation.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch") && !self.resource.starts_with("selfsubject")
    }

    /// Tells whether it was a dry run.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.uri.contains("dryRun=All")
    }
}
