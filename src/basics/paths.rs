//! The path on disk that a path in the config file becomes.

use std::path::{Path, PathBuf};

/// The folders that relative paths and credential names refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// The folder of the config file.
    pub base: PathBuf,
    /// systemd's `$CREDENTIALS_DIRECTORY`, if the service was started with credentials.
    pub credentials: Option<PathBuf>,
}

/// A credential was named, but the process was started without any.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the credential {0:?} is not there, because $CREDENTIALS_DIRECTORY is not set")]
pub struct NoCredentials(String);

impl Paths {
    /// Resolves a path: `credential:NAME` is a systemd credential, a relative path is relative to the config file.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, NoCredentials> {
        match path.to_str().and_then(|text| text.strip_prefix("credential:")) {
            None => Ok(self.base.join(path)),
            Some(name) => match &self.credentials {
                Some(folder) => Ok(folder.join(name)),
                None => Err(NoCredentials(name.to_owned())),
            },
        }
    }
}
