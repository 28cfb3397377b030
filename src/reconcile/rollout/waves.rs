//! Waves: the order in which the clusters of a sync get a change, and the decision whose turn it is.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatewright_engine::object::ObjectId;
use gatewright_engine::plan::guard::Guard;
use gatewright_engine::plan::guard::rollout::Wait;
use gatewright_engine::text::{count, listed};
use jiff::Timestamp;

use super::known::{Part, Parts};
use super::record::{Failure, Member, Record, Stage};
use crate::basics::duration::Period;
use crate::config::rollout::{RolloutSettings, WaveSettings};
use crate::config::settings::ClusterSettings;

/// The most clusters that a message names.
const MOST_NAMES: usize = 8;

/// Clusters that get a change together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wave {
    /// The clusters, in their order.
    pub clusters: Vec<String>,
    /// The same, by name.
    pub names: BTreeSet<String>,
    /// Only the first of them that has the change is the wave.
    pub is_canary: bool,
    /// The most that are on their way to it at once.
    pub at_once: usize,
    /// The most that may be unhealthy with it.
    pub tolerated: usize,
    /// For how long each is healthy before the next wave.
    pub soak: Duration,
    /// A person agrees first.
    pub needs_approval: bool,
    /// Nobody waits where nothing could be done on any of them.
    pub skips_lost: bool,
}

/// The answer to the question whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its own, before all others.
    First,
    /// Its own.
    Go,
    /// That of another cluster, if it is that of one: which, and why.
    Wait(Option<String>, Wait),
}

/// The question whose turn it is with the change of a unit.
pub(super) struct Question<'a> {
    /// The waves of the sync.
    pub waves: &'a [Wave],
    /// The rollout of the change.
    pub record: &'a Record,
    /// The parts of the clusters that this process looks after; where nothing is changed it is not asked for.
    pub parts: Option<&'a Parts>,
    /// Everything that is to be rolled out with it.
    pub target: &'a str,
    /// Now.
    pub now: Timestamp,
    /// The findings about each wave so far.
    pub found: &'a [Found],
}

/// Findings about a wave that are the same for all clusters that do not have the change.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The reason why a later wave waits.
    before: OnceCell<Option<Verdict>>,
    /// The reason why those of this wave wait.
    within: OnceCell<Option<Verdict>>,
    /// The place of the first that may become the canary.
    candidate: OnceCell<Option<usize>>,
}

impl Found {
    /// Begins with nothing, for as many waves.
    pub(super) fn of(waves: &[Wave]) -> Vec<Self> {
        waves.iter().map(|_| Self::default()).collect()
    }
}

/// The outlook for a cluster that does not have the change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outlook {
    /// It will not get it.
    Passed,
    /// Nothing can be done there.
    Absent,
    /// It may get it yet.
    Open,
}

/// Returns the waves of a sync on the clusters that it selects. Without settings one of those that have health is the
/// first, and all others follow.
pub(super) fn of(
    settings: &RolloutSettings,
    selected: &BTreeMap<&str, &ClusterSettings>,
    has_health: impl Fn(&str) -> bool,
) -> Vec<Wave> {
    if !settings.waves.is_empty() {
        return settings.waves_of(selected).into_iter().map(Wave::set).collect();
    }
    let first = settings.first.as_ref();
    let is_preferred = |name: &&str| first.is_some_and(|first| first.selects(name, &selected[name].labels));
    let with_health = selected.keys().copied().filter(|name| has_health(name));
    let (preferred, others): (Vec<&str>, Vec<&str>) = with_health.partition(is_preferred);
    let names = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect();
    let candidates = names(&mut preferred.into_iter().chain(others));
    vec![Wave::canary(candidates), Wave::rest(names(&mut selected.keys().copied()))]
}

/// Returns the waves that were set in the order of a way back, of these clusters: nobody waits longer than until they are
/// healthy, nor for clusters that do not answer.
pub(super) fn back(
    settings: &RolloutSettings,
    selected: &BTreeMap<&str, &ClusterSettings>,
    rounds: &[String],
) -> Vec<Wave> {
    let mut waves: Vec<Wave> = settings.waves_of(selected).into_iter().map(Wave::set).rev().collect();
    for wave in &mut waves {
        (wave.soak, wave.needs_approval, wave.skips_lost) = (Duration::ZERO, false, true);
        wave.clusters.retain(|name| rounds.contains(name));
        wave.names = wave.clusters.iter().cloned().collect();
    }
    waves.retain(|wave| !wave.clusters.is_empty());
    waves
}

/// Returns when clusters will have been healthy for long enough: one of them, or all.
pub(super) fn soaks<'a>(
    waves: &'a [Wave],
    record: &'a Record,
    cluster: Option<&'a str>,
) -> impl Iterator<Item = Timestamp> + 'a {
    let of = move |wave: &'a Wave| {
        let one = cluster.filter(|name| wave.has(name)).and_then(|name| record.members.get(name));
        let all = wave.members(record).map(|(_, member)| member).filter(move |_| cluster.is_none());
        let healthy = one.into_iter().chain(all).filter(|member| member.stage == Stage::Healthy);
        healthy.filter_map(|member| member.since.checked_add(wave.soak).ok())
    };
    waves.iter().filter(|wave| !wave.soak.is_zero()).flat_map(of)
}

/// Tells whether what is healthy is watched for a time before the next wave.
pub(super) fn have_soaks(waves: &[Wave]) -> bool {
    waves.iter().any(|wave| !wave.soak.is_zero())
}

/// Returns the clusters that go back because a change has failed on one of them: that one, and its whole wave if it is too
/// many there. What a person has let go stays.
pub(super) fn go_back_with(waves: &[Wave], record: &Record, cluster: &str) -> Vec<String> {
    let has_it = |member: &Member| !(member.is_carried || member.stays || matches!(member.stage, Stage::Returned(_)));
    let is_first = record.first.as_deref() == Some(cluster);
    let wave = waves.iter().find(|wave| !wave.is_canary && wave.has(cluster)).filter(|_| !is_first);
    let is_too_much =
        |wave: &&Wave| wave.members(record).filter(|(_, member)| member.stage.has_failed()).count() > wave.tolerated;
    let whole = wave.filter(is_too_much).map(|wave| wave.members(record));
    let of_wave = whole.into_iter().flatten().map(|(name, _)| name.as_str());
    let all: BTreeSet<&str> = of_wave.chain([cluster]).collect();
    let all = all.into_iter().filter(|name| record.members.get(*name).is_some_and(has_it));
    all.map(str::to_owned).collect()
}

/// Tells whether a cluster was still being watched with a change when it was seen not to be healthy: it had just got it, or
/// the time was not over for which it is to be healthy.
pub(super) fn is_on_trial(waves: &[Wave], cluster: &str, member: &Member, now: Timestamp) -> bool {
    let soak = waves.iter().find(|wave| !wave.is_canary && wave.has(cluster)).map(|wave| wave.soak);
    match member.stage {
        Stage::Going => true,
        Stage::Healthy => soak.and_then(|soak| member.since.checked_add(soak).ok()).is_some_and(|end| end > now),
        Stage::Halted(_) | Stage::Returned(_) => false,
    }
}

impl Wave {
    /// One of these clusters.
    pub(super) fn canary(clusters: Vec<String>) -> Self {
        Self { is_canary: true, ..Self::of(clusters) }
    }

    /// All of these at once, however they are: one that is not healthy does not keep the others.
    pub(super) fn rest(clusters: Vec<String>) -> Self {
        Self { tolerated: usize::MAX, ..Self::of(clusters) }
    }

    fn set((settings, clusters): (Option<&WaveSettings>, Vec<String>)) -> Self {
        let number = clusters.len();
        let wave = Self::of(clusters);
        let Some(settings) = settings else { return wave };
        Self {
            at_once: settings.max_concurrent.map_or(wave.at_once, |portion| portion.at_least_one(number)),
            tolerated: settings.max_unavailable.at_most(number),
            soak: settings.soak.0,
            needs_approval: settings.approval,
            ..wave
        }
    }

    /// All of these clusters at once.
    pub(super) fn of(clusters: Vec<String>) -> Self {
        let (at_once, soak, names) = (usize::MAX, Duration::ZERO, clusters.iter().cloned().collect());
        Self {
            clusters,
            names,
            is_canary: false,
            at_once,
            tolerated: 0,
            soak,
            needs_approval: false,
            skips_lost: false,
        }
    }

    fn has(&self, cluster: &str) -> bool {
        self.names.contains(cluster)
    }

    /// Returns those of its clusters that have a change, by name.
    fn members<'a>(&'a self, record: &'a Record) -> impl Iterator<Item = (&'a String, &'a Member)> {
        self.names.iter().filter_map(|name| record.members.get_key_value(name))
    }
}

impl Question<'_> {
    /// Says whether it is the turn of a cluster.
    pub(super) fn verdict(&self, cluster: &str) -> Verdict {
        if let Some(back) = self.record.back.get(cluster) {
            return Self::taken_back(None, &back.failure);
        }
        match self.record.members.get(cluster) {
            Some(Member { stage: Stage::Returned(failure), .. }) => return Self::taken_back(None, failure),
            Some(_) => return Verdict::Go,
            None => {}
        }
        for ((index, wave), found) in self.waves.iter().enumerate().zip(self.found) {
            let blocked = match wave {
                wave if wave.is_canary => self.canary(wave, found, cluster),
                wave if wave.has(cluster) => {
                    let within = found.within.get_or_init(|| self.within(wave, index));
                    return within.clone().unwrap_or(Verdict::Go);
                }
                wave => found.before.get_or_init(|| self.before(wave, index)).clone(),
            };
            if let Some(blocked) = blocked {
                return blocked;
            }
        }
        Verdict::Go
    }

    /// The first of a wave that has the change is all of it; `None`: it is healthy, or nobody has the change.
    fn canary(&self, wave: &Wave, found: &Found, cluster: &str) -> Option<Verdict> {
        let first = self.record.first.as_ref().and_then(|first| self.record.members.get_key_value(first));
        if let Some((name, member)) = first {
            let blocked = self.blocks(wave, name, member);
            if blocked.is_some() || member.stage == Stage::Healthy {
                return blocked;
            }
        }
        if let Some(lost) = found.before.get_or_init(|| self.lost(wave, 1)) {
            return Some(lost.clone());
        }
        let is_open = |name: &String| self.outlook(wave, name) == Outlook::Open;
        let open = *found.candidate.get_or_init(|| wave.clusters.iter().position(is_open));
        let is_before = wave.clusters[..open.unwrap_or(wave.clusters.len())].iter().any(|name| name == cluster);
        match open.map(|index| &wave.clusters[index]).filter(|_| !is_before) {
            Some(first) if first != cluster => Some(not_there_yet(first)),
            None if !is_before => None,
            _ => Some(Verdict::First),
        }
    }

    /// The wave of the cluster itself.
    fn within(&self, wave: &Wave, index: usize) -> Option<Verdict> {
        if let Some(halted) = self.halted(wave) {
            return Some(halted);
        }
        let going: Vec<&String> =
            wave.members(self.record).filter(|(name, it)| self.is_going(name, it)).map(|(name, _)| name).collect();
        if let (Some(first), true) = (going.first(), going.len() >= wave.at_once) {
            let message = format!(
                "wave {} goes to {} at once, and cluster {first} is one of them",
                index + 1,
                count(wave.at_once, "cluster")
            );
            return Some(wait(Some(first), message, "it follows by itself"));
        }
        wave.needs_approval.then(|| {
            let message = format!("{} goes to wave {} when a person has agreed", self.record.revision, index + 1);
            let hint = "look at how it is in the waves before, then approve it".to_owned();
            Verdict::Wait(None, Wait { guard: Guard::RolloutApproval, message, hint, why: None })
        })
    }

    /// A wave before that of the cluster; `None`: it is through.
    fn before(&self, wave: &Wave, index: usize) -> Option<Verdict> {
        if let Some(halted) = self.halted(wave) {
            return Some(halted);
        }
        let is_tolerated = |member: &Member| member.stage.has_failed();
        let mut open = wave.members(self.record).filter(|(_, member)| !is_tolerated(member));
        if let Some(verdict) = open.find_map(|(name, member)| self.blocks(wave, name, member)) {
            return Some(verdict);
        }
        let mut others = wave.clusters.iter().filter(|name| !self.record.members.contains_key(*name));
        if let Some(open) = others.find(|name| self.outlook(wave, name) == Outlook::Open) {
            return Some(not_there_yet(open));
        }
        // Those that the change does not concern have not tried it either.
        let is_lost = |name: &String| self.outlook(wave, name) == Outlook::Absent;
        let is_healthy = |(_, member): (&String, &Member)| member.stage == Stage::Healthy;
        let is_tried = wave.members(self.record).any(is_healthy) || wave.skips_lost;
        (!is_tried && wave.clusters.iter().any(is_lost)).then(|| {
            let message = format!("nothing could be done on the clusters of wave {}", index + 1);
            wait(None, message, "it follows once it is healthy on one of them; or approve it as it is")
        })
    }

    fn halted(&self, wave: &Wave) -> Option<Verdict> {
        let mut halted = wave.members(self.record).filter(|(_, member)| member.stage.has_failed());
        let first = halted.next();
        let number = usize::from(first.is_some()) + halted.count();
        if let Some((name, member)) = first.filter(|_| number > wave.tolerated) {
            return self.blocks(wave, name, member);
        }
        self.lost(wave, (wave.tolerated - number).saturating_add(1))
    }

    /// One cluster that does not answer any more after it got the change is bad luck; more of them are the change.
    fn lost(&self, wave: &Wave, tolerated: usize) -> Option<Verdict> {
        let is_lost =
            |name: &str, member: &Member| member.stage == Stage::Going && self.part(name) == Some(&Part::Absent);
        let lost: Vec<&String> =
            wave.members(self.record).filter(|(name, it)| is_lost(name, it)).map(|(name, _)| name).collect();
        (lost.len() > tolerated).then(|| {
            let names = listed(&lost, MOST_NAMES);
            let message =
                format!("{} went to clusters {names}, and none of them has answered since", self.record.revision);
            let hint = "look at them; or approve it for the others as it is".to_owned();
            Verdict::Wait(None, Wait { guard: Guard::RolloutHalted, message, hint, why: None })
        })
    }

    /// Something was on its way there when the cluster was lost: nobody waits for what may never be seen.
    fn is_going(&self, name: &str, member: &Member) -> bool {
        member.stage == Stage::Going && self.part(name) != Some(&Part::Absent)
    }

    fn part(&self, name: &str) -> Option<&Part> {
        self.parts?.get(name)?.as_ref()
    }

    /// Returns why others have to wait for a cluster that has the change.
    fn blocks(&self, wave: &Wave, name: &String, member: &Member) -> Option<Verdict> {
        let revision = &self.record.revision;
        match &member.stage {
            Stage::Halted(why) => {
                let message = format!("{revision} went to cluster {name} first, and is not healthy there");
                let hint = format!(
                    "correct the source: the correction goes to {name} first, too; or approve it for the others as it is"
                );
                let wait = Wait { guard: Guard::RolloutHalted, message, hint, why: Some(why.clone()) };
                Some(Verdict::Wait(Some(name.clone()), wait))
            }
            Stage::Returned(failure) => Some(Self::taken_back(Some(name), failure)),
            Stage::Going if self.is_going(name, member) => {
                let message =
                    format!("{revision} goes to cluster {name} first, and is not known to be healthy there yet");
                let hint = format!("it follows by itself once {name} is healthy; or approve it as it is");
                Some(wait(Some(name), message, &hint))
            }
            // Two rounds that began at different times do not agree what time it is.
            Stage::Healthy if wave.soak.is_zero() => None,
            Stage::Healthy => {
                let end = member.since.checked_add(wave.soak).ok().filter(|end| *end > self.now)?;
                let soak = Period(wave.soak);
                let message =
                    format!("{revision} is healthy on cluster {name}, and stays there for {soak} first, until {end}");
                Some(wait(Some(name), message, "it follows by itself after that; or approve it now"))
            }
            Stage::Going => None,
        }
    }

    /// It has failed, on another cluster for which it waits or on its own, and is not there any more.
    fn taken_back(waits_for: Option<&String>, Failure { on, revision, why }: &Failure) -> Verdict {
        let message = format!("{revision} went to cluster {on}, was not healthy there, and was taken back");
        let hint = "correct the source; or approve it as it is".to_owned();
        Verdict::Wait(waits_for.cloned(), Wait { guard: Guard::RolloutHalted, message, hint, why: Some(why.clone()) })
    }

    fn outlook(&self, wave: &Wave, name: &str) -> Outlook {
        let Some(parts) = self.parts else { return Outlook::Passed };
        match parts.get(name) {
            // Whoever has chosen some clusters has chosen the first; an order that was set holds all the same.
            None if wave.is_canary => Outlook::Passed,
            None => Outlook::Open,
            Some(part) => self.outlook_of(part.as_ref()),
        }
    }

    fn outlook_of(&self, part: Option<&Part>) -> Outlook {
        match part {
            Some(Part::Absent) => Outlook::Absent,
            Some(Part::Looked { target, rolls, withheld, .. })
                if *target == self.target && !rolls.contains_key(self.unit()) =>
            {
                if withheld.contains(self.unit()) {
                    Outlook::Absent
                } else {
                    Outlook::Passed
                }
            }
            Some(Part::Looked { .. } | Part::Running) | None => Outlook::Open,
        }
    }

    fn unit(&self) -> &ObjectId {
        &self.record.unit
    }
}

fn not_there_yet(name: &String) -> Verdict {
    let message = format!("what replaces pods goes to cluster {name} first, and was not there yet");
    wait(Some(name), message, "it follows by itself once it is healthy there")
}

fn wait(on: Option<&String>, message: String, hint: &str) -> Verdict {
    Verdict::Wait(on.cloned(), Wait { guard: Guard::Rollout, message, hint: hint.to_owned(), why: None })
}
