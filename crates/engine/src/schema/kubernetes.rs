//! Schemas of Kubernetes' own kinds, each made when it is first asked for.

use std::sync::{LazyLock, OnceLock};

use k8s_openapi::Resource;
use k8s_openapi::api::{apps, autoscaling, batch, coordination, core, discovery, networking, node, policy};
use k8s_openapi::api::{rbac, resource, scheduling, storage};
use schemars::JsonSchema;

use super::{Schema, SchemaError};
use crate::object::Gvk;

/// The release whose kinds these are.
pub(crate) const RELEASE: &str = "Kubernetes 1.35";

/// The schema of a kind, once it was asked for, and what makes it.
struct Entry {
    /// Group, version and kind.
    key: [&'static str; 3],
    made: OnceLock<Option<Schema>>,
    make: fn() -> Result<Schema, SchemaError>,
}

static KINDS: LazyLock<Vec<Entry>> =
    LazyLock::new(|| [workloads(), configuration(), networks(), rights(), others()].into_iter().flatten().collect());

/// A template of a pod, which custom resources have as well.
static POD_TEMPLATE: LazyLock<Option<Schema>> = LazyLock::new(|| Schema::of::<core::v1::PodTemplateSpec>().ok());

/// Returns the schema of a kind that is Kubernetes' own, if it is known.
pub(crate) fn of(gvk: &Gvk) -> Option<&'static Schema> {
    let entry = KINDS.iter().find(|entry| entry.key == [&gvk.group, &gvk.version, &gvk.kind])?;
    entry.made.get_or_init(|| (entry.make)().ok()).as_ref()
}

/// Returns the schema of a template of a pod.
pub(crate) fn pod_template() -> Option<&'static Schema> {
    POD_TEMPLATE.as_ref()
}

fn kind<T: Resource + JsonSchema>() -> Entry {
    Entry { key: [T::GROUP, T::VERSION, T::KIND], made: OnceLock::new(), make: Schema::of::<T> }
}

fn workloads() -> Vec<Entry> {
    vec![
        kind::<apps::v1::DaemonSet>(),
        kind::<apps::v1::Deployment>(),
        kind::<apps::v1::ReplicaSet>(),
        kind::<apps::v1::StatefulSet>(),
        kind::<autoscaling::v1::HorizontalPodAutoscaler>(),
        kind::<autoscaling::v2::HorizontalPodAutoscaler>(),
        kind::<batch::v1::CronJob>(),
        kind::<batch::v1::Job>(),
        kind::<core::v1::Pod>(),
        kind::<policy::v1::PodDisruptionBudget>(),
    ]
}

fn configuration() -> Vec<Entry> {
    vec![
        kind::<core::v1::ConfigMap>(),
        kind::<core::v1::LimitRange>(),
        kind::<core::v1::Namespace>(),
        kind::<core::v1::PersistentVolume>(),
        kind::<core::v1::PersistentVolumeClaim>(),
        kind::<core::v1::ResourceQuota>(),
        kind::<core::v1::Secret>(),
        kind::<storage::v1::StorageClass>(),
    ]
}

fn networks() -> Vec<Entry> {
    vec![
        kind::<core::v1::Service>(),
        kind::<discovery::v1::EndpointSlice>(),
        kind::<networking::v1::Ingress>(),
        kind::<networking::v1::IngressClass>(),
        kind::<networking::v1::NetworkPolicy>(),
    ]
}

fn rights() -> Vec<Entry> {
    vec![
        kind::<core::v1::ServiceAccount>(),
        kind::<rbac::v1::ClusterRole>(),
        kind::<rbac::v1::ClusterRoleBinding>(),
        kind::<rbac::v1::Role>(),
        kind::<rbac::v1::RoleBinding>(),
    ]
}

fn others() -> Vec<Entry> {
    vec![
        kind::<coordination::v1::Lease>(),
        kind::<node::v1::RuntimeClass>(),
        kind::<resource::v1::DeviceClass>(),
        kind::<resource::v1::ResourceClaim>(),
        kind::<resource::v1::ResourceClaimTemplate>(),
        kind::<scheduling::v1::PriorityClass>(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_schema_with_its_fields() {
        for [group, version, kind] in KINDS.iter().map(|entry| entry.key) {
            let gvk = Gvk { group: group.into(), version: version.into(), kind: kind.into() };
            let schema = of(&gvk).expect(kind);
            let fields = &schema.root().properties;
            assert!(["apiVersion", "kind", "metadata"].iter().all(|field| fields.contains_key(*field)), "{kind}");
        }
        let template = pod_template().expect("it has one");
        assert!(template.root().properties.contains_key("spec"));
    }
}
