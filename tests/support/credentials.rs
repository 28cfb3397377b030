//! The rights that users have on a test cluster, as API servers and their clients want to be told.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The users of every test cluster, each with a group.
///
/// `admin` and the three hosts may do everything, `viewer` may read everything, `nobody` may do nothing.
pub(crate) const USERS: [(&str, &str); 6] = [
    ("admin", "system:masters"),
    ("host-a", "system:masters"),
    ("host-b", "system:masters"),
    ("host-c", "system:masters"),
    ("viewer", "viewers"),
    ("nobody", "nobodies"),
];

/// Returns the bearer token of a user; no other cluster takes it.
pub(crate) fn token(cluster: &str, user: &str) -> String {
    assert!(USERS.iter().any(|(name, _)| *name == user), "test clusters have no user {user:?}");
    format!("{user}-of-{cluster}")
}

/// Returns the text of a `--token-auth-file`.
pub(crate) fn token_file(cluster: &str) -> String {
    let line = |(user, group)| format!("{},{user},{user},{group}", token(cluster, user));
    USERS.map(line).join("\n")
}

/// Returns the objects that let `viewer` read everything, secrets and custom resources included.
pub(crate) fn viewer_role() -> Value {
    let read = ["get", "list", "watch"];
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "viewers"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": read}, {"nonResourceURLs": ["*"], "verbs": ["get"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "viewers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewers"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "viewers"}],
        },
    ]})
}

/// Returns a kubeconfig with one context, which is named like the cluster.
///
/// It is JSON, which every reader of YAML takes.
pub(crate) fn kubeconfig(cluster: &str, url: &str, certificate: &Path, user: &str) -> String {
    let authority =
        BASE64_STANDARD.encode(fs::read(certificate).expect("an API server that is ready has a certificate"));
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": cluster,
        "clusters": [{"name": cluster, "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": user, "user": {"token": token(cluster, user)}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
    })
    .to_string()
}
