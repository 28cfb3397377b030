//! `gatewright pack`.

pub(super) mod lint;
pub(super) mod new;
pub(super) mod test;

use std::collections::BTreeMap;
use std::path::Path;

use super::{Context, Failure};
use crate::config::packs::{Folder, FolderError, pack_in};
use gatewright_engine::tree::files::FilesError;

/// Create, test and lint packs: folders of templates that turn a family of specs into objects. Needs no cluster.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Args {
    New(new::Args),
    Test(test::Args),
    Lint(lint::Args),
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match args {
        Args::New(args) => new::run(args),
        Args::Test(args) => test::run(context, args),
        Args::Lint(args) => lint::run(context, args),
    }
}

/// Reads the folder of one pack.
fn read(context: &Context, folder: &Path) -> Result<(String, Folder), Failure> {
    match pack_in(&context.environment.builtin, folder) {
        Ok(Some(pack)) => Ok(pack),
        Ok(None) => Err(Failure::usage(format!("there is no pack.yaml in {}", folder.display()))
            .hint("gatewright pack new NAME begins a pack")),
        Err(error @ FolderError::Files(FilesError::Read(..))) => Err(Failure::of_configuration(&error)),
        Err(error) => Err(Failure::of(&error)),
    }
}

/// Lends the texts of files.
fn texts(files: &Folder) -> BTreeMap<&str, &str> {
    files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}
