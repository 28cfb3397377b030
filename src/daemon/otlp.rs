//! Traces and lines of the log for a collector, by the OpenTelemetry protocol (OTLP/HTTP, encoded as JSON).
//!
//! The library batches and sends in threads of its own, so no round waits for a collector: what does not fit into its queues is
//! dropped. A request goes the way of a webhook, and its body is cleaned of credentials as the log is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gatewright_engine::mask::MASK;
use http::header::{CONTENT_LENGTH, HOST, USER_AGENT};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::{OpenTelemetryTracingBridge, TracingSpanAttributes};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use serde_json::Value;
use tokio::runtime::Builder;
use tracing::{Level, Metadata, info, warn};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::otlp::OtlpSettings;
use crate::process::telemetry::{Part, clean};
use crate::webhooks::connect;

/// The time that the end of the process leaves for what is not sent yet.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Sees to it that what was recorded is sent before the process ends, unless the collector does not take it.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Otlp {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // Whatever comes of it: whether the collector takes anything was told before.
        drop(self.traces.as_ref().map(|traces| traces.shutdown_with_timeout(LAST_WORDS)));
        drop(self.logs.as_ref().map(|logs| logs.shutdown_with_timeout(LAST_WORDS)));
    }
}

/// Starts what sends. `lines` says which lines of the log go to the collector.
pub(crate) fn start(settings: &OtlpSettings, lines: EnvFilter) -> Result<(Vec<Part>, Otlp), ExporterBuildError> {
    let (mut parts, mut otlp): (Vec<Part>, _) = (Vec::new(), Otlp::default());
    if settings.traces {
        let traces = traces(settings)?;
        let layer = tracing_opentelemetry::layer().with_tracer(traces.tracer(env!("CARGO_PKG_NAME")));
        parts.push(layer.with_location(false).with_threads(false).with_filter(filter_fn(is_traced)).boxed());
        otlp.traces = Some(traces);
    }
    if settings.logs {
        let logs = logs(settings)?;
        let bridge = OpenTelemetryTracingBridge::builder(&logs);
        let bridge = bridge.with_tracing_span_attributes(TracingSpanAttributes::all()).build();
        parts.push(bridge.with_filter(lines).boxed());
        otlp.logs = Some(logs);
    }
    Ok((parts, otlp))
}

/// Our own spans, those of the parts of a round included, and what was logged in them for everybody.
fn is_traced(metadata: &Metadata<'_>) -> bool {
    let least = if metadata.is_span() { Level::DEBUG } else { Level::INFO };
    *metadata.level() <= least && metadata.target().starts_with(env!("CARGO_PKG_NAME"))
}

fn traces(settings: &OtlpSettings) -> Result<SdkTracerProvider, ExporterBuildError> {
    let at = Collector::new(settings, "/v1/traces");
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson).with_endpoint(at.url());
    let exporter = exporter.with_timeout(settings.timeout.0).with_http_client(at).build()?;
    // It goes by the number of the trace, so that all parts of a round have the same answer.
    let sampler = Sampler::TraceIdRatioBased(settings.sampling);
    let traces = SdkTracerProvider::builder().with_resource(resource()).with_sampler(sampler);
    Ok(traces.with_batch_exporter(exporter).build())
}

fn logs(settings: &OtlpSettings) -> Result<SdkLoggerProvider, ExporterBuildError> {
    let at = Collector::new(settings, "/v1/logs");
    let exporter = LogExporter::builder().with_http().with_protocol(Protocol::HttpJson).with_endpoint(at.url());
    let exporter = exporter.with_timeout(settings.timeout.0).with_http_client(at).build()?;
    Ok(SdkLoggerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build())
}

/// Says who sends. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say it otherwise, as the specification has it.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let name = KeyValue::new("service.name", env!("CARGO_PKG_NAME"));
    let told = Resource::builder().build();
    let is_named =
        told.iter().any(|(key, value)| key.as_str() == "service.name" && !value.as_str().starts_with("unknown"));
    let ours = Some(name).filter(|_| !is_named).into_iter().chain([version]);
    Resource::builder().with_attributes(ours).build()
}

/// The way to a collector.
#[derive(Debug)]
struct Collector {
    settings: OtlpSettings,
    path: &'static str,
    /// It has not taken what was sent last, which was told.
    is_failing: AtomicBool,
}

impl Collector {
    fn new(settings: &OtlpSettings, path: &'static str) -> Self {
        Self { settings: settings.clone(), path, is_failing: AtomicBool::new(false) }
    }

    fn url(&self) -> String {
        self.settings.at(self.path).url.unwrap_or_default()
    }

    /// Sends one batch, from the thread of the library that is there for it.
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let (mut parts, body) = request.into_parts();
        // What goes out is a request of its own.
        for header in [HOST, CONTENT_LENGTH, USER_AGENT] {
            parts.headers.remove(header);
        }
        let mut json = serde_json::from_slice(&body).map_err(|error| format!("it is no JSON: {error}"))?;
        tidy(&mut json);
        let body = Bytes::from(json.to_string());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(connect::send_once(&self.settings.at(self.path), parts.headers, body))
    }

    /// Tells when the collector begins not to take what it gets, and when it takes it again.
    fn tell(&self, problem: Option<&str>) {
        let (was_failing, url) = (self.is_failing.swap(problem.is_some(), Ordering::Relaxed), self.url());
        match problem {
            Some(error) if !was_failing => warn!(url, error, "the collector does not take what is sent to it"),
            None if was_failing => info!(url, "the collector takes again what is sent to it"),
            _ => {}
        }
    }
}

/// Leaves out credentials, and attributes of spans that an event has as well: their names are to be unique.
fn tidy(json: &mut Value) {
    match json {
        Value::String(text) => *text = clean(text),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => {
            if let Some(Value::Array(attributes)) = fields.get_mut("attributes") {
                keep_last(attributes);
            }
            let named = fields.get("key").and_then(Value::as_str).map(str::to_owned);
            fields.values_mut().for_each(tidy);
            if let (Some(name), Some(Value::String(text))) =
                (named, fields.get("value").and_then(|it| it.get("stringValue")))
            {
                let (whole, before) = (clean(&format!("{name}={text}")), format!("{name}="));
                fields["value"]["stringValue"] = Value::from(whole.strip_prefix(&before).unwrap_or(MASK));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Keeps the last attribute of each name: that of the event comes after those of its spans.
fn keep_last(attributes: &mut Vec<Value>) {
    let name = |attribute: &Value| attribute["key"].as_str().map(str::to_owned);
    let last: BTreeMap<Option<String>, usize> = attributes.iter().enumerate().map(|(at, it)| (name(it), at)).collect();
    let mut at = 0..;
    attributes.retain(|it| at.next() == last.get(&name(it)).copied());
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.send(request);
        let problem = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answers {}", answer.status())),
            Err(error) => Some(error.clone()),
        };
        self.tell(problem.as_deref());
        Ok(answer?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use tracing::{error, info_span, subscriber};
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Starts a server that takes whatever comes; returns its address, and paths and bodies as they come in.
    fn server() -> (String, Receiver<(String, String)>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = format!("http://{}", listener.local_addr().expect("it has an address"));
        let (sender, requests) = channel();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                sender.send(read(stream)).expect("the test waits for it");
            }
        });
        (address, requests)
    }

    fn read(stream: TcpStream) -> (String, String) {
        let mut reader = BufReader::new(stream);
        let (mut path, mut length, mut line) = (String::new(), 0, String::new());
        while reader.read_line(&mut line).is_ok() && !line.trim().is_empty() {
            let lower = line.to_lowercase();
            if let Some(number) = lower.strip_prefix("content-length:") {
                length = number.trim().parse().expect("it is a number");
            } else if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("it is as long as it says");
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        reader.get_mut().write_all(answer.as_bytes()).expect("the client reads the answer");
        (path, String::from_utf8(body).expect("JSON is UTF-8"))
    }

    #[test]
    fn no_credential_is_sent_and_what_is_sent_is_json() {
        let (url, requests) = server();
        let settings = OtlpSettings { url, ..OtlpSettings::default() };
        let (parts, otlp) = start(&settings, EnvFilter::new("info")).expect("the address is one");
        subscriber::with_default(Registry::default().with(parts), || {
            let span = info_span!("round", url = "https://me:hunter2@example.com", multiline = "token: hunter2\nb");
            let _entered = span.enter();
            error!(
                hold.token = "k7wm-3xq9-hd2t",
                url = "mine",
                api_key = "hunter2",
                error = "\"password\": \"hunter2\"",
                "password={}",
                "hunter2"
            );
        });
        drop(otlp);
        let requests: Vec<(String, String)> = requests.try_iter().collect();
        let mut paths: Vec<&str> = requests.iter().map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["/v1/logs", "/v1/traces"]);
        for (path, body) in &requests {
            assert!(!body.contains("hunter2"), "{path}: {body}");
            assert!(body.contains("k7wm-3xq9-hd2t"), "{path}: {body}");
            let json: Value = serde_json::from_str(body).expect(body);
            assert_eq!(body.matches("\"key\":\"url\"").count(), if path == "/v1/logs" { 1 } else { 2 }, "{body}");
            let field = if path == "/v1/logs" { "resourceLogs" } else { "resourceSpans" };
            assert!(json[field].is_array(), "{path}: {body}");
        }
    }
}
