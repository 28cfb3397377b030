//! Kinds as people name them in settings: `Deployment`, or `Service.serving.knative.dev` with the group behind it.

use super::ObjectId;

/// The groups of Kubernetes with a dot in them; all that have none are its own.
const OWN_GROUPS: [&str; 17] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Tells whether a group is one that Kubernetes itself serves.
pub fn is_of_kubernetes(group: &str) -> bool {
    !group.contains('.') || OWN_GROUPS.contains(&group)
}

/// Tells whether a name means the kind of an object: with a group that kind alone, without one every kind of that name.
pub fn means(name: &str, id: &ObjectId) -> bool {
    name.split_once('.').map_or(name == id.kind, |(kind, group)| id.is_a(group, kind))
}

/// Tells whether a name means the kind of an object where it has to be certain: without a group it means a kind of
/// Kubernetes itself.
pub fn means_surely(name: &str, id: &ObjectId) -> bool {
    means(name, id) && (name.contains('.') || is_of_kubernetes(&id.group))
}

/// Returns the shortest name that surely means the kind of an object.
pub fn name(id: &ObjectId) -> String {
    if is_of_kubernetes(&id.group) { id.kind.clone() } else { format!("{}.{}", id.kind, id.group) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_may_be_named_with_its_group() {
        let (service, knative) = (("", "Service"), ("serving.knative.dev", "Service"));
        for (name, (group, kind), is_meant, is_sure) in [
            ("Service", service, true, true),
            ("Service", knative, true, false),
            ("Service.serving.knative.dev", knative, true, true),
            ("Service.serving.knative.dev", service, false, false),
            ("Service.", service, true, true),
            ("Service.", knative, false, false),
            ("Deployment", ("apps", "Deployment"), true, true),
            ("Deployment.apps", ("apps", "Deployment"), true, true),
            ("Deployment.extensions", ("apps", "Deployment"), false, false),
            ("service", service, false, false),
        ] {
            let id = ObjectId::new(group, kind, "a", "b");
            assert_eq!((means(name, &id), means_surely(name, &id)), (is_meant, is_sure), "{name} {group}/{kind}");
        }
        let id = |group| ObjectId::new(group, "Service", "a", "b");
        assert_eq!((name(&id("")), name(&id("x.io"))), ("Service".to_owned(), "Service.x.io".to_owned()));
    }
}
