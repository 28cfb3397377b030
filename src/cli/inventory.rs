//! `gatewright inventory`.

mod claim;

use gatewright_engine::error::Chain;
use gatewright_engine::marks::Marker;
use gatewright_engine::text::count;
use serde_json::{Value, json};

use super::format::{ListFormat, names};
use super::session::Session;
use super::table::table;
use super::{Context, EXIT_FAILED, Failure, check_names, print, worst};
use crate::cluster::ClusterError;
use crate::history::audit_log::Event;
use crate::inventory::maintenance::repair::{self, Change, Repair};
use crate::inventory::store;

/// Show, repair or claim the inventory.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Args {
    Show(Show),
    /// Rebuild the inventory of a sync on a cluster, and confirm it.
    ///
    /// What bears the mark of the sync stands in it afterwards, the object that is there now; what does not is taken out. No
    /// object is changed or deleted. It shows what it will write, and asks; in a script say --yes. The next round deletes
    /// again. A daemon with the same state must be stopped meanwhile.
    ///
    /// Exit codes: 0 done, 1 failed or cancelled, 4 the cluster was unreachable, 64 usage or configuration.
    Repair(Target),
    /// Claim what another installation owns under the name of a sync: its inventory, and the marks of its objects.
    ///
    /// No object is made again or deleted, and nothing of it but its marks is changed. Stop the other installation first. It
    /// shows what changes hands, and asks; in a script say --yes. After a failure the same command goes on. As on every host
    /// that sees a cluster for the first time, the first round after it deletes nothing.
    ///
    /// Exit codes: 0 done, 1 failed or cancelled, 4 the cluster was unreachable, 64 usage or configuration.
    Claim(Target),
}

/// List every object that stands in an inventory.
///
/// A sync that is not configured any more can be shown with --cluster. Exit codes: 0, 1 an inventory cannot be read, 3 one
/// is suspect, 4 a cluster was unreachable, 64 usage or configuration; of several the first of 1, 3, 4, 0.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    sync: Option<String>,
    /// Only this cluster.
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The output format.
    #[arg(long = "output", short = 'o', visible_alias = "format", value_name = "FORMAT", default_value = "text")]
    format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    /// The cluster.
    #[arg(long, value_name = "NAME")]
    cluster: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match args {
        Args::Show(args) => show(context, args),
        Args::Repair(target) => mend(context, target),
        Args::Claim(target) => claim::run(context, target),
    }
}

/// Returns the failure on one cluster, when that is all that a command is about.
pub(super) fn failed(cluster: &str, error: &ClusterError) -> Failure {
    let message = format!("cluster {cluster}: {}", Chain(error));
    let code = if error.is_unreachable() { 4 } else { EXIT_FAILED };
    Failure { code, message, hint: error.hint.clone() }
}

fn show(context: &Context, args: &Show) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let config = &session.config;
    if args.cluster.is_none() {
        check_names("sync", &args.sync, &config.settings.syncs)?;
    }
    check_names("cluster", &args.cluster, &config.settings.clusters)?;
    let is_wanted = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    let mut targets: Vec<(&str, &str)> = Vec::new();
    for (sync, settings) in config.settings.syncs.iter().filter(|(sync, _)| is_wanted(&args.sync, sync)) {
        let clusters = config.clusters_of(settings).into_keys().filter(|cluster| is_wanted(&args.cluster, cluster));
        targets.extend(clusters.map(|cluster| (sync.as_str(), cluster)));
    }
    if let (true, Some(sync), Some(cluster)) = (targets.is_empty(), &args.sync, &args.cluster) {
        targets.push((sync, cluster));
    }
    let (mut codes, mut all) = (Vec::new(), Vec::new());
    for (sync, cluster) in targets {
        match inventory(&session, sync, cluster) {
            Ok((code, shown)) => {
                codes.push(code);
                all.push(shown);
            }
            Err(failure) => codes.push(failure.tell()),
        }
    }
    match args.format.data() {
        Some(data) => data.print(&json!({"schema": "gatewright.dev/inventory/v1alpha1", "inventories": all})),
        None if args.format == ListFormat::Name => {
            let entries = all.iter().filter_map(|inventory| inventory["entries"].as_array()).flatten();
            print(&names(entries.map(|entry| named(&entry["id"], "/"))));
        }
        None => all.iter().for_each(|inventory| print(&text(inventory))),
    }
    Ok(worst(codes))
}

/// Reads one inventory, as the JSON view has it.
fn inventory(session: &Session<'_>, sync: &str, name: &str) -> Result<(u8, Value), Failure> {
    let cluster = session.cluster(name)?;
    let fail = |error| failed(name, &error);
    let (store, damage) = session.block_on(store::salvage(cluster.as_ref(), sync)).map_err(fail)?;
    let audit = session.audit(sync, name);
    let verdict = audit.as_ref().map(|it| it.judge(&store.inventory, store.version(), damage.as_ref()));
    let verdict = verdict.unwrap_or_default();
    let unverified = audit.as_ref().map(|it| it.unverified(&store.inventory, &verdict)).unwrap_or_default();
    let suspicion = verdict.suspicion.or_else(|| damage.map(|damage| damage.to_string()));
    let is_signed = session.config.inventory_key.is_some() && audit.is_some();
    let entries = store.inventory.entries.iter().map(|(id, entry)| {
        let mut shown = json!({
            "id": id, "apiVersion": entry.gvk.api_version(), "unit": entry.unit, "adopted": entry.adopted,
            "files": entry.files,
        });
        if let Some(uid) = &entry.uid {
            shown["uid"] = uid.as_str().into();
        }
        if is_signed {
            shown["sealed"] = (!unverified.contains(id)).into();
        }
        shown
    });
    let code = if suspicion.is_some() || !unverified.is_empty() { 3 } else { 0 };
    let inventory = &store.inventory;
    let mut shown = json!({
        "sync": sync, "cluster": name, "exists": store.exists(), "installation": inventory.installation,
        "source": inventory.source, "clusterId": inventory.cluster, "epoch": inventory.epoch,
        "entries": entries.collect::<Vec<_>>(),
    });
    if let Some(suspicion) = suspicion {
        shown["doubt"] = suspicion.into();
    }
    Ok((code, shown))
}

fn text(inventory: &Value) -> String {
    let say = |field: &str| inventory[field].as_str().unwrap_or_default();
    let entries = inventory["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut out = vec![format!("sync {}, cluster {}: ", say("sync"), say("cluster"))];
    if inventory["exists"] == false {
        out.push("no inventory\n".to_owned());
    } else {
        let objects = count(entries.len(), "object");
        out.push(format!("{objects}, written {} times, by installation {}\n", inventory["epoch"], say("installation")));
    }
    if let Some(suspicion) = inventory["doubt"].as_str() {
        let (sync, cluster) = (say("sync"), say("cluster"));
        out.push(format!(
            "  suspect: {suspicion}\n  see who has changed it, then run `gatewright inventory repair {sync} --cluster {cluster}`\n"
        ));
    }
    let row = |entry: &Value| {
        let state = match () {
            () if entry["sealed"] == false => "no valid HMAC",
            () if entry["uid"].is_null() => "pending",
            () if entry["adopted"] == true => "adopted",
            () => "",
        };
        let uid = entry["uid"].as_str().unwrap_or("-").to_owned();
        [named(&entry["id"], " "), uid, named(&entry["unit"], " "), state.to_owned()]
    };
    let rows: Vec<[String; 4]> = entries.iter().map(row).collect();
    if !rows.is_empty() {
        out.push(table(["OBJECT", "UID", "UNIT", "STATE"], &rows));
    }
    out.concat()
}

/// Names an object, with something behind its kind.
fn named(id: &Value, gap: &str) -> String {
    let part = |field: &str| id[field].as_str().unwrap_or_default().to_owned();
    let place = if part("namespace").is_empty() { String::new() } else { format!("{}/", part("namespace")) };
    format!("{}{gap}{place}{}", part("kind"), part("name"))
}

fn mend(context: &Context, args: &Target) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let cluster = session.cluster_for(&args.sync, &args.cluster)?;
    let _lock = session.state.lock()?;
    let installation = session.state.make_installation()?;
    let marker = Marker { installation, sync: args.sync.clone() };
    let audit = session.audit(&args.sync, &args.cluster);
    let fail = |error| failed(&args.cluster, &error);
    let repair =
        session.block_on(repair::plan(cluster.as_ref(), &marker, audit.as_ref(), session.kinds())).map_err(fail)?;
    check(&repair, &marker, args)?;
    print(&shown(&repair, args));
    if !session.confirm(args.yes, "Write this inventory?", "yes")? {
        return Ok(EXIT_FAILED);
    }
    context
        .audit(&session.state, Event::InventoryRepaired { sync: args.sync.clone(), cluster: args.cluster.clone() })?;
    let Repair { mut store, inventory, .. } = repair;
    let written = store.replace(cluster.as_ref(), &args.sync, &inventory, (audit.as_ref(), true));
    session.block_on(written).map_err(fail)?;
    print(&format!("the inventory holds {} now\n", count(inventory.entries.len(), "object")));
    Ok(0)
}

/// Refuses what another installation owns, which is not ours to repair, and a name that leads nowhere, which is a slip.
fn check(repair: &Repair, marker: &Marker, args: &Target) -> Result<(), Failure> {
    let theirs = &repair.store.inventory.installation;
    if !theirs.is_empty() && *theirs != marker.installation {
        let message = format!("the inventory of sync {:?} belongs to installation {theirs}", args.sync);
        let hint = format!("`gatewright inventory claim {} --cluster {}` makes it ours", args.sync, args.cluster);
        return Err(Failure { code: EXIT_FAILED, message, hint: Some(hint) });
    }
    if repair.changes.is_empty() && !repair.store.exists() && repair.verdict.suspicion.is_none() {
        return Err(Failure::usage(format!("sync {:?} owns nothing on cluster {:?}", args.sync, args.cluster)));
    }
    Ok(())
}

fn shown(repair: &Repair, args: &Target) -> String {
    let mut out = vec![format!("sync {}, cluster {}\n", args.sync, args.cluster)];
    if let Some(suspicion) = &repair.verdict.suspicion {
        out.push(format!("  suspect: {suspicion}\n"));
    }
    for message in &repair.blind {
        out.push(format!("  not looked at: {message}\n"));
    }
    let mut kept = 0;
    for (id, change) in &repair.changes {
        match change {
            Change::Keep => kept += 1,
            Change::Add(why) => out.push(format!("  + {id}: {why}\n")),
            Change::Drop(why) => out.push(format!("  - {id}: {why}\n")),
        }
    }
    let all = repair.inventory.entries.len();
    out.push(format!("  {kept} of {} stand in it already; no object is touched\n", count(all, "object")));
    out.concat()
}
