//! The authorities that vouch for a control plane: the text of a file that the settings of a pack name.
//!
//! The file counts as a part of the config file: it is read with it, and read again when that is (SIGHUP), so that
//! nothing but sources and clusters changes what a round does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gatewright_packs::gateway::authorities::{CaError, TlsSettings, authorities};

use super::settings::PackSettings;
use crate::basics::paths::{NoCredentials, Paths};

/// Authorities that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthorityError {
    /// The setting leads to no path.
    #[error(transparent)]
    Credentials(#[from] NoCredentials),
    /// The file cannot be read.
    #[error("cannot read the certificates {0:?}")]
    Read(PathBuf, #[source] std::io::Error),
    /// The file holds something else.
    #[error("cannot use the certificates {0:?}")]
    File(PathBuf, #[source] CaError),
    /// The text is something else.
    #[error("cannot use the certificates")]
    Text(#[source] CaError),
}

/// Reads the files that settings of packs name, makes their paths absolute, and returns their texts by pack.
pub(super) fn read_all(
    packs: &mut PackSettings,
    paths: &Paths,
    mut wrong: impl FnMut(&'static str, AuthorityError),
) -> BTreeMap<&'static str, String> {
    let all = [("kgateway", &mut packs.kgateway.xds.tls), ("agentgateway", &mut packs.agentgateway.xds.tls)];
    let mut texts = BTreeMap::new();
    for (name, tls) in all {
        match read(tls.as_mut(), paths) {
            Ok(text) => texts.extend(text.map(|text| (name, text))),
            Err(error) => wrong(name, error),
        }
    }
    texts
}

/// Reads the file that `tls.caFile` names, makes its path absolute, and returns its text; `None` if there is none.
fn read(tls: Option<&mut TlsSettings>, paths: &Paths) -> Result<Option<String>, AuthorityError> {
    let Some(tls) = tls else { return Ok(None) };
    if let Some(file) = &mut tls.ca_file {
        *file = paths.resolve(file)?;
        return text_of(file).map(Some);
    }
    if let Some(text) = &tls.ca {
        authorities(text).map_err(AuthorityError::Text)?;
    }
    Ok(None)
}

fn text_of(file: &Path) -> Result<String, AuthorityError> {
    let text = std::fs::read_to_string(file).map_err(|source| AuthorityError::Read(file.to_owned(), source))?;
    authorities(&text).map_err(|source| AuthorityError::File(file.to_owned(), source))
}
