//! An object as somebody names it on the command line: `Gateway/infra/edge`, or `gtw/infra/edge`, as kubectl takes kinds.

use std::fmt;
use std::str::FromStr;

use gatewright_engine::kinds;
use gatewright_engine::object::ObjectId;

/// The namespace of what is named without one.
const DEFAULT_NAMESPACE: &str = "default";

/// An object by its kind, namespace and name; displayed as it was written.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// The kind, its plural or its short name.
    kind: String,
    /// The group, where it was said: `Service.serving.knative.dev`.
    group: Option<String>,
    namespace: Option<String>,
    name: String,
}

/// The text names no object.
#[derive(Debug, thiserror::Error)]
#[error("an object is written as KIND/NAMESPACE/NAME, such as Gateway/infra/edge")]
pub(super) struct NamedError;

impl FromStr for Named {
    type Err = NamedError;

    fn from_str(text: &str) -> Result<Self, NamedError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, namespace, name) = match parts[..] {
            [kind, name] => (kind, None, name),
            [kind, namespace, name] => (kind, Some(namespace), name),
            _ => return Err(NamedError),
        };
        if parts.contains(&"") {
            return Err(NamedError);
        }
        let (kind, group) = kind.split_once('.').map_or((kind, None), |(kind, group)| (kind, Some(group.to_owned())));
        Ok(Self { kind: kind.to_owned(), group, namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }
}

impl Named {
    /// Tells whether it is that object. Without a namespace it is one in `default`, or one that is in none.
    pub(super) fn is(&self, id: &ObjectId, kinds: &kinds::Table) -> bool {
        let namespace = if id.namespace.is_empty() { DEFAULT_NAMESPACE } else { &id.namespace };
        self.is_alike(id, kinds) && namespace == self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// Tells whether it is that object, or one of the same kind and name in another namespace.
    pub(super) fn is_alike(&self, id: &ObjectId, kinds: &kinds::Table) -> bool {
        let is_of_group = self.group.as_ref().is_none_or(|group| group.eq_ignore_ascii_case(&id.group));
        is_of_group && id.name == self.name && kinds.is_named(&self.kind, id)
    }

    /// Returns it with its namespace, as objects are listed.
    pub(super) fn path(&self) -> String {
        format!("{}/{}/{}", self.kind, self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE), self.name)
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(group) = &self.group {
            write!(f, ".{group}")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, "/{namespace}")?;
        }
        write!(f, "/{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_takes_them() {
        let kinds = kinds::Table::builtin();
        let gateway = ObjectId::new("gateway.networking.k8s.io", "Gateway", "infra", "edge");
        let class = ObjectId::new("gateway.networking.k8s.io", "GatewayClass", "", "edge");
        let knative = ObjectId::new("serving.knative.dev", "Service", "default", "edge");
        for (text, means) in [
            ("Gateway/infra/edge", [true, false, false]),
            ("gateways/infra/edge", [true, false, false]),
            ("GTW/infra/edge", [true, false, false]),
            ("gateway.gateway.networking.k8s.io/infra/edge", [true, false, false]),
            ("gateway.networking.istio.io/infra/edge", [false; 3]),
            ("gtw/edge", [false; 3]),
            ("gatewayclasses/edge", [false, true, false]),
            ("gc/edge", [false, true, false]),
            ("Service/edge", [false, false, true]),
            ("service.serving.knative.dev/default/edge", [false, false, true]),
            ("service./default/edge", [false; 3]),
        ] {
            let named: Named = text.parse().expect(text);
            assert_eq!([&gateway, &class, &knative].map(|id| named.is(id, &kinds)), means, "{text}");
            assert_eq!(named.to_string(), text);
        }
        for text in ["", "edge", "/", "Gateway//edge", "Gateway/infra/", "a/b/c/d"] {
            assert!(text.parse::<Named>().is_err(), "{text}");
        }
    }
}
