//! The commit that is meant, given what a repository has.

use std::collections::BTreeMap;

use git2::Oid;

use super::failure::Failure;
use super::names::Reference;
use crate::source::Reason;

/// The most names that a hint lists.
const LISTED: usize = 5;

/// The references of a repository: all of them, and which one its default is.
///
/// A name that ends in `^{}` leads to what an annotated tag stands for, as in git's own listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct References {
    pub(super) tips: BTreeMap<String, Oid>,
    pub(super) default: Option<String>,
}

/// A commit that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) commit: Oid,
    /// The name to ask the server for: a reference, or the commit itself.
    pub(super) ask_for: String,
    /// The name of the snapshot: `main@sha1:…`, or `sha1:…` for a commit that was named itself.
    pub(super) revision: String,
}

/// Nothing there has the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Missing {
    #[error("the repository is empty")]
    Everything,
    #[error("the repository has no default branch")]
    Default,
    #[error("there is no branch {name:?}")]
    Branch { name: String, others: Vec<String> },
    #[error("there is no tag {name:?}")]
    Tag { name: String, others: Vec<String> },
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Self {
        let list = |what, others: &[String]| match others {
            [] => format!("There are no {what}."),
            some => format!("There are {what} such as {}.", some.join(", ")),
        };
        let hint = match &missing {
            Missing::Everything => "Push something to it, or correct `url`.".to_owned(),
            Missing::Default => "Say in `ref` what to read.".to_owned(),
            Missing::Branch { others, .. } => format!("Correct `ref`. {}", list("branches", others)),
            Missing::Tag { others, .. } => format!("Correct `ref`. {}", list("tags", others)),
        };
        Self::new(Reason::NotFound, missing).hint(hint)
    }
}

impl Wanted {
    /// Takes a commit that is named by its identifier.
    pub(super) fn pinned(commit: Oid, references: &References) -> Self {
        let tip = references.tips.iter().find(|(name, tip)| **tip == commit && !name.ends_with("^{}"));
        let ask_for = tip.map_or_else(|| commit.to_string(), |(name, _)| name.clone());
        Self { commit, ask_for, revision: format!("sha1:{commit}") }
    }
}

pub(super) fn choose(references: &References, wanted: Option<&Reference>) -> Result<Wanted, Missing> {
    if references.tips.is_empty() {
        return Err(Missing::Everything);
    }
    match wanted {
        Some(Reference::Commit(id)) => Ok(Wanted::pinned(id.oid(), references)),
        Some(Reference::Branch(name)) => find(references, "refs/heads/", name.as_str())
            .ok_or_else(|| Missing::Branch { name: name.as_str().to_owned(), others: some(references, "refs/heads/") }),
        Some(Reference::Tag(name)) => find(references, "refs/tags/", name.as_str())
            .ok_or_else(|| Missing::Tag { name: name.as_str().to_owned(), others: some(references, "refs/tags/") }),
        None => {
            let name = references.default.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
            name.and_then(|name| find(references, "refs/heads/", name)).ok_or(Missing::Default)
        }
    }
}

fn find(references: &References, prefix: &str, name: &str) -> Option<Wanted> {
    let ask_for = format!("{prefix}{name}");
    let tip = references.tips.get(&ask_for)?;
    let commit = *references.tips.get(&format!("{ask_for}^{{}}")).unwrap_or(tip);
    Some(Wanted { commit, ask_for, revision: format!("{name}@sha1:{commit}") })
}

/// Lists some names, so that a typing error shows.
fn some(references: &References, prefix: &str) -> Vec<String> {
    let names = references.tips.keys().filter_map(|name| name.strip_prefix(prefix));
    names.filter(|name| !name.ends_with("^{}")).take(LISTED).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn oid(digit: char) -> Oid {
        Oid::from_str(&digit.to_string().repeat(40)).expect("forty equal digits are an identifier")
    }

    fn references() -> References {
        let tips = [
            ("HEAD", '1'),
            ("refs/heads/main", '1'),
            ("refs/heads/dev", '2'),
            ("refs/tags/light", '2'),
            ("refs/tags/v1", 'a'),
            ("refs/tags/v1^{}", '3'),
        ];
        let tips = tips.into_iter().map(|(name, digit)| (name.to_owned(), oid(digit))).collect();
        References { tips, default: Some("refs/heads/main".to_owned()) }
    }

    fn check(wanted: serde_json::Value) -> Result<(String, String), Missing> {
        let wanted: Option<Reference> = serde_json::from_value(wanted).expect("a well-formed reference");
        choose(&references(), wanted.as_ref()).map(|wanted| (wanted.ask_for, wanted.revision))
    }

    fn found(ask_for: &str, name: &str, digit: char) -> (String, String) {
        (ask_for.to_owned(), format!("{name}sha1:{}", oid(digit)))
    }

    #[test]
    fn branches_tags_commits_and_the_default_are_found() {
        assert_eq!(check(json!(null)), Ok(found("refs/heads/main", "main@", '1')));
        assert_eq!(check(json!({"branch": "dev"})), Ok(found("refs/heads/dev", "dev@", '2')));
        assert_eq!(check(json!({"tag": "light"})), Ok(found("refs/tags/light", "light@", '2')));
        assert_eq!(check(json!({"tag": "v1"})), Ok(found("refs/tags/v1", "v1@", '3')));
        assert_eq!(check(json!({"commit": "2".repeat(40)})), Ok(found("refs/heads/dev", "", '2')));
        assert_eq!(check(json!({"commit": "9".repeat(40)})), Ok(found(&"9".repeat(40), "", '9')));
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let others = vec!["dev".to_owned(), "main".to_owned()];
        assert_eq!(check(json!({"branch": "mian"})), Err(Missing::Branch { name: "mian".to_owned(), others }));
        let others = vec!["light".to_owned(), "v1".to_owned()];
        assert_eq!(check(json!({"tag": "v2"})), Err(Missing::Tag { name: "v2".to_owned(), others }));
        assert_eq!(choose(&References::default(), None), Err(Missing::Everything));
        assert_eq!(choose(&References { default: None, ..references() }, None), Err(Missing::Default));
    }
}
