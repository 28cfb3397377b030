//! Everything that can be named in a repository: branches, tags, commits and paths.
//!
//! Names are checked when the config file is read, so that none of them is an option of a command line or leads out of
//! the repository.
//! Whether they exist is for a poll to find out.

use git2::Oid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The branch, tag or commit of a repository that is to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", try_from = "Written")]
#[schemars(!try_from)]
pub enum Reference {
    /// The newest commit of a branch.
    Branch(RefName),
    /// The commit that a tag stands for.
    Tag(RefName),
    /// One commit, for ever.
    Commit(CommitId),
}

/// A [`Reference`] as it is written, before its parts are counted: the error is clearer than for an enum.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    branch: Option<RefName>,
    tag: Option<RefName>,
    commit: Option<CommitId>,
}

/// The short name of a branch or tag, such as `main` or `release/1.2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct RefName(String);

/// The full identifier of a commit: 40 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CommitId(Oid);

/// A path inside of a repository, without `.` and `..`; empty for the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SubPath(String);

/// The error for text that is no branch or tag, no commit, or no path inside of a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// None of what can be named, or several.
    #[error("exactly one of `branch`, `tag` and `commit` is needed")]
    NotOne,
    /// Not what a branch or tag can be called.
    #[error("{0:?} cannot be the name of a branch or tag")]
    Reference(String),
    /// Not 40 hexadecimal digits.
    #[error("{0:?} is no commit: write all of its 40 hexadecimal digits")]
    Commit(String),
    /// A path that leaves the repository.
    #[error("{0:?} is no path inside of the repository")]
    Path(String),
}

impl TryFrom<Written> for Reference {
    type Error = NameError;

    fn try_from(written: Written) -> Result<Self, NameError> {
        match written {
            Written { branch: Some(name), tag: None, commit: None } => Ok(Self::Branch(name)),
            Written { branch: None, tag: Some(name), commit: None } => Ok(Self::Tag(name)),
            Written { branch: None, tag: None, commit: Some(id) } => Ok(Self::Commit(id)),
            Written { .. } => Err(NameError::NotOne),
        }
    }
}

impl RefName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RefName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let valid = !text.starts_with('-') && git2::Reference::is_valid_name(&format!("refs/heads/{text}"));
        if valid { Ok(Self(text)) } else { Err(NameError::Reference(text)) }
    }
}

impl CommitId {
    /// Returns the commit's identifier as libgit2 takes it.
    pub(super) fn oid(&self) -> Oid {
        self.0
    }
}

impl TryFrom<String> for CommitId {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let digits = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = if digits { Oid::from_str(&text).ok() } else { None };
        id.map(Self).ok_or(NameError::Commit(text))
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> Self {
        id.0.to_string()
    }
}

impl SubPath {
    /// Returns the path with `/` between its parts; empty for the whole repository.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SubPath {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if text.starts_with('/') || parts.contains(&"..") || text.chars().any(char::is_control) {
            return Err(NameError::Path(text));
        }
        Ok(Self(parts.join("/")))
    }
}

impl From<SubPath> for String {
    fn from(path: SubPath) -> Self {
        if path.0.is_empty() { ".".to_owned() } else { path.0 }
    }
}
