//! Kinds as settings name them.

use std::fmt;
use std::str::FromStr;

use super::is_of_kubernetes;
use crate::object::ObjectId;

/// The group of kinds that have none, as settings write it.
pub(super) const CORE: &str = "core";

/// A kind, or several: `Service` of any group, `Service.core`, `Deployment.apps`, `*.example.com`, or `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindName {
    /// `None` is any kind.
    kind: Option<String>,
    /// `None` is any group, and an empty one the core group.
    group: Option<String>,
}

/// The text names no kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} names no kind")]
pub struct KindNameError(String);

impl KindName {
    /// Any kind.
    pub const ANY: Self = Self { kind: None, group: None };

    /// Reads a name; a text that can be none names a kind that there is not.
    pub fn read(text: &str) -> Self {
        let (kind, group) = text.split_once('.').map_or((text, None), |(kind, group)| (kind, Some(group)));
        let group = group.map(|group| if group == CORE { String::new() } else { group.to_owned() });
        Self { kind: (kind != "*").then(|| kind.to_owned()), group }
    }

    /// Names one kind of one group.
    pub fn exact(group: &str, kind: &str) -> Self {
        Self { kind: Some(kind.to_owned()), group: Some(group.to_owned()) }
    }

    /// Returns the shortest name that surely means the kind of an object.
    pub fn of(id: &ObjectId) -> Self {
        let group = (!is_of_kubernetes(&id.group)).then(|| id.group.clone());
        Self { kind: Some(id.kind.clone()), group }
    }

    /// Tells whether an object is of the kind.
    pub fn is_of(&self, id: &ObjectId) -> bool {
        self.kind.as_ref().is_none_or(|kind| *kind == id.kind)
            && self.group.as_ref().is_none_or(|group| *group == id.group)
    }

    /// Tells whether an object is of the kind where it has to be certain: without a group it means a kind of Kubernetes
    /// itself.
    pub fn is_surely_of(&self, id: &ObjectId) -> bool {
        self.is_of(id) && (self.group.is_some() || is_of_kubernetes(&id.group))
    }
}

impl FromStr for KindName {
    type Err = KindNameError;

    fn from_str(text: &str) -> Result<Self, KindNameError> {
        let (kind, group) = text.split_once('.').map_or((text, None), |(kind, group)| (kind, Some(group)));
        let is_kind = |kind: &str| !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric());
        let is_group_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
        let is_group = |group: &str| !group.is_empty() && group.chars().all(is_group_letter);
        if (kind != "*" && !is_kind(kind)) || !group.is_none_or(is_group) {
            return Err(KindNameError(text.to_owned()));
        }
        Ok(Self::read(text))
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_deref().unwrap_or("*"))?;
        match self.group.as_deref() {
            Some("") => write!(f, ".{CORE}"),
            Some(group) => write!(f, ".{group}"),
            None => Ok(()),
        }
    }
}

/// Returns the plural of a kind in small letters: that of almost every resource, as Kubernetes guesses it.
pub(super) fn plural(kind: &str) -> String {
    let is_hissed = ["s", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end));
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if is_hissed => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_with_its_group_or_without() {
        let core = ObjectId::new("", "Service", "a", "a");
        let knative = ObjectId::new("serving.knative.dev", "Service", "a", "a");
        let check = |text: &str, expected: [bool; 2]| {
            let name: KindName = text.parse().expect(text);
            assert_eq!([name.is_of(&core), name.is_of(&knative)], expected, "{text}");
            assert_eq!(name.to_string(), text);
        };
        check("Service", [true, true]);
        check("Service.core", [true, false]);
        check("Service.serving.knative.dev", [false, true]);
        check("*", [true, true]);
        check("*.core", [true, false]);
        check("*.knative.dev", [false, false]);
        check("Gateway", [false, false]);
    }

    #[test]
    fn a_name_without_a_group_surely_means_a_kind_of_kubernetes() {
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
            let (id, name) = (ObjectId::new(group, kind, "a", "b"), KindName::read(name));
            assert_eq!((name.is_of(&id), name.is_surely_of(&id)), (is_meant, is_sure), "{name} {group}/{kind}");
        }
        let of = |group| KindName::of(&ObjectId::new(group, "Service", "a", "b")).to_string();
        assert_eq!((of(""), of("x.io")), ("Service".to_owned(), "Service.x.io".to_owned()));
    }

    #[test]
    fn kinds_have_plurals() {
        for (kind, expected) in [
            ("gateway", "gateways"),
            ("gatewayclass", "gatewayclasses"),
            ("service", "services"),
            ("ingress", "ingresses"),
            ("networkpolicy", "networkpolicies"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn what_looks_like_another_form_is_refused() {
        for text in ["", ".apps", "apps/Deployment", "Deployment.", "apps/v1", "Deployment.Apps", "De*", "a b", "**"] {
            assert_eq!(text.parse::<KindName>(), Err(KindNameError(text.to_owned())));
        }
    }
}
