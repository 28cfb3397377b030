//! The place of a folder that is written as a relative path: `./specs` in two projects are two sources.

use std::path::Path;

use gatewright_engine::text::digest;
use git2::Repository;

/// Returns a digest of the place: of the repository that a checkout is of, and of the path in it, so that it is the same in
/// each checkout; of the path on this host where there is none. Nobody reads a path off it.
pub(super) fn of(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let place = checkout(&folder).unwrap_or_else(|| folder.to_string_lossy().into_owned());
    digest(place.as_bytes())[..16].to_owned()
}

/// Names a folder by the repository that it is checked out of; `None` if it is none, or nobody knows of which.
fn checkout(folder: &Path) -> Option<String> {
    let repository = Repository::discover(folder).ok()?;
    let below = folder.strip_prefix(repository.workdir()?.canonicalize().ok()?).ok()?.to_string_lossy().into_owned();
    let remote = repository.find_remote("origin").ok()?;
    Some(format!("{}//{below}", plain(remote.url().ok()?)))
}

/// Returns an address as host and path, whatever the way to it: https and ssh lead to one repository.
fn plain(address: &str) -> String {
    let (has_scheme, rest) = address.split_once("://").map_or((false, address), |(_, rest)| (true, rest));
    let head = rest.split('/').next().unwrap_or_default();
    let rest = if head.contains('@') { rest.split_once('@').map_or(rest, |(_, rest)| rest) } else { rest };
    // What follows the host of `git@host:path` is a path, and of `ssh://host:22/path` a port.
    let rest = match rest.split_once(':') {
        Some((host, path)) if has_scheme => format!("{host}/{}", path.split_once('/').map_or("", |(_, path)| path)),
        Some((host, path)) => format!("{host}/{}", path.trim_start_matches('/')),
        None => rest.to_owned(),
    };
    rest.trim_end_matches('/').trim_end_matches(".git").to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_repository_has_one_name_whatever_the_way_to_it() {
        for address in [
            "https://git.example.com/Infra/gateways.git",
            "https://me:secret@git.example.com/infra/gateways",
            "ssh://git@git.example.com:22/infra/gateways.git",
            "git@git.example.com:infra/gateways.git",
        ] {
            assert_eq!(plain(address), "git.example.com/infra/gateways", "{address}");
        }
        assert_eq!(plain("/srv/git/gateways.git"), "/srv/git/gateways");
    }

    #[test]
    fn checkouts_of_a_repository_are_one_place_and_other_folders_are_not() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let make = |name: &str, remote: Option<&str>| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.join("specs")).expect("it can be made");
            if let Some(remote) = remote {
                let repository = Repository::init(&path).expect("it can be made");
                repository.remote("origin", remote).expect("it has none yet");
            }
            of(&path.join("specs"))
        };
        let one = make("one", Some("https://git.example.com/gateways.git"));
        assert_eq!(one, make("two", Some("git@git.example.com:gateways")));
        let others = [make("three", Some("https://git.example.com/others")), make("four", None), make("five", None)];
        assert!(others.iter().all(|other| *other != one) && others[1] != others[2], "{others:?}");
        assert_eq!(others[1], of(&folder.path().join("four/specs")));
    }
}
