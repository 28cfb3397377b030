//! Jobs, and when a `CronJob` makes them.

use serde_json::Value;

use super::Sheet;
use super::services::word;
use super::workloads::{containers, negative};

/// The words that stand for a schedule.
const WORDS: [&str; 7] = ["@annually", "@daily", "@hourly", "@midnight", "@monthly", "@weekly", "@yearly"];

/// The word before an interval.
const EVERY: &str = "@every ";

/// The numbers of minutes, hours, days, months and days of the week.
const BOUNDS: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];

/// Counts of a Job.
const COUNTS: [&str; 5] =
    ["activeDeadlineSeconds", "backoffLimit", "completions", "parallelism", "ttlSecondsAfterFinished"];

pub(super) fn check(sheet: &mut Sheet<'_>, path: &[&str], spec: &Value) {
    negative(sheet, (path, spec), &COUNTS);
    word(sheet, &[path, &["completionMode"]].concat(), &spec["completionMode"], &["Indexed", "NonIndexed"]);
    containers(sheet, &[path, &["template", "spec"]].concat(), &spec["template"]["spec"]);
}

pub(super) fn scheduled(sheet: &mut Sheet<'_>, spec: &Value) {
    let schedule = spec["schedule"].as_str().unwrap_or_default();
    if schedule.is_empty() {
        sheet.say(&["spec"], ("spec has no schedule".to_owned(), "write five fields, or a word such as @daily"));
    } else if let Some((message, hint)) = wrong_schedule(schedule) {
        sheet.say(&["spec", "schedule"], (format!("spec.schedule is {schedule:?}{message}"), hint));
    }
    word(sheet, &["spec", "concurrencyPolicy"], &spec["concurrencyPolicy"], &["Allow", "Forbid", "Replace"]);
    let counts = ["failedJobsHistoryLimit", "startingDeadlineSeconds", "successfulJobsHistoryLimit"];
    negative(sheet, (&["spec"], spec), &counts);
    check(sheet, &["spec", "jobTemplate", "spec"], &spec["jobTemplate"]["spec"]);
}

/// Says why a text is certainly no schedule. Ranges and intervals are left to the server.
fn wrong_schedule(schedule: &str) -> Option<(String, &'static str)> {
    if schedule.contains("TZ") {
        return Some((", with a time zone in it".to_owned(), "write the time zone in spec.timeZone"));
    }
    if schedule.starts_with('@') {
        let is_known = WORDS.contains(&schedule) || schedule.starts_with(EVERY);
        let message = ", which is no word for a schedule".to_owned();
        return (!is_known).then_some((message, "write @daily, @hourly and the like, or five fields"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != BOUNDS.len() {
        let message = format!(", which has not five fields but {}", fields.len());
        return Some((message, "write minute, hour, day, month and day of the week"));
    }
    let is_out = |(field, (least, most)): (&&str, &(u32, u32))| {
        let mut numbers = field.split(',').filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        numbers.any(|number| number.parse::<u32>().is_ok_and(|number| !(*least..=*most).contains(&number)))
    };
    let is_wrong = fields.iter().zip(&BOUNDS).any(is_out);
    let hint = "write minutes to 59, hours to 23, days from 1, months from 1 to 12, days of the week from 0 to 6";
    is_wrong.then_some((", with a number that is none there".to_owned(), hint))
}
