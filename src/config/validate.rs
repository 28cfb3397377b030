//! Checks of settings that a schema cannot express: names that lead somewhere, choices of exactly one, paths.

mod folders;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::kinds::name::KindName;
use gatewright_engine::plan::conflicts::path::FieldPath;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::text::listed;
use gatewright_engine::yaml::Node;
use tracing::level_filters::LevelFilter;

use super::depends;
use super::environment::Environment;
use super::otlp::OtlpSettings;
use super::rollout::Strategy;
use super::settings::{ClusterSettings, Settings, SourceSettings, SyncSettings};
use super::webhooks::WebhookSettings;
use super::{Reader, did_you_mean, plain};
use crate::basics::paths::{NoCredentials, Paths};
use crate::cluster::kubeconfig;
use crate::process::http;
use crate::schedule::Schedule;

/// Names become labels, folders and parts of object names; 40 characters leave room for what is added.
pub(crate) const MAX_NAME: usize = 40;

/// Asking a server more often than this helps nobody.
pub(super) const SHORTEST_POLL: Duration = Duration::from_secs(1);

/// Checks what a schema cannot, and makes all paths absolute; `is_whole`: all clusters are known.
pub(super) fn validate(
    reader: &Reader,
    root: &Node,
    settings: &mut Settings,
    (paths, environment): (&Paths, &Environment),
    is_whole: bool,
) -> Vec<Problem> {
    let mut checks = Checks { reader, root, is_whole, problems: Vec::new() };
    checks.log_level(&settings.log.level, environment);
    checks.dashboard(&settings.http);
    checks.actions(&settings.http);
    if let Some(otlp) = &mut settings.otlp {
        checks.otlp(otlp, paths);
    }
    checks.credentials(&["undo", "keyFile"], settings.undo.resolve(paths));
    if let Some(latest) = &mut settings.reports.latest {
        *latest = plain(&paths.base.join(&*latest));
    }
    checks.names("sources", settings.sources.keys());
    checks.names("clusters", settings.clusters.keys());
    checks.names("syncs", settings.syncs.keys());
    let has_hosts = settings.hosts.is_some();
    for (name, source) in &mut settings.sources {
        checks.source(name, source, paths);
        source.directory.iter_mut().for_each(|directory| directory.is_on_each_host = has_hosts);
    }
    for (name, cluster) in &mut settings.clusters {
        checks.cluster(name, cluster, paths);
    }
    checks.directories(&settings.clusters);
    checks.sources(settings, &super::state_dir(settings, paths, environment));
    for (name, sync) in &mut settings.syncs {
        for (index, gate) in sync.rollout.gates.iter_mut().enumerate() {
            let index = index.to_string();
            checks.credentials(&["syncs", name, "rollout", "gates", &index], gate.resolve(paths));
        }
    }
    checks.renamed(settings);
    checks.accounts(settings);
    checks.hosts(settings, paths);
    for (name, sync) in &settings.syncs {
        checks.sync(name, sync, settings);
    }
    for (name, mistake) in depends::cycles(&settings.syncs) {
        checks.dependency(&name, mistake);
    }
    let syncs: Vec<&str> = settings.syncs.keys().map(String::as_str).collect();
    for (name, webhook) in &mut settings.reports.webhooks {
        checks.name(&["reports", "webhooks"], "webhook", name);
        checks.webhook(name, webhook, &syncs, paths);
    }
    checks.problems
}

/// Checks what depends on the list of clusters, when nothing else has changed; `is_whole`: all of it is known.
pub(super) fn validate_selections(reader: &Reader, root: &Node, settings: &Settings, is_whole: bool) -> Vec<Problem> {
    let mut checks = Checks { reader, root, is_whole, problems: Vec::new() };
    checks.directories(&settings.clusters);
    checks.renamed(settings);
    for (name, sync) in &settings.syncs {
        checks.sync(name, sync, settings);
    }
    checks.problems
}

/// Tells whether a text can be a name.
pub(crate) fn is_name(text: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_valid)
}

struct Checks<'a> {
    reader: &'a Reader,
    root: &'a Node,
    /// Whether all clusters are known; else nothing is said of those that are missed.
    is_whole: bool,
    problems: Vec<Problem>,
}

/// The most labels that a message names.
const MOST_LABELS: usize = 8;

/// Says that a sync selects no cluster, and how it would select some.
pub(super) fn selects_none(sync: &str, settings: &Settings) -> (String, String) {
    let hint = format!("name clusters, or select them by matchLabels; {}", labels(settings));
    (format!("sync {sync:?} selects no cluster"), hint)
}

/// Says which labels clusters have.
fn labels(settings: &Settings) -> String {
    let of = |cluster: &ClusterSettings| cluster.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let all: BTreeSet<String> = settings.clusters.values().flat_map(|cluster| -> Vec<String> { of(cluster) }).collect();
    match all.len() {
        0 => "no cluster has labels".to_owned(),
        _ => format!("there are {}", listed(all, MOST_LABELS)),
    }
}

impl Checks<'_> {
    fn problem(&mut self, path: &[&str], message: String, hint: Option<&str>) {
        let place = self.reader.place(self.root, path);
        self.problems.push(Problem { hint: hint.map(str::to_owned), ..Problem::file(place, message) });
    }

    /// Notes that a source or cluster is of two kinds, or of none.
    fn not_one(&mut self, path: [&str; 2], kind: &str, has_both: bool, hint: &str) {
        let (what, [section, name]) = (path[0].trim_end_matches('s'), path);
        let (both, hint) = if has_both { ("both", "remove one of the two") } else { ("neither", hint) };
        let and = if has_both { "and" } else { "nor" };
        self.problem(&[section, name], format!("{what} {name:?} has {both} {kind} {and} directory"), Some(hint));
    }

    fn names<'a>(&mut self, section: &str, names: impl Iterator<Item = &'a String>) {
        for name in names {
            self.name(&[section], section.trim_end_matches('s'), name);
        }
    }

    fn name(&mut self, section: &[&str], what: &str, name: &str) {
        if !is_name(name) {
            let hint = format!("write up to {MAX_NAME} lower-case letters, digits and dashes");
            self.problem(&[section, &[name]].concat(), format!("{name:?} cannot be the name of a {what}"), Some(&hint));
        }
    }

    fn webhook(&mut self, name: &str, webhook: &mut WebhookSettings, syncs: &[&str], paths: &Paths) {
        let place = ["reports", "webhooks", name];
        self.credentials(&place, webhook.resolve(paths));
        if let Err(conflict) = webhook.check() {
            self.problem(&place, format!("webhook {name:?}: {conflict}"), conflict.hint());
        }
        for sync in webhook.syncs.iter().flatten().filter(|sync| !syncs.contains(&sync.as_str())) {
            let hint = did_you_mean(sync, syncs.iter().copied());
            let place = ["reports", "webhooks", name, "syncs"];
            self.problem(&place, format!("there is no sync {sync:?}"), Some(&hint));
        }
    }

    fn otlp(&mut self, otlp: &mut OtlpSettings, paths: &Paths) {
        self.credentials(&["otlp"], otlp.resolve(paths));
        if let Err(conflict) = otlp.check() {
            self.problem(&["otlp"], format!("otlp: {conflict}"), conflict.hint());
        }
    }

    /// A dashboard that nobody could see is a mistake.
    fn dashboard(&mut self, http: &http::Settings) {
        if http.listen == http::Listen::Off && (http.dashboard == Some(true) || !http.names.is_empty()) {
            let message = "the dashboard is served where http.listen says, which is off".to_owned();
            let setting = if http.dashboard == Some(true) { "dashboard" } else { "names" };
            self.problem(&["http", setting], message, Some("set http.listen to an address, such as 127.0.0.1:8085"));
        }
    }

    /// Actions that nobody could take are a mistake.
    fn actions(&mut self, http: &http::Settings) {
        if http.actions && !http.has_dashboard() {
            let message = "actions are taken at the dashboard, which is not served".to_owned();
            self.problem(&["http", "actions"], message, Some("set http.dashboard to true, or http.actions to false"));
        }
        if http.user_header.is_some() && !http.actions {
            let message = "the user is named for the record of actions, and http.actions is off".to_owned();
            self.problem(&["http", "userHeader"], message, Some("set http.actions to true, or leave it out"));
        }
    }

    /// Checks the log level: a wrong one shows only when the log starts, which would be too late for `config check`.
    fn log_level(&mut self, level: &str, environment: &Environment) {
        let is_level = |part: &str| part.rsplit('=').next().is_some_and(|word| word.parse::<LevelFilter>().is_ok());
        let Some(part) = level.split(',').map(str::trim).find(|part| part.is_empty() || !is_level(part)) else {
            return;
        };
        let message = format!("the log level {part:?} is not known");
        let hint = "write off, error, warn, info, debug or trace, or module=level";
        let variable = "GATEWRIGHT_LOG_LEVEL";
        if environment.overrides.iter().any(|(name, _)| *name == variable) {
            self.problems.push(Problem::file(Place::file(variable), message).hint(hint));
        } else {
            self.problem(&["log", "level"], message, Some(hint));
        }
    }

    fn source(&mut self, name: &str, source: &mut SourceSettings, paths: &Paths) {
        if source.poll.is_some_and(|poll| poll.0 < SHORTEST_POLL) {
            let message = format!("source {name:?} would be asked more often than once a second");
            self.problem(&["sources", name, "poll"], message, Some("30s is the default"));
        }
        match (&mut source.git, &mut source.directory) {
            (Some(git), None) => {
                self.credentials(&["sources", name, "git"], git.resolve(paths));
                if let Err(conflict) = git.check() {
                    self.problem(&["sources", name, "git"], format!("source {name:?}: {conflict}"), None);
                }
            }
            (None, Some(directory)) => {
                self.credentials(&["sources", name, "directory"], directory.resolve(paths));
                directory.path = plain(&directory.path);
                if directory.timeout.0.is_zero() {
                    let message = format!("source {name:?} would never be read: its timeout is zero");
                    self.problem(&["sources", name, "directory", "timeout"], message, None);
                }
            }
            (git, _) => self.not_one(["sources", name], "git", git.is_some(), "add one of the two"),
        }
    }

    fn cluster(&mut self, name: &str, cluster: &mut ClusterSettings, paths: &Paths) {
        match (&mut cluster.kubeconfig, &mut cluster.directory) {
            (Some(kubeconfig), None) => {
                if let Some(path) = &mut kubeconfig.path {
                    match paths.resolve(path) {
                        Ok(resolved) => *path = plain(&resolved),
                        Err(error) => self.credentials(&["clusters", name, "kubeconfig", "path"], Err(error)),
                    }
                }
            }
            (None, Some(directory)) => directory.path = plain(&paths.base.join(&directory.path)),
            (kubeconfig, _) => {
                let hint = "add one of the two; kubeconfig: {} takes the file that kubectl would take";
                self.not_one(["clusters", name], "kubeconfig", kubeconfig.is_some(), hint);
            }
        }
    }

    /// Checks the former names of clusters: one that is in use, or that two claim, says nothing of which cluster it was.
    fn renamed(&mut self, settings: &Settings) {
        for (name, old) in settings.renamed() {
            let index = settings.clusters[name].moved.iter().position(|it| it == old).unwrap_or_default().to_string();
            let place = ["clusters", name, "moved", &index];
            let other = settings.renamed().find(|(other, it)| *it == old && *other < name);
            let message = if old == name {
                format!("cluster {name:?} cannot have moved from its own name")
            } else if settings.clusters.contains_key(old) {
                format!("cluster {old:?} is still there")
            } else if let Some((other, _)) = other {
                format!("cluster {other:?} has moved from {old:?} too")
            } else {
                self.name(&place[..3], "cluster", old);
                continue;
            };
            self.problem(&place, message, Some("name a cluster that has another name now"));
        }
    }

    /// Checks whom requests are to be made as: half of an account would be another one.
    fn accounts(&mut self, settings: &Settings) {
        let of = |kubeconfig: &Option<kubeconfig::Settings>| kubeconfig.as_ref()?.impersonate.clone();
        let mut all = vec![(vec!["clusterFolderAccess"], settings.cluster_folder_access.impersonate.clone())];
        all.extend(
            settings.clusters.iter().map(|(name, it)| (vec!["clusters", name, "kubeconfig"], of(&it.kubeconfig))),
        );
        for (name, it) in &settings.cluster_secrets {
            all.push((vec!["clusterSecrets", name, "kubeconfig"], of(&it.kubeconfig)));
            all.push((vec!["clusterSecrets", name, "access"], it.access.impersonate.clone()));
        }
        all.extend(settings.syncs.iter().map(|(name, it)| (vec!["syncs", name], it.impersonate.clone())));
        for (path, account) in all {
            if let Some(error) = account.and_then(|account| account.check().err()) {
                let path = [&path[..], &["impersonate"]].concat();
                self.problem(&path, format!("nobody can be impersonated so: {error}"), Some(error.hint()));
            }
        }
    }

    fn credentials(&mut self, path: &[&str], result: Result<(), NoCredentials>) {
        if let Err(error) = result {
            let hint = "add LoadCredential=NAME:PATH to the unit, or write a path here";
            self.problem(path, error.to_string(), Some(hint));
        }
    }

    fn sync(&mut self, name: &str, sync: &SyncSettings, settings: &Settings) {
        if !settings.sources.contains_key(&sync.source) {
            self.unknown(&["syncs", name, "source"], "source", &sync.source, &settings.sources);
        }
        if sync.render_timeout.0.is_zero() {
            let message = format!("sync {name:?} would never be rendered: its renderTimeout is zero");
            self.problem(&["syncs", name, "renderTimeout"], message, None);
        }
        let wanted = sync.clusters.names.iter().flatten();
        let is_lost = |cluster: &&String| self.is_whole && !settings.clusters.contains_key(*cluster);
        let lost: Vec<&String> = wanted.filter(is_lost).collect();
        for cluster in &lost {
            let place = ["syncs", name, "clusters", "names"];
            let items = self.root.at(place).map(Node::items).unwrap_or_default();
            let index = items.iter().position(|node| node.as_str() == Some(cluster)).unwrap_or_default().to_string();
            self.unknown(&[&place[..], &[&index]].concat(), "cluster", cluster, &settings.clusters);
        }
        // Where clusters come and go beside this file, one that loses its label is not to stop all other syncs.
        if self.is_whole && lost.is_empty() && settings.clusters_of(sync).is_empty() && !settings.finds_clusters() {
            let (message, hint) = selects_none(name, settings);
            self.problem(&["syncs", name, "clusters"], message, Some(&hint));
        }
        self.rollout(name, sync, settings);
        self.gates(name, sync, settings);
        for mistake in depends::check(name, sync, settings, self.is_whole) {
            self.dependency(name, mistake);
        }
        self.field_paths(name, sync);
        self.allow(name, sync);
        self.moved(name, sync, settings);
        if let Err(error) = Schedule::parse(&sync.schedule) {
            self.problem(&["syncs", name, "schedule"], Chain(&error).to_string(), error.hint().as_deref());
        }
    }

    fn rollout(&mut self, name: &str, sync: &SyncSettings, settings: &Settings) {
        let (rollout, selected) = (&sync.rollout, &settings.clusters_of(sync));
        let place = ["syncs", name, "rollout"];
        if selected.is_empty() {
            return;
        }
        if let Some(first) = &rollout.first
            && self.is_whole
            && !selected.iter().any(|(cluster, settings)| first.selects(cluster, &settings.labels))
        {
            let message = format!("none of the clusters of sync {name:?} would be the first of a rollout");
            self.problem(&[&place[..], &["first"]].concat(), message, Some("select one of them, or leave it out"));
        }
        if !rollout.waves.is_empty() && (rollout.first.is_some() || rollout.strategy == Strategy::All) {
            let message =
                "waves say in which order clusters get a change, and so does what stands beside them".to_owned();
            self.problem(&[&place[..], &["waves"]].concat(), message, Some("leave out first and strategy, or waves"));
        }
        for (index, _) in rollout.waves.iter().enumerate().filter(|(_, wave)| wave.lets_none_go()) {
            let at = index.to_string();
            let place = [&place[..], &["waves", &at, "maxConcurrent"]].concat();
            let message = format!("wave {} of sync {name:?} would let no cluster have a change", index + 1);
            self.problem(
                &place,
                message,
                Some("write 1 or more, or leave it out; `gatewright rollout pause` stops rollouts"),
            );
        }
        for (index, (_, clusters)) in rollout.waves_of(selected).into_iter().enumerate() {
            // Clusters of folders and Secrets come and go.
            let is_fixed = settings.cluster_folders.is_empty() && settings.cluster_secrets.is_empty();
            if clusters.is_empty() && is_fixed {
                let message =
                    format!("wave {} has no cluster of sync {name:?} that the waves before have not", index + 1);
                let index = index.to_string();
                let place = [&place[..], &["waves", &index]].concat();
                self.problem(&place, message, Some("select some of them, or take it out"));
            }
        }
    }

    fn gates(&mut self, name: &str, sync: &SyncSettings, settings: &Settings) {
        let (rollout, selected) = (&sync.rollout, settings.clusters_of(sync));
        let place = ["syncs", name, "rollout"];
        let asks = !rollout.gates.is_empty() || rollout.rollback_on_failure;
        if asks && (rollout.strategy == Strategy::All || !sync.wait.enabled) {
            let message = "gates and rollbackOnFailure look at clusters that got a change, and nobody waits for that";
            self.problem(&place, message.to_owned(), Some("take out strategy: all, and leave wait enabled"));
        }
        for (index, gate) in rollout.gates.iter().enumerate() {
            let facts = selected.iter().map(|(name, cluster)| cluster.facts(name)).filter(|facts| gate.is_about(facts));
            let on_clusters = facts.map(|facts| gate.on(&facts).map(drop).map_err(|why| (facts.name, why)));
            let lacking = { on_clusters }.find_map(Result::err);
            let wrong = gate.check().err().map(str::to_owned);
            let wrong = wrong.or_else(|| lacking.map(|(cluster, why)| format!("on cluster {cluster:?} {why}")));
            // Clusters of folders and Secrets come and go.
            let is_fixed = settings.cluster_folders.is_empty() && settings.cluster_secrets.is_empty();
            let is_about_none = is_fixed && !selected.iter().any(|(name, it)| gate.is_about(&it.facts(name)));
            let wrong =
                wrong.or_else(|| is_about_none.then(|| "it is about none of the clusters of the sync".to_owned()));
            let is_twice = rollout.gates[..index].iter().any(|other| other.name == gate.name);
            if let Some(wrong) = wrong.or_else(|| is_twice.then(|| "another gate has this name".to_owned())) {
                let index = index.to_string();
                let message = format!("gate {:?} of sync {name:?}: {wrong}", gate.name);
                self.problem(&[&place[..], &["gates", &index]].concat(), message, None);
            }
        }
    }

    fn hosts(&mut self, settings: &mut Settings, paths: &Paths) {
        let Some(mut hosts) = settings.hosts.take() else { return };
        self.credentials(&["hosts", "store", "secrets"], hosts.store.resolve(paths));
        for (field, message, hint) in hosts.check(settings, self.is_whole) {
            self.problem(&["hosts", field], message, Some(hint.as_str()).filter(|hint| !hint.is_empty()));
        }
        settings.hosts = Some(hosts);
    }

    fn dependency(&mut self, name: &str, (place, message, hint): depends::Mistake) {
        let place: Vec<&str> =
            ["syncs", name, "dependsOn"].into_iter().chain(place.iter().map(String::as_str)).collect();
        self.problem(&place, message, Some(&hint));
    }

    fn allow(&mut self, name: &str, sync: &SyncSettings) {
        let lists = [("kinds", Some(&sync.allow.kinds)), ("clusterKinds", sync.allow.cluster_kinds.as_ref())];
        for (field, kinds) in lists {
            for error in kinds.into_iter().flatten().filter_map(|kind| kind.parse::<KindName>().err()) {
                let hint = "write Deployment, Deployment.apps, Service.core for a group without a name, or *";
                self.problem(&["syncs", name, "allow", field], error.to_string(), Some(hint));
            }
        }
        for path in sync.overlays.paths.iter().flatten() {
            if path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..") {
                let hint = "write it from the root of the source, such as platform/overlays, or . for all";
                let place = ["syncs", name, "overlays", "paths"];
                self.problem(&place, format!("{path:?} is no folder of a source"), Some(hint));
            }
        }
    }

    fn field_paths(&mut self, name: &str, sync: &SyncSettings) {
        for (index, rule) in sync.conflicts.iter().enumerate() {
            for (position, path) in rule.paths.iter().enumerate() {
                let (index, position) = (index.to_string(), position.to_string());
                self.field_path(&["syncs", name, "conflicts", &index, "paths", &position], path);
            }
        }
        for (index, rule) in sync.ignore.iter().enumerate() {
            self.field_path(&["syncs", name, "ignore", &index.to_string(), "path"], &rule.path);
        }
    }

    fn field_path(&mut self, place: &[&str], path: &str) {
        if let Err(message) = FieldPath::parse(path) {
            let hint = "write it as in a plan: spec.template.spec.containers[envoy].image";
            self.problem(place, message, Some(hint));
        }
    }

    /// Checks the former names of a sync: what one name gives up another may take; a name that is in use gives up
    /// nothing.
    fn moved(&mut self, name: &str, sync: &SyncSettings, settings: &Settings) {
        let own = settings.clusters_of(sync);
        let shares =
            |other: &SyncSettings| settings.clusters_of(other).into_keys().find(|cluster| own.contains_key(cluster));
        for (index, moved) in sync.moved.iter().enumerate() {
            let from = &moved.from;
            let takes = |other: &SyncSettings| other.moved.iter().any(|other| other.from == *from);
            let alias = settings
                .syncs
                .iter()
                .find(|(other, settings)| other.as_str() < name && takes(settings) && shares(settings).is_some());
            let message = if from == name {
                format!("sync {name:?} cannot have moved from its own name")
            } else if let Some(cluster) = settings.syncs.get(from).and_then(shares) {
                format!("sync {from:?} is still there, for cluster {cluster:?} too")
            } else if let Some((other, _)) = alias {
                format!("sync {other:?} has moved from {from:?} too, for a cluster that both select")
            } else {
                continue;
            };
            let hint = "name a sync that is gone; what moves between two that stay needs no setting";
            self.problem(&["syncs", name, "moved", &index.to_string(), "from"], message, Some(hint));
        }
    }

    fn unknown<T>(&mut self, path: &[&str], what: &str, name: &str, known: &BTreeMap<String, T>) {
        let hint = did_you_mean(name, known.keys().map(String::as_str));
        self.problem(path, format!("there is no {what} {name:?}"), Some(&hint));
    }
}
