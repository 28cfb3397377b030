//! The facts about patches from Kubernetes' types: which lists merge, and by which key.
//!
//! It is data (`types.txt`), because it is about a thousand fields and none of them is a special case. API servers read
//! the same facts off their Go types; a test holds that the file says what those say.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::fault::Fault;
use crate::object::Gvk;

static TYPES: LazyLock<BTreeMap<&'static str, Struct>> = LazyLock::new(|| read(include_str!("types.txt")));

/// A type with named fields.
#[derive(Debug, Default)]
pub(super) struct Struct {
    pub(super) name: &'static str,
    /// In the order of the type.
    fields: Vec<Field>,
}

/// A field, and how a patch changes it.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    holds: &'static str,
    /// Whether what a patch says takes the place of what was there.
    pub(super) replaces: bool,
    /// The items of a patch join those that are there.
    pub(super) merges: bool,
    /// The field that tells items of this list apart.
    pub(super) key: Option<&'static str>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    /// One with named fields.
    Struct(&'static Struct),
    /// Text, a number, a free map: nothing is known about what may lie inside.
    Other,
}

impl Type {
    /// Returns the type of a kind of objects, if it is known.
    pub(super) fn of(gvk: &Gvk) -> Option<Self> {
        let name = format!("{}.{}", gvk.api_version(), gvk.kind);
        let found = TYPES.get(name.as_str())?;
        let is_kind = ["apiVersion", "kind", "metadata"].iter().all(|name| found.field(name).is_some());
        is_kind.then_some(Self::Struct(found))
    }

    /// Returns a field, which may be written in another case, as wherever Kubernetes reads JSON leniently.
    pub(super) fn field(self, name: &str) -> Result<&'static Field, Fault> {
        match self {
            Self::Struct(found) => found.field(name).ok_or(Fault::UnknownField { of: found.name }),
            Self::Other => Err(Fault::NoFields),
        }
    }

    fn named(name: &'static str) -> Self {
        TYPES.get(name.trim_start_matches('*')).map_or(Self::Other, Self::Struct)
    }
}

impl Struct {
    fn field(&self, name: &str) -> Option<&Field> {
        let exact = self.fields.iter().find(|field| field.name == name);
        exact.or_else(|| self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)))
    }
}

impl Field {
    /// Returns the type of the field.
    pub(super) fn mapping(&self) -> Type {
        Type::named(self.holds)
    }

    /// Tells whether it holds a text, a number or a truth value that cannot be absent.
    pub(super) fn is_plain(&self) -> bool {
        self.holds.is_empty()
    }

    /// Returns the type of the items of the field.
    ///
    /// What is a pointer in Go passes for a list of what it points to; there it says that a field may be absent.
    pub(super) fn items(&self) -> Result<Type, Fault> {
        let items = self.holds.strip_prefix("[]").or_else(|| self.holds.strip_prefix('*')).ok_or(Fault::NoList)?;
        Ok(Type::named(items.trim_start_matches("[]")))
    }
}

/// Reads `types.txt`. Below the name of a type stand its fields: name, what it holds, strategies, key.
fn read(text: &'static str) -> BTreeMap<&'static str, Struct> {
    let mut types: BTreeMap<&str, Struct> = BTreeMap::new();
    let mut name = "";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if !line.starts_with(' ') {
            name = line;
            continue;
        }
        let found = types.entry(name).or_default();
        found.name = name;
        found.fields.extend(field(line));
    }
    types
}

fn field(line: &'static str) -> Option<Field> {
    let mut columns = line.split_whitespace();
    let (name, holds) = (columns.next()?, columns.next().unwrap_or_default());
    let strategies = columns.next().unwrap_or_default();
    let says = |strategy: &str| strategies.split(',').any(|said| said == strategy);
    Some(Field { name, holds, replaces: says("replace"), merges: says("merge"), key: columns.next() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows fields, those of items included, and returns what the last one says.
    fn check(kind: &str, path: &str, expected: (bool, bool, Option<&str>)) {
        let (api_version, kind) = kind.split_once(' ').expect("version and kind");
        let mut at = Type::of(&Gvk::new(api_version, kind)).expect("the kind is known");
        let mut said = None;
        for name in path.split('.') {
            let field = at.field(name).expect(path);
            at = field.items().unwrap_or_else(|_| field.mapping());
            said = Some((field.merges, field.replaces, field.key));
        }
        assert_eq!(said, Some(expected), "{kind} {path}");
    }

    #[test]
    fn lists_have_the_keys_that_kubernetes_gives_them() {
        check("apps/v1 Deployment", "spec.template.spec.containers.ports", (true, false, Some("containerPort")));
        check("apps/v1 DaemonSet", "spec.template.spec.volumes", (true, false, Some("name")));
        check("apps/v1 StatefulSet", "spec.volumeClaimTemplates", (false, false, None));
        check("v1 Service", "spec.ports", (true, false, Some("port")));
        check("v1 Service", "metadata.finalizers", (true, false, None));
        check("v1 ServiceAccount", "secrets", (true, false, Some("name")));
        check("policy/v1 PodDisruptionBudget", "spec.selector", (false, true, None));
        check("autoscaling/v2 HorizontalPodAutoscaler", "spec.metrics", (false, false, None));
        check("rbac.authorization.k8s.io/v1 ClusterRole", "rules", (false, false, None));
    }

    #[test]
    fn only_kinds_of_objects_are_kinds() {
        for (api_version, kind) in [("v1", "Container"), ("v1", "PodTemplateSpec"), ("autoscaling/v1", "Deployment")] {
            assert!(Type::of(&Gvk::new(api_version, kind)).is_none(), "{kind}");
        }
    }

    #[test]
    fn fields_are_found_in_any_case_and_others_not() {
        let pod = Type::of(&Gvk::new("v1", "Pod")).expect("the kind is known");
        assert_eq!(pod.field("SPEC").map(|field| field.holds), Ok("v1.PodSpec"));
        assert_eq!(pod.field("specs").map(|field| field.holds), Err(Fault::UnknownField { of: "v1.Pod" }));
    }
}
