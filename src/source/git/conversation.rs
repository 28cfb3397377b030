//! One conversation with a server: who it is, who we are, what it has.
//!
//! libgit2 asks questions through callbacks and flattens what they answer into a text.
//! So the first refusal is kept here as it was, and stands for whatever error comes of it.

use std::cell::Cell;
use std::fs;

use git2::cert::Cert;
use git2::{
    AutotagOption, CertificateCheckStatus, Cred, CredentialType, Direction, ErrorClass, ErrorCode, FetchOptions,
    Remote, RemoteCallbacks, RemoteConnection, RemoteRedirect, Repository,
};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use super::address::{Address, Host, Transport};
use super::credentials::{Credentials, FileError};
use super::failure::{Failure, Stage, explain};
use super::known_hosts::{self, HostKey};
use super::mirror;
use super::refs::{self, References, Wanted};
use super::settings::Settings;
use crate::source::Reason;

/// The most bytes that a server may send for one commit.
const MAX_FETCH_BYTES: usize = 2 * 1024 * 1024 * 1024;

/// The part of the mirror that says what was fetched last, which spares a server to send it again.
const LAST: &str = "refs/gatewright/last";

/// The most branches, tags and other references that a repository may have.
const MAX_REFERENCES: usize = 200_000;

/// Asks the server what there is, and fetches what is wanted into the mirror unless it is there already.
pub(super) fn update(
    settings: &Settings,
    mirror: &Repository,
    have: Option<&str>,
    cancelled: &CancellationToken,
) -> Result<Option<Wanted>, Failure> {
    let conversation = Conversation::new(settings, cancelled)?;
    let remote = mirror.remote_anonymous(settings.url.as_str());
    let mut remote = remote.map_err(|error| Failure::of_mirror(&error))?;
    let (mut connection, references) = conversation.list(&mut remote)?;
    let wanted = refs::choose(&references, settings.reference.as_ref())?;
    if have == Some(wanted.revision.as_str()) {
        return Ok(None);
    }
    if !mirror::has(mirror, wanted.commit) {
        conversation.fetch(&mut connection, &wanted)?;
    }
    Ok(Some(wanted))
}

/// The state of a conversation: what is known and decided in it.
struct Conversation<'a> {
    settings: &'a Settings,
    credentials: Credentials,
    cancelled: &'a CancellationToken,
    asked: Cell<bool>,
    refusal: Cell<Option<Failure>>,
}

impl<'a> Conversation<'a> {
    /// Prepares for one, which reads the files with secrets.
    fn new(settings: &'a Settings, cancelled: &'a CancellationToken) -> Result<Self, Failure> {
        if let Some(file) = &settings.auth.ca_file {
            super::limits::trust(file).map_err(|error| FileError::new("caFile", file, error))?;
        }
        let credentials = Credentials::read(&settings.auth)?;
        Ok(Self { settings, credentials, cancelled, asked: Cell::new(false), refusal: Cell::new(None) })
    }

    /// Connects, and returns what the repository has.
    fn list<'c, 'r>(
        &'c self,
        remote: &'c mut Remote<'r>,
    ) -> Result<(RemoteConnection<'r, 'c, 'c>, References), Failure> {
        let connected = remote.connect_auth(Direction::Fetch, Some(self.callbacks()), None);
        let connection = connected.map_err(|error| self.failure(&error, Stage::List))?;
        let heads = connection.list().map_err(|error| self.failure(&error, Stage::List))?;
        if heads.len() > MAX_REFERENCES {
            let hint = "Keep the specs in a repository of their own.";
            let problem = format!("the repository has more than {MAX_REFERENCES} branches, tags and other references");
            return Err(Failure::new(Reason::Invalid, problem).hint(hint));
        }
        let tips = heads.iter().map(|head| (head.name().to_owned(), head.oid())).collect();
        // It fails for an empty repository and a HEAD on no branch, which are no failures to list.
        let default = connection.default_branch().ok().and_then(|name| name.as_str().ok().map(str::to_owned));
        Ok((connection, References { tips, default }))
    }

    fn fetch(&self, connection: &mut RemoteConnection<'_, '_, '_>, wanted: &Wanted) -> Result<(), Failure> {
        let mut options = FetchOptions::new();
        options.remote_callbacks(self.callbacks()).depth(1).download_tags(AutotagOption::None).update_fetchhead(false);
        options.follow_redirects(RemoteRedirect::None);
        let what = format!("+{}:{LAST}", wanted.ask_for);
        let fetched = connection.remote().fetch(&[what], Some(&mut options), None);
        fetched.map_err(|error| self.failure(&error, Stage::Fetch))
    }

    fn callbacks(&self) -> RemoteCallbacks<'_> {
        let mut callbacks = RemoteCallbacks::new();
        callbacks.credentials(|url, _, allowed| self.introduce(url, allowed));
        callbacks.transfer_progress(|progress| self.goes_on(progress.received_bytes()));
        callbacks.sideband_progress(|_| self.goes_on(0));
        if let Transport::Ssh(host, _) = self.settings.url.transport() {
            callbacks.certificate_check(move |certificate, _| self.recognize(certificate, host));
        }
        callbacks
    }

    /// Answers who we are, once: a server that asks again did not like the answer, and hammering locks accounts.
    fn introduce(&self, url: &str, allowed: CredentialType) -> Result<Cred, git2::Error> {
        let transport = self.settings.url.transport();
        if let (Transport::Ssh(_, user), true) = (transport, allowed.contains(CredentialType::USERNAME)) {
            return Cred::username(user);
        }
        let advice = || self.settings.auth.advice();
        if self.asked.replace(true) {
            let failure = Failure::new(Reason::AuthFailed, "the server refused the credentials");
            return Err(self.refuse(failure.hint(advice())));
        }
        match (&self.credentials, transport) {
            (Credentials::Password { username, secret }, Transport::Https(host))
                if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) =>
            {
                self.check_redirect(url, host)?;
                Cred::userpass_plaintext(username, secret.expose_secret())
            }
            (Credentials::Key { file, passphrase }, Transport::Ssh(_, user))
                if allowed.contains(CredentialType::SSH_KEY) =>
            {
                Cred::ssh_key(user, None, file, passphrase.as_ref().map(ExposeSecret::expose_secret))
            }
            _ => {
                let problem = "the server asks for credentials, and the source has none that it takes";
                Err(self.refuse(Failure::new(Reason::AuthFailed, problem).hint(advice())))
            }
        }
    }

    /// Sees to it that a password goes to nobody but the server that it is for.
    fn check_redirect(&self, url: &str, host: &Host) -> Result<(), git2::Error> {
        match Address::try_from(url.to_owned()) {
            Ok(address) if *address.transport() == Transport::Https(host.clone()) => Ok(()),
            other => {
                let to = other.map_or_else(|_| "another address".to_owned(), |address| address.to_string());
                let problem = format!("the server redirects to {to}, which is not sent the credentials");
                let failure = Failure::new(Reason::Untrusted, problem);
                Err(self.refuse(failure.hint("If that is where the repository is now, write it into `url`.")))
            }
        }
    }

    /// Decides whether an ssh server is the one it should be.
    fn recognize(&self, certificate: &Cert<'_>, host: &Host) -> Result<CertificateCheckStatus, git2::Error> {
        let key = certificate.as_hostkey().and_then(|key| key.hostkey());
        let (Some(key), Some(file)) = (key, &self.settings.auth.known_hosts_file) else {
            return Err(self.refuse(Failure::new(Reason::Untrusted, "there is nothing to know the ssh server by")));
        };
        let text = fs::read_to_string(file)
            .map_err(|error| self.refuse(FileError::new("knownHostsFile", file, error).into()))?;
        known_hosts::check(&text, host, HostKey(key.to_vec())).map_err(|mistrust| {
            let hint = mistrust.hint(host, &file.display().to_string());
            self.refuse(Failure::new(Reason::Untrusted, mistrust).hint(hint))
        })?;
        Ok(CertificateCheckStatus::CertificateOk)
    }

    /// Tells whether a transfer is still wanted and within bounds.
    fn goes_on(&self, received: usize) -> bool {
        let refusal = if self.cancelled.is_cancelled() {
            Failure::new(Reason::Unreachable, "it took too long")
        } else if received > MAX_FETCH_BYTES {
            let problem = format!("the repository is larger than {} MiB", MAX_FETCH_BYTES >> 20);
            Failure::new(Reason::Invalid, problem).hint("Keep the specs in a repository of their own.")
        } else {
            return true;
        };
        drop(self.refuse(refusal));
        false
    }

    /// Keeps a refusal, and returns the error that ends the conversation.
    fn refuse(&self, failure: Failure) -> git2::Error {
        // Only the first one counts: those that follow come of it.
        let first = self.refusal.take().unwrap_or(failure);
        self.refusal.set(Some(first));
        git2::Error::new(ErrorCode::User, ErrorClass::Callback, "refused")
    }

    fn failure(&self, error: &git2::Error, stage: Stage) -> Failure {
        self.refusal.take().unwrap_or_else(|| explain(error, stage, self.settings, &self.credentials))
    }
}
