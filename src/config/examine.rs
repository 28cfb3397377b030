//! The checks of `config check` beyond the file: kubeconfigs, which cluster is which, and labels that nothing has.
//!
//! A daemon starts without it: a kubeconfig may come later, and is read again in each round.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use gatewright_engine::check::suggest;
use gatewright_engine::error::Chain;
use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::selector::{Expression, Operator};
use serde_json::Value;

use super::Config;
use super::cluster_secrets::entry;
use super::settings::Mode;
use super::validate::selects_none;
use crate::cluster::kubeconfig::{Access, Origin, load};

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The configuration cannot be used with it.
    pub problems: Vec<Problem>,
    /// It is probably a mistake.
    pub warnings: Vec<Problem>,
}

/// Looks for it. Reads files, and connects to nothing.
pub(crate) fn examine(config: &Config) -> Findings {
    let mut found = Findings::default();
    let mut servers: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, settings) in &config.settings.clusters {
        let Some(kubeconfig) = &settings.kubeconfig else { continue };
        // No Secret is read here.
        if matches!(kubeconfig.origin, Origin::Secret(_)) {
            continue;
        }
        match load(name, kubeconfig, &config.standard_lookup) {
            Ok(access) => servers.entry(server(&access)).or_default().push(name),
            Err(error) => {
                let problem =
                    Problem::file(config.place_of_cluster(name), format!("cluster {name:?}: {}", Chain(&error)));
                found.problems.push(problem.hint(error.hint));
            }
        }
    }
    for (server, names) in &servers {
        found.twins(config, server, names);
    }
    for (file, why) in &config.found_in_folders().ignored {
        let place = Place::file(file.to_string_lossy());
        found.warnings.push(Problem::warning(place, format!("it is no cluster: {why}")));
    }
    found.management(config);
    let settings = serde_json::to_value(&config.settings).unwrap_or_default();
    found.files(config, &settings, &mut Vec::new());
    let is_whole = config.knows_all_clusters();
    for name in config.settings.syncs.keys().filter(|_| is_whole) {
        found.warnings.extend(labels(config, name));
        found.problems.extend(without_clusters(config, name));
    }
    found
}

/// The address of an API server, in the one form that is equal where the server is, and the way to it.
fn server(access: &Access) -> String {
    let uri = &access.config.cluster_url;
    let scheme = uri.scheme_str().unwrap_or("https");
    let port = uri.port_u16().unwrap_or(if scheme == "http" { 80 } else { 443 });
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    let proxy = access.config.proxy_url.as_ref().map(|proxy| format!(" by {proxy}")).unwrap_or_default();
    format!("{scheme}://{host}:{port}{}{proxy}", uri.path().trim_end_matches('/'))
}

impl Findings {
    /// Looks at the kubeconfigs of management clusters that are no clusters themselves.
    fn management(&mut self, config: &Config) {
        for (name, settings) in &config.settings.cluster_secrets {
            let Some(kubeconfig) = &settings.kubeconfig else { continue };
            if let Err(error) = load(name, kubeconfig, &config.standard_lookup) {
                let place = config.place(&["clusterSecrets", name, "kubeconfig"]);
                let problem = Problem::file(place, format!("{}: {}", entry(name), Chain(&error)));
                self.problems.push(problem.hint(error.hint));
            }
        }
    }

    /// Looks at the files that settings name: keys, tokens, certificates. Whoever checks may be another one than who runs
    /// the daemon, so that nothing is an error.
    fn files<'a>(&mut self, config: &Config, settings: &'a Value, path: &mut Vec<&'a str>) {
        for (name, value) in settings.as_object().into_iter().flatten() {
            path.push(name);
            let file = value.as_str().filter(|_| name.ends_with("File"));
            let read = |file| fs::File::open(file).and_then(|file| file.metadata());
            let why = match file.map(read) {
                Some(Err(error)) => Some(error.to_string()),
                Some(Ok(metadata)) if metadata.is_dir() => Some("it is a folder".to_owned()),
                _ => None,
            };
            if let (Some(file), Some(why)) = (file, why) {
                let message = format!("{name} is {file:?}, which cannot be read here: {why}");
                let hint = "put it there, or make it readable for the user of the daemon";
                self.warnings.push(Problem::warning(config.place(path), message).hint(hint));
            }
            self.files(config, value, path);
            path.pop();
        }
    }

    /// Two clusters that are one: a sync on both makes and deletes the same objects in turn.
    fn twins(&mut self, config: &Config, server: &str, names: &[&str]) {
        let [first, others @ ..] = names else { return };
        for other in others {
            let place = config.place_of_cluster(other);
            let message = format!("clusters {first:?} and {other:?} have one API server, {server}");
            let is_on_both = |sync: &&str| {
                let settings = &config.settings.syncs[*sync];
                let clusters = config.clusters_of(settings);
                settings.mode == Mode::Apply && clusters.contains_key(first) && clusters.contains_key(other)
            };
            if let Some(sync) = config.settings.syncs.keys().map(String::as_str).find(is_on_both) {
                let message = format!("{message}, and sync {sync:?} selects both");
                let hint = "select one of them, or remove one: the same objects would be made under two names";
                self.problems.push(Problem::file(place, message).hint(hint));
            } else {
                let hint = "a cluster has one name, unless two syncs have users of their own there";
                self.warnings.push(Problem::warning(place, message).hint(hint));
            }
        }
    }
}

/// Returns what is wrong with a sync that selects no cluster; while it is not known which clusters there are, nothing is.
pub(crate) fn without_clusters(config: &Config, sync: &str) -> Option<Problem> {
    let is_empty = config.knows_all_clusters() && config.clusters_of(&config.settings.syncs[sync]).is_empty();
    let (message, hint) = is_empty.then(|| selects_none(sync, &config.settings))?;
    Some(Problem::file(config.place(&["syncs", sync, "clusters"]), message).hint(hint))
}

/// Finds labels in the expressions of a sync that no cluster has: what is asked for by name and by label it must have.
fn labels(config: &Config, sync: &str) -> Vec<Problem> {
    let clusters = config.settings.clusters.values();
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, value) in clusters.flat_map(|cluster| &cluster.labels) {
        known.entry(key).or_default().insert(value);
    }
    let expressions = config.settings.syncs[sync].clusters.match_expressions.iter().flatten().enumerate();
    let mut found = Vec::new();
    for (index, expression) in expressions {
        let place = config.place(&["syncs", sync, "clusters", "matchExpressions", &index.to_string()]);
        found.extend(lost(expression, &known).into_iter().map(|(what, near)| {
            let problem = Problem::warning(place.clone(), format!("sync {sync:?}: no cluster has the label {what}"));
            Problem { hint: near.map(|near| format!("did you mean {near:?}?")), ..problem }
        }));
    }
    found
}

/// Returns what an expression names and no cluster has, each with what it may be a slip of.
fn lost<'a>(expression: &Expression, known: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<(String, Option<&'a str>)> {
    let key = expression.key.as_str();
    let Some(values) = known.get(key) else {
        return vec![(format!("{key:?}"), suggest(key, known.keys().copied()))];
    };
    match expression.operator {
        Operator::In | Operator::NotIn => {
            let lost = expression.values.iter().filter(|value| !values.contains(value.as_str()));
            lost.map(|value| (format!("{:?}", format!("{key}={value}")), suggest(value, values.iter().copied())))
                .collect()
        }
        Operator::Exists | Operator::DoesNotExist => Vec::new(),
    }
}
