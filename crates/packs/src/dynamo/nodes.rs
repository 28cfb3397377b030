//! Several pods that are one replica: who they are, and how they find each other.

use serde_json::{Value, json};

use super::model::{Component, Fields};

/// The provider of the pods of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    /// One `PodCliqueSet`.
    Grove,
    /// `Deployments`, and `LeaderWorkerSets` for what does not fit on a node.
    Lws,
    /// `Deployments` only.
    Deployment,
}

/// Which of the pods of a replica one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// There is only one.
    Single,
    /// The first.
    Leader,
    /// Any other.
    Worker,
}

impl Provider {
    /// Returns its name for expressions.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Grove => "grove",
            Self::Lws => "lws",
            Self::Deployment => "deployment",
        }
    }
}

/// Returns what expressions see of the addresses of the pods of a replica.
pub(super) fn addresses(provider: Provider, component: &Component) -> Fields {
    let name = component.lower();
    let (leader, workers, rank): (String, Vec<String>, _) = match provider {
        Provider::Grove => {
            let pod = |of: String| format!("$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{of}.$(GROVE_HEADLESS_SERVICE)");
            let workers = (0..component.nodes - 1).map(|index| pod(format!("{name}-wkr-{index}")));
            (
                pod(format!("{name}-ldr-0")),
                workers.collect(),
                ("$((GROVE_PCLQ_POD_INDEX + 1))", "(GROVE_PCLQ_POD_INDEX + 1)"),
            )
        }
        Provider::Lws | Provider::Deployment => {
            let worker = |index| format!("$(echo \"$LWS_LEADER_ADDRESS\" | sed 's/[.]/-{index}./')");
            let workers = (1..component.nodes).map(worker);
            ("$(LWS_LEADER_ADDRESS)".to_owned(), workers.collect(), ("$(LWS_WORKER_INDEX)", "LWS_WORKER_INDEX"))
        }
    };
    let leader_in_shell = in_shell(&leader);
    let workers: Vec<String> =
        if provider == Provider::Grove { workers.iter().map(|worker| in_shell(worker)).collect() } else { workers };
    let hosts: Vec<&String> = std::iter::once(&leader_in_shell).chain(&workers).collect();
    let known = json!({
        "leader": leader,
        "leaderInShell": leader_in_shell,
        "workersInShell": workers,
        "hostsInShell": hosts,
        "rank": rank.0,
        "rankInShell": rank.1,
    });
    let Value::Object(known) = known else { return Fields::new() };
    known
}

/// Kubernetes expands `$(NAME)` only from what stands before it; a shell knows all variables.
fn in_shell(text: &str) -> String {
    text.replace("$(", "${").replace(')', "}")
}
