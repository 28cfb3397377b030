//! The object that says whose store it is. A store without it is not the one that was used before: a bucket that was
//! emptied, a folder that is not mounted.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use object_store::ObjectMeta;
use tracing::info;

use super::Shared;
use crate::shared::error::SharedError;
use crate::shared::pass::blocking;
use crate::shared::remote::Expected;
use crate::state::new_installation;

/// Its name.
pub(super) const MARKER: &str = "gatewright-installation";

/// The most characters of an id.
const MOST_CHARS: usize = 64;

impl Shared {
    /// Makes sure that the store is that of this installation. One that nobody has used yet becomes it, unless this host has
    /// used one already; a host that has no id yet gets that of the store.
    pub(super) async fn confirm(&self, listing: Option<&BTreeMap<String, ObjectMeta>>) -> Result<(), SharedError> {
        let url = || self.remote.url.clone();
        let state = self.local.state.clone();
        let ours = blocking(move || Ok(state.installation()?)).await?;
        let is_listed = listing.is_none_or(|listing| listing.contains_key(MARKER));
        let mut found = if is_listed { self.remote.get(MARKER).await? } else { None };
        let mut theirs = None;
        if found.is_none() {
            let local = self.local.clone();
            if !blocking(move || Ok(local.all_known()?.is_empty())).await? {
                return Err(SharedError::OtherStore { url: url(), marker: MARKER });
            }
            let id = ours.clone().unwrap_or_else(new_installation);
            if self.remote.put(MARKER, id.clone().into_bytes(), Expected::None).await?.is_some() {
                info!(url = self.remote.url, installation = id, "this object store is used from now on");
                theirs = Some(id);
            } else {
                found = self.remote.get(MARKER).await?;
            }
        }
        let read = found.and_then(|found| String::from_utf8(found.bytes).ok()).map(|text| text.trim().to_owned());
        let theirs = theirs.or(read.filter(|text| is_id(text)));
        let theirs = theirs.ok_or_else(|| SharedError::NoInstallation { url: url(), marker: MARKER })?;
        let ours = if let Some(ours) = ours {
            ours
        } else {
            let (state, id) = (self.local.state.clone(), theirs.clone());
            blocking(move || Ok(state.adopt_installation(&id)?)).await?
        };
        if ours != theirs {
            return Err(SharedError::OtherInstallation { url: url(), ours, theirs });
        }
        self.is_confirmed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

fn is_id(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !text.is_empty() && text.len() <= MOST_CHARS && text.chars().all(is_plain)
}
