//! Kinds as settings name them.

use std::fmt;
use std::str::FromStr;

use super::ObjectId;

/// The group of kinds that have none, as settings write it.
const CORE: &str = "core";

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

    /// Tells whether an object is of the kind.
    pub fn is_of(&self, id: &ObjectId) -> bool {
        self.kind.as_ref().is_none_or(|kind| *kind == id.kind)
            && self.group.as_ref().is_none_or(|group| *group == id.group)
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
        let group = group.map(|group| if group == CORE { String::new() } else { group.to_owned() });
        Ok(Self { kind: (kind != "*").then(|| kind.to_owned()), group })
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
    fn what_looks_like_another_form_is_refused() {
        for text in ["", ".apps", "apps/Deployment", "Deployment.", "apps/v1", "Deployment.Apps", "De*", "a b", "**"] {
            assert_eq!(text.parse::<KindName>(), Err(KindNameError(text.to_owned())));
        }
    }
}
