//! `packOverrides`: settings of packs for some clusters or classes.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_engine::error::Chain;
use gatewright_engine::selector::ClusterSelector;
use serde_json::{Value, json};

use super::settings::{ClusterSettings, PackOverride, PackSettings, Settings};
use super::{authorities, did_you_mean};
use crate::basics::paths::Paths;

/// Settings of a pack that are not a matter of clusters and classes here, but in overlays and rules.
const ELSEWHERE: [&str; 2] = ["parameters", "enforce"];

/// One of them, with the texts of the files that it names.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The clusters; all of them if absent.
    pub clusters: Option<ClusterSelector>,
    /// The names of classes; all of them if absent.
    pub classes: Option<BTreeSet<String>>,
    /// The settings, by pack.
    pub packs: Value,
}

/// Checks them, and reads the files that they name. `names` are those of all packs; `is_whole`: all clusters are known.
pub(super) fn read_all(
    settings: &mut Settings,
    names: &[&str],
    paths: &Paths,
    is_whole: bool,
    mut wrong: impl FnMut(&[&str], String),
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, entry) in settings.pack_overrides.iter_mut().enumerate() {
        let number = index.to_string();
        let mut wrong = |path: &[&str], message| wrong(&[&["packOverrides", &number], path].concat(), message);
        for (path, message) in mistakes(entry, &settings.clusters, is_whole) {
            wrong(&path.iter().map(String::as_str).collect::<Vec<_>>(), message);
        }
        let mut typed: PackSettings = match serde_path_to_error::deserialize(&entry.packs) {
            Ok(typed) => typed,
            Err(error) => {
                let path = format!("packs.{}", error.path());
                wrong(&path.split('.').collect::<Vec<_>>(), error.inner().to_string());
                continue;
            }
        };
        for (name, message) in lost_packs(&typed, names) {
            wrong(&["packs", &name], message);
        }
        let texts = authorities::read_all(&mut typed, paths, |name, error| {
            wrong(&["packs", name, "xds", "tls"], Chain(&error).to_string());
        });
        let (clusters, classes) = (entry.clusters.clone(), entry.classes.clone());
        let mut packs = entry.packs.clone();
        with_authorities(&mut packs, &texts);
        entries.push(Entry { clusters, classes, packs });
    }
    entries
}

/// Returns the packs that settings are about and that are not there, with what to say of each.
pub(super) fn lost_packs(settings: &PackSettings, names: &[&str]) -> Vec<(String, String)> {
    let lost = settings.others.keys().filter(|name| !names.contains(&name.as_str()));
    let told = |name: &String| {
        let hint = did_you_mean(name, names.iter().copied());
        (name.clone(), format!("there is no pack {name:?} ({hint}); packFolders names the folders of others"))
    };
    lost.map(told).collect()
}

/// Puts the texts of authorities in the place of the names of their files.
pub(super) fn with_authorities(packs: &mut Value, texts: &BTreeMap<&'static str, String>) {
    for (name, text) in texts {
        packs[name]["xds"]["tls"] = json!({"ca": text});
    }
}

/// Checks what depends on the list of clusters, when nothing else has changed.
pub(super) fn check_selections(settings: &Settings, mut wrong: impl FnMut(&[&str], String)) {
    for (index, entry) in settings.pack_overrides.iter().enumerate() {
        for (path, message) in mistakes(entry, &settings.clusters, true) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            wrong(&[&["packOverrides", &index.to_string()], path.as_slice()].concat(), message);
        }
    }
}

/// Returns what is wrong with an entry, with the path below it. `is_whole`: there are no clusters but the known ones.
fn mistakes(
    entry: &PackOverride,
    known: &BTreeMap<String, ClusterSettings>,
    is_whole: bool,
) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    if entry.clusters.is_none() && entry.classes.is_none() {
        let message = "it is for all clusters and classes (name some of them, or say it in packs)";
        found.push((Vec::new(), message.to_owned()));
    }
    let selects = |selector: &ClusterSelector| known.iter().any(|(name, it)| selector.selects(name, &it.labels));
    let is_for_none = |selector: &ClusterSelector| selector.names.is_none() && !selects(selector);
    if is_whole && entry.clusters.as_ref().is_some_and(is_for_none) {
        let message = "it selects no cluster (name some, or select them by matchLabels)";
        found.push((vec!["clusters".to_owned()], message.to_owned()));
    }
    let names = entry.clusters.iter().filter_map(|clusters| clusters.names.as_ref()).flatten();
    for name in names.filter(|name| is_whole && !known.contains_key(*name)) {
        let hint = did_you_mean(name, known.keys().map(String::as_str));
        let path = ["clusters", "names"].map(str::to_owned).to_vec();
        found.push((path, format!("there is no cluster {name:?} ({hint})")));
    }
    for (pack, settings) in entry.packs.as_object().into_iter().flatten() {
        for field in ELSEWHERE.into_iter().filter(|field| settings.get(field).is_some()) {
            let message = format!("{field} of some clusters or classes stand in a ClusterOverlay of the source");
            found.push((vec!["packs".to_owned(), pack.clone(), field.to_owned()], message));
        }
    }
    found
}
