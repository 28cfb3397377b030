//! `gatewright lsp`.

mod actions;
mod becomes;
mod checks;
mod completion;
mod cursor;
mod fields;
mod hover;
mod index;
mod references;
mod server;
mod setup;
mod split;
mod text;
mod workspace;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tower_lsp_server::{LspService, Server};

use super::{Context, EXIT_FAILED, Failure};
use crate::process::telemetry;
use server::LanguageServer;

/// Serve editors by the language server protocol, on standard input and output: what `check` finds, while it is written.
///
/// Diagnostics are those of `check` for the folder that the editor has open, with what is not saved yet. The config file is
/// that of --config, else gatewright.yaml in this folder, else the usual one. docs/editors.md says how editors start it,
/// for example: `gatewright lsp specs`.
///
/// Exit codes: 0 the editor has ended it, 1 the editor is gone without that, 64 usage.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders or files with specs, below the folder that the editor has open; all of it if absent.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Talk on standard input and output. That is so without it, too; editors pass it.
    #[arg(long, hide = true)]
    stdio: bool,
}

/// Runs the command.
pub(super) fn run(context: Context, args: Args) -> Result<u8, Failure> {
    let level = context.log_level.clone().unwrap_or_else(|| "warn".to_owned());
    // The log goes to standard error: standard output is the protocol's.
    telemetry::init(&telemetry::Settings { level, ..telemetry::Settings::default() }, false)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of(&error))?;
    let is_ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_ended);
    let (service, socket) =
        LspService::new(move |client| LanguageServer::new(client, context, args.paths, Arc::clone(&told)));
    runtime.block_on(Server::new(tokio::io::stdin(), tokio::io::stdout(), socket).serve(service));
    // Nobody may wait for a thread that reads from an editor that is gone, or that checks for it.
    runtime.shutdown_background();
    Ok(if is_ended.load(Ordering::Relaxed) { 0 } else { EXIT_FAILED })
}
