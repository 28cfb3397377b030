//! One file on its way: what is here, what is in the store, the choice, and the writes that it takes.
//!
//! The order of writes is such that a process may end after each: what is known of a file is noted last, and a file that is
//! alike without being noted is simply found to be so.

use gatewright_engine::text::digest;
use object_store::{ObjectMeta, UpdateVersion};
use tokio::task::spawn_blocking;
use tracing::{debug, warn};

use crate::shared::error::SharedError;
use crate::shared::groups::Name;
use crate::shared::local::{Alike, Here, Local, is_recent};
use crate::shared::merge::{Choice, Right, choose};
use crate::shared::remote::{Expected, MOST_BYTES, Remote};

/// The number of times that a file is looked at again because somebody has changed it meanwhile.
const TRIES: usize = 6;

/// The knowledge of the store with which a file is looked at first.
#[derive(Clone, Debug)]
pub(super) enum Look {
    /// It is as it was: there is a condition to every write, which says if not.
    AsKnown,
    /// The store has listed it so, or has not listed it.
    Listed {
        /// The object, if there is one.
        meta: Option<ObjectMeta>,
        /// The file as it was known before that.
        known: Option<Box<Alike>>,
    },
}

/// The way in which a file is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By who has a right to it.
    Merge(Right),
    /// It was lost together with others, and comes back.
    Restore,
    /// It is left as it is.
    Leave,
}

/// The result for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// It was alike already.
    Nothing,
    /// It was written to the store.
    Pushed,
    /// It was deleted in the store.
    Deleted,
    /// It was written here.
    Taken,
    /// It was removed here.
    Removed,
    /// It is too large, and was left alone.
    Refused,
}

/// The result, and whether something was kept aside for it.
pub(super) type Outcome = (Moved, bool);

/// The object of a file, as far as it was looked at.
struct There {
    digest: Option<String>,
    /// The content, if it is not what was known.
    bytes: Vec<u8>,
    version: Option<UpdateVersion>,
    is_recent: bool,
}

/// Makes one file alike; whoever calls it holds its lock. `way` is asked before each try.
pub(super) async fn one(
    local: &Local,
    remote: &Remote,
    (name, look): (&Name, &Look),
    way: impl Fn() -> Way,
) -> Result<Outcome, SharedError> {
    let mut look = Some(look);
    for _ in 0..TRIES {
        let here = read(local, name, false).await?;
        let first = look.take();
        let right = match way() {
            Way::Merge(right) => Some(right),
            Way::Restore => None,
            Way::Leave => return Ok((Moved::Nothing, false)),
        };
        // It was made alike after it was listed, so that the listing says nothing of it any more.
        if matches!(first, Some(Look::Listed { known, .. }) if known.as_deref() != here.known.as_ref()) {
            return Ok((Moved::Nothing, false));
        }
        let base = here.known.clone().filter(|_| right.is_some());
        let was = base.as_ref().map(|base| base.digest.as_str());
        // A late word has to give way to what is there now, whatever was known of it.
        let first = first.filter(|_| right != Some(Right::Late) || here.digest.as_deref() == was);
        let is_assumed = matches!(first, Some(Look::AsKnown));
        let Some(there) = there(remote, name, first, base.as_ref()).await? else {
            warn!(file = %name, most = MOST_BYTES, "an object of the store is too large, and is left alone");
            return Ok((Moved::Refused, false));
        };
        let choice = choose(was, here.digest.as_deref(), there.digest.as_deref(), right.unwrap_or(Right::None));
        let done = match choice {
            Choice::Nothing | Choice::Note | Choice::Forget => {
                note(local, name, &here, &there, is_assumed).await?;
                Some((Moved::Nothing, false))
            }
            Choice::Push { is_conflict } => push(local, remote, name, here, there, is_conflict).await?,
            Choice::Take { is_conflict } => take(local, name, here, there, is_conflict).await?,
        };
        if let Some(done) = done {
            debug!(file = %name, ?done, "a shared file is alike");
            return Ok(done);
        }
    }
    Err(SharedError::Contested { object: name.to_string(), url: remote.url.clone() })
}

/// Runs what reads or writes files where that keeps nobody waiting.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SharedError> + Send + 'static,
) -> Result<T, SharedError> {
    spawn_blocking(work).await.map_err(SharedError::Stopped)?
}

async fn read(local: &Local, name: &Name, is_needed: bool) -> Result<Here, SharedError> {
    let (local, name) = (local.clone(), name.clone());
    blocking(move || local.read(&name, is_needed)).await
}

/// Looks at the object, and reads it unless it is certain to be as it was; `None` if it is too large.
async fn there(
    remote: &Remote,
    name: &Name,
    look: Option<&Look>,
    known: Option<&Alike>,
) -> Result<Option<There>, SharedError> {
    let as_known = |known: &Alike| There {
        digest: Some(known.digest.clone()),
        bytes: Vec::new(),
        version: Some(known.version()),
        is_recent: known.is_recent,
    };
    let none = || There { digest: None, bytes: Vec::new(), version: None, is_recent: false };
    match look {
        Some(Look::AsKnown) => return Ok(Some(known.map_or_else(none, as_known))),
        Some(Look::Listed { meta: None, .. }) => return Ok(Some(none())),
        Some(Look::Listed { meta: Some(meta), .. }) => {
            if let Some(known) = known.filter(|known| known.is(meta)) {
                return Ok(Some(as_known(known)));
            }
            if meta.size > MOST_BYTES {
                return Ok(None);
            }
        }
        None => {}
    }
    let found = match remote.get(name.as_str()).await {
        Err(SharedError::TooLarge { .. }) => return Ok(None),
        other => other?,
    };
    Ok(Some(found.map_or_else(none, |found| There {
        digest: Some(digest(&found.bytes)),
        bytes: found.bytes,
        is_recent: remote.is_folder && is_recent(found.meta.last_modified.timestamp()),
        version: Some(UpdateVersion { e_tag: found.meta.e_tag, version: found.meta.version }),
    })))
}

/// Notes what was found to be alike, if that is news. What was only assumed is none.
async fn note(local: &Local, name: &Name, here: &Here, there: &There, is_assumed: bool) -> Result<(), SharedError> {
    let alike = here.digest.clone().zip(there.version.clone());
    let alike = alike.map(|(digest, version)| Alike::new(digest, here.stat.clone(), version, there.is_recent));
    if is_assumed || alike == here.known {
        return Ok(());
    }
    keep_note(local, name, alike).await
}

async fn keep_note(local: &Local, name: &Name, alike: Option<Alike>) -> Result<(), SharedError> {
    let (local, name) = (local.clone(), name.clone());
    blocking(move || match alike {
        Some(alike) => local.note(&name, &alike),
        None => local.forget(&name),
    })
    .await
}

async fn keep_aside(local: &Local, name: &Name, bytes: Vec<u8>, loser: &'static str) -> Result<(), SharedError> {
    debug!(file = %name, loser, "a file was changed on two sides; the one that lost is kept in shared/conflicts");
    let (local, name) = (local.clone(), name.clone());
    blocking(move || local.keep_aside(&name, &bytes)).await
}

/// Gives the store what is here; `None` if it was changed meanwhile.
async fn push(
    local: &Local,
    remote: &Remote,
    name: &Name,
    here: Here,
    there: There,
    is_conflict: bool,
) -> Result<Option<Outcome>, SharedError> {
    if is_conflict {
        keep_aside(local, name, there.bytes, "store").await?;
    }
    if here.digest.is_none() {
        // No store deletes on a condition: looking right before it leaves the least time to others.
        match (remote.head(name.as_str()).await?, &there.version) {
            (None, _) => {}
            (Some(meta), Some(version)) if meta.e_tag == version.e_tag => remote.delete(name.as_str()).await?,
            (Some(_), _) => return Ok(None),
        }
        keep_note(local, name, None).await?;
        return Ok(Some((Moved::Deleted, is_conflict)));
    }
    // What is sent is what is there now, and is noted with the traits that it had before it was read.
    let here = if here.bytes.is_some() { here } else { read(local, name, true).await? };
    let (Some(bytes), Some(digest)) = (here.bytes, here.digest) else { return Ok(None) };
    let expected = there.version.map_or(Expected::None, Expected::Version);
    let Some(version) = remote.put(name.as_str(), bytes, expected).await? else { return Ok(None) };
    keep_note(local, name, Some(Alike::new(digest, here.stat, version, remote.is_folder))).await?;
    Ok(Some((Moved::Pushed, is_conflict)))
}

/// Gives this host what is in the store; `None` if it was changed meanwhile.
async fn take(
    local: &Local,
    name: &Name,
    here: Here,
    there: There,
    is_conflict: bool,
) -> Result<Option<Outcome>, SharedError> {
    if is_conflict {
        let Some(bytes) = read(local, name, true).await?.bytes else { return Ok(None) };
        keep_aside(local, name, bytes, "host").await?;
    }
    let (at, file, before) = (local.clone(), name.clone(), here.stat);
    let Some((digest, version)) = there.digest.zip(there.version) else {
        let is_removed = blocking(move || at.remove(&file, before.as_ref())).await?;
        if is_removed {
            keep_note(local, name, None).await?;
        }
        return Ok(is_removed.then_some((Moved::Removed, is_conflict)));
    };
    let taken = blocking(move || at.take(&file, &there.bytes, before.as_ref())).await?;
    let Some(stat) = taken else { return Ok(None) };
    keep_note(local, name, Some(Alike::new(digest, Some(stat), version, there.is_recent))).await?;
    Ok(Some((Moved::Taken, is_conflict)))
}
