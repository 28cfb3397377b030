//! Files and PEM: what a kubeconfig consists of and refers to.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright_engine::yaml;
use kube::config::Kubeconfig;
use sha2::{Digest as _, Sha256};

use super::{KubeconfigError, Place, StandardLookup};

/// Reads the file, or all of the standard files that exist, and merges them as kubectl does.
///
/// The digest has taken in what was read, and takes in what else is.
pub(super) fn read(
    path: Option<&Path>,
    (standard, has_flags): (&StandardLookup, bool),
) -> Result<(Kubeconfig, Place, Sha256), KubeconfigError> {
    let mut digest = Sha256::new();
    if let Some(path) = path {
        return Ok((read_file(path, &mut digest)?, Place::of(path), digest));
    }
    let mut place = Place::default();
    let mut merged = Kubeconfig::default();
    for file in standard.files.iter().filter(|file| file.exists()) {
        place.files.push(file.clone());
        let next = read_file(file, &mut digest)?;
        merged = merged.merge(next).map_err(|error| place.unparsable(&error))?;
    }
    if place.files.is_empty() {
        let place = Place { files: standard.files.clone(), ..Place::default() };
        let hint = if has_flags {
            "name the kubeconfig by --kubeconfig FILE, or by $KUBECONFIG as for kubectl"
        } else {
            "name the file in the setting kubeconfig.path"
        };
        let problem = match standard.files.as_slice() {
            [] => "there is none",
            [_] => "there is no such file",
            _ => "none of these files exists",
        };
        return Err(place.error(problem, hint));
    }
    Ok((merged, place, digest))
}

fn read_file(file: &Path, digest: &mut Sha256) -> Result<Kubeconfig, KubeconfigError> {
    let place = Place::of(file);
    let text = fs::read_to_string(file).map_err(|error| KubeconfigError {
        problem: "it cannot be read".to_owned(),
        ..place.unreadable("file", file, error)
    })?;
    digest.update(&text);
    // This parser says what is wrong without quoting values, the other one knows what a kubeconfig is.
    yaml::parse(&text).map_err(|error| {
        let (line, column) = (error.position.line, error.position.column);
        place.error(format!("it is not YAML: line {line}, column {column}: {}", error.message), "correct the file")
    })?;
    Kubeconfig::read_from(file).map_err(|error| place.unparsable(&error))
}

/// The origin of a piece of material: base64 in the kubeconfig itself, which wins, or a file.
pub(super) struct Piece<'a> {
    /// The name of the material: `client key`.
    pub(super) what: &'a str,
    pub(super) inline: Option<&'a str>,
    pub(super) file: Option<&'a str>,
}

impl Piece<'_> {
    /// Reads the text; `None` if the kubeconfig has none.
    pub(super) fn read(&self, place: &Place, digest: &mut Sha256) -> Result<Option<String>, KubeconfigError> {
        let full = |text: &&str| !text.is_empty();
        if let Some(inline) = self.inline.filter(full) {
            let decoded = BASE64_STANDARD.decode(inline.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let problem = || place.error(format!("its {}-data is not base64 of a PEM text", self.what), self.hint());
            return decoded.ok_or_else(problem).map(Some);
        }
        let Some(file) = self.file.filter(full).map(Path::new) else { return Ok(None) };
        // Whoever may write the Secret must not have files of this host sent to a server of theirs.
        if place.secret.is_some() {
            let hint = format!("write {} into it as a value; files of this host are not read for a Secret", self.what);
            return Err(place.error(format!("its {} is the name of a file", self.what), hint));
        }
        let text = fs::read(file).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not text"))
        });
        let text = text.map_err(|error| place.unreadable(self.what, file, error))?;
        digest.update(&text);
        Ok(Some(text))
    }

    /// Returns what to do about a piece that is of no use.
    pub(super) fn hint(&self) -> String {
        format!("copy {} from a kubeconfig that works with kubectl, or fetch a new one", self.what)
    }
}

/// Tells whether a PEM text holds a private key that can be used without a password.
pub(super) fn has_private_key(pem: &str) -> bool {
    let clear = |line: &str| {
        line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----") && !line.contains("ENCRYPTED")
    };
    pem.lines().any(|line| clear(line.trim()))
}
