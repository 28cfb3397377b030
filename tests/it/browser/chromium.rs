//! A headless Chromium that shows one page, steered over two pipes by the `DevTools` protocol.
//!
//! The protocol: <https://chromedevtools.github.io/devtools-protocol/>.
//! Requests and answers are JSON, each ended by a zero byte; what nobody asked for are events.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::cluster::process::{Folder, Process};

/// The longest that an answer may take on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_mins(5);

/// A browser with one page, both gone when this value is dropped or this process ends.
pub(super) struct Chromium {
    process: Process,
    requests: ChildStdin,
    messages: mpsc::Receiver<Value>,
    /// The number of requests that were sent: each has a number, and so has its answer.
    sent: u64,
    /// Stands for the page in requests.
    session: Option<String>,
    events: Vec<Value>,
    // Last, so that it goes when nobody writes there any more.
    folder: Folder,
}

impl Chromium {
    /// Starts a browser that shows nothing yet.
    pub(super) fn start() -> Self {
        Self::start_with("--hide-scrollbars")
    }

    /// Starts one with a switch of its own.
    pub(super) fn start_with(switch: &str) -> Self {
        let folder = Folder::new();
        let here = folder.path().display();
        let profile = format!("--user-data-dir={here}/profile");
        // The protocol is spoken over the third and fourth file, and what the browser leaves in the folder for temporary
        // files is to go with the rest. The sandbox is for pages of strangers; root and many containers cannot have it.
        let script = format!(r#"TMPDIR='{here}' exec chromium "$@" 3<&0 4>&1 </dev/null >&2"#);
        let args = ["-c", &script, "chromium", "--headless", "--remote-debugging-pipe", "--no-sandbox", "--no-zygote"];
        let rest = ["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", switch, &profile];
        let args: Vec<String> = args.into_iter().chain(rest).map(str::to_owned).collect();
        let (process, requests, answers) = Process::start_with_pipes(Path::new("sh"), &args, folder.path());
        let messages = receive(answers);
        let mut chromium = Self { process, requests, messages, sent: 0, session: None, events: Vec::new(), folder };
        let page = chromium.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let page = json!({"targetId": page["targetId"], "flatten": true});
        let session = chromium.ask("Target.attachToTarget", &page);
        chromium.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.ask(&format!("{domain}.enable"), &json!({}));
        }
        chromium.resize(1280, 900);
        chromium
    }

    /// Shows a page, from a file of its own, and waits until it is there; what was heard of earlier ones is forgotten.
    pub(super) fn open(&mut self, page: &[u8]) {
        let file = self.folder.path().join("page.html");
        std::fs::write(&file, page).expect("a new folder can be written");
        self.visit(&format!("file://{}", file.display()));
    }

    /// Shows the page at an address, and waits until it is there; what was heard of earlier ones is forgotten.
    pub(super) fn visit(&mut self, url: &str) {
        self.events.clear();
        self.ask("Page.navigate", &json!({"url": url}));
        while self.events_of("Page.loadEventFired").next().is_none() {
            let message = self.receive();
            self.events.push(message);
        }
    }

    /// Returns what a script says in the page, which has no say in that.
    ///
    /// Panics if the script fails.
    pub(super) fn evaluate(&mut self, script: &str) -> Value {
        let request = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.ask("Runtime.evaluate", &request);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer:#}");
        answer["result"]["value"].take()
    }

    /// Presses a key: a character, or the name of a key that has none.
    pub(super) fn press(&mut self, key: &str) {
        let (name, text, code) = match key {
            "Enter" => (key, "\r", 13),
            "Escape" => (key, "", 27),
            "Tab" => (key, "", 9),
            _ => (key, key, u32::from(key.as_bytes()[0].to_ascii_uppercase())),
        };
        let event = |kind: &str| json!({"type": kind, "key": name, "text": text, "windowsVirtualKeyCode": code});
        self.ask("Input.dispatchKeyEvent", &event(if text.is_empty() { "rawKeyDown" } else { "keyDown" }));
        self.ask("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": name, "windowsVirtualKeyCode": code}));
    }

    /// Says which colors the reader prefers: `light` or `dark`.
    pub(super) fn prefer(&mut self, scheme: &str) {
        // What fades from one color to another would be looked at halfway.
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.ask("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Gives the page so much room, in pixels.
    pub(super) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Returns a picture of what can be seen, as PNG.
    pub(super) fn picture(&mut self) -> Vec<u8> {
        let answer = self.ask("Page.captureScreenshot", &json!({"format": "png", "optimizeForSpeed": false}));
        STANDARD.decode(answer["data"].as_str().unwrap_or_default()).expect("it is base64")
    }

    /// Returns what went wrong in the page: errors of scripts, and what the browser has to say, such as what the policy
    /// has kept from running.
    pub(super) fn complaints(&self) -> Vec<String> {
        let errors = self.events_of("Runtime.exceptionThrown").map(|event| event["exceptionDetails"].to_string());
        let printed = self.events_of("Runtime.consoleAPICalled").map(|event| event["args"].to_string());
        let logged = self.events_of("Log.entryAdded").map(|event| event["entry"]["text"].to_string());
        errors.chain(printed).chain(logged).collect()
    }

    /// Returns what was asked for, beyond the page itself.
    pub(super) fn requests(&self) -> Vec<String> {
        let asked = self.events_of("Network.requestWillBeSent").map(|event| &event["request"]["url"]);
        asked.filter_map(Value::as_str).filter(|url| !url.ends_with("/page.html")).map(str::to_owned).collect()
    }

    fn events_of(&self, method: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |event| event["method"] == method).map(|event| &event["params"])
    }

    /// Sends a request and waits for its answer.
    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut request = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        let sent = write!(self.requests, "{request}\0").and_then(|()| self.requests.flush());
        assert!(sent.is_ok(), "chromium has ended: {sent:?}\n{}", self.process.log_tail());
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn receive(&self) -> Value {
        let message = self.messages.recv_timeout(LIMIT);
        message.map_err(|error| format!("{error}\n{}", self.process.log_tail())).expect("chromium answers in time")
    }
}

/// Reads messages until the browser ends.
fn receive(answers: ChildStdout) -> mpsc::Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for message in BufReader::new(answers).split(0) {
            let Ok(message) = message else { return };
            let message = serde_json::from_slice(&message).expect("the protocol is JSON");
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}
