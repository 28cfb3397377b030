//! What `sync`, `plan` and the daemon share: sources, clusters and packs built from a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatewright_engine::object::ObjectId;
use gatewright_engine::pack::Packs;
use gatewright_engine::spec::GATEWAY_API;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{Context, Failure};
use crate::assemble;
use crate::clock::Clock;
use crate::config::Config;
use crate::config::settings::SyncSettings;
use crate::fleet::{self, Order, render_for};
use crate::report::{Mode, Report};
use crate::service::Signals;
use crate::source::Snapshot;
use crate::state::State;

/// Threads parse specs and templates, recursively; the depth is limited, and this is room for it.
const STACK: usize = 8 << 20;

/// Which part of which syncs a command is about.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// The sync; all of them if absent.
    #[arg(value_name = "SYNC")]
    pub sync: Option<String>,
    /// Only this cluster; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub cluster: Vec<String>,
    /// Only this unit, such as Gateway/infra/edge; may be given several times.
    #[arg(long, value_name = "UNIT", value_parser = parse_unit)]
    pub only: Vec<ObjectId>,
}

fn parse_unit(text: &str) -> Result<ObjectId, String> {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        ["Gateway", namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok(ObjectId::new(GATEWAY_API, "Gateway", namespace, name))
        }
        _ => Err("a unit is written as Gateway/NAMESPACE/NAME".to_owned()),
    }
}

/// A command at work.
pub(super) struct Session<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The state.
    pub state: State,
    context: &'a Context,
    packs: Packs,
    runtime: Runtime,
}

/// One sync, ready for a round.
pub(super) struct Prepared {
    /// The round.
    pub order: Order,
    snapshot: Snapshot,
}

impl<'a> Session<'a> {
    /// Prepares a command.
    pub(super) fn new(context: &'a Context, config: &'a Config) -> Result<Self, Failure> {
        let packs = config.packs().map_err(|error| Failure { code: super::EXIT_USAGE, ..Failure::of(&error) })?;
        Ok(Self { config, state: State::open(&config.state_dir), context, packs, runtime: runtime()? })
    }

    /// Returns the syncs that a command is about.
    pub(super) fn syncs(&self, selection: &Selection) -> Result<BTreeMap<&'a str, &'a SyncSettings>, Failure> {
        let syncs = &self.config.settings.syncs;
        if syncs.is_empty() {
            return Err(Failure::usage(format!("{:?} configures no syncs", self.config.file)));
        }
        let Some(name) = &selection.sync else {
            return Ok(syncs.iter().map(|(name, sync)| (name.as_str(), sync)).collect());
        };
        match syncs.get_key_value(name) {
            Some((name, sync)) => Ok(BTreeMap::from([(name.as_str(), sync)])),
            None => {
                let known = syncs.keys().cloned().collect::<Vec<_>>().join(", ");
                Err(Failure::usage(format!("there is no sync {name:?}")).hint(format!("configured: {known}")))
            }
        }
    }

    /// Reads the source of a sync and puts its round together.
    pub(super) fn prepare(
        &self,
        name: &str,
        sync: &SyncSettings,
        selection: &Selection,
        installation: &str,
        mode: Mode,
    ) -> Result<Prepared, Failure> {
        let clusters = self.clusters(sync, selection)?;
        let source = assemble::source(self.config, &sync.source)
            .map_err(|error| Failure { code: super::EXIT_USAGE, ..Failure::of(&error) })?;
        let snapshot = self.runtime.block_on(source.poll(None)).map_err(|error| {
            let hint = error.hint.clone();
            Failure { hint, ..Failure::of(&error) }
        })?;
        let snapshot = snapshot.ok_or_else(|| Failure::usage(format!("source {:?} yields nothing", sync.source)))?;
        let order = Order {
            sync: name.to_owned(),
            settings: sync.clone(),
            clusters,
            installation: installation.to_owned(),
            mode,
            only: (!selection.only.is_empty()).then(|| selection.only.iter().cloned().collect::<BTreeSet<_>>()),
            wait: true,
        };
        Ok(Prepared { order, snapshot })
    }

    fn clusters(&self, sync: &SyncSettings, selection: &Selection) -> Result<fleet::Clusters, Failure> {
        let all = self.config.clusters_of(sync);
        let unknown = selection.cluster.iter().find(|name| !all.contains_key(name.as_str()));
        if let Some(name) = unknown {
            let known = all.keys().copied().collect::<Vec<_>>().join(", ");
            return Err(
                Failure::usage(format!("the sync selects no cluster {name:?}")).hint(format!("it selects {known}"))
            );
        }
        let is_wanted =
            |name: &&str| selection.cluster.is_empty() || selection.cluster.iter().any(|wanted| wanted == name);
        let clock: Arc<dyn Clock> = Arc::clone(&self.context.clock) as Arc<dyn Clock>;
        let wanted = all.into_iter().filter(|(name, _)| is_wanted(name));
        Ok(wanted
            .map(|(name, settings)| (name.to_owned(), assemble::cluster(self.config, name, settings, &clock)))
            .collect())
    }

    /// Runs the round of a sync.
    pub(super) fn round(&self, prepared: &Prepared) -> Result<Report, Failure> {
        let rendering = render_for(&prepared.snapshot, &prepared.order.settings, &self.packs);
        if let Some(unit) = prepared
            .order
            .only
            .iter()
            .flatten()
            .find(|id| !rendering.units.iter().any(|unit| unit.id == **id) && !rendering.broken.contains(id))
        {
            return Err(Failure::usage(format!("{unit} is not in the source")));
        }
        let stop = CancellationToken::new();
        let clock = self.context.clock.as_ref();
        self.runtime.block_on(async {
            let mut signals = Signals::new().map_err(|error| Failure::of(&error))?;
            let round = fleet::run(&prepared.order, &prepared.snapshot, rendering, &self.state, clock, &stop);
            tokio::pin!(round);
            loop {
                tokio::select! {
                    report = &mut round => return Ok(report),
                    // The step that is under way is finished, and the inventory is kept true.
                    _ = signals.next() => stop.cancel(),
                }
            }
        })
    }
}

/// Makes the runtime of this process.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()
        .map_err(|error| Failure::of(&error))
}
