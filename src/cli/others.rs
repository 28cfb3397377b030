//! The other hosts of a group, as a command sees them: it reads what they know, takes syncs from them, and gives them back.
//!
//! Where they cannot be reached, what only looks goes on with what this host knows, and says so.

use std::sync::Arc;

use gatewright_engine::error::Chain;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Context, EXIT_FAILED, Failure, complain};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::hosts::{self, Command, Fenced};
use crate::state::State;

/// The other hosts.
pub(super) enum Others {
    /// There are none.
    None,
    /// They can be talked to.
    Met {
        /// The part of this command among them.
        command: Arc<Command>,
        /// The renewals of its Lease.
        _kept: AbortOnDropHandle<()>,
    },
    /// They cannot be reached; advice.
    Apart(Option<String>),
}

impl Others {
    /// Meets them, if there are any, and brings what they know here.
    pub(super) fn meet(context: &Context, config: &Config, state: &State, runtime: &Runtime) -> Self {
        let Some(settings) = &config.settings.hosts else { return Self::None };
        let joined = runtime.block_on(hosts::command(config, settings, state, &context.clock));
        let command = match joined {
            Ok(command) => Arc::new(command),
            Err(error) => return Self::apart(&Chain(&error).to_string(), error.hint()),
        };
        if let Err(error) = runtime.block_on(command.synchronize()) {
            return Self::apart(&Chain(&error).to_string(), error.hint());
        }
        let kept = Arc::clone(&command);
        let task = runtime.spawn(async move { kept.keep().await });
        Self::Met { command, _kept: AbortOnDropHandle::new(task) }
    }

    fn apart(error: &str, hint: Option<String>) -> Self {
        let told = format!("gatewright: the other hosts cannot be reached, so this is what this one knows: {error}\n");
        complain(&told);
        Self::Apart(hint)
    }

    /// Takes a sync from whoever looks after it; waits until it is free.
    pub(super) fn hold(&self, sync: &str, runtime: &Runtime, stop: &CancellationToken) -> Result<(), Failure> {
        let command = match self {
            Self::None => return Ok(()),
            Self::Apart(..) => return Err(self.failure("nothing was changed, because another host may be at work")),
            Self::Met { command, .. } => command,
        };
        let told = |host: &str| {
            let who = match host {
                "" => "until it is certain that no host".to_owned(),
                host => format!("for host {host}, which"),
            };
            complain(&format!("gatewright: waits {who} looks after sync {sync:?}\n"));
        };
        let held = runtime.block_on(stop.run_until_cancelled(command.hold(sync, told)));
        match held {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(Failure { hint: error.hint(), ..Failure::of(&error) }),
            None => Err(super::session::stopped()),
        }
    }

    /// Returns a cluster on which something is changed for a sync only as long as this command holds it.
    pub(super) fn fenced(&self, sync: &str, cluster: Arc<dyn Cluster>) -> Arc<dyn Cluster> {
        match self {
            Self::Met { command, .. } => Fenced::behind(cluster, command.fence(sync)),
            Self::None | Self::Apart(..) => cluster,
        }
    }

    /// Has the others know what this command has written.
    pub(super) fn share(&self, runtime: &Runtime) -> Result<(), Failure> {
        match self {
            Self::None => Ok(()),
            Self::Apart(..) => Err(self.failure("it is done on this host, and no other one knows it")),
            Self::Met { command, .. } => runtime.block_on(command.flush()).map_err(|error| {
                let hint = "it is done on this host, and the others will know once it can reach hosts.store";
                Failure::of(&error).hint(hint)
            }),
        }
    }

    /// Gives back those syncs whose rounds are over.
    pub(super) fn give_back(&self, runtime: &Runtime, is_over: impl Fn(&str) -> bool) {
        if let Self::Met { command, .. } = self {
            runtime.block_on(command.give_back(is_over));
        }
    }

    /// Gives everything back.
    pub(super) fn part(&self, runtime: &Runtime) {
        if let Self::Met { command, .. } = self {
            if let Err(failure) = self.share(runtime) {
                failure.tell();
            }
            runtime.block_on(command.leave());
        }
    }

    /// Makes the failure of what needs them; the reason why they cannot be reached was told already.
    fn failure(&self, message: &str) -> Failure {
        let hint = if let Self::Apart(hint) = self { hint.clone() } else { None };
        Failure { code: EXIT_FAILED, message: message.to_owned(), hint }
    }
}

/// Does something with the state directory beside other hosts: what they know is here before, and what is written is theirs
/// after it.
pub(super) fn beside<T>(
    context: &Context,
    config: &Config,
    work: impl FnOnce(&State) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let state = config.state();
    if config.settings.hosts.is_none() {
        return work(&state);
    }
    let runtime = super::session::runtime()?;
    let others = Others::meet(context, config, &state, &runtime);
    let done = work(&state)?;
    others.share(&runtime)?;
    Ok(done)
}

/// Looks at the state directory, with what other hosts know.
pub(super) fn looking(context: &Context, config: &Config) -> Result<State, Failure> {
    let state = config.state();
    if config.settings.hosts.is_some() {
        let runtime = super::session::runtime()?;
        drop(Others::meet(context, config, &state, &runtime));
    }
    Ok(state)
}

/// Does something in the place of whoever looks after a sync.
pub(super) fn instead<T>(
    context: &Context,
    (config, sync): (&Config, &str),
    work: impl FnOnce(&State) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let state = config.state();
    if config.settings.hosts.is_none() {
        return work(&state);
    }
    let runtime = super::session::runtime()?;
    let others = Others::meet(context, config, &state, &runtime);
    let held = others.hold(sync, &runtime, &CancellationToken::new());
    let done = held.and_then(|()| work(&state)).and_then(|done| others.share(&runtime).map(|()| done));
    others.part(&runtime);
    done
}
