//! The identities of objects, which change when something is replaced, restarted or edited.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::ApiServer;

const KINDS: &str = "serviceaccounts,configmaps,secrets,services,deployments,daemonsets,replicasets,pods,\
                     poddisruptionbudgets,horizontalpodautoscalers,verticalpodautoscalers";

/// One object of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: String,
    /// The number of its specification; some kinds do not count.
    pub(crate) generation: Option<i64>,
}

/// Returns everything in a namespace by `Kind/name`, without what Kubernetes puts into each.
pub(crate) fn identities(server: &ApiServer, namespace: &str) -> BTreeMap<String, Identity> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let identity = |object: &Value| {
        let metadata = &object["metadata"];
        let key = format!("{}/{}", text(&object["kind"]), text(&metadata["name"]));
        (key, Identity { uid: text(&metadata["uid"]), generation: metadata["generation"].as_i64() })
    };
    let is_everywhere = |key: &str| ["ConfigMap/kube-root-ca.crt", "ServiceAccount/default"].contains(&key);
    let all = server.objects(namespace, KINDS);
    let all = all.iter().map(identity);
    all.filter(|(key, _)| !is_everywhere(key)).collect()
}
