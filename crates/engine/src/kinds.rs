//! Kinds of objects, in one table with a row for each group and kind: where they belong, in which order
//! they are written and deleted, what their deletion takes, when they are healthy, and what they refer to.
//!
//! The rows of Kubernetes and of the Gateway API stand in `kinds/builtin.yaml`; those of products come from the
//! `pack.yaml` of the pack that knows them. A kind without a row has the defaults of [`Row`].

pub mod name;
pub mod row;
pub(crate) mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use crate::object::{Gvk, ObjectId};
use crate::yaml;
use name::{CORE, KindName};
use row::{Order, Row, Scope, Wave};

/// Rows by group and kind, as they are written: the group without a name is `core`.
pub type Rows = BTreeMap<String, BTreeMap<String, Row>>;

/// Kinds whose pods are counted, all of the group `apps`.
const WITH_PODS: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

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

static BUILTIN: LazyLock<Table> = LazyLock::new(|| {
    let mut documents = yaml::parse_values(include_str!("kinds/builtin.yaml")).expect("a test reads it");
    let rows: Rows = serde_json::from_value(documents.pop().unwrap_or_default()).expect("a test reads it");
    let mut table = Table { rows: Arc::default(), other: Arc::default() };
    table.add(&rows).expect("the table is empty");
    table
});

/// The table of kinds. Copies share it.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Arc<Rows>,
    /// The row of every other kind.
    other: Arc<Row>,
}

impl Default for Table {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Table {
    /// Returns the rows of Kubernetes and of the Gateway API.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// Adds rows. Fails with the group and kind of which the table says something else already.
    pub fn add(&mut self, rows: &Rows) -> Result<(), (String, String)> {
        let all = Arc::make_mut(&mut self.rows);
        for (group, kinds) in rows {
            let group = plain(group);
            let known = all.entry(group.to_owned()).or_default();
            for (kind, row) in kinds {
                if known.get(kind).is_some_and(|known| known != row) {
                    return Err((group.to_owned(), kind.clone()));
                }
                known.insert(kind.clone(), row.clone());
            }
        }
        Ok(())
    }

    /// Adds a kind of which nothing is said, unless it is there.
    pub(crate) fn add_name(&mut self, group: &str, kind: &str) {
        if self.find(group, kind).is_none() {
            let kinds = Arc::make_mut(&mut self.rows).entry(group.to_owned()).or_default();
            kinds.insert(kind.to_owned(), Row::default());
        }
    }

    fn find(&self, group: &str, kind: &str) -> Option<&Row> {
        self.rows.get(group)?.get(kind)
    }

    /// Returns the rows, each with its group and kind.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, &Row)> {
        self.rows.iter().flat_map(|(group, kinds)| kinds.iter().map(move |(kind, row)| (&**group, &**kind, row)))
    }

    /// Returns all that is known of a kind.
    pub fn row(&self, group: &str, kind: &str) -> &Row {
        self.find(group, kind).unwrap_or(&self.other)
    }

    /// Returns all that is known of the kind of an object.
    pub fn of(&self, id: &ObjectId) -> &Row {
        self.row(&id.group, &id.kind)
    }

    /// Returns the place of an object within its unit: what is lower is written first, and deleted last.
    pub fn order(&self, id: &ObjectId) -> Order {
        let usual = if is_parameters(&id.kind) { Order::Parameters } else { Order::Workload };
        self.of(id).order.unwrap_or(usual)
    }

    /// Returns which units are written together: those of one wave go beside each other, and after the waves before.
    pub fn wave(&self, unit: &ObjectId) -> Wave {
        let usual = if is_parameters(&unit.kind) { Wave::Base } else { Wave::Unit };
        self.of(unit).wave.unwrap_or(usual)
    }

    /// Tells whether objects of a kind are in no namespace, where there is no server to ask.
    pub fn is_cluster_scoped(&self, kind: &Gvk) -> bool {
        self.row(&kind.group, &kind.kind).scope == Scope::Cluster
    }

    /// Returns whether objects of a kind are in namespaces, if it has a row.
    pub(crate) fn scope(&self, group: &str, kind: &str) -> Option<row::Scope> {
        self.find(group, kind).map(|row| row.scope)
    }

    /// Tells whether a kind is known to exist beside those of Kubernetes: what is called so is no slip of the pen.
    pub(crate) fn knows(&self, group: &str, kind: &str) -> bool {
        !is_of_kubernetes(group) && self.find(group, kind).is_some()
    }

    /// Returns the kinds whose deletion a person has to approve, of whatever group.
    pub fn confirmed(&self) -> BTreeSet<KindName> {
        self.all().filter(|(.., row)| row.confirm).map(|(_, kind, _)| KindName::read(kind)).collect()
    }

    /// Returns the kinds that packs render, with the version by which they are asked for.
    pub fn rendered(&self) -> BTreeSet<Gvk> {
        let gvk = |(group, kind, row): (&str, &str, &Row)| {
            Some(Gvk { group: group.to_owned(), version: row.version.clone()?, kind: kind.to_owned() })
        };
        self.all().filter_map(gvk).collect()
    }

    /// Tells whether somebody means the kind of an object, as kubectl takes it: by the kind, its plural or its short name,
    /// in whatever case.
    pub fn is_named(&self, written: &str, id: &ObjectId) -> bool {
        let (written, kind) = (written.to_ascii_lowercase(), id.kind.to_ascii_lowercase());
        written == kind || written == name::plural(&kind) || self.of(id).short.as_ref() == Some(&written)
    }
}

/// Tells whether some rows say something of a kind.
pub(crate) fn say(rows: &Rows, group: &str, kind: &str) -> bool {
    rows.iter().any(|(of, kinds)| plain(of) == group && kinds.contains_key(kind))
}

/// Adds the rows of those kinds of which nothing is said yet.
pub(crate) fn add_missing(rows: &mut Rows, others: Rows) {
    for (group, kinds) in others {
        for (kind, row) in kinds {
            if !say(rows, plain(&group), &kind) {
                rows.entry(group.clone()).or_default().insert(kind, row);
            }
        }
    }
}

/// The group as objects have it.
fn plain(group: &str) -> &str {
    if group == CORE { "" } else { group }
}

/// Tells whether a group is one that Kubernetes itself serves.
pub(crate) fn is_of_kubernetes(group: &str) -> bool {
    !group.contains('.') || OWN_GROUPS.contains(&group)
}

/// Tells whether an object holds others, and takes them along when it goes.
pub fn is_container(id: &ObjectId) -> bool {
    matches!(id.group_kind(), ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition"))
}

/// Tells whether objects of a kind have pods that can be counted.
pub fn has_pods(kind: &str) -> bool {
    WITH_PODS.contains(&kind)
}

/// Parameters of any pack, whose group nobody knows here: what refers to them comes after them.
fn is_parameters(kind: &str) -> bool {
    kind.ends_with("Parameters")
}

#[cfg(test)]
mod tests;
