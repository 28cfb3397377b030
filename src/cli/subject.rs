//! The subject of `plan` and `diff`: syncs of the config file, or specs that need none.

use std::path::{Path, PathBuf};

use gatewright_engine::check::suggest;
use gatewright_engine::text::listed;

use super::access::{Access, neighbor};
use super::choice::Part;
use super::named::Named;
use super::session::{Selection, Session};
use super::{Context, Failure, complain};
use crate::config::{self, Config, did_you_mean};

/// The most names that a message lists.
const MOST_NAMES: usize = 8;

/// The syncs or specs that a command is about.
#[derive(Debug, clap::Args)]
pub(super) struct Subject {
    /// A sync of the config file, all of them if absent; or files and folders with specs, which need no config file:
    /// --kubeconfig, --context and --allow-exec say for which cluster they are.
    #[arg(value_name = "SYNC|PATH")]
    subjects: Vec<PathBuf>,
    /// A file or folder with specs, as where it is named without this; may be given several times.
    #[arg(long = "path", short = 'f', value_name = "PATH", conflicts_with = "subjects")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    part: Part,
}

/// The meaning of what was named.
enum Meaning {
    /// Syncs of a config file; all of them if there is no name.
    Syncs(Box<Config>, Option<String>),
    /// Specs, beside a config file that says nothing of them, if there is one.
    Specs(Option<PathBuf>),
}

impl Subject {
    /// Returns the syncs of a selection.
    pub(super) fn of(selection: &Selection) -> Self {
        let subjects = selection.sync.iter().map(PathBuf::from).collect();
        Self { subjects, paths: Vec::new(), access: Access::default(), part: selection.part.clone() }
    }

    /// Returns the units that the command is limited to.
    pub(super) fn only(&self) -> &[Named] {
        &self.part.only
    }

    /// Finds out what was named, and opens a session about it.
    pub(super) fn open<'a>(&self, context: &'a Context) -> Result<(Session<'a>, Selection), Failure> {
        match self.meaning(context)? {
            Meaning::Syncs(config, sync) => {
                if let Some(flag) = self.access.flag() {
                    let failure = Failure::usage(format!("{flag} is for files and folders with specs"));
                    return Err(failure.hint("the config file says how the clusters of its syncs are reached"));
                }
                let session = Session::with_config(context, context.take(*config)?)?;
                Ok((session, Selection { sync, part: self.part.clone() }))
            }
            Meaning::Specs(beside) => {
                if !self.part.clusters.is_of_all() {
                    let failure = Failure::usage("--cluster and --selector choose among the clusters of a config file");
                    return Err(failure.hint("with files and folders --context says which cluster is meant"));
                }
                let session = Session::of_specs(context, self.specs(), self.access.settings()?)?;
                if let Some(file) = beside {
                    complain(&format!("  {} is ignored: it is about syncs\n", file.display()));
                }
                Ok((session, Selection { sync: None, part: self.part.clone() }))
            }
        }
    }

    /// Returns the files and folders, if it is they that were named.
    fn specs(&self) -> &[PathBuf] {
        if self.paths.is_empty() { &self.subjects } else { &self.paths }
    }

    fn meaning(&self, context: &Context) -> Result<Meaning, Failure> {
        let Some(first) = self.specs().first() else {
            return Ok(Meaning::Syncs(Box::new(load(context)?), None));
        };
        let name = first.to_str().filter(|name| self.subjects.len() == 1 && may_be_sync(name));
        let config = name.filter(|_| context.has_config()).map(|_| load(context)).transpose()?;
        if let (Some(name), Some(config)) = (name, &config)
            && config.settings.syncs.contains_key(name)
        {
            return Ok(Meaning::Syncs(Box::new(config.clone()), Some(name.to_owned())));
        }
        if let Some(lost) = self.specs().iter().find(|path| !path.exists()) {
            return Err(neither(lost, name, config.as_ref()));
        }
        if context.is_config_named {
            let failure = Failure::usage(format!("{} is no sync, and specs go without --config", first.display()));
            return Err(failure.hint(
                "leave out --config to compare specs with the cluster that kubectl talks to, or name a sync of the file",
            ));
        }
        Ok(Meaning::Specs(config.map(|config| config.file)))
    }
}

/// Reads the config file, and stays who we are: it may turn out that none is needed.
fn load(context: &Context) -> Result<Config, Failure> {
    let hint = "name a file or folder with specs, which needs none, or a config file by --config FILE";
    let file = context.config_file().map_err(|failure| failure.hint(hint))?;
    Ok(config::load(file, &context.environment)?)
}

/// Tells whether a text may be the name of a sync: that of a folder may be, too.
fn may_be_sync(name: &str) -> bool {
    !name.contains(['/', '.'])
}

/// Makes the failure of a name that is nothing.
fn neither(lost: &Path, name: Option<&str>, config: Option<&Config>) -> Failure {
    let file = lost.to_string_lossy();
    match (name, config) {
        (Some(name), Some(config)) => {
            let message = format!("no sync is called {name:?}, and there is no file or folder {name:?}");
            let syncs = config.settings.syncs.keys().map(String::as_str);
            let near = neighbor(lost).map(|near| format!("did you mean {near:?}?"));
            Failure::usage(message).hint(match suggest(name, syncs.clone()) {
                None => near.unwrap_or_else(|| format!("the syncs are: {}", listed(syncs, MOST_NAMES))),
                Some(_) => did_you_mean(name, syncs),
            })
        }
        (Some(name), None) => {
            let message = format!("there is no file or folder {name:?}, and no config file with a sync of that name");
            let near = neighbor(lost).map(|near| format!("did you mean {near:?}?"));
            Failure::usage(message).hint(near.unwrap_or_else(|| {
                "name a folder with specs, such as examples/quickstart/specs, or a config file by --config FILE"
                    .to_owned()
            }))
        }
        (None, _) => {
            let failure = Failure::usage(format!("there is no file or folder {file:?}"));
            match neighbor(lost) {
                Some(near) => failure.hint(format!("did you mean {near:?}?")),
                None => failure,
            }
        }
    }
}
