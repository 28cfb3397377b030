//! The object that says whose store it is. A store without it, or with another one, is not the one that was used before: a
//! bucket that was emptied, a folder that is not mounted.

use std::collections::BTreeMap;

use object_store::ObjectMeta;
use tokio::time::{Duration, Instant};
use tracing::info;

use super::Shared;
use crate::basics::lock::lock;
use crate::shared::error::SharedError;
use crate::shared::pass::blocking;
use crate::shared::remote::Expected;
use crate::state::new_installation;

/// Its name.
pub(super) const MARKER: &str = "gatewright-installation";

/// The file below the state folder with the id of the store that this host uses.
const STORE: &str = "shared/store";

/// The time for which a look at it counts: a folder may be unmounted at any moment.
const COUNTS: Duration = Duration::from_secs(2);

/// The most characters of an id.
const MOST_CHARS: usize = 64;

/// The content of the marker.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Marker {
    /// The installation that the store belongs to.
    installation: String,
    /// A random id: a store that was emptied and used again has another one.
    store: String,
    /// The group of hosts that use it.
    group: String,
}

impl Marker {
    fn text(&self) -> Vec<u8> {
        format!("{}\n{}\n{}\n", self.installation, self.store, self.group).into_bytes()
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let text = String::from_utf8(bytes).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let [installation, store, group] = lines[..] else { return None };
        let is_good = lines.iter().all(|line| is_id(line));
        is_good.then(|| Self { installation: installation.into(), store: store.into(), group: group.into() })
    }
}

impl Shared {
    /// Returns the installation that the store belongs to; `None` if nobody has used it. Nothing is written.
    pub async fn installation(&self) -> Result<Option<String>, SharedError> {
        let Some(found) = self.remote.get(MARKER).await? else { return Ok(None) };
        Marker::parse(found.bytes).map(|marker| Some(marker.installation)).ok_or_else(|| self.no_marker())
    }

    /// Makes sure that the store is still the one that it was a moment ago.
    pub(super) async fn confirm_again(&self) -> Result<(), SharedError> {
        let last = *lock(&self.confirmed);
        if last.is_some_and(|last| Instant::now() < last + COUNTS) {
            return Ok(());
        }
        self.confirm(None).await
    }

    /// Makes sure that the store is that of this installation, of this group, and the one that this host has used. One that
    /// nobody has used yet becomes it, where that is for this process to decide; a host that has no id yet gets that of the
    /// store.
    pub(super) async fn confirm(&self, listing: Option<&BTreeMap<String, ObjectMeta>>) -> Result<(), SharedError> {
        *lock(&self.confirmed) = None;
        let state = self.local.state.clone();
        let ours = blocking(move || Ok(state.installation()?)).await?;
        let is_listed = listing.is_none_or(|listing| listing.contains_key(MARKER));
        let found = if is_listed { self.remote.get(MARKER).await? } else { None };
        let found = match found {
            Some(found) => Some(found),
            None => self.found(ours.clone()).await?,
        };
        let found = found.ok_or_else(|| self.no_marker())?;
        let marker = Marker::parse(found.bytes).ok_or_else(|| self.no_marker())?;
        let ours = if let Some(ours) = ours {
            ours
        } else {
            let (state, id) = (self.local.state.clone(), marker.installation.clone());
            blocking(move || Ok(state.adopt_installation(&id)?)).await?
        };
        if ours != marker.installation {
            return Err(SharedError::OtherInstallation {
                url: self.remote.url.clone(),
                ours,
                theirs: marker.installation,
            });
        }
        if self.group != marker.group {
            let (url, ours) = (self.remote.url.clone(), self.group.clone());
            return Err(SharedError::OtherGroup { url, ours, theirs: marker.group });
        }
        self.remember(&marker.store).await?;
        *lock(&self.confirmed) = Some(Instant::now());
        Ok(())
    }

    /// Uses a store that nobody has used, and returns what is in the marker then.
    async fn found(&self, ours: Option<String>) -> Result<Option<super::remote::Found>, SharedError> {
        let local = self.local.clone();
        let is_used =
            blocking(move || Ok(local.state.read(STORE)?.is_some() || !local.all_known()?.is_empty())).await?;
        if is_used {
            return Err(SharedError::OtherStore { url: self.remote.url.clone(), marker: MARKER });
        }
        if !self.may_found {
            return Err(SharedError::Unused { url: self.remote.url.clone() });
        }
        let installation = ours.unwrap_or_else(new_installation);
        let marker = Marker { installation, store: new_installation(), group: self.group.clone() };
        if self.remote.put(MARKER, marker.text(), Expected::None).await?.is_some() {
            info!(url = self.remote.url, installation = marker.installation, "this object store is used from now on");
        }
        self.remote.get(MARKER).await
    }

    /// Remembers which store it is, the first time; later it has to be that one.
    async fn remember(&self, id: &str) -> Result<(), SharedError> {
        let (local, state, id) = (self.local.clone(), self.local.state.clone(), id.to_owned());
        let is_it = blocking(move || {
            let Some(known) = state.read(STORE)? else {
                // Files that were once alike with a store of which nothing is known.
                if !local.all_known()?.is_empty() {
                    return Ok(false);
                }
                state.write_unnoted(STORE, id.as_bytes())?;
                return Ok(true);
            };
            Ok(known == id.as_bytes())
        });
        if is_it.await? {
            Ok(())
        } else {
            Err(SharedError::OtherStore { url: self.remote.url.clone(), marker: MARKER })
        }
    }

    fn no_marker(&self) -> SharedError {
        SharedError::NoInstallation { url: self.remote.url.clone(), marker: MARKER }
    }
}

fn is_id(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    !text.is_empty() && text.len() <= MOST_CHARS && text.chars().all(is_plain)
}
