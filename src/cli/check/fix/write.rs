//! Writing a file that somebody else may be writing too: it is replaced as a whole, or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gatewright_engine::error::Chain;

/// The bit of a mode that lets an owner write.
const WRITABLE: u32 = 0o200;

/// Returns the folders and files that were named, as they are without links.
pub(super) fn roots(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect()
}

/// Replaces a file, unless it is not any more what was read, or not where it seems to be.
pub(super) fn replace(roots: &[PathBuf], file: &str, old: &str, new: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("the file cannot be written: {}", Chain(&error));
    let path = Path::new(file);
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err("it is a symbolic link, or no file any more".to_owned());
    }
    let real = fs::canonicalize(path).map_err(failed)?;
    if !roots.iter().any(|root| real.starts_with(root)) {
        return Err("it stands outside of what was named".to_owned());
    }
    if metadata.mode() & WRITABLE == 0 {
        return Err("the file may not be written".to_owned());
    }
    if metadata.nlink() > 1 {
        return Err("the file has another name (a hard link), which would keep the old text".to_owned());
    }
    let folder = real.parent().ok_or("it has no folder")?;
    // No spec has such a name, so that nobody reads it before it is whole.
    let mut beside = tempfile::Builder::new().prefix(".gatewright-").tempfile_in(folder).map_err(failed)?;
    beside.write_all(new.as_bytes()).map_err(failed)?;
    keep_owner(beside.path(), &metadata).map_err(failed)?;
    beside.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
    beside.as_file().sync_all().map_err(failed)?;
    if fs::read(&real).map_err(failed)? != old.as_bytes() {
        return Err("the file has changed since it was read".to_owned());
    }
    beside.persist(&real).map_err(|error| failed(error.error))?;
    // The name is on disk once the folder is; where that cannot be asked for, it is there soon.
    drop(fs::File::open(folder).and_then(|folder| folder.sync_all()));
    Ok(())
}

/// Gives a file the owner of another one, if it has not.
fn keep_owner(path: &Path, other: &fs::Metadata) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if (metadata.uid(), metadata.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(other.uid()), Some(other.gid()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        let at = |path: &Path| path.to_str().expect("it is text").to_owned();
        for folder in [&inside, &outside] {
            fs::create_dir(folder).expect("a test may");
            fs::write(folder.join("a.yaml"), "old").expect("a test may");
        }
        let (file, roots) = (inside.join("a.yaml"), roots(std::slice::from_ref(&inside)));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a test may");
        replace(&roots, &at(&file), "old", "new").expect("it can be written");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "new");
        assert_eq!(fs::metadata(&file).expect("it is there").mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(&inside).expect("it is there").count(), 1, "nothing is left beside it");

        let refused = |file: &Path, old: &str| replace(&roots, &at(file), old, "newer").expect_err("it is refused");
        assert!(refused(&file, "old").contains("changed"));
        symlink(outside.join("a.yaml"), inside.join("link.yaml")).expect("a test may");
        assert!(refused(&inside.join("link.yaml"), "old").contains("link"));
        symlink(&outside, inside.join("linked")).expect("a test may");
        assert!(refused(&inside.join("linked/a.yaml"), "old").contains("outside"));
        assert!(refused(&inside.join("gone.yaml"), "old").contains("cannot"));
        fs::hard_link(&file, inside.join("b.yaml")).expect("a test may");
        assert!(refused(&file, "new").contains("hard link"));
        fs::remove_file(inside.join("b.yaml")).expect("a test may");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).expect("a test may");
        assert!(refused(&file, "new").contains("may not"));
        assert_eq!(fs::read_to_string(outside.join("a.yaml")).expect("it is there"), "old");
    }
}
