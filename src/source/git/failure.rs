//! The reasons why a poll failed, and what libgit2's errors mean.
//!
//! libgit2 tells little by codes and much by text, so some of the text is looked at; the library is built in, hence
//! its text is known.
//! Nothing here ever contains a secret.

use std::error::Error as StdError;

use git2::{ErrorClass, ErrorCode};

use super::address::Transport;
use super::credentials::Credentials;
use super::settings::Settings;
use crate::source::Reason;

/// The longest text of a server that is passed on, in characters.
const MAX_TEXT: usize = 300;

/// The reason why a poll failed: everything of a [`SourceError`](crate::source::SourceError) but the address.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: Reason,
    pub(super) cause: Box<dyn StdError + Send + Sync>,
    pub(super) hint: Option<String>,
    /// Whether a damaged mirror may have caused it, so that a new one would help.
    pub(super) of_mirror: bool,
}

impl Failure {
    pub(super) fn new(reason: Reason, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { reason, cause: cause.into(), hint: None, of_mirror: false }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Takes an error of the mirror or of its objects.
    pub(super) fn of_mirror(error: &git2::Error) -> Self {
        Self::damaged(clean(error.message()))
    }

    fn damaged(error: String) -> Self {
        let hint = "Look whether the disk of `stateDir` is full or failing, and whether gatewright may write there.";
        Self { of_mirror: true, ..Self::new(Reason::Invalid, error).hint(hint) }
    }
}

/// The part of a poll that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Connecting and listing what is there.
    List,
    /// Fetching a commit into the mirror.
    Fetch,
}

/// Tells what an error in talking to a server means, and what to do about it.
pub(super) fn explain(error: &git2::Error, stage: Stage, settings: &Settings, secrets: &Credentials) -> Failure {
    let text = clean(&secrets.mask(error.message()));
    if stage == Stage::Fetch && may_be_the_mirror(error) {
        return Failure::damaged(text);
    }
    judge(error, settings, |reason| Failure::new(reason, text))
}

fn judge(error: &git2::Error, settings: &Settings, fail: impl FnOnce(Reason) -> Failure) -> Failure {
    if let Some(status) = http_status(error.message()) {
        return judge_status(status, settings, fail);
    }
    if error.message().starts_with("cannot redirect from ") {
        return fail(Reason::Untrusted).hint(
            "Redirects are followed on the same host only; if that is where the repository is now, write it into `url`.",
        );
    }
    match (error.code(), error.class()) {
        (ErrorCode::Certificate, _) => fail(Reason::Untrusted).hint(settings.auth.advice_on_trust()),
        (ErrorCode::Auth, _) => fail(Reason::AuthFailed).hint(settings.auth.advice()),
        (_, ErrorClass::Ssh) => judge_ssh(error, settings, fail),
        (ErrorCode::NotFound, _) => fail(Reason::NotFound),
        (_, ErrorClass::Http) => fail(Reason::Invalid)
            .hint("Try `git ls-remote` with the source's `url`: it has to be the one to clone from."),
        (_, ErrorClass::Net | ErrorClass::Os | ErrorClass::Ssl) | (ErrorCode::Timeout | ErrorCode::Eof, _) => {
            Failure { hint: way(settings), ..fail(Reason::Unreachable) }
        }
        (_, ErrorClass::Invalid) if error.message().starts_with("cannot fetch a specific object") => {
            fail(Reason::NotFound).hint(
                "The commit is not the tip of a branch or tag, and this server gives out nothing else: name a branch \
                 or tag, or set `uploadpack.allowReachableSHA1InWant` on the server.",
            )
        }
        _ => fail(Reason::Invalid),
    }
}

fn judge_status(status: u16, settings: &Settings, fail: impl FnOnce(Reason) -> Failure) -> Failure {
    let advice = settings.auth.advice();
    match status {
        401 | 403 | 407 => fail(Reason::AuthFailed).hint(advice),
        404 | 410 => fail(Reason::NotFound)
            .hint(format!("Check `url`. Many servers also answer so to who may not read it. {advice}")),
        429 => fail(Reason::Unreachable).hint("The server asks for fewer requests: raise `poll` of its sources."),
        408 | 500.. => fail(Reason::Unreachable).hint("The server is in trouble; the next poll tries again."),
        _ => fail(Reason::Invalid),
    }
}

/// With ssh there are no codes at all.
fn judge_ssh(error: &git2::Error, settings: &Settings, fail: impl FnOnce(Reason) -> Failure) -> Failure {
    let text = error.message();
    if text.contains("uthenticat") {
        fail(Reason::AuthFailed).hint(settings.auth.advice())
    } else if error.code() == ErrorCode::Eof {
        // It started git, which said on its standard error why it ends.
        fail(Reason::NotFound).hint(format!("Check `url`. {}", settings.auth.advice()))
    } else {
        Failure { hint: way(settings), ..fail(Reason::Unreachable) }
    }
}

/// Says what lies between us and the server.
fn way(settings: &Settings) -> Option<String> {
    match settings.url.transport() {
        Transport::Https(host) | Transport::Http(host) | Transport::Ssh(host, _) => Some(format!(
            "Check on this machine that {} resolves and that nothing blocks port {}.",
            host.name, host.port
        )),
        Transport::Local(_) => None,
    }
}

/// Finds the status in the only text that has one.
fn http_status(text: &str) -> Option<u16> {
    text.strip_prefix("unexpected http status code: ")?.parse().ok()
}

/// Tells whether an error can come from what lies in the mirror.
fn may_be_the_mirror(error: &git2::Error) -> bool {
    if error.message().starts_with("SSL error") {
        // The connection was cut, which is also told as an error of the system.
        return false;
    }
    let lock = error.code() == ErrorCode::Locked;
    let object = matches!(
        error.class(),
        ErrorClass::Odb
            | ErrorClass::Zlib
            | ErrorClass::Object
            | ErrorClass::Tree
            | ErrorClass::Reference
            | ErrorClass::Repository
            | ErrorClass::Config
            | ErrorClass::Indexer
            | ErrorClass::Os
            | ErrorClass::Filesystem
    );
    lock || object
}

/// Makes a text that came over the network fit for one line of a log.
fn clean(text: &str) -> String {
    let mut shown = String::new();
    for character in text.trim().chars().take(MAX_TEXT) {
        match character {
            '\n' | '\t' => shown.push(' '),
            control if control.is_control() => shown.extend(control.escape_default()),
            other => shown.push(other),
        }
    }
    if text.trim().chars().nth(MAX_TEXT).is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(code: ErrorCode, class: ErrorClass, text: &str) -> Reason {
        let settings = serde_json::from_value(json!({"url": "https://example.com/a"})).expect("a valid address");
        explain(&git2::Error::new(code, class, text), Stage::List, &settings, &Credentials::None).reason
    }

    #[test]
    fn errors_of_libgit2_are_told_apart() {
        let generic = ErrorCode::GenericError;
        assert_eq!(check(ErrorCode::Certificate, ErrorClass::Ssl, "no"), Reason::Untrusted);
        assert_eq!(check(generic, ErrorClass::Net, "cannot redirect from 'a' to 'b'"), Reason::Untrusted);
        assert_eq!(check(ErrorCode::Auth, ErrorClass::Http, "no"), Reason::AuthFailed);
        assert_eq!(check(ErrorCode::Timeout, ErrorClass::Net, "no"), Reason::Unreachable);
        assert_eq!(check(generic, ErrorClass::Net, "failed to connect"), Reason::Unreachable);
        assert_eq!(check(generic, ErrorClass::Http, "invalid content-type: 'text/html'"), Reason::Invalid);
        assert_eq!(check(generic, ErrorClass::Http, "unexpected http status code: 403"), Reason::AuthFailed);
        assert_eq!(check(generic, ErrorClass::Http, "unexpected http status code: 404"), Reason::NotFound);
        assert_eq!(check(generic, ErrorClass::Http, "unexpected http status code: 503"), Reason::Unreachable);
        assert_eq!(check(generic, ErrorClass::Ssh, "failed to authenticate SSH session"), Reason::AuthFailed);
        assert_eq!(check(generic, ErrorClass::Ssh, "failed to start SSH session"), Reason::Unreachable);
        assert_eq!(check(ErrorCode::Eof, ErrorClass::Ssh, "fatal: no such repository"), Reason::NotFound);
    }

    #[test]
    fn text_from_the_network_stays_on_one_line_and_is_cut() {
        assert_eq!(clean("a\nb\u{1b}[31m "), "a b\\u{1b}[31m");
        assert_eq!(clean(&"x".repeat(1000)).chars().count(), MAX_TEXT + 1);
    }
}
