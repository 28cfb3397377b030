//! Kinds that exist in the groups of the specs that packs claim, and slips of the pen.
//!
//! A document of a kind that nobody here claims is a neighbor's, unless its kind is a slip for one that is claimed.
//! Names that resemble each other are no slips where both exist: `InferenceModel` is not a misspelt `InferencePool`.

use super::GATEWAY_API;
use super::overlay::GROUP;

/// The group of pools, and of what belongs to them, before they were stable.
const INFERENCE_X: &str = "inference.networking.x-k8s.io";

/// Kinds by group, claimed or not, of every release that has had them.
const KINDS: &[(&str, &[&str])] = &[
    (
        GATEWAY_API,
        &[
            "BackendLBPolicy",
            "BackendTLSPolicy",
            "GRPCRoute",
            "Gateway",
            "GatewayClass",
            "HTTPRoute",
            "ListenerSet",
            "ReferenceGrant",
            "ReferencePolicy",
            "TCPRoute",
            "TLSRoute",
            "UDPRoute",
        ],
    ),
    ("gateway.networking.x-k8s.io", &["XBackend", "XBackendTrafficPolicy", "XListenerSet", "XMesh"]),
    ("inference.networking.k8s.io", &["InferencePool", "InferencePoolImport"]),
    (
        INFERENCE_X,
        &["InferenceModel", "InferenceModelRewrite", "InferenceObjective", "InferencePool", "InferencePoolImport"],
    ),
    (
        "serving.kserve.io",
        &[
            "ClusterLocalModel",
            "ClusterServingRuntime",
            "ClusterStorageContainer",
            "InferenceGraph",
            "InferenceService",
            "LLMInferenceService",
            "LLMInferenceServiceConfig",
            "LocalModelCache",
            "LocalModelNamespaceCache",
            "LocalModelNode",
            "LocalModelNodeGroup",
            "Predictor",
            "ServingRuntime",
            "TrainedModel",
        ],
    ),
    (
        "nvidia.com",
        &[
            "ClusterPolicy",
            "DynamoCheckpoint",
            "DynamoComponent",
            "DynamoComponentDeployment",
            "DynamoGraphDeployment",
            "DynamoGraphDeploymentRequest",
            "DynamoGraphDeploymentScalingAdapter",
            "DynamoModel",
            "DynamoWorkerMetadata",
            "NVIDIADriver",
        ],
    ),
    (
        "gateway.kgateway.dev",
        &[
            "AIPolicy",
            "Backend",
            "BackendConfigPolicy",
            "DirectResponse",
            "GatewayExtension",
            "GatewayParameters",
            "HTTPListenerPolicy",
            "ListenerPolicy",
            "RoutePolicy",
            "TrafficPolicy",
            "Upstream",
        ],
    ),
    ("agentgateway.dev", &["AgentgatewayBackend", "AgentgatewayParameters", "AgentgatewayPolicy"]),
    (
        GROUP,
        &[
            "BodyBasedRouterParameters",
            "ClusterOverlay",
            "DynamoParameters",
            "EndpointPickerParameters",
            "LLMInferenceServiceParameters",
        ],
    ),
];

/// Returns the claimed kind that a document was probably meant to be of, if its own does not exist in its group.
pub(crate) fn kind_slip<'a>(group: &str, kind: &str, claimed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if is_kind(group, kind) { None } else { slip(kind, claimed) }
}

/// Tells whether a kind is known to exist in a group.
pub(crate) fn is_kind(group: &str, kind: &str) -> bool {
    KINDS.iter().any(|(of, kinds)| *of == group && kinds.contains(&kind))
}

/// Returns what was probably meant by something said: the nearest that it is a slip for.
pub(crate) fn slip<'a>(said: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter().filter(|known| *known != said);
    let near = known.filter_map(|known| Some((slips(said, known)?, known)));
    near.min().map(|(_, known)| known)
}

/// Returns how many characters were dropped, doubled, swapped or mistaken, if it is no more than a slip.
///
/// One of three characters, and two of six, but never more: what differs in more is another word. Letters that are
/// only of the wrong case count as none.
fn slips(said: &str, meant: &str) -> Option<usize> {
    let (said, meant) = (said.to_lowercase(), meant.to_lowercase());
    let length = said.chars().count().min(meant.chars().count());
    // What is longer by more cannot be near, and need not be compared.
    if said.chars().count().abs_diff(meant.chars().count()) > 2 {
        return None;
    }
    let distance = strsim::damerau_levenshtein(&said, &meant);
    (distance <= (length / 3).min(2)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMED: [&str; 4] = ["Gateway", "GatewayClass", "InferencePool", "LLMInferenceService"];

    #[test]
    fn a_misspelt_kind_is_a_slip() {
        for (said, meant) in [
            ("Gatewya", "Gateway"),
            ("Gatway", "Gateway"),
            ("gateway", "Gateway"),
            ("Gateways", "Gateway"),
            ("GatewayClas", "GatewayClass"),
            ("Gatewayclass", "GatewayClass"),
            ("InfrencePol", "InferencePool"),
            ("LLMInferenceServices", "LLMInferenceService"),
        ] {
            assert_eq!(slip(said, CLAIMED), Some(meant), "{said}");
        }
    }

    #[test]
    fn another_word_is_no_slip() {
        for said in ["Route", "InferenceService", "InferenceModel", "Gate", "Ga", "", "Service", "Gateway"] {
            let others = CLAIMED.into_iter().filter(|known| *known != said);
            assert_eq!(slip(said, others), None, "{said}");
        }
        assert_eq!(slip("a", ["b"]), None);
        assert_eq!(slip("Grüße", ["Grüsse"]), None, "one letter of five for two others");
    }

    #[test]
    fn a_kind_that_exists_is_no_slip_for_another() {
        assert_eq!(slip("TCPRoute", ["TLSRoute"]), Some("TLSRoute"));
        assert_eq!(kind_slip(GATEWAY_API, "TCPRoute", ["TLSRoute"]), None);
        assert_eq!(kind_slip("example.com", "TCPRoute", ["TLSRoute"]), Some("TLSRoute"));
    }
}
