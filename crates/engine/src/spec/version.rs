//! Versions of kinds that are no longer read.

use super::{Document, Kind};
use crate::check;

/// Returns the version that took the place of the one of a document, with its group, if the document is whole under that
/// as it stands. What is newer than all that are read may mean anything.
pub(super) fn successor(document: &Document, kind: &Kind) -> Option<String> {
    let newest = kind.versions.first()?;
    let is_older = age(&document.gvk.version)? < age(newest)?;
    (is_older && check::check(&document.root, &kind.schema).is_empty())
        .then(|| format!("{}/{newest}", document.gvk.group))
}

/// Returns the rank of a version in the order of Kubernetes: `v1alpha2`, `v1beta1`, `v1`.
fn age(version: &str) -> Option<(u32, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (major, rest) = rest.split_at(digits);
    let (stability, minor) = match rest {
        "" => (2, "0"),
        rest => match rest.strip_prefix("beta") {
            Some(minor) => (1, minor),
            None => (0, rest.strip_prefix("alpha")?),
        },
    };
    Some((stability, major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_kubernetes() {
        let order = ["v1alpha1", "v1alpha2", "v2alpha1", "v1beta1", "v1beta2", "v1", "v2"].map(age);
        assert!(order.is_sorted() && order.iter().all(Option::is_some), "{order:?}");
        for version in ["", "1", "v", "v1gamma1", "v1alpha", "v99999999999"] {
            assert_eq!(age(version), None, "{version}");
        }
    }
}
