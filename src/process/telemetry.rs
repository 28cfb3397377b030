//! The log, its destination and its form: one line an event on standard error.
//!
//! People at a terminal get text, everything else JSON with the fields of the event and of the spans around it. What
//! is worth saying, and at which level, is decided where it happens. A panic is a line like the others.

mod queue;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write, stderr};
use std::panic::{PanicHookInfo, set_hook};

use gatewright_engine::mask::{MASK, texts};
use gatewright_engine::plan::guard::token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing::{Level, enabled, error};
use tracing_subscriber::filter::Directive;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::basics::waiting_line;

pub(crate) use queue::Flush;

/// A client that logs each failed request as an error of its own. We report failures where we know what they mean.
const SILENCED: &str = "kube_client::client::builder";

/// Libraries whose finer levels tell about the bytes of a connection.
const QUIETED: [&str; 8] = ["h2", "hyper", "hyper_util", "kube_client", "reqwest", "rustls", "tower", "tower_http"];

/// The log as the config file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Log")]
pub struct Settings {
    /// off, error, warn, info, debug or trace; or a list in which later parts name modules, as in
    /// `info,gatewright::source=debug`.
    pub level: String,
    /// The format of a line.
    pub format: Format,
}

impl Default for Settings {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: Format::Auto }
    }
}

/// The format of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The reason why there is no log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    #[error("{part:?} in the log level {level:?} is not a level")]
    Level { part: String, level: String },
    #[error("cannot start the log")]
    Taken(#[source] tracing_subscriber::util::TryInitError),
}

impl TelemetryError {
    /// Returns what to do next, a sentence of its own.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Level { .. } => {
                Some("write off, error, warn, info, debug or trace, or target=level, with commas between")
            }
            Self::Taken(_) => None,
        }
    }
}

/// Starts the log for the rest of the process.
///
/// `colors` is whether text may be colored: what `$NO_COLOR` and the flags say. Text that does not go to a terminal is
/// never colored.
pub(crate) fn init(settings: &Settings, colors: bool) -> Result<(), TelemetryError> {
    let log = log(filter(&settings.level)?, shape(settings, colors), || Clean(stderr()));
    Registry::default().with(log).try_init().map_err(TelemetryError::Taken)?;
    set_hook(Box::new(log_panic));
    Ok(())
}

/// A part of the log: where lines go, and which.
pub(crate) type Part = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts the log of a process that never waits for whoever reads it, and which has `others` beside it; what is returned is
/// kept until the end.
pub(crate) fn init_queued(settings: &Settings, others: Vec<Part>, colors: bool) -> Result<Flush, TelemetryError> {
    let shape = shape(settings, colors);
    let note = match shape {
        Shape::Text { .. } => queue::text_dropped,
        Shape::Json => queue::json_dropped,
    };
    let filter = filter(&settings.level)?;
    let (lines, flush) = queue::start(stderr(), note);
    let mut parts = vec![log(filter, shape, move || Clean(lines.clone()))];
    parts.extend(others);
    Registry::default().with(parts).try_init().map_err(TelemetryError::Taken)?;
    set_hook(Box::new(log_panic));
    Ok(flush)
}

/// Logs a panic: it is a bug, whoever catches it.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("it says no more");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    if enabled!(Level::ERROR) {
        error!(panic = message, location, backtrace, "the program has a bug; please report it");
    } else {
        // A command whose log is off does not end without a word.
        let line = format!("gatewright: the program has a bug at {location}; please report it: {message}\n");
        drop(Clean(stderr()).write_all(line.as_bytes()));
    }
}

fn shape(settings: &Settings, colors: bool) -> Shape {
    let terminal = stderr().is_terminal();
    match settings.format {
        Format::Auto if terminal => Shape::Text { colors },
        Format::Text => Shape::Text { colors: colors && terminal },
        Format::Auto | Format::Json => Shape::Json,
    }
}

/// Writes lines without credentials, whoever has put them there.
struct Clean<W>(W);

impl<W: Write> Write for Clean<W> {
    /// Each event comes as one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = clean(&String::from_utf8_lossy(line));
        self.0.write_all(format!("{}{text}", waiting_line::erase()).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns a text without the credentials in it. What approves a hold is to be read.
pub(crate) fn clean(text: &str) -> String {
    let shown = |secret: &str| match token::parse(secret) {
        Some(token) if token == secret => token,
        _ => MASK.to_owned(),
    };
    texts::replaced(text, shown)
}

/// A format that leaves nothing open.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Text { colors: bool },
    Json,
}

fn log<W>(filter: EnvFilter, shape: Shape, writer: W) -> Part
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // A log that cannot be written must not stop the work; by default the library would panic over it.
    let log = layer().with_writer(writer).log_internal_errors(false);
    match shape {
        Shape::Text { colors } => log.with_ansi(colors).with_target(false).with_filter(filter).boxed(),
        Shape::Json => {
            let log = log.json().flatten_event(true).with_current_span(false).with_span_list(true);
            log.with_filter(filter).boxed()
        }
    }
}

/// Reads the level, and quiets libraries below it. What the user says about a library counts.
pub(crate) fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    let mut written = Vec::new();
    let mut general = LevelFilter::ERROR;
    for part in level.split(',').map(str::trim) {
        let wrong = || TelemetryError::Level { part: part.to_owned(), level: level.to_owned() };
        // A word alone would be read as a target, and a misspelled level would log nothing but that target.
        if !part.contains('=') {
            general = part.parse().ok().filter(|_| !part.is_empty()).ok_or_else(wrong)?;
        }
        written.push(part.parse::<Directive>().map_err(|_| wrong())?);
    }
    let quiet = QUIETED.iter().map(|target| format!("{target}={}", general.min(LevelFilter::WARN)));
    let ours = quiet.chain([format!("{SILENCED}=off")]);
    let ours = ours.filter_map(|directive| directive.parse::<Directive>().ok());
    // A later directive for the same target replaces an earlier one.
    let base = EnvFilter::builder().with_default_directive(LevelFilter::ERROR.into()).parse_lossy("");
    Ok(ours.chain(written).fold(base, EnvFilter::add_directive))
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, take_hook};
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    /// Collects what is written.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics while it writes").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what a level lets through of what happens.
    fn logged(level: &str, shape: Shape, happens: impl FnOnce()) -> String {
        let page = Page::default();
        let writer = {
            let page = page.clone();
            move || Clean(page.clone())
        };
        let filter = filter(level).expect("the level of a test is right");
        tracing::subscriber::with_default(Registry::default().with(log(filter, shape, writer)), happens);
        let bytes = page.0.lock().expect("no test panics while it writes").clone();
        String::from_utf8(bytes).expect("the log is UTF-8")
    }

    /// Returns what a level lets through of events that stand for many.
    fn check(level: &str, shape: Shape) -> String {
        logged(level, shape, || {
            let span = tracing::info_span!("round", sync = "gateways");
            let entered = span.enter();
            tracing::info!(cluster = "eu-1", "changed");
            tracing::debug!("kept");
            tracing::trace!(
                url = "https://me:hunter2@example.com",
                hold.token = "k7wm-3xq9-hd2t",
                "password={}",
                "hunter2"
            );
            tracing::error!(target: "kube_client::client::builder", "failed with status 404");
            tracing::warn!(target: "hyper::proto", "odd header");
            tracing::debug!(target: "hyper::proto", "bytes");
            drop(entered);
        })
    }

    /// The messages of a log in JSON.
    fn messages(log: &str) -> Vec<String> {
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
        lines.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_level_says_how_much_is_logged_and_libraries_stay_quiet() {
        assert_eq!(messages(&check("info", Shape::Json)), ["changed", "odd header"]);
        assert_eq!(messages(&check("debug", Shape::Json)), ["changed", "kept", "odd header"]);
        assert_eq!(messages(&check("error", Shape::Json)), [""; 0]);
        assert_eq!(messages(&check("off", Shape::Json)), [""; 0]);
    }

    #[test]
    fn no_credential_gets_into_the_log_and_what_approves_a_hold_does() {
        for shape in [Shape::Json, Shape::Text { colors: false }] {
            let log = check("trace", shape);
            assert!(log.contains("password=***") && log.contains("https://me:***@example.com"), "{log}");
            assert!(log.contains("k7wm-3xq9-hd2t") && !log.contains("hunter2"), "{log}");
        }
        messages(&check("trace", Shape::Json));
    }

    /// The hook is that of the process: panics of other tests go to standard error meanwhile.
    #[test]
    fn a_panic_is_a_line_of_the_log_without_credentials() {
        for shape in [Shape::Json, Shape::Text { colors: false }] {
            let log = logged("error", shape, || {
                set_hook(Box::new(log_panic));
                let nothing: [u8; 0] = [];
                let bug = || nothing.first().copied().expect("cannot use https://me:hunter2@example.com\nor another");
                let caught = catch_unwind(bug);
                drop(take_hook());
                assert!(caught.is_err());
            });
            assert!(log.contains("https://me:***@example.com") && !log.contains("hunter2"), "{log}");
            assert!(log.contains("src/process/telemetry.rs:") && log.contains("please report it"), "{log}");
            assert_eq!(log.lines().count(), 1, "{log}");
        }
    }

    #[test]
    fn what_the_user_says_about_a_library_counts() {
        let log = check("info, hyper=debug, kube_client::client::builder=error", Shape::Json);
        assert_eq!(messages(&log), ["changed", "failed with status 404", "odd header", "bytes"]);
    }

    #[test]
    fn a_misspelled_level_is_an_error_and_no_target() {
        for level in ["inof", "", "info,", "info,gatewright", "gatewright=loud"] {
            let error = filter(level).expect_err("that is no level");
            assert!(error.hint().is_some(), "{error}");
        }
    }

    #[test]
    fn a_line_of_json_has_the_fields_of_the_event_and_its_spans() {
        let log = check("info", Shape::Json);
        let line: Value = log.lines().next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        assert_eq!(line["level"], json!("INFO"));
        assert_eq!(line["cluster"], json!("eu-1"));
        assert_eq!(line["spans"], json!([{"name": "round", "sync": "gateways"}]));
        let time: jiff::Timestamp = line["timestamp"].as_str().unwrap_or_default().parse().expect("RFC 3339");
        assert!(line["timestamp"].as_str().is_some_and(|text| text.ends_with('Z')), "{time} is UTC");
    }

    #[test]
    fn text_is_colored_only_when_it_may_be() {
        assert!(check("info", Shape::Text { colors: true }).contains('\u{1b}'));
        let plain = check("info", Shape::Text { colors: false });
        assert!(!plain.contains('\u{1b}'));
        assert!(plain.contains("INFO round{sync=\"gateways\"}: changed cluster=\"eu-1\""), "{plain}");
    }
}
