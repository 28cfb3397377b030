//! A client for one API server, and the credentials that go with it.
//!
//! It is made at the first request, not before, and made again when its credentials run out, when the server refuses
//! them, or when the files that it was made of have changed. Requests that need one while it is being made wait for
//! it: a credential plugin runs once, however many wait.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use http::header::USER_AGENT;
use jiff::{SignedDuration, Timestamp};
use kube::{Client, Config};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::failure::Failure;
use crate::basics::clock::Clock;
use crate::cluster::account::Acting;
use crate::cluster::exec::{Credential, Identity};
use crate::cluster::kubeconfig::{Access, Login, Settings, StandardLookup, load};

/// The time limit of a credential plugin.
const PLUGIN_LIMIT: Duration = Duration::from_secs(30);

/// The time limit of all of it: files on a network file system have been seen to hang.
const SETUP_LIMIT: Duration = Duration::from_secs(45);

/// The time limit of a connection until it is encrypted.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Credentials are renewed this long before they end, because a request takes time and clocks differ.
const MARGIN: SignedDuration = SignedDuration::from_secs(30);

/// The time after which a token file is read again.
const TOKEN_FILE_AGE: SignedDuration = SignedDuration::from_secs(60);

/// For how long a failure answers those who were waiting, instead of each of them trying it again.
const FAILURE_AGE: Duration = Duration::from_secs(5);

pub(super) struct Session {
    pub(super) client: Client,
    /// The authorization that every request carries.
    pub(super) authorization: Option<HeaderValue>,
    /// The address, for messages.
    pub(super) server: String,
    /// The kubeconfig and context, for messages.
    pub(super) place: String,
    /// The account that requests are made as, unless they bear another one.
    pub(super) acting: Option<Acting>,
    fingerprint: String,
    good_until: Option<Timestamp>,
    from_plugin: bool,
}

/// Makes sessions for one cluster.
pub(super) struct Sessions {
    cluster: String,
    settings: Settings,
    standard: StandardLookup,
    limit: Duration,
    clock: Arc<dyn Clock>,
    // Held while a session is being made, so that only one is; each holder has a deadline.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Arc<Session>>,
    failed: Option<(Duration, Failure)>,
}

impl Sessions {
    /// Remembers what to make sessions of. `limit` is how long a request may take.
    pub(super) fn new(
        cluster: &str,
        settings: Settings,
        standard: StandardLookup,
        limit: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { cluster: cluster.to_owned(), settings, standard, limit, clock, state: Mutex::default() }
    }

    /// Returns a session whose credentials have not ended.
    pub(super) async fn current(&self) -> Result<Arc<Session>, Failure> {
        self.within_limit(async {
            let mut state = self.state.lock().await;
            match &state.session {
                Some(session) if self.is_good(session) => Ok(Arc::clone(session)),
                _ => self.make(&mut state, None).await,
            }
        })
        .await
    }

    /// Returns a session that agrees with the files as they are now.
    pub(super) async fn checked(&self) -> Result<Arc<Session>, Failure> {
        self.within_limit(async {
            let mut state = self.state.lock().await;
            let access = self.load().await?;
            match &state.session {
                Some(session) if self.is_good(session) && session.fingerprint == access.fingerprint => {
                    Ok(Arc::clone(session))
                }
                _ => self.make(&mut state, Some(access)).await,
            }
        })
        .await
    }

    /// Returns a session with other credentials than those that the server has just refused; `None` if there are none.
    pub(super) async fn renewed(&self, refused: &Arc<Session>) -> Result<Option<Arc<Session>>, Failure> {
        self.within_limit(async {
            let mut state = self.state.lock().await;
            match &state.session {
                Some(session) if !Arc::ptr_eq(session, refused) => return Ok(Some(Arc::clone(session))),
                _ => {}
            }
            let access = self.load().await?;
            if access.fingerprint == refused.fingerprint && !refused.from_plugin {
                return Ok(None);
            }
            self.make(&mut state, Some(access)).await.map(Some)
        })
        .await
    }

    async fn within_limit<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let late = |_| self.broken(&format!("its files were not read within {SETUP_LIMIT:?}"));
        timeout(SETUP_LIMIT, work).await.map_err(late)?
    }

    fn is_good(&self, session: &Session) -> bool {
        session.good_until.is_none_or(|end| self.clock.now() < end)
    }

    /// Makes a session, or fails as it failed a moment ago.
    async fn make(&self, state: &mut State, access: Option<Access>) -> Result<Arc<Session>, Failure> {
        if let Some((at, failure)) = &state.failed
            && self.clock.elapsed() < *at + FAILURE_AGE
        {
            return Err(failure.clone());
        }
        // Seldom wanted, and too large to be part of each request.
        match Box::pin(self.make_now(state.session.take(), access)).await {
            Ok(session) => {
                let session = Arc::new(session);
                *state = State { session: Some(Arc::clone(&session)), failed: None };
                Ok(session)
            }
            Err(failure) => {
                state.failed = Some((self.clock.elapsed(), failure.clone()));
                Err(failure)
            }
        }
    }

    async fn make_now(&self, old: Option<Arc<Session>>, access: Option<Access>) -> Result<Session, Failure> {
        let access = match access {
            Some(access) => access,
            None => self.load().await?,
        };
        let credential = self.log_in(&access).await?;
        let from_plugin = matches!(access.login, Login::Plugin(_));
        let authorization = authorization(&access, &credential)?;
        let (server, place) =
            (access.config.cluster_url.to_string().trim_end_matches('/').to_owned(), access.place.to_string());
        let (fingerprint, good_until, acting) = (access.fingerprint.clone(), credential.expires, access.acting.clone());
        let client = match old {
            // The token is no part of the client, and its connections are still good.
            Some(old) if old.fingerprint == fingerprint && credential.identity.is_none() => old.client.clone(),
            _ => self.client(access, credential.identity).await?,
        };
        Ok(Session { client, authorization, server, place, acting, fingerprint, good_until, from_plugin })
    }

    async fn load(&self) -> Result<Access, Failure> {
        let (cluster, settings, standard) = (self.cluster.clone(), self.settings.clone(), self.standard.clone());
        let access = spawn_blocking(move || load(&cluster, &settings, &standard)).await;
        // The way to the cluster is lost with the management cluster, as with one that does not answer.
        let failure = |error| if self.settings.is_unread() { Failure::Unread(error) } else { error.into() };
        access.map_err(|error| self.broken(&error))?.map_err(failure)
    }

    /// Gets the token; what it says about the end is the end of the session, margin taken off.
    async fn log_in(&self, access: &Access) -> Result<Credential, Failure> {
        let now = self.clock.now();
        let later = |time: Timestamp, by: SignedDuration| time.checked_add(by).unwrap_or(Timestamp::MAX);
        let credential = |token, expires| Credential { token, identity: None, expires };
        match &access.login {
            Login::None | Login::Password(..) => Ok(credential(None, None)),
            Login::Token(token) => Ok(credential(Some(token.clone()), None)),
            Login::FreshToken(token) => Ok(credential(Some(token.clone()), Some(later(now, TOKEN_FILE_AGE)))),
            Login::Plugin(plugin) => {
                let mut credential = plugin.run(PLUGIN_LIMIT).await?;
                // A plugin that gives out what has nearly ended is not run for each request all the same.
                let earliest = later(now, SignedDuration::from_secs(5));
                credential.expires = credential.expires.map(|end| later(end, -MARGIN).max(earliest));
                Ok(credential)
            }
        }
    }

    /// Builds a client without credentials but a certificate. It connects when it is used.
    async fn client(&self, access: Access, identity: Option<Identity>) -> Result<Client, Failure> {
        let place = access.place.to_string();
        let config = config(access, identity, self.limit);
        let client = spawn_blocking(move || Client::try_from(config)).await.map_err(|error| self.broken(&error))?;
        // The words of the TLS library quote no key.
        client.map_err(|error| Failure::NoClient { place, problem: error.to_string() })
    }

    fn broken(&self, problem: &impl ToString) -> Failure {
        Failure::NoClient {
            place: format!("the kubeconfig of cluster {:?}", self.cluster),
            problem: problem.to_string(),
        }
    }
}

fn config(access: Access, identity: Option<Identity>, limit: Duration) -> Config {
    let mut config = access.config;
    config.connect_timeout = Some(CONNECT_LIMIT.min(limit));
    config.read_timeout = Some(limit);
    config.write_timeout = Some(limit);
    // Else the time that a connection was idle before a request would count.
    config.reset_reader_on_write = true;
    // We try again ourselves, within the deadline of the request.
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(concat!("gatewright/", env!("CARGO_PKG_VERSION")))));
    if let Some(Identity { certificate, key }) = identity.or(access.identity) {
        config.auth_info.client_certificate_data = Some(BASE64_STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(BASE64_STANDARD.encode(key.expose_secret()).into());
    }
    config
}

/// Returns the header that says who we are, if one is needed. It is never logged.
fn authorization(access: &Access, credential: &Credential) -> Result<Option<HeaderValue>, Failure> {
    let text = match (&access.login, &credential.token) {
        (Login::Password(name, password), _) => {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{}", password.expose_secret())))
        }
        (_, Some(token)) => format!("Bearer {}", token.expose_secret()),
        (_, None) => return Ok(None),
    };
    // To leave it out instead would be to go on as an anonymous user.
    let problem =
        |_| Failure::NoClient { place: access.place.to_string(), problem: "the token is no token".to_owned() };
    let mut value = HeaderValue::from_str(&text).map_err(problem)?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
mod tests;
