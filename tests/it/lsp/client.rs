//! A small editor: it starts the server, and keeps what the server tells.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::Desk;

/// The time after which nothing more is expected from a server.
const BOUND: Duration = Duration::from_mins(2);

pub(super) struct Client {
    server: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    root: String,
    /// The version and text of each file that is open.
    open: BTreeMap<String, (i32, String)>,
    /// The newest diagnostics of each file, each with whether somebody has looked at them.
    shown: BTreeMap<String, Value>,
    asked: u64,
    is_utf8: bool,
    pub(super) capabilities: Value,
}

impl Client {
    /// Starts a server in the folder of a desk, and shakes hands.
    pub(super) fn start(desk: &Desk, capabilities: &Value) -> Self {
        let mut command = desk.command(&["lsp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().expect("the program starts");
        let input = server.stdin.take().expect("it was asked for");
        let output = server.stdout.take().expect("it was asked for");
        let root = format!("file://{}", desk.path("").display()).trim_end_matches('/').to_owned();
        let (open, shown, messages) = (BTreeMap::new(), BTreeMap::new(), received(output));
        let mut client =
            Self { server, input, messages, root, open, shown, asked: 0, is_utf8: false, capabilities: Value::Null };
        let folders = json!([{"uri": client.root, "name": "desk"}]);
        let params = json!({"processId": null, "rootUri": client.root, "workspaceFolders": folders, "capabilities": capabilities});
        client.capabilities = client.ask("initialize", params)["capabilities"].take();
        client.is_utf8 = client.capabilities["positionEncoding"] == "utf-8";
        client.notify("initialized", json!({}));
        client
    }

    pub(super) fn uri(&self, file: &str) -> String {
        format!("{}/{file}", self.root)
    }

    pub(super) fn text(&self, file: &str) -> String {
        self.open[file].1.clone()
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).and_then(|()| self.input.flush()).expect("the server listens");
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message);
    }

    /// Asks, and returns the whole answer.
    pub(super) fn answer(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = json!(self.asked);
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message);
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Asks, and returns what the answer says.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{answer:#}");
        answer["result"].take()
    }

    /// Asks about the place in a file that is behind a text.
    #[track_caller]
    pub(super) fn ask_at(&mut self, method: &str, file: &str, before: &str) -> Value {
        let line = before.rsplit('\n').next().unwrap_or_default();
        let character = if self.is_utf8 { line.len() } else { line.encode_utf16().count() };
        let position = json!({"line": before.matches('\n').count(), "character": character});
        self.ask(method, json!({"textDocument": {"uri": self.uri(file)}, "position": position}))
    }

    pub(super) fn open(&mut self, file: &str, text: &str) {
        self.open.insert(file.to_owned(), (1, text.to_owned()));
        let document = json!({"uri": self.uri(file), "languageId": "yaml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Puts another text in place of a file's, by what is between the first and the last line that differ.
    pub(super) fn change(&mut self, file: &str, text: &str) {
        let (version, old) = self.open.get_mut(file).expect("it is open");
        *version += 1;
        let (old, version) = (std::mem::replace(old, text.to_owned()), *version);
        let same =
            old.split_inclusive('\n').zip(text.split_inclusive('\n')).take_while(|(a, b)| a == b && a.ends_with('\n'));
        let lines = same.map(|(line, _)| line.len()).collect::<Vec<_>>();
        let bytes: usize = lines.iter().sum();
        let range = json!({
            "start": {"line": lines.len(), "character": 0},
            "end": {"line": old.matches('\n').count() + 1, "character": 0},
        });
        let document = json!({"uri": self.uri(file), "version": version});
        let changes = json!([{"range": range, "text": text[bytes..]}]);
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    pub(super) fn close(&mut self, file: &str) {
        self.open.remove(file);
        self.notify("textDocument/didClose", json!({"textDocument": {"uri": self.uri(file)}}));
    }

    /// Waits for diagnostics of a file.
    #[track_caller]
    pub(super) fn diagnostics(&mut self, file: &str, are_meant: impl Fn(&[Value]) -> bool) -> Value {
        let uri = self.uri(file);
        loop {
            if let Some(shown) = self.shown.get(&uri).filter(|it| it.as_array().is_some_and(|it| are_meant(it))) {
                return shown.clone();
            }
            self.next();
        }
    }

    /// Takes the next message, and answers what the server asks.
    #[track_caller]
    fn next(&mut self) -> Value {
        let message = self.messages.recv_timeout(BOUND);
        let message = message.unwrap_or_else(|error| unreachable!("{error}; so far: {:#?}", self.shown));
        if message["method"] == "textDocument/publishDiagnostics" {
            let params = &message["params"];
            let uri = params["uri"].as_str().unwrap_or_default().to_owned();
            self.shown.insert(uri, params["diagnostics"].clone());
        } else if message.get("method").is_some() && message.get("id").is_some() {
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": null}));
        }
        message
    }

    /// Ends the server as the protocol says.
    pub(super) fn end(mut self) -> Option<i32> {
        self.ask("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.wait()
    }

    /// Waits for the end of the server, whose input stays open.
    pub(super) fn wait(mut self) -> Option<i32> {
        self.server.wait().expect("it can be waited for").code()
    }
}

/// Reads messages; what is none ends the list.
fn received(output: ChildStdout) -> Receiver<Value> {
    let (told, messages) = channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        while let Some(message) = message(&mut output) {
            if told.send(message).is_err() {
                break;
            }
        }
    });
    messages
}

fn message(output: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("Content-Length:") {
            length = number.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
