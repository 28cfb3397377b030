//! The daemon's file to a [`Config`], checked whole before anything starts.
//!
//! All mistakes of form are found in one pass, and then all of meaning; each has its line. Later sources of a setting
//! win: defaults, the file, the environment (`GATEWRIGHT_STATE_DIR`, …), flags. This is the only module that reads the
//! environment.

pub(crate) mod allow;
mod authorities;
pub mod cluster_secrets;
pub(crate) mod conflicts;
mod definitions;
pub mod depends;
pub mod environment;
pub(crate) mod examine;
pub mod folders;
pub mod gates;
pub mod hosts;
pub mod otlp;
mod pack_overrides;
pub mod packs;
pub mod rollout;
pub mod rules;
pub mod schema;
pub mod settings;
pub(crate) mod specs;
pub(crate) mod validate;
pub(crate) mod webhooks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gatewright_engine::check::{check, suggest};
use gatewright_engine::error::Chain;
use gatewright_engine::pack::{PackError, Packs};
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::rules::Severities;
use gatewright_engine::schema::Schema;
use gatewright_engine::text::{digest, listed};
use gatewright_engine::yaml::{self, Node};
use serde_json::{Value, json};

use crate::basics::paths::Paths;
use crate::cluster::kubeconfig::StandardLookup;
use crate::history::journal;
use crate::inventory::hmac::Key;
use crate::state::State;
use cluster_secrets::{List, SecretClusters};
use environment::Environment;
use folders::{FolderCluster, Folders as ClusterFolders};
use pack_overrides::Entry;
use packs::{Folders, PackConfig, UnusablePack};
use settings::{ClusterSettings, Settings, SyncSettings};

/// The most names that are listed for somebody who wrote another one.
const MOST_NAMES: usize = 8;

/// A configuration that is known to make sense.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The directory where the state is kept.
    pub state_dir: PathBuf,
    /// The directory where reports are kept.
    pub reports_dir: PathBuf,
    /// All settings, every path absolute.
    pub settings: Settings,
    /// The kubeconfig files that kubectl would take.
    pub standard_lookup: StandardLookup,
    /// This program, where it may start itself; `None` where another one uses the library.
    pub program: Option<PathBuf>,
    /// The key that signs inventories.
    pub inventory_key: Option<Arc<Key>>,
    /// The file as it was parsed, for the places of pack parameters.
    root: Node,
    /// The text of the file that `packs.NAME.xds.tls.caFile` names, by pack.
    authorities: BTreeMap<&'static str, String>,
    /// Settings of packs for some clusters or classes.
    pack_overrides: Vec<Entry>,
    /// The packs that are read from folders.
    pack_folders: Folders,
    /// The definitions by which documents are checked.
    definitions: definitions::Found,
    /// The severities of rules that are not the usual ones.
    severities: Severities,
    /// The packs that are made of all this, once somebody has asked for them: it takes most of the time of a start.
    packs: Arc<OnceLock<Arc<Packs>>>,
    /// The clusters that were found in folders.
    cluster_folders: ClusterFolders,
    /// The clusters that were found in Secrets, once these are read.
    secret_clusters: SecretClusters,
}

/// A configuration that cannot be used: all that is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the config file {0:?}")]
    Read(PathBuf, #[source] std::io::Error),
    /// It says something that cannot be.
    #[error("the configuration cannot be used:{}", lines(.0))]
    Problems(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect::<Vec<_>>().concat()
}

/// The meaning of folders of clusters that cannot be used.
#[derive(Clone, Copy)]
enum UnreadFolders {
    /// The configuration cannot be used either.
    Wrong,
    /// Somebody waits for them.
    Awaited,
}

impl UnreadFolders {
    fn judge(self, found: Result<ClusterFolders, ConfigError>) -> Result<ClusterFolders, ConfigError> {
        match (self, found) {
            (Self::Awaited, Err(ConfigError::Problems(unread))) => {
                Ok(ClusterFolders { unread, ..ClusterFolders::default() })
            }
            (_, found) => found,
        }
    }
}

/// Reads and checks a config file.
pub fn load(file: &Path, environment: &Environment) -> Result<Config, ConfigError> {
    parse(file, &text(file)?, environment)
}

/// Reads and checks a config file for a daemon that starts, which waits for folders of clusters that cannot be used.
pub(crate) fn load_to_start(file: &Path, environment: &Environment) -> Result<Config, ConfigError> {
    understand(file, &text(file)?, environment, UnreadFolders::Awaited)
}

/// Checks the text of a config file; `file` says what relative paths are relative to.
pub fn parse(file: &Path, text: &str, environment: &Environment) -> Result<Config, ConfigError> {
    understand(file, text, environment, UnreadFolders::Wrong)
}

fn text(file: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(file).map_err(|source| ConfigError::Read(file.to_owned(), source))
}

fn understand(
    file: &Path,
    text: &str,
    environment: &Environment,
    unread_folders: UnreadFolders,
) -> Result<Config, ConfigError> {
    let reader = Reader { file: file.to_string_lossy().into() };
    let root = reader.root(text)?;
    let mut settings = reader.settings(&root)?;
    let mut problems = environment.apply(&mut settings);
    let secret_clusters = SecretClusters::unread(&settings);
    let base = std::path::absolute(file).ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    let paths = Paths { base, credentials: environment.credentials.clone() };
    let cluster_folders = reader.cluster_folders(&root, &mut settings, &paths, &secret_clusters);
    let cluster_folders = unread_folders.judge(cluster_folders)?;
    let is_whole = cluster_folders.is_whole() && secret_clusters.is_whole();
    problems.extend(cluster_secrets::check(&reader, &root, &mut settings, &paths, cluster_folders.is_whole()));
    problems.extend(validate::validate(&reader, &root, &mut settings, (&paths, environment), is_whole));
    let authorities = authorities::read_all(&mut settings.packs, &paths, |name, error| {
        let place = reader.place(&root, &["packs", name, "xds", "tls"]);
        problems.push(Problem::file(place, Chain(&error).to_string()));
    });
    let inventory_key = inventory_key(&mut settings, &paths).unwrap_or_else(|message| {
        problems.push(Problem::file(reader.place(&root, &["inventory", "keyFile"]), message));
        None
    });
    let mut wrong = |path: &[&str], message: String| problems.push(Problem::file(reader.place(&root, path), message));
    let pack_folders = packs::read_all(&mut settings, &paths, environment, &mut wrong);
    let definitions = definitions::read_all(&mut settings, &paths, &mut wrong);
    let severities = rules::read_all(&settings.rules, &mut wrong);
    let names: Vec<&str> = pack_folders.names().collect();
    let pack_overrides = pack_overrides::read_all(&mut settings, &names, &paths, is_whole, &mut wrong);
    none_of(problems)?;
    let state_dir = state_dir(&settings, &paths, environment);
    let config = Config {
        file: file.to_owned(),
        reports_dir: plain(&state_dir.join(&settings.reports.dir)),
        state_dir,
        settings,
        standard_lookup: environment.standard_lookup(),
        program: None,
        inventory_key,
        root,
        authorities,
        pack_overrides,
        pack_folders,
        definitions,
        severities,
        packs: Arc::default(),
        cluster_folders,
        secret_clusters,
    };
    match config.packs() {
        Err(UnusablePack { source: PackError::Rules(problems), .. }) => Err(ConfigError::Problems(problems)),
        _ => Ok(config),
    }
}

/// Returns the directory where the state is kept.
fn state_dir(settings: &Settings, paths: &Paths, environment: &Environment) -> PathBuf {
    settings.state_dir.as_ref().map_or_else(|| environment.state_dir(), |path| plain(&paths.base.join(path)))
}

/// Fails if there are problems.
fn none_of(mut problems: Vec<Problem>) -> Result<(), ConfigError> {
    problems.sort();
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems)) }
}

/// Reads the key of the inventories, if there is to be one.
fn inventory_key(settings: &mut Settings, paths: &Paths) -> Result<Option<Arc<Key>>, String> {
    let Some(path) = &mut settings.inventory.key_file else { return Ok(None) };
    *path = paths.resolve(path).map_err(|error| error.to_string())?;
    Key::read(path).map(|key| Some(Arc::new(key))).map_err(|error| Chain(&error).to_string())
}

/// Leaves out the parts of a path that say nothing: `/etc/./gatewright` is `/etc/gatewright`.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Says what was probably meant by a name, or else which names there are.
pub fn did_you_mean<'a>(written: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = suggest(written, known.clone()) {
        return format!("did you mean {near:?}?");
    }
    match listed(known, MOST_NAMES) {
        names if names.is_empty() => "there are none".to_owned(),
        names => format!("there are: {names}"),
    }
}

/// Says where things stand in the file.
struct Reader {
    file: Arc<str>,
}

impl Reader {
    fn root(&self, text: &str) -> Result<Node, ConfigError> {
        let fail = |problem: Problem| ConfigError::Problems(vec![problem]);
        let mut documents =
            yaml::parse(text).map_err(|error| fail(Problem::file(self.at(error.position), error.message.clone())))?;
        let whole = |message: &str| fail(Problem::file(Place::file(Arc::clone(&self.file)), message));
        let root = match (documents.pop(), documents.is_empty()) {
            (Some(root), true) => root,
            (Some(_), false) => return Err(whole("the file holds more than one document")),
            (None, _) => return Err(whole("the file is empty")),
        };
        let schema = Schema::of::<Settings>().expect("the schema of our own settings is usable; a test holds this");
        let mistakes = check(&root, &schema);
        if mistakes.is_empty() {
            return Ok(root);
        }
        let problem = |mistake: gatewright_engine::check::Mistake| Problem {
            hint: mistake.hint,
            ..Problem::file(self.at(mistake.position), mistake.message)
        };
        Err(ConfigError::Problems(mistakes.into_iter().map(problem).collect()))
    }

    fn settings(&self, root: &Node) -> Result<Settings, ConfigError> {
        serde_path_to_error::deserialize(root.to_value()).map_err(|error| {
            let path = error.path().to_string();
            let place = self.place(root, &path.split('.').collect::<Vec<_>>());
            ConfigError::Problems(vec![Problem::file(place, format!("{path}: {}", error.inner()))])
        })
    }

    /// Reads the folders of clusters, and adds what is in them to the settings. Without the list nothing else of the
    /// clusters can be checked: a sync would seem to select none.
    fn cluster_folders(
        &self,
        root: &Node,
        settings: &mut Settings,
        paths: &Paths,
        others: &SecretClusters,
    ) -> Result<ClusterFolders, ConfigError> {
        for folder in &mut settings.cluster_folders {
            *folder = plain(&paths.base.join(&*folder));
        }
        let place = |index: usize| self.place(root, &["clusterFolders", &index.to_string()]);
        let found = ClusterFolders::read(&settings.cluster_folders, place).map_err(ConfigError::Problems)?;
        let twice = found.join(settings, |name| match others.clusters.get(name) {
            Some(cluster) => cluster.place(),
            None => self.place(root, &["clusters", name]),
        });
        if twice.is_empty() { Ok(found) } else { Err(ConfigError::Problems(twice)) }
    }

    /// Returns the place of a field, or of the nearest thing around it that exists.
    fn place(&self, root: &Node, path: &[&str]) -> Place {
        let deepest = (0..=path.len()).rev().find_map(|end| root.at(path[..end].iter().copied()));
        self.at(deepest.map(|node| node.position).unwrap_or_default())
    }

    fn at(&self, position: yaml::Position) -> Place {
        Place { file: Arc::clone(&self.file), line: position.line, column: position.column }
    }
}

impl Config {
    /// Opens the state directory. Where several hosts share a fleet it notes what is written, for the others.
    pub fn state(&self) -> State {
        let state = State::open(&self.state_dir);
        if self.settings.hosts.is_some() { state.noting() } else { state }
    }

    /// Returns where reports are kept, in which forms and for how long.
    pub fn journal(&self) -> journal::Settings<'_> {
        let reports = &self.settings.reports;
        journal::Settings {
            dir: &self.reports_dir,
            keep: reports.keep.0,
            max_bytes: reports.max_bytes.0,
            formats: &reports.formats,
            latest: reports.latest.as_deref(),
        }
    }

    /// Returns the clusters that a sync selects, by name.
    pub fn clusters_of(&self, sync: &SyncSettings) -> BTreeMap<&str, &ClusterSettings> {
        self.settings.clusters_of(sync)
    }

    /// Reads the folders of clusters again, and nothing else; `None` if they hold the same clusters as before.
    pub(crate) fn with_folders_read_again(&self) -> Result<Option<Self>, ConfigError> {
        let reader = Reader { file: self.file.to_string_lossy().into() };
        let mut new = self.clone();
        self.cluster_folders.leave(&mut new.settings);
        let others = &self.secret_clusters;
        let found = reader.cluster_folders(&self.root, &mut new.settings, &Paths::default(), others)?;
        if found.clusters == self.cluster_folders.clusters && self.cluster_folders.is_whole() {
            return Ok(None);
        }
        new.cluster_folders = found;
        let problems = new.lost_clusters(&reader);
        if problems.is_empty() { Ok(Some(new)) } else { Err(ConfigError::Problems(problems)) }
    }

    /// Takes the clusters that are remembered of folders that cannot be used.
    pub(crate) fn with_folders_recalled(
        &self,
        remembered: BTreeMap<String, FolderCluster>,
    ) -> Result<Self, ConfigError> {
        let mut new = self.clone();
        new.cluster_folders.recall(remembered, &self.settings);
        let found = new.cluster_folders.clone();
        let mut problems = found.join(&mut new.settings, |name| self.place_of_configured(name));
        problems.extend(new.lost_clusters(&Reader { file: self.file.to_string_lossy().into() }));
        if problems.is_empty() { Ok(new) } else { Err(ConfigError::Problems(problems)) }
    }

    /// Takes these lists of clusters in place of those before, by the entry of `clusterSecrets`. An entry without a list is
    /// not known: then nothing is said of clusters that are missed.
    pub(crate) fn with_cluster_secrets(&self, lists: &BTreeMap<String, List>) -> Result<Self, ConfigError> {
        let mut new = self.clone();
        self.secret_clusters.leave(&mut new.settings);
        let place = |name: &str| self.place_of_configured(name);
        new.secret_clusters = SecretClusters::join(lists, &mut new.settings, place).map_err(ConfigError::Problems)?;
        let problems = new.lost_clusters(&Reader { file: self.file.to_string_lossy().into() });
        if problems.is_empty() { Ok(new) } else { Err(ConfigError::Problems(problems)) }
    }

    /// Finds what the list of clusters makes wrong, when nothing else has changed.
    fn lost_clusters(&self, reader: &Reader) -> Vec<Problem> {
        let (settings, is_read) = (&self.settings, self.cluster_folders.is_whole());
        let mut problems = cluster_secrets::check_management(reader, &self.root, settings, is_read);
        let is_whole = self.knows_all_clusters();
        problems.extend(validate::validate_selections(reader, &self.root, &self.settings, is_whole));
        if is_whole {
            pack_overrides::check_selections(&self.settings, |path, message| {
                problems.push(Problem::file(reader.place(&self.root, path), message));
            });
        }
        problems
    }

    /// Tells whether it is known which clusters there are: all folders and Secrets were read.
    pub(crate) fn knows_all_clusters(&self) -> bool {
        self.cluster_folders.is_whole() && self.secret_clusters.is_whole()
    }

    /// Returns the clusters that were found in folders.
    pub(crate) fn found_in_folders(&self) -> &ClusterFolders {
        &self.cluster_folders
    }

    /// Returns the clusters that were found in Secrets.
    pub(crate) fn found_in_secrets(&self) -> &SecretClusters {
        &self.secret_clusters
    }

    /// Returns where a cluster is configured: in the file, by a kubeconfig in a folder, or by a Secret.
    pub(crate) fn place_of_cluster(&self, name: &str) -> Place {
        match self.secret_clusters.clusters.get(name) {
            Some(cluster) => cluster.place(),
            None => self.place_of_configured(name),
        }
    }

    fn place_of_configured(&self, name: &str) -> Place {
        match self.cluster_folders.clusters.get(name) {
            Some(cluster) => Place::file(cluster.file.to_string_lossy()),
            None => self.place(&["clusters", name]),
        }
    }

    /// Returns the file as it was parsed, for the places of settings.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the place of a setting, or of the nearest thing around it that is in the file.
    pub fn place(&self, path: &[&str]) -> Place {
        Reader { file: self.file.to_string_lossy().into() }.place(&self.root, path)
    }

    /// Returns the packs with their settings; they are built once.
    pub fn packs(&self) -> Result<Arc<Packs>, UnusablePack> {
        if let Some(packs) = self.packs.get() {
            return Ok(Arc::clone(packs));
        }
        let nothing = Node::of_value(&json!({}));
        let packs = self.packs_with(self.root.get("packs").unwrap_or(&nothing), &self.pack_overrides)?;
        Ok(Arc::clone(self.packs.get_or_init(|| Arc::new(packs))))
    }

    fn packs_with(&self, root: &Node, overrides: &[Entry]) -> Result<Packs, UnusablePack> {
        let file = self.file.to_string_lossy();
        let (authorities, definitions) = (self.authorities.clone(), self.definitions.all.clone());
        let config = PackConfig { file: &file, root, authorities, overrides, definitions };
        Ok(packs::build(Some(&config), &self.pack_folders)?
            .with_severities(self.severities.clone())
            .with_policies(self.settings.policies.clone()))
    }

    /// Builds them as the deployers of control planes know them: without the settings that only we have.
    pub fn packs_of_deployers(&self) -> Result<Packs, UnusablePack> {
        let packs = self.packs()?;
        let mut root = self.root.get("packs").map_or_else(|| json!({}), Node::to_value);
        packs::forget_own(&mut root, &packs);
        let mut overrides = self.pack_overrides.clone();
        for other in &mut overrides {
            packs::forget_own(&mut other.packs, &packs);
        }
        self.packs_with(&Node::of_value(&root), &overrides)
    }

    /// Names what the packs are made of: with other settings or files they have another key.
    pub fn packs_key(&self) -> String {
        let settings = self.root.get("packs").map_or(Value::Null, Node::to_value);
        let made_of = (&self.authorities, &self.pack_overrides, &self.pack_folders.own, &self.definitions.key);
        digest(format!("{settings} {made_of:?} {:?} {:?}", self.severities, self.settings.policies).as_bytes())
    }
}
