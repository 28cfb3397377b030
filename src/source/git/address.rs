//! The address of a repository: the forms that are accepted, and none else.
//!
//! An address goes into logs and reports, so it holds no secret: passwords and tokens belong in files.
//! It goes to servers too, so nothing in it may be taken for an option of a command line.
//! Reaching the repository is not done here.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The address of a repository.
///
/// One of `https://HOST/PATH`, `http://HOST/PATH`, `ssh://USER@HOST/PATH`, `USER@HOST:PATH`, `file:///PATH` or a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Address {
    text: String,
    transport: Transport,
}

/// The way in which a repository is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP inside TLS.
    Https(Host),
    /// HTTP in the clear.
    Http(Host),
    /// SSH, with the name of the user there.
    Ssh(Host, String),
    /// A repository on this disk.
    Local(PathBuf),
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name or IP address in lower case, without brackets.
    pub name: String,
    /// Its port.
    pub port: u16,
}

/// A text is no address of a repository.
///
/// The messages do not quote the address: what is wrong with it may be a secret inside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It has a scheme that is not supported.
    #[error("{0:?} is no supported scheme: use https, ssh, file or http")]
    Scheme(String),
    /// There is a user or password in it.
    #[error("the address contains a user name or password: put those into `auth.username` and `auth.tokenFile`")]
    UserInfo,
    /// There is a query or fragment in it.
    #[error("the address contains a query or fragment, which repositories do not have")]
    Query,
    /// The host, the port or the path is missing or has characters that do not belong there.
    #[error("the address has no valid {0}")]
    Part(&'static str),
}

impl Address {
    /// Returns how the repository is reached.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the address as it was written, but for a relative path that was resolved.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Makes the path of a repository on this disk absolute.
    pub fn resolve(&mut self, base: &Path) {
        if let Transport::Local(path) = &mut self.transport {
            *path = base.join(&*path);
            self.text = path.display().to_string();
        }
    }
}

impl fmt::Display for Address {
    /// Shows the address without the name of the user.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transport::Ssh(_, user) = &self.transport else { return f.write_str(&self.text) };
        let (scheme, rest) = self.text.split_at(self.text.find("://").map_or(0, |at| at + "://".len()));
        let host = rest.strip_prefix(user.as_str()).and_then(|rest| rest.strip_prefix('@')).unwrap_or(rest);
        write!(f, "{scheme}{host}")
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        let transport = parse(&text)?;
        Ok(Self { text, transport })
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.text
    }
}

fn parse(text: &str) -> Result<Transport, AddressError> {
    if text.is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
        return Err(AddressError::Part("path"));
    }
    match text.split_once("://") {
        Some(("https", rest)) => Ok(Transport::Https(parse_http(rest, 443)?)),
        Some(("http", rest)) => Ok(Transport::Http(parse_http(rest, 80)?)),
        Some(("ssh", rest)) => parse_ssh(rest),
        Some(("file", rest)) => parse_file(rest),
        Some((scheme, _)) => Err(AddressError::Scheme(scheme.to_owned())),
        None => match text.split_once(':') {
            // The form of scp; a path with a colon in it is written with a slash before that.
            Some((host, path)) if !host.contains('/') => parse_scp(host, path),
            _ => Ok(Transport::Local(PathBuf::from(text))),
        },
    }
}

fn parse_http(rest: &str, port: u16) -> Result<Host, AddressError> {
    let (authority, path) = rest.split_once('/').ok_or(AddressError::Part("path"))?;
    if authority.contains('@') {
        return Err(AddressError::UserInfo);
    }
    if rest.contains(['?', '#']) {
        return Err(AddressError::Query);
    }
    check_path(path)?;
    parse_host(authority, port)
}

fn parse_ssh(rest: &str) -> Result<Transport, AddressError> {
    let (authority, path) = rest.split_once('/').ok_or(AddressError::Part("path"))?;
    check_path(path)?;
    let (user, authority) = parse_user(authority)?;
    Ok(Transport::Ssh(parse_host(authority, 22)?, user))
}

fn parse_scp(host: &str, path: &str) -> Result<Transport, AddressError> {
    // Some servers also give out `ext::command` and the like, which run programs.
    if path.starts_with(':') {
        return Err(AddressError::Scheme(format!("{host}::")));
    }
    if path.split('/').next().is_some_and(|first| first.contains('@')) {
        return Err(AddressError::UserInfo);
    }
    check_path(path)?;
    let (user, host) = parse_user(host)?;
    if host.contains(':') {
        return Err(AddressError::Part("host"));
    }
    Ok(Transport::Ssh(parse_host(host, 22)?, user))
}

fn parse_file(rest: &str) -> Result<Transport, AddressError> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if path.starts_with('/') { Ok(Transport::Local(PathBuf::from(path))) } else { Err(AddressError::Part("path")) }
}

/// Splits the name of the user from the host; `git` is what nearly every server calls it.
fn parse_user(authority: &str) -> Result<(String, &str), AddressError> {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("git", authority));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if user.contains(':') {
        return Err(AddressError::UserInfo);
    }
    if user.is_empty() || user.starts_with('-') || !user.chars().all(fits) {
        return Err(AddressError::Part("user name"));
    }
    Ok((user.to_owned(), host))
}

fn parse_host(authority: &str, default: u16) -> Result<Host, AddressError> {
    let (name, port, fits): (_, _, fn(char) -> bool) = if let Some(rest) = authority.strip_prefix('[') {
        let (name, after) = rest.split_once(']').ok_or(AddressError::Part("host"))?;
        (name, after, |c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'))
    } else {
        let (name, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        (name, port, |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
        return Err(AddressError::Part("host"));
    }
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(AddressError::Part("port"))?,
        None if port.is_empty() => default,
        None => return Err(AddressError::Part("port")),
    };
    Ok(Host { name: name.to_ascii_lowercase(), port })
}

fn check_path(path: &str) -> Result<(), AddressError> {
    if path.is_empty() || path.starts_with('-') || path.contains(char::is_whitespace) {
        return Err(AddressError::Part("path"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Transport, AddressError> {
        Address::try_from(text.to_owned()).map(|address| address.transport)
    }

    fn host(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    #[test]
    fn every_form_of_address_is_understood() {
        assert_eq!(parsed("https://Git.example.com/a/b.git"), Ok(Transport::Https(host("git.example.com", 443))));
        assert_eq!(parsed("http://[::1]:8080/a"), Ok(Transport::Http(host("::1", 8080))));
        assert_eq!(parsed("ssh://me@example.com:2222/a"), Ok(Transport::Ssh(host("example.com", 2222), "me".into())));
        assert_eq!(parsed("git@example.com:a/b.git"), Ok(Transport::Ssh(host("example.com", 22), "git".into())));
        assert_eq!(parsed("example.com:a/b.git"), Ok(Transport::Ssh(host("example.com", 22), "git".into())));
        assert_eq!(parsed("file:///srv/a.git"), Ok(Transport::Local("/srv/a.git".into())));
        assert_eq!(parsed("./a:b"), Ok(Transport::Local("./a:b".into())));
    }

    #[test]
    fn secrets_in_an_address_are_refused_and_not_repeated() {
        for text in [
            "https://hunter2@example.com/a",
            "https://me:hunter2@example.com/a",
            "ssh://me:hunter2@example.com/a",
            "me:hunter2@example.com:a",
            "https://example.com/a?private_token=hunter2",
        ] {
            let error = parsed(text).expect_err("the address contains a secret").to_string();
            assert!(!error.contains("hunter2"), "{text}: {error:?}");
        }
    }

    #[test]
    fn anything_that_could_run_a_program_or_be_an_option_is_refused() {
        for text in [
            "ext::sh -c id",
            "ext::sh",
            "fd::17",
            "git://example.com/a",
            "ftp://example.com/a",
            "-oProxyCommand=id",
            "ssh://-oProxyCommand=id/a",
            "ssh://-l@example.com/a",
            "-u@example.com:a",
            "git@example.com:-a",
            "https://example.com\nhost=other/a",
            "https://exa%0ample.com/a",
            "https://example.com",
            "https:///a",
            "https://example.com:0/a",
            "https://example.com:99999/a",
            "file://example.com/a",
            "",
        ] {
            assert!(parsed(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_shown_address_has_no_user_in_it() {
        let shown = |text: &str| Address::try_from(text.to_owned()).map(|address| address.to_string());
        assert_eq!(shown("ssh://me@example.com/a").as_deref(), Ok("ssh://example.com/a"));
        assert_eq!(shown("git@example.com:a").as_deref(), Ok("example.com:a"));
        assert_eq!(shown("https://example.com/a@b").as_deref(), Ok("https://example.com/a@b"));
    }
}
