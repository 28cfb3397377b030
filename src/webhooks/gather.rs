//! The moments at which the news of one sync on many clusters is told: a push is one notification.
//!
//! The daemon has a round for each cluster, and so a report. Whoever is on call wants to know that a change has begun, at
//! once that it has failed somewhere, and how it has ended; what happens in between is gathered until then. Where the parts
//! of a notification wait is the business of `pending`; what is known here may be lost, and costs a notification more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use gatewright_engine::plan::guard::Guard;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::basics::lock::lock;
use crate::history::expiry::Expiry;
use crate::report::trend::{Gone, Summary};
use crate::report::{ClusterReport, ClusterState, Report};

/// The longest time that news waits which is neither the first nor the last, and about nothing that is wrong.
const LONGEST: SignedDuration = SignedDuration::from_hours(1);

/// So many times as long as the first news of several clusters waits what comes soon after it: often the same happens on all of
/// them, one after the other.
const CALMER: i32 = 10;

/// The rounds of all syncs at their newest revisions, by sync.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    groups: Mutex<BTreeMap<String, Group>>,
    /// The last look for reports that are too old.
    pub(super) expiry: Expiry,
}

/// The clusters of a sync, as far as they have had a round at one revision.
#[derive(Debug, Default)]
struct Group {
    revision: String,
    clusters: BTreeMap<String, Standing>,
    /// Those whose last round is kept, with what it has to say.
    over: BTreeSet<String>,
    /// The number of clusters of the sync.
    total: usize,
    is_begun: bool,
    is_finished: bool,
    /// Whether it was told at once that something is wrong.
    is_alarmed: bool,
    /// The time at which something of it was last told, or about to be.
    told: Option<Timestamp>,
}

/// The state of a cluster in a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Through,
    /// It is not its turn.
    Waiting,
    /// Something is wrong there, or a person has to do something.
    Wrong,
}

/// The progress of a change on the clusters of a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    /// The clusters of the sync.
    pub clusters: usize,
    /// Those on which it is through.
    pub through: usize,
    /// Those whose turn has not come, in a rollout or because of another sync.
    pub waiting: usize,
    /// Those on which something is wrong, or a person has to do something.
    pub wrong: usize,
    /// Whether each of them has had its round, and none waits.
    pub is_finished: bool,
}

/// The moment at which a part of the news of a sync is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// With all that waits.
    AtOnce,
    /// After this time, or with what is told before.
    After(SignedDuration),
}

impl Gathering {
    /// Notes what came of a round on a cluster, before its report is kept; `total` clusters are those of the sync.
    pub(super) fn begin(&self, report: &Report, total: usize) {
        let Some((name, cluster)) = report.clusters.iter().next() else { return };
        let mut groups = lock(&self.groups);
        let group = groups.entry(report.sync.clone()).or_default();
        if group.revision != report.revision {
            *group = Group { revision: report.revision.clone(), ..Group::default() };
        }
        group.total = total;
        group.begin(name, Standing::of(cluster));
    }

    /// Notes that the report of a round is kept, with news or without. Returns whether it was the last of all clusters at its
    /// revision, so that there is nothing more to wait for.
    pub(super) fn end(&self, report: &Report) -> bool {
        let mut groups = lock(&self.groups);
        let group = groups.get_mut(&report.sync).filter(|group| group.revision == report.revision);
        let name = report.clusters.keys().next();
        group.zip(name).is_some_and(|(group, name)| group.end(name, report.finished))
    }

    /// Decides when the news of a round is told; `wait` is how long parts wait for each other.
    pub(super) fn moment(&self, report: &Report, wait: SignedDuration) -> Moment {
        let trend = Summary::of(std::slice::from_ref(report));
        let is_wrong = report.clusters.values().any(|cluster| Standing::of(cluster) == Standing::Wrong);
        let news = if is_wrong && trend.new > 0 {
            News::Wrong
        } else if Gone::number(&trend.resolved) > 0 {
            News::Right
        } else {
            News::Change
        };
        lock(&self.groups).entry(report.sync.clone()).or_default().moment(news, (report.finished, wait))
    }

    /// Returns how far a sync has come.
    pub(super) fn progress(&self, sync: &str) -> Progress {
        lock(&self.groups).get(sync).map(Group::progress).unwrap_or_default()
    }
}

/// The news of a round, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// Something is wrong that was not.
    Wrong,
    /// Something is over that was there.
    Right,
    /// Something was changed.
    Change,
}

impl Standing {
    fn of(cluster: &ClusterReport) -> Self {
        let waits = |guard: Guard| {
            matches!(guard, Guard::Rollout | Guard::RolloutPaused | Guard::RolloutDeletion | Guard::DependsOn)
        };
        match cluster.exit_code() {
            0 => Self::Through,
            3 if cluster.state == ClusterState::Suspended => Self::Through,
            3 if !cluster.holds.is_empty() && cluster.holds.iter().all(|hold| waits(hold.guard)) => Self::Waiting,
            _ => Self::Wrong,
        }
    }
}

impl Group {
    fn begin(&mut self, cluster: &str, standing: Standing) {
        self.over.remove(cluster);
        self.clusters.insert(cluster.to_owned(), standing);
        if self.number(Standing::Wrong) == 0 {
            self.is_alarmed = false;
        }
    }

    fn end(&mut self, cluster: &str, now: Timestamp) -> bool {
        self.over.insert(cluster.to_owned());
        let was_finished = self.is_finished;
        // Rounds of several clusters overlap: while one of them goes on, an end that was told is not taken back.
        let stays = was_finished && self.clusters.len() >= self.total;
        self.is_finished = (stays || self.over.len() >= self.total) && self.number(Standing::Waiting) == 0;
        let finishes = self.is_finished && !was_finished;
        if finishes {
            self.told = Some(now);
        }
        finishes
    }

    fn moment(&mut self, news: News, (now, wait): (Timestamp, SignedDuration)) -> Moment {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let is_alarm = news == News::Wrong && !std::mem::replace(&mut self.is_alarmed, true);
        if is_alarm {
            self.told = Some(now);
            return Moment::AtOnce;
        }
        if news == News::Change && !is_first && !self.is_finished {
            return Moment::After(LONGEST);
        }
        let calmer = wait.saturating_mul(CALMER);
        if self.told.is_some_and(|told| now.duration_since(told) < calmer) {
            return Moment::After(calmer);
        }
        self.told = Some(now);
        Moment::After(wait)
    }

    fn number(&self, standing: Standing) -> usize {
        self.clusters.values().filter(|it| **it == standing).count()
    }

    fn progress(&self) -> Progress {
        Progress {
            clusters: self.total,
            through: self.number(Standing::Through),
            waiting: self.number(Standing::Waiting),
            wrong: self.number(Standing::Wrong),
            is_finished: self.is_finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: SignedDuration = SignedDuration::from_secs(30);

    /// The moment of news that comes soon after others.
    const CALM: Option<Moment> = Some(Moment::After(SignedDuration::from_mins(5)));

    /// The moments of the news of rounds on four clusters, one after the other.
    fn told(rounds: &[(&str, Standing, Option<News>)]) -> Vec<Option<Moment>> {
        let mut group = Group { total: 4, ..Group::default() };
        let round = |(cluster, standing, news): &(&str, Standing, Option<News>)| {
            group.begin(cluster, *standing);
            let moment = news.map(|news| group.moment(news, (Timestamp::UNIX_EPOCH, WAIT)));
            if group.end(cluster, Timestamp::UNIX_EPOCH) { Some(Moment::AtOnce) } else { moment }
        };
        rounds.iter().map(round).collect()
    }

    #[test]
    fn a_push_is_told_when_it_is_through_everywhere() {
        let change = |name| (name, Standing::Through, Some(News::Change));
        let (soon, later) = (Some(Moment::After(WAIT)), Some(Moment::After(LONGEST)));
        let found = told(&[change("a"), change("b"), change("c"), change("d"), change("a")]);
        assert_eq!(found, [soon, later, later, Some(Moment::AtOnce), CALM], "what comes afterwards has time");
        // Also where the last round has nothing to say.
        let found = told(&[change("a"), change("b"), change("c"), ("d", Standing::Through, None)]);
        assert_eq!(found[3], Some(Moment::AtOnce));
    }

    #[test]
    fn a_rollout_is_told_at_its_beginning_and_its_end() {
        let waits = |name| (name, Standing::Waiting, Some(News::Change));
        let change = |name| (name, Standing::Through, Some(News::Change));
        let (soon, later) = (Some(Moment::After(WAIT)), Some(Moment::After(LONGEST)));
        let rounds = [waits("a"), change("b"), waits("c"), waits("d"), change("a"), change("c"), change("d")];
        assert_eq!(told(&rounds), [soon, later, later, later, later, later, Some(Moment::AtOnce)]);
    }

    #[test]
    fn the_first_failure_is_told_at_once_and_others_together() {
        let fails = |name| (name, Standing::Wrong, Some(News::Wrong));
        let (soon, now) = (Some(Moment::After(WAIT)), Some(Moment::AtOnce));
        let change = |name| (name, Standing::Through, Some(News::Change));
        let found = told(&[change("a"), fails("b"), fails("c"), fails("d")]);
        assert_eq!(found, [soon, now, CALM, now], "the last is the end, too");
        // When all is well again, the next failure is one to be told at once.
        let heals = |name| (name, Standing::Through, Some(News::Right));
        let rounds =
            [change("a"), change("b"), change("c"), fails("d"), fails("a"), heals("a"), heals("d"), fails("b")];
        assert_eq!(told(&rounds)[3..], [now, CALM, CALM, CALM, now]);
    }

    #[test]
    fn the_end_waits_for_whoever_has_not_said_all() {
        let mut group = Group { total: 2, ..Group::default() };
        group.begin("a", Standing::Through);
        group.begin("b", Standing::Through);
        assert!(!group.end("b", Timestamp::UNIX_EPOCH), "what a has to say is not there yet");
        assert!(group.end("a", Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn an_end_is_told_once_also_where_later_rounds_overlap() {
        let mut group = Group { total: 2, ..Group::default() };
        let mut step = |name: &str, is_end: bool, standing: Standing| {
            if is_end {
                return group.end(name, Timestamp::UNIX_EPOCH);
            }
            group.begin(name, standing);
            false
        };
        let mut rounds = |standing| {
            let steps = [("a", false), ("b", false), ("b", true), ("a", true)];
            steps.map(|(name, is_end)| step(name, is_end, standing))
        };
        assert_eq!(rounds(Standing::Through), [false, false, false, true]);
        assert_eq!(rounds(Standing::Through), [false; 4], "it was told");
        assert_eq!(rounds(Standing::Waiting), [false; 4], "another rollout at the same revision");
        assert_eq!(rounds(Standing::Through), [false, false, false, true], "and its end");
    }

    #[test]
    fn what_comes_late_waits_as_long_as_the_first() {
        let mut group = Group { total: 1, ..Group::default() };
        group.begin("a", Standing::Through);
        assert!(group.end("a", Timestamp::UNIX_EPOCH));
        let mut after = |minutes: i64| {
            let now = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
            group.moment(News::Change, (now, WAIT))
        };
        assert_eq!((Some(after(4)), after(5), Some(after(9))), (CALM, Moment::After(WAIT), CALM));
    }
}
