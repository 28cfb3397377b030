//! `gatewright events`.

use std::collections::BTreeSet;

use gatewright_engine::inventory::Inventory;
use gatewright_engine::object::{Gvk, ObjectId};
use gatewright_engine::relations::made::possible_owners;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use super::choice::Choice;
use super::format::Format;
use super::inventory::failed;
use super::named::Named;
use super::session::{Session, is_chosen};
use super::table::table;
use super::{Context, Failure, check_names, complain, print, worst};
use crate::basics::redact::said;
use crate::cluster::{Cluster, ClusterError, NO_NAMESPACE};
use crate::inventory::store;

/// Show what Kubernetes tells of the objects of syncs, and of their pods: its Events, the oldest first.
///
/// It reads the inventories and the Events in their namespaces, and changes nothing; the source is not read. Pods count as
/// those of an object by their names, also if they are gone by now. API servers keep Events for an hour.
///
/// Exit codes: 0 whatever there is, 1 failed, 4 a cluster was unreachable, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    #[command(flatten)]
    clusters: Choice,
    /// Only this unit, such as Gateway/infra/edge; may be given several times.
    #[arg(long, value_name = "UNIT")]
    only: Vec<Named>,
    /// Only Events of these types, with commas between them.
    #[arg(long, value_name = "TYPE", value_delimiter = ',', ignore_case = true)]
    types: Vec<Type>,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Type {
    /// Something that went as it should.
    Normal,
    /// Something that did not.
    Warning,
}

/// An Event about an object of a sync.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    last_seen: Option<Timestamp>,
    cluster: String,
    sync: String,
    /// The spec of the object.
    unit: String,
    /// What it is about: an object of the sync, or a pod of one.
    object: String,
    #[serde(rename = "type")]
    event_type: String,
    reason: String,
    message: String,
    count: u64,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let settings = &session.config.settings;
    check_names("sync", &args.sync, &settings.syncs)?;
    let chosen = args.clusters.names(&settings.clusters, |_| true)?;
    let (mut codes, mut lines) = (Vec::new(), Vec::new());
    for (sync, of_sync) in settings.syncs.iter().filter(|(name, _)| args.sync.as_ref().is_none_or(|it| it == *name)) {
        for name in session.config.clusters_of(of_sync).into_keys().filter(|name| is_chosen(&chosen, name)) {
            let cluster = session.cluster(name)?;
            let is_meant =
                |unit: &ObjectId| args.only.is_empty() || args.only.iter().any(|only| only.is(unit, session.kinds()));
            match session.block_on(told(cluster.as_ref(), (sync, name), is_meant)) {
                Ok(found) => lines.extend(found),
                Err(error) => codes.push(failed(name, &error).tell()),
            }
        }
    }
    lines.retain(|line| args.types.is_empty() || args.types.iter().any(|it| it.is(&line.event_type)));
    lines.sort();
    show(&lines, args.format, context.clock.now());
    Ok(worst(codes))
}

impl Type {
    fn is(self, word: &str) -> bool {
        match self {
            Self::Normal => word == "Normal",
            Self::Warning => word == "Warning",
        }
    }
}

/// Returns the Events about what a sync owns on a cluster.
async fn told(
    cluster: &dyn Cluster,
    (sync, name): (&str, &str),
    is_meant: impl Fn(&ObjectId) -> bool,
) -> Result<Vec<Line>, ClusterError> {
    let mut inventory = store::salvage(cluster, sync).await?.0.inventory;
    inventory.entries.retain(|_, entry| is_meant(&entry.unit));
    // Events about what is in no namespace are in this one.
    let place = |id: &ObjectId| if id.namespace.is_empty() { NO_NAMESPACE.to_owned() } else { id.namespace.clone() };
    let namespaces: BTreeSet<String> = inventory.entries.keys().map(place).collect();
    let mut lines = Vec::new();
    for namespace in namespaces {
        for event in cluster.list_within(&Gvk::new("v1", "Event"), &namespace).await? {
            let event = event.object.body();
            lines.extend(unit(&inventory, &event["involvedObject"]).map(|unit| Line::new(event, (sync, name), unit)));
        }
    }
    Ok(lines)
}

/// Returns the unit of what an Event is about.
fn unit<'a>(inventory: &'a Inventory, about: &Value) -> Option<&'a ObjectId> {
    let text = |field: &str| about[field].as_str().unwrap_or_default();
    let (uid, kind, name, namespace) = (text("uid"), text("kind"), text("name"), text("namespace"));
    let by_uid = inventory.entries.values().find(|entry| !uid.is_empty() && entry.uid.as_deref() == Some(uid));
    let of = |kind: &str, name: &str| {
        let is_it = |id: &ObjectId| id.kind == kind && id.name == name && id.namespace == namespace;
        inventory.entries.iter().find(|(id, _)| is_it(id)).map(|(_, entry)| entry)
    };
    let by_name = || possible_owners(kind, name).into_iter().find_map(|(kind, name)| of(kind, name));
    by_uid.or_else(|| of(kind, name)).or_else(by_name).map(|entry| &entry.unit)
}

impl Line {
    fn new(event: &Value, (sync, cluster): (&str, &str), unit: &ObjectId) -> Self {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
        let (kind, namespace) = (text("/involvedObject/kind"), text("/involvedObject/namespace"));
        let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let count = event.pointer("/series/count").or_else(|| event.get("count")).and_then(Value::as_u64);
        Self {
            last_seen: times.into_iter().find_map(|it| text(it).parse().ok()),
            cluster: cluster.to_owned(),
            sync: sync.to_owned(),
            unit: unit.path(),
            object: format!("{kind} {place}{}", text("/involvedObject/name")),
            event_type: text("/type").to_owned(),
            reason: text("/reason").to_owned(),
            message: said(text("/message").trim()),
            count: count.unwrap_or(1),
        }
    }
}

fn show(lines: &[Line], format: Format, now: Timestamp) {
    if let Some(data) = format.data() {
        return data.print(&json!({"schema": "gatewright.dev/events/v1alpha1", "events": lines}));
    }
    if lines.is_empty() {
        return complain("gatewright: there are no Events; API servers keep them for an hour\n");
    }
    let row = |line: &Line| {
        let times = if line.count > 1 { format!(" (x{})", line.count) } else { String::new() };
        let seen = line.last_seen.map_or_else(|| "?".to_owned(), |seen| ago(now.duration_since(seen)));
        let message = format!("{}{times}", line.message);
        let [cluster, event_type, reason, object] =
            [&line.cluster, &line.event_type, &line.reason, &line.object].map(String::clone);
        [seen, cluster, event_type, reason, object, message]
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    print(&table(["LAST SEEN", "CLUSTER", "TYPE", "REASON", "OBJECT", "MESSAGE"], &rows));
}

/// Says how long ago something was, as kubectl does: `90s`, `12m`, `3h`, `4d`.
fn ago(time: SignedDuration) -> String {
    match time.as_secs().max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
