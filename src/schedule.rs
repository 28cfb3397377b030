//! When the next round of a sync is.
//!
//! A schedule is an interval or a cron pattern. An interval corrects drift: its rounds start by themselves, and sooner
//! when the source has a new revision. A cron pattern is a window: its rounds start at its times, or when a person asks,
//! and at no other time; a new revision waits for the next window.
//!
//! Nothing here tells the time, draws a random number or waits: [`timer::Timer`] computes from the time that it is
//! given, and all spreading is drawn from the name of the sync, so that the same history gives the same times.
//! [`drive::drive`] is the one function that waits.

pub(crate) mod drive;
pub(crate) mod enrolled;
pub(crate) mod jitter;
pub(crate) mod timer;

use std::time::Duration;

use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use gatewright_engine::check::suggest;
use jiff::tz::{TimeZone, db};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::basics::duration::Period;
use crate::schedule::jitter::Jitter;

/// The interval of a sync that says nothing.
pub(crate) const DEFAULT_INTERVAL: Duration = Duration::from_mins(5);

/// The shortest interval: below it a fleet is polled for nothing, because new revisions start rounds by themselves.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(10);

/// The longest delay of a cron round after its time, unless the schedule says otherwise.
pub(crate) const DEFAULT_WINDOW: Duration = Duration::from_hours(1);

/// The time from one comparison of everything to the next, where a sync does not say it.
pub(crate) const DEFAULT_FULL: Duration = Duration::from_hours(24);

/// The least time from one comparison of everything to the next.
pub(crate) const SHORTEST_FULL: Duration = Duration::from_mins(1);

/// The spreading of an interval that says nothing, in percent of it.
const DEFAULT_JITTER: Jitter = Jitter::Percent(10);

/// The schedule of a sync as the config file writes it: an interval or a cron pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Schedule")]
pub struct Settings {
    /// Time from the end of one round to the start of the next; 5m if there is no cron pattern either, at least 10s.
    pub interval: Option<Period>,
    /// Five fields (minute, hour, day of month, month, day of week) or a name such as @daily. Only these times and
    /// explicit requests start rounds: a new revision waits for the next one.
    pub cron: Option<String>,
    /// The time zone in which the cron pattern is read, such as Europe/Berlin; UTC if absent, whatever the host's is.
    pub timezone: Option<String>,
    /// The longest delay of a round after a time of the cron pattern, because the host was asleep or the last attempt
    /// failed; 1h if absent. A time that was missed for longer has no round.
    pub window: Option<Period>,
    /// The spreading of rounds. For an interval, around it: a share such as 10% (the default) or a time, up to half of
    /// it. For a cron pattern, a time by which rounds start later, shorter than the window; nothing if absent.
    pub jitter: Option<Jitter>,
    /// The time from one round that compares every object, and not only what has changed since the last round, to the
    /// next; 24h if absent, at least 1m. Clusters are spread by a twenty-fourth of it around it, so that a fleet does
    /// not do it all at once.
    pub full: Option<Period>,
}

/// A schedule that is known to make sense.
#[derive(Clone, Debug)]
pub(crate) struct Schedule(Rule);

#[derive(Clone, Debug)]
enum Rule {
    Interval { every: Duration, jitter: Duration },
    Cron(Box<Calendar>),
}

/// The times of a cron pattern.
#[derive(Clone, Debug)]
struct Calendar {
    pattern: Cron,
    zone: TimeZone,
    jitter: Duration,
    window: Duration,
}

/// The reason why settings are no schedule.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScheduleError {
    #[error("a schedule has an interval or a cron pattern, not both")]
    Both,
    #[error("{0} belongs to a cron pattern, but the schedule is an interval")]
    WithoutCron(&'static str),
    #[error("the interval {0} is shorter than {shortest}", shortest = Period(SHORTEST_INTERVAL))]
    TooShort(Period),
    #[error("full: {0} is shorter than {shortest}", shortest = Period(SHORTEST_FULL))]
    TooFull(Period),
    #[error("the jitter {jitter} is more than half of the interval {interval}")]
    JitterTooLong { jitter: Jitter, interval: Period },
    #[error("the jitter of a cron pattern is a time, not {0}")]
    Share(Jitter),
    #[error("the jitter {jitter} is not shorter than the window {window}")]
    OutOfWindow { jitter: Period, window: Period },
    #[error("the cron pattern {pattern:?} has {fields} fields, not 5")]
    Fields { pattern: String, fields: usize },
    #[error("there is no cron pattern named {0:?}")]
    Name(String),
    #[error("cannot read the cron pattern {pattern:?}")]
    Pattern { pattern: String, source: CronError },
    #[error("the cron pattern {0:?} never matches")]
    Never(String),
    #[error("there is no time zone {name:?}")]
    Zone { name: String, near: Option<String> },
}

impl ScheduleError {
    /// Returns what to do next, a sentence of its own.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Fields { .. } | Self::Pattern { .. } => Some(
                "write minute, hour, day of month, month and day of week, as in \"0 2 * * *\"; \
                 for rounds every few minutes write an interval"
                    .to_owned(),
            ),
            Self::Name(_) => Some(
                "write @hourly, @daily, @weekly, @monthly or @yearly; for rounds every few minutes write an interval"
                    .to_owned(),
            ),
            Self::Zone { near: Some(near), .. } => Some(format!("did you mean {near:?}?")),
            Self::Zone { near: None, .. } if db().available().next().is_none() => {
                Some("the host has no time zone database: install tzdata".to_owned())
            }
            Self::Zone { near: None, .. } => Some("write a name such as Europe/Berlin".to_owned()),
            Self::Share(_) => Some("write a time, as in jitter: 5m".to_owned()),
            Self::Both
            | Self::WithoutCron(_)
            | Self::TooShort(_)
            | Self::TooFull(_)
            | Self::JitterTooLong { .. }
            | Self::OutOfWindow { .. }
            | Self::Never(_) => None,
        }
    }
}

impl Settings {
    /// Returns the time from one comparison of every object to the next.
    pub fn full(&self) -> Duration {
        self.full.map_or(DEFAULT_FULL, |full| full.0)
    }
}

impl Schedule {
    /// Checks settings; whatever is wrong with a schedule is found here, not at night.
    pub(crate) fn parse(settings: &Settings) -> Result<Self, ScheduleError> {
        if let Some(full) = settings.full.filter(|full| full.0 < SHORTEST_FULL) {
            return Err(ScheduleError::TooFull(full));
        }
        match (&settings.interval, &settings.cron) {
            (Some(_), Some(_)) => Err(ScheduleError::Both),
            (interval, None) => interval_rule(settings, interval.unwrap_or(Period(DEFAULT_INTERVAL))).map(Self),
            (None, Some(pattern)) => cron_rule(settings, pattern).map(Self),
        }
    }
}

/// The number of intervals without a round that are too many.
const MISSED: u32 = 3;

impl Schedule {
    /// Returns the time by which there should be another round after one: three intervals after it ended, or the end of the
    /// next window of a cron pattern.
    pub(crate) fn due(&self, started: Timestamp, ended: Timestamp) -> Option<Timestamp> {
        let (from, time) = match &self.0 {
            Rule::Interval { every, jitter } => (ended, *every * MISSED + *jitter),
            Rule::Cron(calendar) => (calendar.after(started)?, calendar.window),
        };
        from.checked_add(SignedDuration::try_from(time).ok()?).ok()
    }
}

fn interval_rule(settings: &Settings, interval: Period) -> Result<Rule, ScheduleError> {
    if settings.timezone.is_some() {
        return Err(ScheduleError::WithoutCron("timezone"));
    }
    if settings.window.is_some() {
        return Err(ScheduleError::WithoutCron("window"));
    }
    if interval.0 < SHORTEST_INTERVAL {
        return Err(ScheduleError::TooShort(interval));
    }
    let written = settings.jitter.unwrap_or(DEFAULT_JITTER);
    let jitter = match written {
        Jitter::Percent(share) => interval.0 / 100 * u32::from(share),
        Jitter::Span(span) => span.0,
    };
    if jitter > interval.0 / 2 {
        return Err(ScheduleError::JitterTooLong { jitter: written, interval });
    }
    Ok(Rule::Interval { every: interval.0, jitter })
}

fn cron_rule(settings: &Settings, pattern: &str) -> Result<Rule, ScheduleError> {
    let window = settings.window.unwrap_or(Period(DEFAULT_WINDOW));
    let jitter = match settings.jitter {
        None => Period(Duration::ZERO),
        Some(Jitter::Span(span)) => span,
        Some(share @ Jitter::Percent(_)) => return Err(ScheduleError::Share(share)),
    };
    if jitter >= window {
        return Err(ScheduleError::OutOfWindow { jitter, window });
    }
    let zone = match &settings.timezone {
        None => TimeZone::UTC,
        Some(name) => time_zone(name)?,
    };
    let calendar = Calendar { pattern: cron(pattern)?, zone, jitter: jitter.0, window: window.0 };
    // Patterns repeat with the calendar, so that a pattern without a time after the epoch has none at all.
    if calendar.after(Timestamp::UNIX_EPOCH).is_none() {
        return Err(ScheduleError::Never(pattern.to_owned()));
    }
    Ok(Rule::Cron(Box::new(calendar)))
}

fn cron(pattern: &str) -> Result<Cron, ScheduleError> {
    let fields = pattern.split_whitespace().count();
    let name = pattern.trim_start().starts_with('@');
    if fields != 5 && !name {
        return Err(ScheduleError::Fields { pattern: pattern.to_owned(), fields });
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(pattern).map_err(|source| {
        let pattern = pattern.to_owned();
        if name { ScheduleError::Name(pattern) } else { ScheduleError::Pattern { pattern, source } }
    })
}

fn time_zone(name: &str) -> Result<TimeZone, ScheduleError> {
    db().get(name).map_err(|_| {
        let names: Vec<String> = db().available().map(|known| known.to_string()).collect();
        let names = names.iter().map(String::as_str);
        let city = |known: &&str| known.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
        let near = names.clone().find(city).or_else(|| suggest(name, names)).map(str::to_owned);
        ScheduleError::Zone { name: name.to_owned(), near }
    })
}

impl Calendar {
    /// Returns the first time of the pattern after a moment.
    ///
    /// There is none at the end of time, and for a few hours before a zone that skips a whole day, as Samoa did in 2011.
    fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let found = self.pattern.find_next_occurrence(&moment.to_zoned(self.zone.clone()), false);
        found.ok().map(|time| time.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Checks what is wrong with settings, or what they are.
    fn check(settings: Value, expected: &str) {
        let settings: Settings = serde_json::from_value(settings).expect("settings of a test have the right shape");
        let found = match Schedule::parse(&settings) {
            Ok(Schedule(Rule::Interval { every, jitter })) => format!("every {} ± {}", Period(every), Period(jitter)),
            Ok(Schedule(Rule::Cron(calendar))) => {
                let zone = calendar.zone.iana_name().unwrap_or("?");
                format!("{zone} + {} within {}", Period(calendar.jitter), Period(calendar.window))
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_interval_has_sensible_defaults_and_bounds() {
        check(json!({}), "every 5m ± 30s");
        check(json!({"interval": "1h"}), "every 1h ± 6m");
        check(json!({"interval": "1h", "jitter": "90s"}), "every 1h ± 1m30s");
        check(json!({"interval": "10s", "jitter": "0%"}), "every 10s ± 0s");
        check(json!({"full": "1m"}), "every 5m ± 30s");
        check(json!({"full": "59s"}), "full: 59s is shorter than 1m");
        check(json!({"cron": "@daily", "full": "59s"}), "full: 59s is shorter than 1m");
        check(json!({"interval": "9s"}), "the interval 9s is shorter than 10s");
        check(json!({"interval": "1m", "jitter": "31s"}), "the jitter 31s is more than half of the interval 1m");
        check(json!({"timezone": "UTC"}), "timezone belongs to a cron pattern, but the schedule is an interval");
        check(json!({"window": "1h"}), "window belongs to a cron pattern, but the schedule is an interval");
    }

    #[test]
    fn a_cron_pattern_is_checked_when_it_is_loaded() {
        check(json!({"cron": "0 2 * * *"}), "UTC + 0s within 1h");
        check(json!({"cron": "@daily", "timezone": "europe/berlin", "jitter": "5m"}), "Europe/Berlin + 5m within 1h");
        check(json!({"cron": "0 2 29 2 *", "window": "2h"}), "UTC + 0s within 2h");
        check(json!({"cron": "0 2 * * *", "interval": "5m"}), "a schedule has an interval or a cron pattern, not both");
        check(json!({"cron": "0 2 * * *", "jitter": "10%"}), "the jitter of a cron pattern is a time, not 10%");
        check(json!({"cron": "0 2 * * *", "jitter": "1h"}), "the jitter 1h is not shorter than the window 1h");
        check(json!({"cron": "0 0 2 * * *"}), "the cron pattern \"0 0 2 * * *\" has 6 fields, not 5");
        check(json!({"cron": "0 2 * *"}), "the cron pattern \"0 2 * *\" has 4 fields, not 5");
        check(json!({"cron": "0 2 * * * 2030"}), "the cron pattern \"0 2 * * * 2030\" has 6 fields, not 5");
        check(json!({"cron": "0 25 * * *"}), "cannot read the cron pattern \"0 25 * * *\"");
        check(json!({"cron": "@every 5m"}), "there is no cron pattern named \"@every 5m\"");
        check(json!({"cron": ""}), "the cron pattern \"\" has 0 fields, not 5");
        check(json!({"cron": "0 2 30 2 *"}), "the cron pattern \"0 2 30 2 *\" never matches");
    }

    #[test]
    fn a_round_that_is_missing_is_noticed() {
        let check = |settings: Value, ended: &str, expected: &str| {
            let settings: Settings = serde_json::from_value(settings).expect("settings of a test have the right shape");
            let at = |text: &str| text.parse::<Timestamp>().expect("it is a time");
            let schedule = Schedule::parse(&settings).expect("it is a schedule");
            assert_eq!(schedule.due(at("2026-11-20T02:00:07Z"), at(ended)), Some(at(expected)));
        };
        check(json!({"interval": "10m", "jitter": "1m"}), "2026-11-20T02:05:00Z", "2026-11-20T02:36:00Z");
        check(json!({"cron": "0 2 * * *"}), "2026-11-20T02:05:00Z", "2026-11-21T03:00:00Z");
        check(json!({"cron": "0 2 * * *", "window": "4h"}), "2026-11-20T02:05:00Z", "2026-11-21T06:00:00Z");
    }

    #[test]
    fn an_unknown_time_zone_is_met_with_the_one_that_was_meant() {
        for (written, meant) in [("Berlin", "Europe/Berlin"), ("Europe/Pariss", "Europe/Paris"), ("Middle/Earth", "")] {
            let settings =
                Settings { timezone: Some(written.to_owned()), cron: Some("@daily".to_owned()), ..Settings::default() };
            let hint = Schedule::parse(&settings).expect_err("there is no such zone").hint();
            let expected = if meant.is_empty() {
                "write a name such as Europe/Berlin".to_owned()
            } else {
                format!("did you mean {meant:?}?")
            };
            assert_eq!(hint, Some(expected), "{written:?}");
        }
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        let error = serde_json::from_value::<Settings>(json!({"intervall": "5m"})).expect_err("that is a slip");
        assert!(error.to_string().contains("unknown field `intervall`"), "{error}");
    }
}
