//! `gatewright run`.

use std::sync::Arc;

use super::{Context, Failure, session};
use crate::daemon::{self, Host, otlp};
use crate::process::service::Notifier;
use crate::process::telemetry;

/// Run as a daemon: rounds on schedule, until SIGTERM; SIGHUP reads the config file again.
///
/// A round that is under way when the daemon is told to stop finishes its step and keeps the inventory true.
///
/// Exit codes: 0 it was told to stop, 1 it could not start, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs the command.
pub(super) fn run(context: &Context, _: &Args) -> Result<u8, Failure> {
    let config = context.load_to_start()?;
    let settings = &config.settings;
    let (others, _sent) = match &settings.otlp {
        Some(otlp) => otlp::start(otlp, telemetry::filter(&settings.log.level)?).map_err(|error| {
            Failure::of_configuration(&error)
                .hint("`otlp` in the config file says where to; look at the OTEL_ variables, too")
        })?,
        None => Default::default(),
    };
    // Nobody waits for whoever reads the log.
    let _written = telemetry::init_queued(&settings.log, others, context.has_colored_log())?;
    let host = Host {
        notifier: Notifier::new(context.environment.notify_socket.clone()),
        watchdog: context.environment.watchdog,
        clock: Arc::clone(&context.clock),
    };
    let reload = || context.load_file().map_err(|failure| failure.message);
    let runtime = session::runtime()?;
    let result = runtime.block_on(daemon::run(config, &host, &reload));
    // A blocking call (git, a slow disk) that is under way must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    result.map(|()| 0).map_err(|error| Failure { hint: error.hint(), ..Failure::of(&error) })
}
