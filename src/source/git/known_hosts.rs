//! Whether an ssh server is the one it should be, by a file of known hosts.
//!
//! The file is OpenSSH's, with markers, patterns and hashed names; see `sshd(8)`.
//! Certificates of hosts are not understood, because libssh2 does not verify them: such lines say nothing here.
//! Nothing is ever added to the file, and a server is not trusted because it is the first one to answer.

use std::fmt;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use sha2::{Digest, Sha256};

use super::address::Host;
use crate::basics::glob::fits;

/// The port that a name without a port stands for.
const SSH_PORT: u16 = 22;

/// The public key of a server: what stands in the third column, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostKey(pub(super) Vec<u8>);

impl HostKey {
    /// Returns the name of the algorithm, which the key begins with.
    fn algorithm(&self) -> &str {
        let name = self.0.split_first_chunk().and_then(|(length, rest)| {
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            std::str::from_utf8(rest.get(..length)?).ok()
        });
        name.unwrap_or("unknown")
    }
}

impl fmt::Display for HostKey {
    /// Shows the fingerprint as `ssh-keygen -l` does, after the algorithm.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = BASE64_STANDARD_NO_PAD.encode(Sha256::digest(&self.0));
        write!(f, "{} SHA256:{digest}", self.algorithm())
    }
}

/// The reason why a server is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Mistrust {
    #[error("the ssh server {host} is not known; it showed the key {shown}")]
    Unknown { host: String, shown: HostKey },
    #[error("the ssh server {host} showed the key {shown}, and only keys of other kinds are known: {}", list(known))]
    OtherKind { host: String, shown: HostKey, known: Vec<HostKey> },
    #[error("the ssh server {host} showed the key {shown}, but the known one, on line {line}, is {known}")]
    Changed { host: String, shown: HostKey, known: HostKey, line: usize },
    #[error("the ssh server {host} showed the key {shown}, which line {line} revokes")]
    Revoked { host: String, shown: HostKey, line: usize },
}

fn list(keys: &[HostKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Mistrust {
    /// Says what to do, given the file's name.
    pub(super) fn hint(&self, host: &Host, file: &str) -> String {
        let port = if host.port == SSH_PORT { String::new() } else { format!("-p {} ", host.port) };
        let scan = format!("`ssh-keyscan {port}{} >> {file}`", host.name);
        match self {
            Self::Unknown { .. } | Self::OtherKind { .. } => {
                format!("Ask the server's owner whether that key is its own. If so, run {scan}.")
            }
            Self::Changed { line, .. } => format!(
                "Somebody may stand between you and the server. If its owner confirms the new key, delete line {line} \
                 of {file} and run {scan}."
            ),
            Self::Revoked { .. } => "Ask the server's owner which key it should have.".to_owned(),
        }
    }
}

/// Decides whether to trust a server that showed a key, by the text of a file of known hosts.
pub(super) fn check(text: &str, host: &Host, shown: HostKey) -> Result<(), Mistrust> {
    let name = name_of(host);
    let entries: Vec<Entry> = text.lines().enumerate().filter_map(|(index, line)| parse(index + 1, line)).collect();
    let mut ours: Vec<Entry> = entries.into_iter().filter(|entry| matches(&entry.patterns, &name)).collect();
    if let Some(entry) = ours.iter().find(|entry| entry.revoked && entry.key == shown) {
        return Err(Mistrust::Revoked { host: name, shown, line: entry.line });
    }
    ours.retain(|entry| !entry.revoked);
    if ours.iter().any(|entry| entry.key == shown) {
        return Ok(());
    }
    match ours.iter().find(|entry| entry.key.algorithm() == shown.algorithm()) {
        Some(entry) => Err(Mistrust::Changed { host: name, shown, known: entry.key.clone(), line: entry.line }),
        None if ours.is_empty() => Err(Mistrust::Unknown { host: name, shown }),
        None => {
            let known = ours.into_iter().map(|entry| entry.key).collect();
            Err(Mistrust::OtherKind { host: name, shown, known })
        }
    }
}

fn name_of(host: &Host) -> String {
    if host.port == SSH_PORT { host.name.clone() } else { format!("[{}]:{}", host.name, host.port) }
}

struct Entry {
    line: usize,
    revoked: bool,
    patterns: String,
    key: HostKey,
}

fn parse(line: usize, text: &str) -> Option<Entry> {
    let mut columns = text.split_ascii_whitespace();
    let mut first = columns.next()?;
    let revoked = first == "@revoked";
    if revoked {
        first = columns.next()?;
    }
    if first.starts_with(['#', '@']) {
        return None;
    }
    let key = BASE64_STANDARD.decode(columns.nth(1)?).ok()?;
    Some(Entry { line, revoked, patterns: first.to_owned(), key: HostKey(key) })
}

/// Tells whether a list of patterns speaks of a name; one that is negated outweighs all others.
fn matches(patterns: &str, name: &str) -> bool {
    if let Some(hash) = patterns.strip_prefix("|1|") {
        return is_hash_of(hash, name);
    }
    let fits = |pattern: &str| fits(pattern.to_ascii_lowercase().as_bytes(), name.as_bytes());
    let is_negated = patterns.split(',').filter_map(|pattern| pattern.strip_prefix('!')).any(fits);
    !is_negated && patterns.split(',').any(|pattern| !pattern.starts_with('!') && fits(pattern))
}

/// Compares with a hashed name: the salt and the HMAC-SHA1 of the name, in base64.
fn is_hash_of(hash: &str, name: &str) -> bool {
    let Some((salt, digest)) = hash.split_once('|') else { return false };
    let (Ok(salt), Ok(digest)) = (BASE64_STANDARD.decode(salt), BASE64_STANDARD.decode(digest)) else { return false };
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    ring::hmac::verify(&key, name.as_bytes(), &digest).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of an algorithm, in base64, told apart by one byte.
    fn key(algorithm: &str, byte: u8) -> HostKey {
        let mut blob = u32::try_from(algorithm.len()).unwrap_or_default().to_be_bytes().to_vec();
        blob.extend(algorithm.as_bytes());
        blob.push(byte);
        HostKey(blob)
    }

    fn line(patterns: &str, key: &HostKey) -> String {
        format!("{patterns} {} {} a comment\n", key.algorithm(), BASE64_STANDARD.encode(&key.0))
    }

    fn host(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    #[test]
    fn a_host_is_found_by_name_pattern_port_or_hash() {
        let ours = key("ssh-ed25519", 1);
        let known = |patterns: &str, name: &str, port| check(&line(patterns, &ours), &host(name, port), ours.clone());
        assert_eq!(known("example.com", "example.com", 22), Ok(()));
        assert_eq!(known("other,Example.com,192.0.2.1", "example.com", 22), Ok(()));
        assert_eq!(known("*.example.com", "git.example.com", 22), Ok(()));
        assert_eq!(known("[example.com]:2222", "example.com", 2222), Ok(()));
        // Made by `ssh-keygen -H` from "example.com" and from "[example.com]:2222".
        assert_eq!(known("|1|u9aR+z7OfafQJgq7eWJyPxTiCsk=|K6wG14GmLQ+usCrNP7qU5ikiViM=", "example.com", 22), Ok(()));
        assert_eq!(known("|1|85R77MxRADzExVUyOfTmWfwFueM=|c/c51hnGBkzVavr2Q8A1Odyrh90=", "example.com", 2222), Ok(()));
        for (patterns, name, port) in [
            ("example.com", "example.com", 2222),
            ("[example.com]:2222", "example.com", 22),
            ("*.example.com,!git.example.com", "git.example.com", 22),
            ("example.co?", "example.com.evil", 22),
            ("|1|u9aR+z7OfafQJgq7eWJyPxTiCsk=|K6wG14GmLQ+usCrNP7qU5ikiViM=", "example.org", 22),
            ("#example.com", "example.com", 22),
            ("@cert-authority example.com", "example.com", 22),
        ] {
            assert!(matches!(known(patterns, name, port), Err(Mistrust::Unknown { .. })), "{patterns}");
        }
    }

    #[test]
    fn another_key_of_the_same_kind_is_a_change_and_one_of_another_kind_is_not() {
        let (old, new, rsa) = (key("ssh-ed25519", 1), key("ssh-ed25519", 2), key("ssh-rsa", 3));
        let text = format!("# known\n{}{}", line("example.com", &rsa), line("example.com", &old));
        let changed = check(&text, &host("example.com", 22), new.clone());
        let expected = Mistrust::Changed { host: "example.com".to_owned(), shown: new, known: old, line: 3 };
        assert_eq!(changed, Err(expected));
        let ecdsa = key("ecdsa-sha2-nistp256", 4);
        let other = check(&text, &host("example.com", 22), ecdsa);
        assert!(matches!(other, Err(Mistrust::OtherKind { known, .. }) if known.len() == 2));
    }

    #[test]
    fn a_revoked_key_is_refused_even_if_it_is_known() {
        let ours = key("ssh-ed25519", 1);
        let text = format!("{}@revoked * {}", line("example.com", &ours), line("", &ours));
        assert!(matches!(check(&text, &host("example.com", 22), ours), Err(Mistrust::Revoked { line: 2, .. })));
    }

    #[test]
    fn a_fingerprint_looks_as_openssh_shows_it() {
        let blob =
            BASE64_STANDARD.decode("AAAAC3NzaC1lZDI1NTE5AAAAIJ+Uf9jGBNouXQy+AQ1dXRd/YJampDUIotedDgqybUaV").map(HostKey);
        assert_eq!(
            blob.map(|key| key.to_string()).as_deref(),
            Ok("ssh-ed25519 SHA256:w6cNCjVRav25PZUNNCCpfaYXGL1ivFqf/gGElAIlqYA")
        );
    }
}
