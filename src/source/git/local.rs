//! A repository on this disk: read where it is, without a mirror.

use std::path::Path;

use git2::{ErrorCode, ObjectType, Oid, Repository};

use super::failure::Failure;
use super::refs::References;
use crate::source::Reason;

/// Opens a repository with or without a work tree.
pub(super) fn open(path: &Path) -> Result<Repository, Failure> {
    let repository = Repository::open(path).map_err(|error| match error.code() {
        ErrorCode::NotFound => Failure::new(Reason::NotFound, "there is no git repository")
            .hint("Correct `url`, or clone the repository to there."),
        ErrorCode::Owner => Failure::new(Reason::Untrusted, "the repository belongs to another user").hint(format!(
            "Give {} to the user that gatewright runs as, or have it served over ssh or https.",
            path.display()
        )),
        _ => other(&error),
    })?;
    // Whoever owns the repository could have us read any other one that way.
    if repository.commondir().join("objects/info/alternates").exists() {
        let hint = "Run `git repack -a -d` in it, and delete its file `objects/info/alternates`.";
        return Err(Failure::new(Reason::Invalid, "the repository takes objects from another one").hint(hint));
    }
    Ok(repository)
}

pub(super) fn list(repository: &Repository) -> Result<References, Failure> {
    let mut found = References::default();
    for reference in repository.references().map_err(|error| other(&error))? {
        // A reference that cannot be read concerns only who asks for it, and then it is missing.
        let Ok(reference) = reference.and_then(|reference| reference.resolve()) else { continue };
        let (Ok(name), Some(target)) = (reference.name(), reference.target()) else { continue };
        if let Some(commit) = peeled(repository, target) {
            found.tips.insert(format!("{name}^{{}}"), commit);
        }
        found.tips.insert(name.to_owned(), target);
    }
    let head = repository.find_reference("HEAD").ok();
    found.default = head.and_then(|head| head.symbolic_target().ok().flatten().map(str::to_owned));
    Ok(found)
}

/// Returns what an annotated tag stands for.
fn peeled(repository: &Repository, target: Oid) -> Option<Oid> {
    let object = repository.find_object(target, None).ok()?;
    if object.kind() != Some(ObjectType::Tag) {
        return None;
    }
    object.peel(ObjectType::Any).ok().map(|object| object.id())
}

fn other(error: &git2::Error) -> Failure {
    Failure::new(Reason::Invalid, error.message())
}
