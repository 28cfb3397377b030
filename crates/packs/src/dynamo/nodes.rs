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
    let (leader, workers, rank): (_, Vec<String>, _) = match provider {
        Provider::Grove => {
            let pod =
                |of: &str| format!("$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{name}-{of}.$(GROVE_HEADLESS_SERVICE)");
            let workers = (0..component.nodes - 1).map(|index| pod(&format!("wkr-{index}")));
            (pod("ldr-0"), workers.collect(), "$((GROVE_PCLQ_POD_INDEX + 1))")
        }
        Provider::Lws | Provider::Deployment => {
            let worker = |index| format!(r#"$(echo "$LWS_LEADER_ADDRESS" | sed 's/\./-{index}\./')"#);
            let workers = (1..component.nodes).map(worker).collect();
            ("$(LWS_LEADER_ADDRESS)".to_owned(), workers, "$(LWS_WORKER_INDEX)")
        }
    };
    scope["hosts"] = std::iter::once(&leader).chain(&workers).cloned().collect();
    scope["leaderInShell"] = in_shell(&leader).into();
    scope["leader"] = leader.into();
    scope["workers"] = workers.into();
    scope["rank"] = rank.into();
}

/// Kubernetes expands `$(NAME)` only from what stands before it; a shell knows all variables.
fn in_shell(text: &str) -> String {
    text.replace("$(", "${").replace(')', "}")
}
