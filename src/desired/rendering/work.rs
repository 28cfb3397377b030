//! Reading and rendering on a thread of their own, within a deadline.
//!
//! Such a thread cannot be ended from outside. It is told to stop, and looks at that in all its loops; nobody waits for
//! it any more. What came too late once is not begun again for a while, so that not every round pays for it. A thread that does not stop even then is a bug, and keeps the watchdog from being fed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::interrupt::Interrupt;
use tokio::sync::OnceCell;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use tracing::warn;

use crate::basics::duration::Period;
use crate::process::service::Progress;

/// Something that is there, or that somebody is at work on, or that came too late.
pub(super) type Pending<T> = Arc<OnceCell<Result<Arc<T>, Late>>>;

/// The time for which it is not begun again, in times of what it may take.
const REST: u32 = 10;

/// Nobody waits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Late {
    /// When it may be tried again: the host may only have been busy.
    again: Instant,
}

/// Tells whether it came too late, and may be tried again by now.
pub(super) fn is_due_again<T>(pending: &Pending<T>) -> bool {
    matches!(pending.get(), Some(Err(late)) if late.again <= Instant::now())
}

/// The reason why there is no rendering.
#[derive(Debug, thiserror::Error)]
pub enum RenderingError {
    /// It was not finished in time.
    #[error("the source was not rendered within {0}")]
    Late(Period),
    /// It ended in a bug.
    #[error("internal error: rendering ended in a bug, see the log")]
    Bug(#[source] JoinError),
}

impl RenderingError {
    /// Returns what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Late(_) => {
                "look for loops in rules, and for overlays of one rank, in what was committed last; if the source is only large, raise renderTimeout"
            }
            Self::Bug(_) => "please report it",
        }
    }
}

/// The terms of work: for how long, for whom, and who sees that it does not end.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) limit: Period,
    pub(super) title: String,
    pub(super) progress: Option<Progress>,
}

impl Terms {
    /// Does work, unless it is done already; whoever asks at the same time waits for it.
    ///
    /// It goes on when the one who asked first does not wait any longer.
    pub(super) async fn once<T: Send + Sync + 'static>(
        &self,
        cell: Pending<T>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Arc<T>, RenderingError> {
        if let Some(done) = cell.get() {
            return self.told(done.clone());
        }
        let terms = self.clone();
        let begun = tokio::spawn(async move { cell.get_or_try_init(|| terms.within(work)).await.cloned() });
        let done = begun.await.and_then(|done| done).map_err(RenderingError::Bug)?;
        self.told(done)
    }

    fn told<T>(&self, done: Result<Arc<T>, Late>) -> Result<Arc<T>, RenderingError> {
        done.map_err(|_| RenderingError::Late(self.limit))
    }

    /// Does work on a thread that may block.
    async fn within<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Result<Arc<T>, Late>, JoinError> {
        let interrupt = Interrupt::default();
        let on_thread = interrupt.clone();
        let mut thread = tokio::task::spawn_blocking(move || on_thread.during(work));
        let late = || Late { again: Instant::now() + self.limit.0 * REST };
        if let Ok(done) = tokio::time::timeout(self.limit.0, &mut thread).await {
            return Ok(done?.map(Arc::new).ok_or_else(late));
        }
        interrupt.give();
        warn!(sync = self.title, limit = %self.limit, "rendering takes too long, and is given up");
        self.attend(thread);
        Ok(Err(late()))
    }

    /// Shows that a thread has not ended: nobody touches its pulse.
    fn attend<T: Send + 'static>(&self, thread: JoinHandle<T>) {
        if let Some(progress) = &self.progress {
            let pulse = progress.watch(&format!("rendering of sync {}, which was given up", self.title));
            tokio::spawn(async move {
                drop(thread.await);
                drop(pulse);
            });
        }
    }
}

/// Waits no longer than this; `None` if that was not enough.
pub(crate) async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basics::clock::{Clock, SystemClock};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    fn terms(progress: Option<Progress>) -> Terms {
        Terms { limit: Period(Duration::from_millis(50)), title: "greedy".to_owned(), progress }
    }

    #[tokio::test]
    async fn what_came_too_late_is_not_begun_again() {
        let (cell, begun) = (Pending::<u8>::default(), Arc::new(AtomicUsize::new(0)));
        let end = Arc::new(AtomicBool::new(false));
        for _ in 0..3 {
            let (begun, end) = (Arc::clone(&begun), Arc::clone(&end));
            let work = move || {
                begun.fetch_add(1, Ordering::Relaxed);
                while !end.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                0
            };
            let result = terms(None).once(Arc::clone(&cell), work).await;
            assert!(matches!(result, Err(RenderingError::Late(_))));
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        assert!(!is_due_again(&cell), "not yet");
        end.store(true, Ordering::Relaxed);
    }

    #[tokio::test]
    async fn work_goes_on_when_the_one_who_asked_first_does_not_wait() {
        let (cell, go) = (Pending::<u8>::default(), Arc::new(AtomicBool::new(false)));
        let terms = Terms { limit: Period(Duration::from_mins(1)), ..terms(None) };
        let gate = Arc::clone(&go);
        let work = move || {
            while !gate.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            7
        };
        let limit = Some(Duration::from_millis(10));
        assert!(within(limit, terms.once(Arc::clone(&cell), work)).await.is_none());
        go.store(true, Ordering::Relaxed);
        let done = terms.once(cell, || 8).await.expect("it is in time");
        assert_eq!(*done, 7, "it was not begun a second time");
    }

    #[tokio::test]
    async fn a_thread_that_does_not_end_is_seen_by_the_watchdog() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (progress, end) = (Progress::new(clock), Arc::new(AtomicBool::new(false)));
        let gate = Arc::clone(&end);
        let work = move || {
            while !gate.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        let result = terms(Some(progress.clone())).once(Pending::default(), work).await;
        assert!(matches!(result, Err(RenderingError::Late(_))));
        let names = || progress.stuck(Duration::ZERO).into_iter().map(|stuck| stuck.name).collect::<Vec<_>>();
        while names().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(names(), ["rendering of sync greedy, which was given up"]);
        end.store(true, Ordering::Relaxed);
        while !names().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
