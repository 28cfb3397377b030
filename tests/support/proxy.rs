//! A proxy in front of a real API server that keeps a log of all requests and answers some of them badly.
//!
//! To its client it speaks plain HTTP/1.1, so that it can end a conversation at any byte; the client's kubeconfig has to
//! allow that (`allowInsecureTls`). To the server it speaks as `admin`, whatever the client's token is.
//! Requests go on as they came, but for the credentials.

mod wire;

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::ApiServer;
use super::process::Folder;

/// The token that the proxy's kubeconfig begins with.
pub(crate) const TOKEN: &str = "first";

/// The fate of a request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// It does not arrive: the connection ends instead.
    Lost,
    /// It arrives, and the connection ends in place of an answer.
    Unanswered,
    /// It arrives, and a part of the answer comes back before the connection ends.
    Truncated,
    /// It arrives, and a status without words of an API server comes back in place of the answer.
    Replaced(u16),
    /// It does not arrive; a `Status` comes back.
    Refused(u16, &'static str),
    /// It does not arrive; 429 comes back, and after how many seconds to try again.
    Busy(u32),
    /// It does not arrive; a page of this type comes back with status 200.
    Page(&'static str, &'static str),
    /// It does not arrive; JSON without an end comes back.
    Endless,
    /// It does not arrive, and nothing comes back until the client gives up.
    Silent,
    /// It arrives, and the answer is changed on its way back.
    Changed(Arc<dyn Fn(&mut Value) + Send + Sync>),
    /// It arrives, and the server's clock shows this in its answer.
    Dated(Timestamp),
    /// It arrives without `dryRun`, as with a server that does not know that.
    DryRunIgnored,
    /// It arrives after something else has happened.
    After(Arc<dyn Fn() + Send + Sync>),
}

/// A request that came by.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    /// The client's `Authorization`.
    pub(crate) authorization: String,
    /// The form in which it wants the answer.
    pub(crate) accept: String,
    /// The status that the server answered with; `None` if it was not asked.
    pub(crate) code: Option<u16>,
}

impl Seen {
    /// Tells whether it would change something.
    pub(crate) fn is_write(&self) -> bool {
        self.method != "GET" && !self.path.contains("dryRun=All")
    }

    /// Tells whether it is this verb about something whose path has this in it.
    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path.contains(path)
    }
}

/// A selection of requests.
type Meant = Box<dyn FnMut(&Seen) -> bool + Send>;

struct Rule {
    /// To how many more requests it applies.
    times: usize,
    meant: Meant,
    answer: Answer,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    seen: Vec<Seen>,
}

/// The proxy, which ends with this value.
pub(crate) struct Proxy {
    state: Arc<Mutex<State>>,
    port: u16,
    folder: Folder,
    _runtime: Runtime,
}

impl Proxy {
    /// Starts a proxy that does nothing to requests yet.
    pub(crate) fn start(server: &ApiServer) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let state = Arc::new(Mutex::new(State::default()));
        let upstream = runtime.block_on(wire::client(&server.kubeconfig("admin")));
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.expect("the loopback address has free ports");
        let port = listener.local_addr().expect("it is bound").port();
        runtime.spawn(wire::serve(listener, upstream, Arc::clone(&state)));
        let proxy = Self { state, port, folder: Folder::new(), _runtime: runtime };
        proxy.write_kubeconfig(TOKEN);
        proxy
    }

    /// Returns the path of a kubeconfig whose server is the proxy.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// Writes the kubeconfig again, with another token.
    pub(crate) fn write_kubeconfig(&self, token: &str) {
        write_kubeconfig(&self.kubeconfig(), self.port, token);
    }

    /// Returns what does that, for [`Answer::After`].
    pub(crate) fn writer(&self, token: &'static str) -> Arc<dyn Fn() + Send + Sync> {
        let (path, port) = (self.kubeconfig(), self.port);
        Arc::new(move || write_kubeconfig(&path, port, token))
    }

    /// Gives this answer to the next requests that are meant, so many times. Of several rules the first applies.
    pub(crate) fn answer(&self, times: usize, meant: impl FnMut(&Seen) -> bool + Send + 'static, answer: Answer) {
        self.state().rules.push(Rule { times, meant: Box::new(meant), answer });
    }

    /// Lets everything through again, and begins a new log.
    pub(crate) fn recovers(&self) {
        *self.state() = State::default();
    }

    /// Returns how many of the answers that were prepared have not been given.
    pub(crate) fn left(&self) -> usize {
        self.state().rules.iter().map(|rule| rule.times).sum()
    }

    /// Returns what came by, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// Returns what the server has carried out, such as `PATCH /api/v1/namespaces/a/services/b`, in order; our own records
    /// left out.
    pub(crate) fn carried_out(&self) -> Vec<String> {
        let is_done = |seen: &&Seen| seen.is_write() && seen.code.is_some_and(|code| code < 300);
        let seen = self.seen();
        let done = seen.iter().filter(is_done).map(|seen| {
            let path = seen.path.split('?').next().unwrap_or_default();
            format!("{} {path}", seen.method)
        });
        done.filter(|line| !line.contains("gatewright-system")).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// It is never there half written.
fn write_kubeconfig(path: &std::path::Path, port: u16, token: &str) {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "proxy", "user": {"token": token}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
    });
    let new = path.with_extension("new");
    fs::write(&new, kubeconfig.to_string()).expect("a temporary folder can be written");
    fs::rename(new, path).expect("a temporary folder can be written");
}

impl State {
    /// Takes a request into the log, and returns its place there and what becomes of it.
    fn receive(&mut self, seen: Seen) -> (usize, Option<Answer>) {
        let applies = |rule: &mut Rule| rule.times > 0 && (rule.meant)(&seen);
        let rule = self.rules.iter_mut().find_map(|rule| applies(rule).then_some(rule));
        let answer = rule.map(|rule| {
            rule.times -= 1;
            rule.answer.clone()
        });
        self.seen.push(seen);
        (self.seen.len() - 1, answer)
    }

    /// Notes what the server answered; the log may have been begun again in the meantime.
    fn answered(&mut self, place: usize, code: u16) {
        if let Some(seen) = self.seen.get_mut(place) {
            seen.code = Some(code);
        }
    }
}
