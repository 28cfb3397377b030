//! The secrets of a source, read from their files for one poll.
//!
//! They are handed to libgit2 and to nobody else; deciding when is the conversation's business.

use std::io;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::failure::Failure;
use super::settings::Auth;
use crate::basics::private::{self, TooOpen};
use crate::source::Reason;

/// The credentials that a server is shown when it asks who we are.
#[derive(Debug)]
pub(super) enum Credentials {
    /// Nothing.
    None,
    /// A name, and a password or token.
    Password {
        /// The name.
        username: String,
        /// The password or token.
        secret: SecretString,
    },
    /// A key pair; the file is read by libgit2.
    Key {
        /// The private key.
        file: PathBuf,
        /// The passphrase that the private key is encrypted with.
        passphrase: Option<SecretString>,
    },
}

/// A file that a setting names cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {file:?}, which `auth.{setting}` names")]
pub(super) struct FileError {
    setting: &'static str,
    file: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Takes the setting's name, without `auth.`, and what happened to its file.
    pub(super) fn new(setting: &'static str, file: &Path, source: io::Error) -> Self {
        Self { setting, file: file.to_owned(), source }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let hint = match error.source.kind() {
            _ if TooOpen::is(&error.source) => TooOpen::HINT,
            io::ErrorKind::PermissionDenied => "Let the user that gatewright runs as read the file.",
            io::ErrorKind::NotFound => "Put the file there, or correct the setting.",
            _ => "Look at what is in the file.",
        };
        Self::new(Reason::Invalid, error).hint(hint)
    }
}

impl Credentials {
    /// Reads what the settings name.
    pub(super) fn read(auth: &Auth) -> Result<Self, FileError> {
        if let Some(file) = &auth.ssh_key_file {
            // Only tried: libgit2 reads it again, but its error would not say which file it was.
            private::open(file).map_err(|error| FileError::new("sshKeyFile", file, error))?;
            let passphrase = match &auth.ssh_key_passphrase_file {
                Some(file) => Some(read_secret("sshKeyPassphraseFile", file)?),
                None => None,
            };
            return Ok(Self::Key { file: file.clone(), passphrase });
        }
        let secret = match (&auth.token_file, &auth.password_file) {
            (Some(file), _) => read_secret("tokenFile", file)?,
            (None, Some(file)) => read_secret("passwordFile", file)?,
            (None, None) => return Ok(Self::None),
        };
        Ok(Self::Password { username: auth.username.clone().unwrap_or_else(|| "git".to_owned()), secret })
    }

    /// Takes the secrets out of a text that a server may have written.
    pub(super) fn mask(&self, text: &str) -> String {
        let secret = match self {
            Self::None => None,
            Self::Password { secret, .. } => Some(secret),
            Self::Key { passphrase, .. } => passphrase.as_ref(),
        };
        secret.map_or_else(|| text.to_owned(), |secret| text.replace(secret.expose_secret(), "***"))
    }
}

/// Reads a secret, without the end of line that editors add.
fn read_secret(setting: &'static str, file: &Path) -> Result<SecretString, FileError> {
    let text = private::read_to_string(file).map_err(|error| FileError::new(setting, file, error))?;
    let text = SecretString::from(text);
    let secret = text.expose_secret().trim();
    if secret.is_empty() {
        return Err(FileError::new(setting, file, io::Error::new(io::ErrorKind::InvalidData, "the file is empty")));
    }
    Ok(SecretString::from(secret))
}

impl Auth {
    /// Says what to look at when a server lets us not in.
    pub(super) fn advice(&self) -> String {
        match (&self.token_file, &self.password_file, &self.ssh_key_file) {
            (Some(file), _, _) => {
                format!("Check that the token in {} is valid and may read the repository.", file.display())
            }
            (None, Some(file), _) => format!("Check `auth.username` and the password in {}.", file.display()),
            (None, None, Some(file)) => format!(
                "Check that the server knows the public half of {} and lets it read the repository, and that \
                 `auth.sshKeyPassphraseFile` fits it.",
                file.display()
            ),
            (None, None, None) => "If it is not public, name a file with a token in `auth.tokenFile`.".to_owned(),
        }
    }

    /// Says what to look at when we do not trust a server's certificate.
    pub(super) fn advice_on_trust(&self) -> String {
        let authority = match &self.ca_file {
            Some(file) => format!("Check that the authority of the server's certificate is in {}", file.display()),
            None => "If the certificate comes from an authority of your own, name its file in `auth.caFile`".to_owned(),
        };
        format!("{authority}; also look at when the certificate expires and for which names it is.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::error::Chain;

    fn auth(file: &Path) -> Auth {
        Auth { token_file: Some(file.to_owned()), ..Auth::default() }
    }

    #[test]
    fn a_token_is_trimmed_and_never_shown() {
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        let file = folder.path().join("token");
        private::tests::write(&file, "  hunter2\n").expect("the folder can be written");
        let credentials = Credentials::read(&auth(&file)).expect("the file is there");
        assert!(matches!(&credentials, Credentials::Password { username, secret }
            if username == "git" && secret.expose_secret() == "hunter2"));
        assert!(!format!("{credentials:?}").contains("hunter2"));
        assert_eq!(credentials.mask("remote: hunter2 is wrong"), "remote: *** is wrong");
    }

    #[test]
    fn an_empty_or_missing_file_is_an_error_and_not_no_credentials() {
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        let file = folder.path().join("token");
        let error = Credentials::read(&auth(&file)).expect_err("the file is not there");
        assert!(Chain(&error).to_string().contains("`auth.tokenFile` names: No such file"), "{}", Chain(&error));
        private::tests::write(&file, "\n").expect("the folder can be written");
        let error = Credentials::read(&auth(&file)).expect_err("the file is empty");
        assert!(Chain(&error).to_string().ends_with("the file is empty"));
    }
}
