//! The language server: what the editor asks and tells, and the two tasks that check what it has changed.
//!
//! What is asked is answered at once, from the workspace in memory. A document that is changed is checked right away with all
//! that it has to do with; everything is checked when nothing has changed for a while.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright_engine::interrupt::Interrupt;
use gatewright_engine::problem::Problem;
use gatewright_engine::yaml;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tower_lsp_server::Client;
use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{
    CodeActionParams, CodeActionProviderCapability, CodeActionResponse, CompletionOptions, CompletionParams,
    CompletionResponse, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidChangeWatchedFilesRegistrationOptions, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, FileSystemWatcher, GlobPattern, GotoDefinitionParams, GotoDefinitionResponse, Hover,
    HoverContents, HoverParams, HoverProviderCapability, InitializeParams, InitializeResult, InitializedParams,
    Location, MessageType, OneOf, Registration, ServerCapabilities, ServerInfo, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};

use super::checks::{self, Found};
use super::completion::{self, Sources};
use super::cursor::{Cursor, Step};
use super::fields::Field;
use super::index::Entry;
use super::setup::{Reading, Setup};
use super::text::{Encoding, byte_at, end_of};
use super::workspace::{Job, Subject, Workspace};
use super::{actions, becomes, hover, references};
use crate::cli::Context;

/// The time without a change after which everything is checked.
const QUIET: Duration = Duration::from_millis(300);

/// The time that is taken to find out what becomes of a field.
const PATIENCE: Duration = Duration::from_secs(2);

/// The files that the editor is asked to watch.
const WATCHED: [&str; 4] = ["**/*.yaml", "**/*.yml", "**/*.json", "**/.gatewrightignore"];

/// A language server.
#[derive(Clone)]
pub(super) struct LanguageServer(Arc<Inner>);

struct Inner {
    client: Client,
    context: Context,
    workspace: Mutex<Workspace>,
    /// Something has changed, for each of the two tasks.
    changed: [Notify; 2],
    /// Ends the check of everything that is under way.
    overtaken: Mutex<Interrupt>,
    /// Held while diagnostics are sent, so that none overtake newer ones.
    sending: AsyncMutex<()>,
    /// Whether the editor can watch files for us.
    watches: AtomicBool,
    /// Whether the editor has ended us.
    is_ended: Arc<AtomicBool>,
}

impl LanguageServer {
    /// Begins to serve an editor.
    pub(super) fn new(client: Client, context: Context, paths: Vec<PathBuf>, is_ended: Arc<AtomicBool>) -> Self {
        Self(Arc::new(Inner {
            client,
            context,
            workspace: Mutex::new(Workspace::of(paths)),
            changed: [Notify::new(), Notify::new()],
            overtaken: Mutex::default(),
            sending: AsyncMutex::default(),
            watches: AtomicBool::new(false),
            is_ended,
        }))
    }
}

impl Inner {
    fn workspace(&self) -> MutexGuard<'_, Workspace> {
        // What a bug has left behind is mended by the next change.
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the workspace, and has it checked.
    fn change(&self, change: impl FnOnce(&mut Workspace)) {
        change(&mut self.workspace());
        self.overtaken.lock().unwrap_or_else(PoisonError::into_inner).give();
        self.changed.iter().for_each(Notify::notify_one);
    }

    /// Checks what was changed, as soon as it was.
    async fn check_changed(self: Arc<Self>) {
        let [changed, _] = &self.changed;
        loop {
            changed.notified().await;
            loop {
                let (job, encoding) = {
                    let mut workspace = self.workspace();
                    (workspace.next(), workspace.encoding)
                };
                let Some(job) = job else { break };
                self.check(job, encoding).await;
            }
        }
    }

    /// Checks everything, when nothing has changed for a while.
    async fn check_all(self: Arc<Self>) {
        let [_, changed] = &self.changed;
        loop {
            changed.notified().await;
            while timeout(QUIET, changed.notified()).await.is_ok() {}
            self.read_setup().await;
            let (job, encoding) = {
                let workspace = self.workspace();
                (workspace.all(), workspace.encoding)
            };
            if let Some(job) = job {
                self.check(job, encoding).await;
            }
        }
    }

    async fn check(&self, job: Job, encoding: Encoding) {
        let (generation, of) = (job.generation, job.of.clone());
        let interrupt = Interrupt::default();
        if of.is_none() {
            self.overtaken.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&interrupt);
        }
        match spawn_blocking(move || interrupt.during(|| checks::run(&job, encoding))).await {
            Ok(Some(found)) => self.send(found, of, generation).await,
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "checking ended in a bug"),
        }
    }

    /// Sends what was found of a text, or of everything, if that has not changed since: diagnostics that the editor has
    /// already are not sent.
    async fn send(&self, mut found: Found, of: Option<Subject>, generation: u64) {
        let _sending = self.sending.lock().await;
        let news = {
            let mut workspace = self.workspace();
            let is_current = match &of {
                None => workspace.generation == generation,
                Some(subject) => workspace.version(&subject.key) == subject.version,
            };
            if !is_current {
                return;
            }
            if let Some(subject) = &of {
                let diagnostics = found.entry(subject.key.clone()).or_default();
                diagnostics.extend(workspace.known(subject));
                diagnostics.sort_by_key(|diagnostic| (diagnostic.range.start.line, diagnostic.range.start.character));
            }
            workspace.note(of.as_ref());
            news(&mut workspace, found, of.is_none())
        };
        for (key, diagnostics) in news {
            let (uri, version) = {
                let workspace = self.workspace();
                (workspace.uri(&key), workspace.version(&key))
            };
            if let Some(uri) = uri {
                self.client.publish_diagnostics(uri, diagnostics, version).await;
            }
        }
    }

    /// Reads the config file and packs, if they may have changed.
    async fn read_setup(self: &Arc<Self>) {
        let (file, text) = {
            let mut workspace = self.workspace();
            if workspace.setup.is_some() && !workspace.is_setup_stale {
                return;
            }
            workspace.is_setup_stale = false;
            let text = workspace.config_key().and_then(|key| workspace.text(&key));
            (workspace.config.clone(), text)
        };
        let inner = Arc::clone(self);
        let read = move || {
            let mut reading = Setup::read(&inner.context, file.as_deref(), text.as_deref());
            if reading.setup.is_none() && inner.workspace().setup.is_none() {
                // Better than nothing: as if there were no config file.
                reading.setup = Setup::read(&inner.context, None, None).setup;
            }
            let mut workspace = inner.workspace();
            if let Some(setup) = reading.setup.take() {
                workspace.setup = Some(Arc::new(setup));
                workspace.load();
            }
            reading
        };
        let Ok(Reading { problems, failure, .. }) = spawn_blocking(read).await else { return };
        if let Some(failure) = failure {
            self.client.show_message(MessageType::ERROR, failure).await;
        }
        self.send_config(problems).await;
        self.changed[0].notify_one();
    }

    /// Sends what is wrong with the config file.
    async fn send_config(&self, problems: Vec<Problem>) {
        let (found, of, generation) = {
            let workspace = self.workspace();
            let Some(key) = workspace.config_key() else { return };
            let text = workspace.text(&key).map_or_else(
                || workspace.config.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default(),
                |text| text.to_string(),
            );
            let version = workspace.version(&key);
            let found = Found::from([(key.clone(), checks::of_config(problems, &text, workspace.encoding))]);
            (found, Some(Subject { key, version, ..Subject::default() }), workspace.generation)
        };
        self.send(found, of, generation).await;
    }

    /// Asks the editor to tell of files that change on disk.
    async fn watch(self: Arc<Self>) {
        let watcher = |glob: &str| FileSystemWatcher { glob_pattern: GlobPattern::String(glob.to_owned()), kind: None };
        let options = DidChangeWatchedFilesRegistrationOptions { watchers: WATCHED.map(watcher).to_vec() };
        let registration = Registration {
            id: "files".to_owned(),
            method: "workspace/didChangeWatchedFiles".to_owned(),
            register_options: serde_json::to_value(options).ok(),
        };
        if let Err(error) = self.client.register_capability(vec![registration]).await {
            tracing::warn!(%error, "the editor does not watch files");
        }
    }
}

/// Returns what the editor does not have yet, and notes that it has it.
fn news(workspace: &mut Workspace, mut found: Found, is_all: bool) -> Found {
    if is_all {
        let config = workspace.config_key();
        for key in workspace.published.keys().filter(|key| Some(*key) != config.as_ref()) {
            found.entry(key.clone()).or_default();
        }
    }
    found.retain(|key, diagnostics| workspace.published.get(key).map_or(&Vec::new(), |it| it) != diagnostics);
    for (key, diagnostics) in &found {
        if diagnostics.is_empty() {
            workspace.published.remove(key);
        } else {
            workspace.published.insert(key.clone(), diagnostics.clone());
        }
    }
    found
}

/// Returns what becomes of a field, if that is found out soon enough.
async fn becomes(job: Job, line: u32, path: Vec<Step>) -> Option<String> {
    let interrupt = Interrupt::default();
    let order = interrupt.clone();
    let work = spawn_blocking(move || order.during(|| becomes::said(&job, line, &path)).flatten());
    let said = timeout(PATIENCE, work).await;
    interrupt.give();
    said.ok().and_then(std::result::Result::ok).flatten()
}

/// A text in the editor, and what is asked about a place in it.
struct Question {
    text: Arc<str>,
    offset: usize,
    encoding: Encoding,
    setup: Arc<Setup>,
}

impl Inner {
    /// Returns what is asked about a place; nothing before the packs are read.
    fn question(&self, at: &TextDocumentPositionParams) -> Option<Question> {
        let workspace = self.workspace();
        let text = workspace.text(&workspace.key(&at.text_document.uri))?;
        let encoding = workspace.encoding;
        let (offset, setup) = (encoding.offset(&text, at.position), workspace.setup.clone()?);
        Some(Question { text, offset, encoding, setup })
    }

    /// Returns where the reference at a place leads.
    fn definitions(&self, at: &TextDocumentPositionParams) -> Option<Vec<Location>> {
        let Question { text, offset, encoding, setup } = self.question(at)?;
        let cursor = Cursor::at(&text, offset)?;
        let schema = setup.schema(cursor.text_at(&[], "apiVersion"), cursor.text_at(&[], "kind"));
        let reference = references::at(&cursor, schema.as_deref().map(Field::root))?;
        let workspace = self.workspace();
        let location = |(path, at, _): (&str, yaml::Position, &Entry)| {
            let text = workspace.text(path)?;
            let start = byte_at(&text, at.line, at.column);
            Some(Location::new(workspace.uri(path)?, encoding.range(&text, start..end_of(&text, start))))
        };
        let meant = workspace.index.called(&reference.name).filter(|(.., entry)| reference.means(entry));
        Some(meant.filter_map(location).collect())
    }
}

impl tower_lsp_server::LanguageServer for LanguageServer {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let folders = params.workspace_folders.as_deref().unwrap_or_default();
        #[expect(deprecated, reason = "editors that know no folders say it in this way")]
        let root = folders.first().map(|folder| &folder.uri).or(params.root_uri.as_ref());
        let root = root.and_then(Uri::to_file_path).map(Cow::into_owned);
        let general = params.capabilities.general.as_ref();
        let encoding = Encoding::negotiated(general.and_then(|it| it.position_encodings.as_deref()));
        let files = params.capabilities.workspace.as_ref().and_then(|it| it.did_change_watched_files);
        let can_watch = files.and_then(|it| it.dynamic_registration) == Some(true);
        self.0.watches.store(can_watch, Ordering::Relaxed);
        let mut workspace = self.0.workspace();
        workspace.config = self.0.context.config_of(root.as_deref());
        (workspace.root, workspace.encoding) = (root, encoding);
        Ok(InitializeResult {
            server_info: Some(ServerInfo {
                name: checks::SOURCE.to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
            capabilities: ServerCapabilities {
                position_encoding: Some(encoding.kind()),
                text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::INCREMENTAL)),
                hover_provider: Some(HoverProviderCapability::Simple(true)),
                definition_provider: Some(OneOf::Left(true)),
                code_action_provider: Some(CodeActionProviderCapability::Simple(true)),
                completion_provider: Some(CompletionOptions {
                    trigger_characters: Some(vec![" ".to_owned(), ":".to_owned()]),
                    ..CompletionOptions::default()
                }),
                ..ServerCapabilities::default()
            },
            offset_encoding: None,
        })
    }

    async fn initialized(&self, _: InitializedParams) {
        tokio::spawn(Arc::clone(&self.0).check_changed());
        tokio::spawn(Arc::clone(&self.0).check_all());
        if self.0.watches.load(Ordering::Relaxed) {
            tokio::spawn(Arc::clone(&self.0).watch());
        }
        self.0.change(|_| {});
    }

    async fn shutdown(&self) -> Result<()> {
        self.0.is_ended.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let it = params.text_document;
        self.0.change(|workspace| workspace.open(it.uri, it.version, it.text));
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let it = params.text_document;
        self.0.change(|workspace| workspace.change(&it.uri, it.version, &params.content_changes));
    }

    async fn did_save(&self, _: DidSaveTextDocumentParams) {}

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.0.change(|workspace| workspace.close(&params.text_document.uri));
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        self.0.change(|workspace| {
            for change in params.changes {
                let key = workspace.key(&change.uri);
                workspace.read_again(&key);
            }
        });
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let at = &params.text_document_position_params;
        let Some(Question { text, offset, encoding, setup }) = self.0.question(at) else { return Ok(None) };
        let Some((mut hover, path)) = hover::hover(&setup, &text, offset, encoding) else { return Ok(None) };
        let job = self.0.workspace().around(&at.text_document.uri, at.position.line);
        if let (Some(job), HoverContents::Markup(markup)) = (job, &mut hover.contents)
            && let Some(said) = becomes(job, at.position.line + 1, path).await
        {
            markup.value = format!("{}\n\n{said}", markup.value);
        }
        Ok(Some(hover))
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        let Some(it) = self.0.question(&params.text_document_position) else { return Ok(None) };
        let workspace = self.0.workspace();
        let sources = Sources { setup: &it.setup, index: &workspace.index };
        let items = completion::complete(&sources, &it.text, it.offset, it.encoding);
        Ok(Some(CompletionResponse::Array(items)))
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        let found = self.0.definitions(&params.text_document_position_params);
        Ok(found.filter(|found| !found.is_empty()).map(GotoDefinitionResponse::Array))
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let uri = &params.text_document.uri;
        let workspace = self.0.workspace();
        let text = workspace.text(&workspace.key(uri)).unwrap_or_default();
        Ok(Some(actions::fixes(uri, &params.context.diagnostics, &text, workspace.encoding)))
    }
}
