use super::*;
use crate::spec::GATEWAY_API;

const RBAC: &str = "rbac.authorization.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

fn id(group: &str, kind: &str) -> ObjectId {
    ObjectId::new(group, kind, "a", "b")
}

/// Returns what the built-in rows say, group and kind before it.
fn all<T>(column: impl Fn(&Row) -> Option<T>) -> Vec<(String, T)> {
    let table = Table::builtin();
    table.all().filter_map(|(group, kind, row)| Some((format!("{group}/{kind}"), column(row)?))).collect()
}

/// Checks that these kinds and no others have something in a column.
#[track_caller]
fn check(column: impl Fn(&Row) -> bool, kinds: &[(&str, &str)]) {
    let found: BTreeSet<String> = all(|row| column(row).then_some(())).into_iter().map(|(kind, ())| kind).collect();
    let expected = kinds.iter().map(|(group, kind)| format!("{group}/{kind}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_others_need_is_written_first() {
    let expected = [
        (("", "Namespace"), Order::Base),
        ((EXTENSIONS, "CustomResourceDefinition"), Order::Base),
        ((GATEWAY_API, "GatewayClass"), Order::Gateway),
        ((GATEWAY_API, "Gateway"), Order::Gateway),
        ((GATEWAY_API, "ListenerSet"), Order::Listeners),
        (("", "ServiceAccount"), Order::Account),
        ((RBAC, "Role"), Order::Account),
        ((RBAC, "ClusterRole"), Order::Account),
        ((RBAC, "RoleBinding"), Order::Binding),
        ((RBAC, "ClusterRoleBinding"), Order::Binding),
        (("", "ConfigMap"), Order::Config),
        (("", "Secret"), Order::Config),
        (("", "Service"), Order::Service),
        (("apps", "Deployment"), Order::Workload),
        (("apps", "StatefulSet"), Order::Workload),
        (("apps", "DaemonSet"), Order::Workload),
        (("autoscaling", "HorizontalPodAutoscaler"), Order::Scaling),
        (("autoscaling.k8s.io", "VerticalPodAutoscaler"), Order::Scaling),
        (("policy", "PodDisruptionBudget"), Order::Scaling),
        ((GATEWAY_API, "HTTPRoute"), Order::Route),
    ];
    for ((group, kind), order) in expected {
        assert_eq!(Table::builtin().order(&id(group, kind)), order, "{group}/{kind}");
    }
    assert_eq!(all(|row| row.order).len(), expected.len());
    let orders: Vec<Order> = expected.iter().map(|(_, order)| *order).collect();
    assert!(orders.is_sorted() && Order::Base < Order::Parameters && Order::Parameters < Order::Gateway);
    assert!(Order::Scaling < Order::Pool && Order::Pool < Order::Route);
}

#[test]
fn kinds_of_others_have_no_place_of_their_own_in_the_order() {
    for (group, kind, order) in [
        ("serving.knative.dev", "Service", Order::Workload),
        ("networking.example.com", "Gateway", Order::Workload),
        ("batch.volcano.sh", "Job", Order::Workload),
        (GATEWAY_API, "GRPCRoute", Order::Workload),
        ("gateway.example.com", "GatewayParameters", Order::Parameters),
    ] {
        assert_eq!(Table::builtin().order(&id(group, kind)), order, "{group}/{kind}");
    }
}

#[test]
fn units_that_others_need_go_before_them() {
    for (group, kind, wave) in [
        ("", "Namespace", Wave::Base),
        (EXTENSIONS, "CustomResourceDefinition", Wave::Base),
        ("gateway.example.com", "GatewayParameters", Wave::Base),
        (GATEWAY_API, "GatewayClass", Wave::Class),
        (GATEWAY_API, "Gateway", Wave::Unit),
        ("example.com", "Namespace", Wave::Unit),
        ("apps", "Deployment", Wave::Unit),
    ] {
        assert_eq!(Table::builtin().wave(&id(group, kind)), wave, "{group}/{kind}");
    }
    assert_eq!(all(|row| row.wave).len(), 3);
    assert!(Wave::Base < Wave::Class && Wave::Class < Wave::Unit);
}

#[test]
fn what_holds_data_or_others_is_never_replaced() {
    let never = [
        ("", "PersistentVolumeClaim"),
        ("", "PersistentVolume"),
        ("apps", "StatefulSet"),
        ("", "Namespace"),
        (EXTENSIONS, "CustomResourceDefinition"),
        ("", "Secret"),
        (GATEWAY_API, "GatewayClass"),
        (GATEWAY_API, "Gateway"),
    ];
    check(|row| !row.recreate, &never);
}

#[test]
fn what_holds_data_is_deleted_when_a_person_agrees() {
    check(|row| row.confirm, &[("", "PersistentVolume"), ("", "PersistentVolumeClaim"), ("apps", "StatefulSet")]);
    let names: Vec<String> = Table::builtin().confirmed().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["PersistentVolume", "PersistentVolumeClaim", "StatefulSet"]);
    assert!(is_container(&id("", "Namespace")) && is_container(&id(EXTENSIONS, "CustomResourceDefinition")));
    assert!(!is_container(&id("example.com", "Namespace")));
}

#[test]
fn no_kind_of_kubernetes_is_slow_or_left_to_others() {
    check(|row| row.slow, &[]);
    check(|row| row.resources, &[]);
    check(|row| !row.others_may_add.is_empty(), &[]);
    check(|row| row.makes.is_some() || row.pod_label.is_some(), &[]);
    check(|row| row.templates != ["spec.template"], &[("", "PodTemplate"), ("batch", "CronJob")]);
}

#[test]
fn kinds_have_rules_of_health_of_their_own() {
    use row::Health;
    let expected = [
        ("/Service", Health::Service),
        ("apiextensions.k8s.io/CustomResourceDefinition", Health::Established),
        ("apps/DaemonSet", Health::DaemonSet),
        ("apps/Deployment", Health::Deployment),
        ("apps/StatefulSet", Health::StatefulSet),
        ("batch/Job", Health::Job),
        ("gateway.networking.k8s.io/Gateway", Health::Accepted),
        ("gateway.networking.k8s.io/GatewayClass", Health::Accepted),
    ];
    let found = all(|row| Some(row.health.clone()).filter(|rule| *rule != Health::Conditions));
    assert_eq!(found, expected.map(|(kind, rule)| (kind.to_owned(), rule)));
}

#[test]
fn kinds_refer_to_others() {
    use row::Selects;
    let routes = ["HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"].map(|kind| (GATEWAY_API, kind));
    check(|row| row.route, &routes);
    check(|row| row.selects == Selects::Pods, &[("", "Service")]);
    check(|row| row.selects == Selects::Workload, &[("policy", "PodDisruptionBudget")]);
    let paths: Vec<(String, String)> = all(|row| Some(row.refers_to.first()?.path.clone()));
    let backends = "spec.rules.*.backendRefs.*";
    let expected = [
        ("gateway.networking.k8s.io/GRPCRoute", backends),
        ("gateway.networking.k8s.io/HTTPRoute", backends),
        ("rbac.authorization.k8s.io/ClusterRoleBinding", "roleRef"),
        ("rbac.authorization.k8s.io/RoleBinding", "roleRef"),
    ];
    assert_eq!(paths, expected.map(|(kind, path)| (kind.to_owned(), path.to_owned())));
}

#[test]
fn these_kinds_are_in_no_namespace() {
    let cluster = [
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        (EXTENSIONS, "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        (GATEWAY_API, "GatewayClass"),
        ("internal.apiserver.k8s.io", "StorageVersion"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("node.k8s.io", "RuntimeClass"),
        (RBAC, "ClusterRole"),
        (RBAC, "ClusterRoleBinding"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    ];
    check(|row| row.scope == Scope::Cluster, &cluster);
    let is_cluster_scoped = |version, kind| Table::builtin().is_cluster_scoped(&Gvk::new(version, kind));
    assert!(is_cluster_scoped("v1", "Namespace") && !is_cluster_scoped("example.com/v1", "Namespace"));
}

#[test]
fn kinds_of_the_gateway_api_exist_and_are_no_slips() {
    let is_known = |group: &str, kind: &str| Table::builtin().knows(group, kind);
    for kind in [
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
    ] {
        assert!(is_known(GATEWAY_API, kind), "{kind}");
        assert!(!is_known("example.com", kind), "{kind}");
    }
    for kind in ["XBackend", "XBackendTrafficPolicy", "XListenerSet", "XMesh"] {
        assert!(is_known("gateway.networking.x-k8s.io", kind), "{kind}");
    }
    // A document of Kubernetes may have lost its group.
    assert!(!is_known("", "Service") && !is_known("apps", "Deployment") && !is_known(RBAC, "Role"));
}

#[test]
fn kinds_are_named_as_kubectl_takes_them() {
    let table = Table::builtin();
    let is_named = |written: &str, (group, kind)| table.is_named(written, &ObjectId::new(group, kind, "a", "a"));
    let gateway = (GATEWAY_API, "Gateway");
    for written in ["Gateway", "gateway", "gateways", "GTW"] {
        assert!(is_named(written, gateway), "{written}");
    }
    for written in ["", "g", "gatewayses", "gc", "GatewayClass"] {
        assert!(!is_named(written, gateway), "{written}");
    }
    for (short, id) in [
        ("cm", ("", "ConfigMap")),
        ("deploy", ("apps", "Deployment")),
        ("gc", (GATEWAY_API, "GatewayClass")),
        ("HPA", ("autoscaling", "HorizontalPodAutoscaler")),
        ("ns", ("", "Namespace")),
        ("svc", ("", "Service")),
    ] {
        assert!(is_named(short, id), "{short}");
    }
    assert!(!is_named("svc", ("serving.knative.dev", "Service")));
    // A short name of two kinds would mean both.
    let mut short: Vec<&str> = table.all().filter_map(|(.., row)| row.short.as_deref()).collect();
    let count = short.len();
    short.sort_unstable();
    short.dedup();
    assert_eq!(short.len(), count);
}

#[test]
fn rows_that_say_something_else_are_refused() {
    let rows = |text: &str| -> Rows {
        let mut documents = yaml::parse_values(text).expect("it is YAML");
        serde_json::from_value(documents.remove(0)).expect("they are rows")
    };
    let mut table = Table::builtin();
    table.add(&rows("{example.com: {Pool: {confirm: true}}, core: {Node: {scope: cluster}}}")).expect("it is the same");
    assert!(table.row("example.com", "Pool").confirm && !Table::builtin().row("example.com", "Pool").confirm);
    let refused = table.add(&rows("{example.com: {Pool: {}}}"));
    assert_eq!(refused, Err(("example.com".to_owned(), "Pool".to_owned())));
    let refused = table.add(&rows("{core: {Node: {}}}"));
    assert_eq!(refused, Err((String::new(), "Node".to_owned())));
}
