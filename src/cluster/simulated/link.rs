//! The way to a simulated API server: how long requests take there, which fail, and how many there were.
//!
//! It does what `cluster/kube/transport.rs` does with a real one: so many requests at once, so many tries, so long a
//! deadline, and less patience with a server that has just kept silent.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::basics::lock::lock;
use crate::cluster::{ClusterError, Reason};

/// Requests under way at once, as on a real one.
const AT_ONCE: usize = 8;

/// The most tries of a request, and the wait before the second; it doubles.
const TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The time for a request after one that was not answered.
const SHORT: Duration = Duration::from_secs(3);

/// The wait that a server asks for that answers 429.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The requests that a throttled server grants in each second.
const GRANTED: u32 = 10;

/// The factor by which a slow server is slower than others.
const SLOWNESS: f64 = 10.0;

/// The number of standard deviations of a normal distribution below its 99th percentile.
const P99: f64 = 2.326_347_9;

/// A time that differs from case to case: log-normal, as the times of servers usually are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half of all cases take as long, or less.
    pub median: Duration,
    /// One case in a hundred takes longer.
    pub p99: Duration,
}

impl Latency {
    fn draw(self, random: &mut StdRng) -> Duration {
        let spread = (self.p99.as_secs_f64() / self.median.as_secs_f64().max(1e-9)).max(1.0).ln() / P99;
        let (radius, angle): (f64, f64) = (random.random::<f64>().max(1e-12), random.random());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        self.median.mul_f64((spread * normal).exp().min(1e4))
    }
}

/// A fault that a cluster has from beginning to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// None but single errors.
    #[default]
    None,
    /// Nobody answers: what is sent there is lost.
    Unreachable,
    /// It grants a few requests each second, and answers 429 to the others.
    Throttled,
    /// It answers, and takes long.
    Slow,
}

impl Fault {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "sound",
            Self::Unreachable => "unreachable",
            Self::Throttled => "throttled",
            Self::Slow => "slow",
        }
    }
}

impl Verb {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::ListMetadata => "list of metadata",
            Self::DryRun => "dry run",
            Self::Patch => "patch",
            Self::Write => "write of records",
            Self::Delete => "delete",
        }
    }
}

/// A kind of request, by the verb of Kubernetes where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// One object, one of our records, the identity, what kinds there are.
    Get,
    /// A page of whole objects.
    List,
    /// A page of metadata.
    ListMetadata,
    /// An apply or patch that changes nothing.
    DryRun,
    /// An apply or patch.
    Patch,
    /// A record of ours that is written, or a namespace for it.
    Write,
    /// A deletion.
    Delete,
}

/// The experience with a cluster since somebody last asked for it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traffic {
    /// Requests, each try counted.
    pub requests: BTreeMap<Verb, u64>,
    /// Tries that were answered 429.
    pub throttled: u64,
    /// Tries that were answered 503.
    pub errors: u64,
    /// Requests that nobody answered.
    pub unanswered: u64,
}

/// Everything about the way to one server.
pub(super) struct Link {
    pub(super) fault: Fault,
    latency: Latency,
    /// The share of tries that are answered 503.
    errors: f64,
    limit: Duration,
    places: Semaphore,
    state: Mutex<State>,
}

struct State {
    random: StdRng,
    traffic: Traffic,
    /// Until when the server counts as lost.
    unanswered: Option<Instant>,
    /// The second in which requests were last granted, and how many.
    granted: (Option<Instant>, u32),
}

/// The failure of one try.
enum Refused {
    Silent,
    Throttled,
    Broken,
}

/// Words for what went wrong.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("the simulated server does not answer within {}s", .0.as_secs())]
    Silent(Duration),
    #[error("the simulated server answers 429, too many requests")]
    Throttled,
    #[error("the simulated server answers 503")]
    Broken,
}

impl Link {
    pub(super) fn new(fault: Fault, latency: Latency, errors: f64, limit: Duration, seed: u64) -> Self {
        let latency = match fault {
            Fault::Slow => Latency { median: latency.median.mul_f64(SLOWNESS), p99: latency.p99.mul_f64(SLOWNESS) },
            Fault::None | Fault::Unreachable | Fault::Throttled => latency,
        };
        let random = StdRng::seed_from_u64(seed);
        let state = State { random, traffic: Traffic::default(), unanswered: None, granted: (None, 0) };
        Self { fault, latency, errors, limit, places: Semaphore::new(AT_ONCE), state: Mutex::new(state) }
    }

    /// Returns the traffic since the last call.
    pub(super) fn take_traffic(&self) -> Traffic {
        std::mem::take(&mut lock(&self.state).traffic)
    }

    /// Draws a time from the randomness of this server.
    pub(super) fn draw(&self, latency: Latency) -> Duration {
        latency.draw(&mut lock(&self.state).random)
    }

    /// Sends a request, with as many tries as it takes and may have.
    pub(super) async fn send(&self, verb: Verb, action: &str) -> Result<(), ClusterError> {
        let _place = self.places.acquire().await.expect("nobody closes the semaphore");
        let mut pause = FIRST_PAUSE;
        for tried in 1.. {
            let refused = match self.once(verb).await {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            let (reason, cause, wait) = match refused {
                Refused::Silent => return Err(error(action, Reason::Unreachable, Cause::Silent(self.limit))),
                Refused::Throttled => (Reason::Overloaded, Cause::Throttled, RETRY_AFTER),
                Refused::Broken => (Reason::Overloaded, Cause::Broken, pause),
            };
            if tried == TRIES {
                return Err(error(action, reason, cause));
            }
            sleep(wait).await;
            pause *= 2;
        }
        Ok(())
    }

    /// Sends a request that is not repeated.
    pub(super) async fn probe(&self) -> Result<(), ClusterError> {
        match self.once(Verb::Get).await {
            Err(Refused::Silent) => {
                Err(error("find out whether the cluster answers", Reason::Unreachable, Cause::Silent(self.limit)))
            }
            Ok(()) | Err(Refused::Throttled | Refused::Broken) => Ok(()),
        }
    }

    async fn once(&self, verb: Verb) -> Result<(), Refused> {
        let now = Instant::now();
        if self.fault == Fault::Unreachable {
            let is_lost = {
                let mut state = lock(&self.state);
                *state.traffic.requests.entry(verb).or_default() += 1;
                state.traffic.unanswered += 1;
                state.unanswered.is_some_and(|end| now < end)
            };
            sleep(if is_lost { SHORT.min(self.limit) } else { self.limit }).await;
            if !is_lost {
                lock(&self.state).unanswered = Some(Instant::now() + self.limit);
            }
            return Err(Refused::Silent);
        }
        let (takes, outcome) = self.decide(verb, now);
        sleep(takes).await;
        outcome
    }

    /// Decides how long a try takes, and what becomes of it.
    fn decide(&self, verb: Verb, now: Instant) -> (Duration, Result<(), Refused>) {
        let state = &mut *lock(&self.state);
        *state.traffic.requests.entry(verb).or_default() += 1;
        let takes = self.latency.draw(&mut state.random).min(self.limit);
        if self.fault == Fault::Throttled {
            let is_same = state.granted.0.is_some_and(|since| now < since + Duration::from_secs(1));
            state.granted = if is_same { (state.granted.0, state.granted.1 + 1) } else { (Some(now), 1) };
            if state.granted.1 > GRANTED {
                state.traffic.throttled += 1;
                return (takes, Err(Refused::Throttled));
            }
        }
        if state.random.random::<f64>() < self.errors {
            state.traffic.errors += 1;
            return (takes, Err(Refused::Broken));
        }
        (takes, Ok(()))
    }
}

fn error(action: &str, reason: Reason, cause: Cause) -> ClusterError {
    ClusterError { action: action.to_owned(), reason, hint: None, source: Box::new(cause) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(fault: Fault, errors: f64) -> Link {
        let latency = Latency { median: Duration::from_millis(20), p99: Duration::from_millis(100) };
        Link::new(fault, latency, errors, Duration::from_secs(30), 7)
    }

    #[test]
    fn half_of_all_requests_take_the_median_and_one_in_a_hundred_more_than_p99() {
        let (link, latency) =
            (link(Fault::None, 0.0), Latency { median: Duration::from_millis(20), p99: Duration::from_millis(100) });
        let drawn: Vec<Duration> = (0..20_000).map(|_| link.draw(latency)).collect();
        let above = |limit: u64| drawn.iter().filter(|it| **it > Duration::from_millis(limit)).count();
        assert!((9_700..10_300).contains(&above(20)), "{}", above(20));
        assert!((150..250).contains(&above(100)), "{}", above(100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_keeps_silent_costs_its_limit_once_and_less_at_once_after() {
        let link = link(Fault::Unreachable, 0.0);
        let begun = Instant::now();
        assert!(link.send(Verb::Get, "ask").await.is_err_and(|error| error.is_unreachable()));
        assert_eq!(begun.elapsed().as_secs(), 30);
        assert!(link.send(Verb::Get, "ask").await.is_err());
        assert_eq!(begun.elapsed().as_secs(), 33);
        assert_eq!(link.take_traffic().unanswered, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_throttled_server_grants_so_many_in_a_second() {
        let link = link(Fault::Throttled, 0.0);
        let begun = Instant::now();
        let sent = futures::future::join_all((0..60).map(|_| link.send(Verb::Patch, "write"))).await;
        let (done, refused): (Vec<_>, Vec<_>) = sent.into_iter().partition(Result::is_ok);
        let most = u64::from(GRANTED) * (begun.elapsed().as_secs() + 1);
        assert!((30..=most).contains(&(done.len() as u64)), "{} of at most {most}", done.len());
        // Whoever was refused has been so three times.
        assert!(refused.iter().all(|it| it.as_ref().is_err_and(|error| error.reason == Reason::Overloaded)));
        assert!(link.take_traffic().throttled >= 3 * refused.len() as u64);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_tried_again_and_a_lasting_one_is_told() {
        assert!(link(Fault::None, 1.0).send(Verb::Get, "ask").await.is_err_and(|it| it.reason == Reason::Overloaded));
        let some = link(Fault::None, 0.2);
        for _ in 0..20 {
            drop(some.send(Verb::Get, "ask").await);
        }
        let traffic = some.take_traffic();
        assert_eq!(traffic.requests[&Verb::Get] - traffic.errors, 20, "{traffic:?}");
    }
}
