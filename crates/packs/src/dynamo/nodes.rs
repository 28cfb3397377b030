//! Several pods that are one replica: who they are, and how they find each other.

use serde::Serialize;
use serde_json::Value;

use super::model::Component;

/// The provider of the pods of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Provider {
    /// One `PodCliqueSet`.
    Grove,
    /// `Deployments`, and `LeaderWorkerSets` for what does not fit on a node.
    Lws,
    /// `Deployments` only.
    Deployment,
}

/// The role of a pod among those of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// There is only one.
    Single,
    /// The first.
    Leader,
    /// Any other.
    Worker,
}

/// Adds what expressions see of the addresses of the pods of a replica.
pub(super) fn add_addresses(scope: &mut Value, provider: Provider, component: &Component) {
    let name = component.lower();
    let (leader, workers, rank, rank_in_shell): (_, Vec<String>, _, _) = match provider {
        Provider::Grove => {
            let pod =
                |of: &str| format!("$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{name}-{of}.$(GROVE_HEADLESS_SERVICE)");
            let workers = (0..component.nodes - 1).map(|index| in_shell(&pod(&format!("wkr-{index}"))));
            (pod("ldr-0"), workers.collect(), "$((GROVE_PCLQ_POD_INDEX + 1))", "(GROVE_PCLQ_POD_INDEX + 1)")
        }
        Provider::Lws | Provider::Deployment => {
            let worker = |index| format!("$(echo \"$LWS_LEADER_ADDRESS\" | sed 's/[.]/-{index}./')");
            let workers = (1..component.nodes).map(worker).collect();
            ("$(LWS_LEADER_ADDRESS)".to_owned(), workers, "$(LWS_WORKER_INDEX)", "LWS_WORKER_INDEX")
        }
    };
    let leader_in_shell = in_shell(&leader);
    scope["hostsInShell"] = std::iter::once(&leader_in_shell).chain(&workers).cloned().collect();
    scope["leader"] = leader.into();
    scope["leaderInShell"] = leader_in_shell.into();
    scope["workersInShell"] = workers.into();
    scope["rank"] = rank.into();
    scope["rankInShell"] = rank_in_shell.into();
}

/// Kubernetes expands `$(NAME)` only from what stands before it; a shell knows all variables.
fn in_shell(text: &str) -> String {
    text.replace("$(", "${").replace(')', "}")
}
