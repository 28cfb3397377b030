//! `clusterSecrets`: Secrets of management clusters, each of which is a cluster.
//!
//! Reading them takes an API server, so that a file is checked without them, and they join it later, as a whole list or
//! not at all. Which Secrets there are says which clusters there are; what is in one is the business of that cluster
//! alone, as with a kubeconfig in a folder. A list without any Secret is none: a namespace or a label may be misspelled, or
//! a management cluster restored from nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::selector::{Expression, Operator};
use gatewright_engine::yaml::Node;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::folders::Access;
use super::settings::{ClusterSettings, Settings};
use super::validate::{MAX_NAME, SHORTEST_POLL, is_name};
use super::{Reader, did_you_mean};
use crate::basics::duration::Period;
use crate::basics::paths::Paths;
use crate::cluster::kubeconfig::stored::{Content, Stored, Unusable};
use crate::cluster::kubeconfig::{self, Origin};
use crate::cluster::secrets::{Format, Found};

/// The namespace that stands for all of them.
const EVERYWHERE: &str = "*";

/// Secrets of one form in a management cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretSettings {
    /// The management cluster, by its name in `clusters`; or its `kubeconfig`.
    pub cluster: Option<String>,
    /// The kubeconfig of the management cluster, where it is none of `clusters`.
    pub kubeconfig: Option<kubeconfig::Settings>,
    /// The form of the Secrets.
    pub format: Format,
    /// Their namespace; `*` for all. Argo CD's are in `argocd` by default, Fleet's in `fleet-default`, and those of Open
    /// Cluster Management in one for each cluster.
    pub namespace: Option<String>,
    /// The name of the `ManagedServiceAccount`s whose tokens are used; of Open Cluster Management only.
    pub managed_service_account: Option<String>,
    /// Labels that they have, beside those by which the format knows them; where another object leads to a Secret, its
    /// labels.
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Expressions over their labels.
    pub match_expressions: Option<Vec<Expression>>,
    /// The settings of the kubeconfigs in them.
    #[serde(default)]
    pub access: Access,
    /// The interval at which the daemon reads them.
    #[serde(default = "poll")]
    pub poll: Period,
}

fn poll() -> Period {
    Period(Duration::from_mins(1))
}

impl SecretSettings {
    /// Returns the namespace to ask for; empty for all.
    pub(crate) fn namespace(&self) -> &str {
        match self.namespace.as_deref().or(self.format.usual_namespace()) {
            Some(EVERYWHERE) | None => "",
            Some(namespace) => namespace,
        }
    }

    /// Returns the selector of labels, as the API has it.
    pub(crate) fn selector(&self) -> String {
        let labels = self.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.match_expressions.iter().flatten().map(|expression| {
            let (key, values) = (&expression.key, expression.values.iter().cloned().collect::<Vec<_>>().join(","));
            match expression.operator {
                Operator::In => format!("{key} in ({values})"),
                Operator::NotIn => format!("{key} notin ({values})"),
                Operator::Exists => key.clone(),
                Operator::DoesNotExist => format!("!{key}"),
            }
        });
        let of_format = (!self.format.has_members()).then(|| self.format.labels());
        let all: Vec<String> = of_format.into_iter().chain(labels).chain(expressions).collect();
        all.join(",")
    }

    /// Tells what is wrong with the name of the accounts, and where: it is one that Open Cluster Management needs and no other
    /// format has.
    fn wrong_account(&self, name: &str) -> Option<(&'static [&'static str], String, &'static str)> {
        match (self.format, &self.managed_service_account) {
            (Format::OpenClusterManagement, Some(account)) if is_namespace(account) && account != EVERYWHERE => None,
            (Format::OpenClusterManagement, _) => {
                let hint = "name the ManagedServiceAccount that there is for us in the namespace of each cluster";
                Some((&[], format!("clusterSecrets {name:?} has no managedServiceAccount"), hint))
            }
            (_, Some(_)) => {
                let message = "only format: open-cluster-management has a managedServiceAccount".to_owned();
                Some((&["managedServiceAccount"], message, "take it out, or correct the format"))
            }
            (_, None) => None,
        }
    }

    /// Returns the words that would mean something else in a selector.
    fn strange(&self) -> Option<&String> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let labels = self.match_labels.iter().flatten().flat_map(|(key, value)| [key, value]);
        let expressions = self.match_expressions.iter().flatten();
        let words = expressions.flat_map(|expression| std::iter::once(&expression.key).chain(&expression.values));
        labels.chain(words).find(|word| !word.chars().all(is_fine))
    }
}

/// The clusters of one entry, as its Secrets were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct List(pub Vec<Entry>);

/// A Secret that is a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The cluster.
    pub name: String,
    /// The namespace and name of the Secret.
    pub secret: String,
    /// The labels of the cluster.
    pub labels: BTreeMap<String, String>,
    /// Its kubeconfig, or why there is none.
    pub content: Result<Content, Unusable>,
}

impl List {
    /// Takes the clusters that were found, each with its Secret; `source` is the name of the entry.
    pub(crate) fn of(source: &str, clusters: Vec<(String, Found)>) -> Result<Self, Vec<Problem>> {
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for (path, cluster) in clusters {
            let problem = |message: &str, hint: &str| Problem::file(place(source, &path), message).hint(hint);
            match cluster.name {
                Ok(name) if is_name(&name) => {
                    let (labels, content) = (cluster.labels, cluster.content);
                    found.push(Entry { name, secret: path, labels, content });
                }
                // It is not quoted: in a Secret whose keys are mixed up it may be anything.
                Ok(_) => {
                    let hint = format!(
                        "a name is up to {MAX_NAME} lower-case letters, digits and dashes; change it, or leave the \
                         Secret out by matchExpressions"
                    );
                    problems.push(problem("the name in it cannot be the name of a cluster", &hint));
                }
                Err(error) => problems.push(problem(&error.problem, &error.hint)),
            }
        }
        if found.is_empty() && problems.is_empty() {
            let hint = "check its namespace and labels; if there are to be none, take the entry out";
            let message = "no Secret there is a cluster, which is not taken for clusters that are gone";
            problems.push(Problem::file(Place::file(entry(source)), message).hint(hint));
        }
        // The API server lists them by their own names, and what is remembered is listed by those of clusters.
        found.sort_by(|a, b| (&a.name, &a.secret).cmp(&(&b.name, &b.secret)));
        if problems.is_empty() { Ok(Self(found)) } else { Err(problems) }
    }

    /// Tells whether another one has the same clusters, whatever their kubeconfigs say.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let is_like = |(one, other): (&Entry, &Entry)| {
            (&one.name, &one.secret, &one.labels) == (&other.name, &other.secret, &other.labels)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(is_like)
    }
}

/// The clusters that were found in Secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecretClusters {
    /// The clusters, by name.
    pub clusters: BTreeMap<String, SecretCluster>,
    /// The entries that nobody has read.
    pub unknown: BTreeSet<String>,
}

/// A cluster that was found in a Secret.
#[derive(Clone, Debug)]
pub(crate) struct SecretCluster {
    /// The entry.
    pub source: String,
    /// The namespace and name of the Secret.
    pub secret: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The kubeconfig.
    pub kubeconfig: Stored,
}

impl SecretCluster {
    /// Returns where it stands.
    pub(crate) fn place(&self) -> Place {
        place(&self.source, &self.secret)
    }

    fn settings(&self, access: &Access) -> ClusterSettings {
        let kubeconfig = kubeconfig::Settings {
            exec: access.exec.clone(),
            allow_insecure_tls: access.allow_insecure_tls,
            impersonate: access.impersonate.clone(),
            timeout: access.timeout,
            max_bytes: access.max_bytes,
            origin: Origin::Secret(self.kubeconfig.clone()),
            ..kubeconfig::Settings::default()
        };
        ClusterSettings { kubeconfig: Some(kubeconfig), labels: self.labels.clone(), ..ClusterSettings::default() }
    }

    fn is_from(&self, other: &Self) -> bool {
        (&self.source, &self.secret, &self.labels) == (&other.source, &other.secret, &other.labels)
    }
}

impl SecretClusters {
    /// Returns what is known before any Secret is read.
    pub(super) fn unread(settings: &Settings) -> Self {
        Self { clusters: BTreeMap::new(), unknown: settings.cluster_secrets.keys().cloned().collect() }
    }

    /// Adds the clusters of lists to the settings; `configured` says where another cluster stands.
    pub(super) fn join(
        lists: &BTreeMap<String, List>,
        settings: &mut Settings,
        configured: impl Fn(&str) -> Place,
    ) -> Result<Self, Vec<Problem>> {
        let (mut found, mut problems) = (Self::unread(settings), Vec::new());
        let hint = "keep one of the two, or rename one";
        for (source, list) in lists {
            let Some(access) = settings.cluster_secrets.get(source).map(|it| it.access.clone()) else { continue };
            found.unknown.remove(source);
            for Entry { name, secret, labels, content } in &list.0 {
                let place = place(source, secret);
                let kubeconfig = Stored::new(source, &place.to_string(), content.clone());
                let (source, secret, labels) = (source.clone(), secret.clone(), labels.clone());
                let cluster = SecretCluster { source, secret, labels, kubeconfig };
                let other = match found.clusters.get(name) {
                    Some(other) => Some(other.place()),
                    None => settings.clusters.contains_key(name).then(|| configured(name)),
                };
                if let Some(other) = other {
                    let message = format!("cluster {name:?} is also {other}");
                    problems.push(Problem::file(place, message).hint(hint));
                    continue;
                }
                settings.clusters.insert(name.clone(), cluster.settings(&access));
                found.clusters.insert(name.clone(), cluster);
            }
        }
        if problems.is_empty() { Ok(found) } else { Err(problems) }
    }

    /// Takes the clusters out of the settings.
    pub(crate) fn leave(&self, settings: &mut Settings) {
        settings.clusters.retain(|name, _| !self.clusters.contains_key(name));
    }

    /// Tells whether every entry is known.
    pub(crate) fn is_whole(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Tells whether these are the same clusters, whatever their kubeconfigs say.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same = |((name, one), (other_name, other)): ((&String, &SecretCluster), (&String, &SecretCluster))| {
            name == other_name && one.is_from(other)
        };
        self.unknown == other.unknown
            && self.clusters.len() == other.clusters.len()
            && self.clusters.iter().zip(&other.clusters).all(is_same)
    }

    /// Puts what the Secrets say now in the place of what they said, and returns the clusters of which it differs.
    pub(crate) fn take<'a>(&'a self, lists: &BTreeMap<String, List>) -> Vec<&'a String> {
        let changed = self.clusters.iter().filter(|(name, cluster)| {
            let entries = lists.get(&cluster.source).into_iter().flat_map(|list| &list.0);
            let mut fitting = entries.filter(|entry| entry.name == **name && entry.secret == cluster.secret);
            fitting.next().is_some_and(|entry| cluster.kubeconfig.put(entry.content.clone()))
        });
        changed.map(|(name, _)| name).collect()
    }
}

/// Returns what an entry is called in messages.
pub(crate) fn entry(source: &str) -> String {
    format!("clusterSecrets.{source}")
}

fn place(source: &str, secret: &str) -> Place {
    Place::file(format!("Secret {secret} of {}", entry(source)))
}

/// Tells whether a text can be a namespace, or stands for all. An empty one would be all of them for the API server, and that
/// has to be said.
fn is_namespace(text: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text == EVERYWHERE || !text.is_empty() && text.chars().all(is_fine)
}

/// Checks the entries, and makes their paths absolute; `is_read`: the clusters of all folders are known.
pub(super) fn check(
    reader: &Reader,
    root: &Node,
    settings: &mut Settings,
    paths: &Paths,
    is_read: bool,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, it) in &mut settings.cluster_secrets {
        let mut wrong = |path: &[&str], message: String, hint: &str| {
            let place = reader.place(root, &[&["clusterSecrets", name], path].concat());
            problems.push(Problem::file(place, message).hint(hint));
        };
        if !is_name(name) {
            let hint = format!("write up to {MAX_NAME} lower-case letters, digits and dashes");
            wrong(&[], format!("{name:?} cannot be the name of Secrets"), &hint);
        }
        if it.cluster.is_some() == it.kubeconfig.is_some() {
            let message = format!("clusterSecrets {name:?} has to have one of cluster and kubeconfig");
            wrong(&[], message, "cluster names one of clusters; kubeconfig: {path: FILE} is the way to another one");
        }
        if let Some(kubeconfig) = &mut it.kubeconfig {
            kubeconfig.origin = Origin::Management;
            match kubeconfig.path.as_deref().map(|path| paths.resolve(path)) {
                Some(Err(error)) => wrong(&["kubeconfig", "path"], error.to_string(), "write a path here"),
                resolved => kubeconfig.path = resolved.and_then(Result::ok).map(|path| super::plain(&path)),
            }
        }
        if it.namespace.is_none() && it.format.usual_namespace().is_none() {
            let hint = "write the namespace of its Cluster objects, or \"*\" for all";
            wrong(&[], format!("clusterSecrets {name:?} has no namespace"), hint);
        }
        if let Some(namespace) = it.namespace.clone().filter(|namespace| !is_namespace(namespace)) {
            wrong(&["namespace"], format!("{namespace:?} cannot be a namespace"), "\"*\" stands for all");
        }
        if let Some((path, message, hint)) = it.wrong_account(name) {
            wrong(path, message, hint);
        }
        if let Some(word) = it.strange() {
            let message = format!("{word:?} can be no label of a Secret");
            wrong(&["matchLabels"], message, "write letters, digits, -, _, . and, in keys, /");
        }
        if it.poll.0 < SHORTEST_POLL {
            wrong(&["poll"], "they would be read more often than once a second".to_owned(), "1m is the default");
        }
    }
    problems.extend(check_management(reader, root, settings, is_read));
    problems
}

/// Checks the management clusters that are named; `is_read`: the clusters of all folders are known.
pub(super) fn check_management(reader: &Reader, root: &Node, settings: &Settings, is_read: bool) -> Vec<Problem> {
    let named = settings.cluster_secrets.iter().filter_map(|(name, it)| Some((name, it.cluster.as_ref()?)));
    let found_elsewhere = |it: &ClusterSettings| match &it.kubeconfig {
        Some(kubeconfig) => !matches!(kubeconfig.origin, Origin::Secret(_)),
        None => false,
    };
    let wrong = named.filter_map(|(name, cluster)| {
        let (message, hint) = match settings.clusters.get(cluster) {
            Some(it) if found_elsewhere(it) => return None,
            None if !is_read => return None,
            Some(_) => (
                format!("cluster {cluster:?} cannot be asked for Secrets"),
                "a management cluster is an API server of clusters or of a cluster folder".to_owned(),
            ),
            None => {
                let known =
                    settings.clusters.iter().filter(|(_, it)| found_elsewhere(it)).map(|(name, _)| name.as_str());
                (format!("there is no cluster {cluster:?}"), did_you_mean(cluster, known))
            }
        };
        let place = reader.place(root, &["clusterSecrets", name, "cluster"]);
        Some(Problem::file(place, message).hint(hint))
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(settings: Value, namespace: &str, selector: &str) {
        let settings: SecretSettings = serde_json::from_value(settings).expect("they are settings");
        assert_eq!((settings.namespace(), settings.selector().as_str()), (namespace, selector));
        assert_eq!(settings.strange(), None);
    }

    #[test]
    fn secrets_are_selected_as_the_api_has_it() {
        let name = "cluster.x-k8s.io/cluster-name";
        check(json!({"format": "cluster-api", "namespace": "*"}), "", name);
        check(json!({"format": "cluster-api", "namespace": "capi"}), "capi", name);
        let expressions = json!([
            {"key": "region", "operator": "In", "values": ["us", "eu"]},
            {"key": "env", "operator": "NotIn", "values": ["dev"]},
            {"key": "a.b/c", "operator": "Exists"},
            {"key": "dev", "operator": "DoesNotExist"},
        ]);
        let selector = "argocd.argoproj.io/secret-type=cluster,env=prod,region in (eu,us),env notin (dev),a.b/c,!dev";
        let labels = json!({"env": "prod"});
        check(json!({"format": "argo-cd", "matchLabels": labels, "matchExpressions": expressions}), "argocd", selector);
    }
}
