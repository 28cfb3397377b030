//! The settings as they stand in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::plan::policies::{Adopt, MaxDelete};
use gatewright_engine::rules::policies::Policies;
use gatewright_engine::selector::{ClusterFacts, ClusterSelector, Fleet};
use gatewright_engine::spec::overlay::Bound;
use gatewright_packs::{agentgateway, dynamo, kgateway, kserve};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::allow::{Allow, OverlaySettings};
use super::cluster_secrets::SecretSettings;
use super::conflicts::{ConflictRule, IgnoreRule};
use super::depends::DependsOn;
use super::folders;
use super::hosts::HostSettings;
use super::otlp::OtlpSettings;
use super::rollout::RolloutSettings;
use super::rules::RuleSettings;
use super::webhooks::WebhookSettings;
use crate::basics::duration::Period;
use crate::basics::size::Size;
use crate::cluster::account::Account;
use crate::cluster::kubeconfig;
use crate::history::archive::{self, sets};
use crate::process::http;
use crate::process::telemetry;
use crate::report::form::ReportFormat;
use crate::schedule;
use crate::source::{directory, git};

/// The whole file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// The directory where the state is kept; /var/lib/gatewright for root, else below the user's state directory.
    pub state_dir: Option<PathBuf>,
    /// Metrics and health.
    pub http: http::Settings,
    /// Logs.
    pub log: telemetry::Settings,
    /// A collector of traces and logs; none by default.
    pub otlp: Option<OtlpSettings>,
    /// Reports of rounds.
    pub reports: ReportSettings,
    /// The settings of what is kept so that rounds can be undone.
    pub undo: archive::Settings,
    /// The settings of what is kept so that earlier rounds can be applied again.
    pub rollback: sets::Settings,
    /// The sources that specs come from.
    pub sources: BTreeMap<String, SourceSettings>,
    /// The clusters that objects go to.
    pub clusters: BTreeMap<String, ClusterSettings>,
    /// Folders in which every kubeconfig is a cluster, too.
    pub cluster_folders: Vec<PathBuf>,
    /// The settings of the kubeconfigs in these folders.
    pub cluster_folder_access: folders::Access,
    /// Secrets of management clusters, each of which is a cluster, too.
    pub cluster_secrets: BTreeMap<String, SecretSettings>,
    /// Several daemons that share a fleet; without it this one is alone.
    pub hosts: Option<HostSettings>,
    /// The syncs: what goes where, and when.
    pub syncs: BTreeMap<String, SyncSettings>,
    /// The inventories on API servers.
    pub inventory: InventorySettings,
    /// Folders with packs of your own, or with files in place of those of a built-in pack.
    pub pack_folders: Vec<PathBuf>,
    /// Folders with definitions of kinds (CRDs) by which documents are checked, in place of built-in ones.
    pub crd_folders: Vec<PathBuf>,
    /// Severities of rules about specs, by the ids of the rules.
    pub rules: BTreeMap<String, RuleSettings>,
    /// Policies for everything that is rendered.
    pub policies: Policies,
    /// Settings of packs.
    pub packs: PackSettings,
    /// Settings of packs for some clusters or classes, over those of `packs`.
    pub pack_overrides: Vec<PackOverride>,
}

impl Settings {
    /// Returns the clusters that a sync selects, by name.
    pub fn clusters_of(&self, sync: &SyncSettings) -> BTreeMap<&str, &ClusterSettings> {
        let clusters = self.clusters.iter().filter(|(name, cluster)| sync.clusters.selects(name, &cluster.labels));
        clusters.map(|(name, cluster)| (name.as_str(), cluster)).collect()
    }

    /// Tells whether clusters come from elsewhere than the config file, so that they come and go without it.
    pub fn finds_clusters(&self) -> bool {
        !self.cluster_folders.is_empty() || !self.cluster_secrets.is_empty()
    }

    /// Returns each cluster that has a former name, with that name.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        let of = |(name, cluster)| {
            let (name, cluster): (&String, &ClusterSettings) = (name, cluster);
            cluster.moved.iter().map(move |old| (name.as_str(), old.as_str()))
        };
        self.clusters.iter().flat_map(of)
    }

    /// Returns the name that a cluster has now.
    pub fn name_now<'a>(&'a self, cluster: &'a str) -> &'a str {
        self.renamed().find(|(_, old)| *old == cluster).map_or(cluster, |(new, _)| new)
    }

    /// Returns all clusters with their labels, for what names one that is not there.
    pub fn fleet(&self) -> Arc<Fleet> {
        Arc::new(self.clusters.iter().map(|(name, cluster)| (name.clone(), cluster.labels.clone())).collect())
    }
}

/// Reports of rounds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReportSettings {
    /// Below the state directory, unless absolute.
    pub dir: PathBuf,
    /// The time for which they are kept.
    pub keep: Period,
    /// The most bytes that they take on disk together; of more the oldest go first.
    pub max_bytes: Size,
    /// The forms in which they are kept, beside JSON.
    pub formats: BTreeSet<ReportFormat>,
    /// A folder with the newest report of each sync on each cluster, under a name that stays; none by default.
    pub latest: Option<PathBuf>,
    /// The webhooks that are told of news.
    pub webhooks: BTreeMap<String, WebhookSettings>,
}

impl Default for ReportSettings {
    fn default() -> Self {
        let keep = Period(Duration::from_hours(30 * 24));
        let formats = [ReportFormat::Text].into();
        let (max_bytes, webhooks) = (Size(1 << 30), BTreeMap::new());
        Self { dir: PathBuf::from("reports"), keep, max_bytes, formats, latest: None, webhooks }
    }
}

/// The inventories on API servers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InventorySettings {
    /// A file with a key, with which every entry is signed; none by default.
    pub key_file: Option<PathBuf>,
}

/// A source; one of the two.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SourceSettings {
    /// A git repository.
    pub git: Option<git::settings::Settings>,
    /// A directory.
    pub directory: Option<directory::Settings>,
    /// The polling interval; 30s by default. Directories are watched as well.
    pub poll: Option<Period>,
}

/// A cluster; one of the two.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterSettings {
    /// A Kubernetes API server.
    pub kubeconfig: Option<kubeconfig::Settings>,
    /// A directory that receives manifests.
    pub directory: Option<DirectoryTarget>,
    /// For selectors of syncs.
    pub labels: BTreeMap<String, String>,
    /// Values for overlays that nothing selects by.
    pub annotations: BTreeMap<String, String>,
    /// Former names of this cluster: what this host knows by them goes on under this one.
    pub moved: Vec<String>,
}

impl ClusterSettings {
    /// Returns what overlays can know of the cluster before it is asked.
    pub fn facts(&self, name: &str) -> ClusterFacts {
        let (labels, annotations) = (self.labels.clone(), self.annotations.clone());
        ClusterFacts { name: name.to_owned(), labels, annotations, ..ClusterFacts::default() }
    }
}

/// A directory that receives manifests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectoryTarget {
    /// The directory; made when it is missing.
    pub path: PathBuf,
}

/// The settings of a sync: what goes where, and when.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncSettings {
    /// The source.
    pub source: String,
    /// The folder within the source.
    #[serde(default = "whole_source")]
    pub path: String,
    /// The clusters.
    pub clusters: ClusterSelector,
    /// The account as which objects are read and written on API servers; without it that of the cluster.
    #[serde(default)]
    pub impersonate: Option<Account>,
    /// Whether differences are removed or only reported.
    #[serde(default)]
    pub mode: Mode,
    /// When.
    #[serde(default)]
    pub schedule: schedule::Settings,
    /// The longest time that it may take to read and render the source.
    #[serde(default = "render_timeout")]
    pub render_timeout: Period,
    /// The treatment of the specs themselves.
    #[serde(default)]
    pub specs: SpecsMode,
    /// Whether the copy of a Gateway has the addresses of its Service.
    #[serde(default = "copy_addresses")]
    pub copy_addresses: bool,
    /// The treatment of documents that no pack claims.
    #[serde(default)]
    pub unclaimed: Unclaimed,
    /// The part that a problem of the source holds back.
    #[serde(default)]
    pub on_problem: OnProblem,
    /// Whether missing namespaces are made.
    #[serde(default)]
    pub create_namespaces: bool,
    /// The namespace that all specs count as written for.
    #[serde(default)]
    pub target_namespace: Option<String>,
    /// Labels for every object.
    #[serde(default)]
    pub common_labels: BTreeMap<String, String>,
    /// Annotations for every object.
    #[serde(default)]
    pub common_annotations: BTreeMap<String, String>,
    /// Former names of this sync, whose objects become its own.
    #[serde(default)]
    pub moved: Vec<Moved>,
    /// The namespaces and kinds that may be written.
    #[serde(default)]
    pub allow: Allow,
    /// The overlays of the source that count.
    #[serde(default)]
    pub overlays: OverlaySettings,
    /// The rules for what may become ours.
    #[serde(default)]
    pub adopt: AdoptSettings,
    /// The rules for who wins in fields that others have set too; the first rule that fits counts, then what is built
    /// in.
    #[serde(default)]
    pub conflicts: Vec<ConflictRule>,
    /// Fields that are not changed once their object exists.
    #[serde(default)]
    pub ignore: Vec<IgnoreRule>,
    /// The rules for what may be deleted.
    #[serde(default)]
    pub prune: PruneSettings,
    /// The kinds that may be deleted and created again.
    #[serde(default)]
    pub recreate: RecreateSettings,
    /// The rules for what is awaited.
    #[serde(default)]
    pub wait: WaitSettings,
    /// Whether a Kubernetes Event tells of each object that was changed (`kubectl describe`, `kubectl events`).
    #[serde(default)]
    pub events: bool,
    /// The order in which clusters get what replaces pods.
    #[serde(default)]
    pub rollout: RolloutSettings,
    /// Other syncs that have to be through before anything is changed.
    #[serde(default)]
    pub depends_on: Vec<DependsOn>,
}

fn copy_addresses() -> bool {
    true
}

fn render_timeout() -> Period {
    Period(Duration::from_mins(1))
}

fn whole_source() -> String {
    ".".to_owned()
}

/// Whether differences are removed or only reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They are removed.
    #[default]
    Apply,
    /// They are reported, and nothing is changed.
    Report,
}

/// The treatment of the specs themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpecsMode {
    /// They are rendered, and not written to the cluster.
    #[default]
    Render,
    /// They are written to the cluster too, so that its control plane sees them.
    Apply,
}

/// The treatment of documents that no pack claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unclaimed {
    /// They are listed.
    #[default]
    Report,
    /// Each is a problem.
    Error,
    /// They are applied as they are.
    Apply,
}

/// The part that a problem of the source holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnProblem {
    /// The units that it feeds.
    #[default]
    HoldUnit,
    /// Everything.
    HoldSync,
}

/// A former name of a sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Moved {
    /// The name.
    pub from: String,
}

/// The rules for what may become ours.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AdoptSettings {
    /// When an existing object without our mark may become ours.
    pub policy: Adopt,
    /// Whether such an object is deleted when it is not wanted any more; otherwise it stays.
    pub prune: bool,
    /// Whether Gateways that a deployer in the cluster provisions are adopted from it.
    pub deployer: bool,
}

impl AdoptSettings {
    /// Lets Gateways be adopted from their deployer in a round that a person has asked for; nobody is asked again about what belongs to
    /// them and nobody has marked.
    pub fn adopt_from_deployers(&mut self) {
        self.deployer = true;
        if self.policy == Adopt::Confirm {
            self.policy = Adopt::IfUnowned;
        }
    }
}

/// The rules for what may be deleted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PruneSettings {
    /// Whether anything is.
    pub enabled: bool,
    /// The most that may be deleted at once.
    pub max_delete: MaxDelete,
    /// Whether an empty source may empty a cluster.
    pub allow_empty: bool,
    /// The rules for what waits until a person has approved it.
    pub confirm: ConfirmSettings,
}

/// Deletions that wait until a person has approved them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConfirmSettings {
    /// Kinds; without a group, all of that name. If absent, those that hold data, and those of which packs say so.
    pub kinds: Option<BTreeSet<String>>,
    /// Whether whatever asks for a GPU waits too.
    pub gpus: bool,
}

impl Default for ConfirmSettings {
    fn default() -> Self {
        Self { kinds: None, gpus: true }
    }
}

/// The kinds that may be deleted and created again where a field cannot be changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RecreateSettings {
    /// Kinds; without a group, those of Kubernetes.
    pub kinds: BTreeSet<String>,
}

impl Default for PruneSettings {
    fn default() -> Self {
        let (max_delete, confirm) = (MaxDelete::default(), ConfirmSettings::default());
        Self { enabled: true, max_delete, allow_empty: false, confirm }
    }
}

/// The rules for what is awaited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WaitSettings {
    /// Whether a round waits for what it changed to be healthy.
    pub enabled: bool,
    /// For how long.
    pub timeout: Period,
    /// For how long where model servers are among it: what asks for a GPU, and kinds that make such.
    pub model_timeout: Period,
    /// Whether a Service of type LoadBalancer needs an address to be healthy.
    pub load_balancer: bool,
}

impl Default for WaitSettings {
    fn default() -> Self {
        let (timeout, model_timeout) = (Period(Duration::from_mins(10)), Period(Duration::from_mins(30)));
        Self { enabled: true, timeout, model_timeout, load_balancer: false }
    }
}

/// Settings of packs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PackSettings {
    /// kgateway's Envoy.
    pub kgateway: kgateway::settings::Settings,
    /// agentgateway's proxy.
    pub agentgateway: agentgateway::settings::Settings,
    /// KServe's model servers, and the schedulers before them.
    pub kserve: kserve::settings::Settings,
    /// NVIDIA Dynamo's graphs.
    pub dynamo: dynamo::settings::Settings,
    /// Declarative packs, by their names.
    #[serde(flatten)]
    pub others: BTreeMap<String, DeclaredSettings>,
}

/// Settings of packs for some clusters or classes. Of several that are for one, the first that says something of its pack
/// counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PackOverride {
    /// The clusters; all of them if absent.
    pub clusters: Option<ClusterSelector>,
    /// The names of classes of Gateways; all of them if absent.
    pub classes: Option<BTreeSet<String>>,
    /// The settings that differ there from those in `packs`; parameters and what is enforced are not among them.
    #[schemars(with = "PackSettings")]
    pub packs: Value,
}

/// Settings of a declarative pack.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeclaredSettings {
    /// The values that templates see as `settings`.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub settings: Value,
    /// Parameters of every spec: the shape of the `spec` of the pack's kind of parameters, below those of specs.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub parameters: Value,
    /// The bounds that must hold for the merged parameters of every spec.
    pub enforce: Vec<Bound>,
}
