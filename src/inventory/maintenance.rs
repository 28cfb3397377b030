//! Looking after what is owned, when a person asks for it: inventories rebuilt, objects that stand in none, and what
//! another installation owned.
//!
//! Nothing in here deletes an object.

pub mod claim;
pub mod orphans;
pub mod repair;

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::inventory::Inventory;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, ObjectId};

use crate::cluster::{Cluster, ClusterError, Reason};

/// Kinds that packs render, and the specs that go with them: apiVersion and kind. Where nothing says which kinds a sync
/// has, objects are looked for among these.
const USUAL: [(&str, &str); 46] = [
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "StatefulSet"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("gateway.networking.k8s.io/v1", "GatewayClass"),
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("gateway.networking.k8s.io/v1", "ListenerSet"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("gateway.networking.k8s.io/v1", "GRPCRoute"),
    ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
    ("gateway.kgateway.dev/v1alpha1", "GatewayParameters"),
    ("agentgateway.dev/v1alpha1", "AgentgatewayParameters"),
    ("v1", "PersistentVolumeClaim"),
    ("cert-manager.io/v1", "Certificate"),
    ("grove.io/v1alpha1", "PodCliqueSet"),
    ("inference.networking.k8s.io/v1", "InferencePool"),
    ("inference.networking.x-k8s.io/v1alpha2", "InferenceObjective"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("monitoring.googleapis.com/v1", "PodMonitoring"),
    ("networking.gke.io/v1", "GCPBackendPolicy"),
    ("networking.gke.io/v1", "GCPRoutingExtension"),
    ("networking.gke.io/v1", "HealthCheckPolicy"),
    ("networking.istio.io/v1beta1", "DestinationRule"),
    ("networking.istio.io/v1alpha3", "EnvoyFilter"),
    ("networking.istio.io/v1", "VirtualService"),
    ("networking.k8s.io/v1", "Ingress"),
    ("nvidia.com/v1beta1", "DynamoComponentDeployment"),
    ("nvidia.com/v1beta1", "DynamoGraphDeployment"),
    ("nvidia.com/v1beta1", "DynamoGraphDeploymentRequest"),
    ("nvidia.com/v1alpha1", "DynamoGraphDeploymentScalingAdapter"),
    ("nvidia.com/v1alpha1", "DynamoModel"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("serving.kserve.io/v1alpha2", "LLMInferenceService"),
    ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig"),
];

/// What a cluster shows of some kinds, and which of them it does not show.
#[derive(Debug, Default)]
pub struct Marked {
    /// The objects.
    pub live: BTreeMap<ObjectId, Live>,
    /// Why a kind cannot be listed.
    pub blind: Vec<String>,
}

/// Returns the kinds to look at: those of inventories, and the usual ones.
pub fn kinds<'a>(inventories: impl IntoIterator<Item = &'a Inventory>) -> BTreeSet<Gvk> {
    let usual = USUAL.iter().map(|(version, kind)| Gvk::new(version, kind));
    let owned = inventories.into_iter().flat_map(|inventory| inventory.entries.values().map(|entry| entry.gvk.clone()));
    usual.chain(owned).collect()
}

/// Lists what bears a label. A kind that the cluster has not holds nothing; one that may not be listed is said.
async fn list_marked(
    cluster: &dyn Cluster,
    kinds: &BTreeSet<Gvk>,
    label: &str,
    value: Option<&str>,
) -> Result<Marked, ClusterError> {
    let mut marked = Marked::default();
    let known = cluster.kinds(kinds).await?;
    marked
        .blind
        .extend(known.unanswered.iter().map(|kind| format!("the part of the API that serves {kind} does not answer")));
    for kind in known.served.into_keys() {
        let listed = match value {
            Some(value) => cluster.list(&kind, (label, value)).await,
            None => cluster.list_bearing(&kind, label).await,
        };
        match listed {
            Ok(live) => marked.live.extend(live.into_iter().map(|live| (live.object.id().clone(), live))),
            Err(error) if matches!(error.reason, Reason::Forbidden | Reason::NotFound) => {
                marked.blind.push(Chain(&error).to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(marked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::yaml;

    /// What the cases of the tests render, documents that are applied as they are left out.
    #[test]
    fn every_kind_that_packs_render_is_looked_for() {
        let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let usual: BTreeSet<(String, String)> = kinds([]).into_iter().map(|kind| (kind.group, kind.kind)).collect();
        let mut seen = 0;
        for case in std::fs::read_dir(cases).expect("the cases can be listed").flatten() {
            let text = std::fs::read_to_string(case.path().join("objects.yaml")).unwrap_or_default();
            for document in yaml::parse_values(&text).expect("they are YAML") {
                let field = |field: &str| document[field].as_str().unwrap_or_default().to_owned();
                let (kind, version) = (field("kind"), field("apiVersion"));
                let Gvk { group, .. } = Gvk::new(&version, &kind);
                let is_own = kind.is_empty() || kind == "Namespace";
                seen += usize::from(!is_own);
                assert!(is_own || usual.contains(&(group, kind.clone())), "{version} {kind} in {:?}", case.path());
            }
        }
        assert!(seen > 100, "the cases render more than {seen} objects");
    }
}
