//! The gates of a rollout: what has changed on a cluster is healthy there once they agree, too.

use std::time::Duration;

use form_urlencoded::Serializer;
use gatewright_engine::error::Chain;
use gatewright_engine::object::ObjectId;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::basics::duration::Period;
use crate::basics::redact::excerpt;
use crate::config::gates::{Gate, OnCluster, Query};
use crate::reconcile::model::RoundSettings;
use crate::reconcile::phase::Phase;
use crate::report::{ClusterReport, UnitState};
use crate::webhooks::connect::ask;

/// The first pause between two looks; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The end of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// All agree, for as long as they have to.
    Agreed,
    /// One does not, and time is up.
    Refused(String),
    /// Nobody knows yet.
    Open(String),
}

/// Asks the gates about units that are healthy with a change that is not yet known to be good. Those of which a gate says
/// no are not healthy.
pub(super) async fn judge(settings: &RoundSettings, report: &mut ClusterReport) {
    let Some(turn) = &settings.turn else { return };
    let (gates, units) = match turn.gated(report) {
        Ok(asked) => asked,
        Err(error) => {
            let why = format!("nobody knows how far the rollout is: {}", Chain(&error));
            report.units.iter_mut().for_each(|unit| unit.unawaited = Some(why.clone()));
            return;
        }
    };
    let Some(longest) =
        units.iter().map(|(_, has_failed)| if *has_failed { Duration::ZERO } else { patience(settings) }).max()
    else {
        return;
    };
    settings.teller.tell(Phase::Gates);
    let answer = asked(gates, longest, settings).await;
    for (unit, _) in units {
        let of_unit = |unit: &ObjectId| report.units.iter().position(|it| it.unit == *unit);
        let Some(unit) = of_unit(&unit).and_then(|at| report.units.get_mut(at)) else { continue };
        match &answer {
            Answer::Agreed => {}
            Answer::Refused(why) => (unit.state, unit.message) = (UnitState::Unhealthy, Some(why.clone())),
            Answer::Open(why) => unit.unawaited = Some(why.clone()),
        }
    }
}

/// Returns for how long a gate is asked that does not agree.
fn patience(settings: &RoundSettings) -> Duration {
    settings.wait_policy.map(|policy| policy.timeout).unwrap_or_default()
}

/// Asks until all have agreed for as long as they have to, or nobody waits any longer.
async fn asked(gates: &[OnCluster], patience: Duration, settings: &RoundSettings) -> Answer {
    let holds_for = |gate: &OnCluster| gate.as_ref().map(|gate| gate.holds_for).unwrap_or_default();
    let longest = gates.iter().map(holds_for).max().unwrap_or_default();
    let (begun, mut agreed_since, mut pause) = (Instant::now(), None, FIRST_PAUSE);
    loop {
        let objection = tokio::select! {
            biased;
            () = settings.stop.cancelled() => return Answer::Open("the process ended before its gates agreed".to_owned()),
            objection = objection(gates) => objection,
        };
        let now = Instant::now();
        match objection {
            Some(why) if now.duration_since(begun) >= patience => return Answer::Refused(why),
            Some(_) => agreed_since = None,
            None if now.duration_since(*agreed_since.get_or_insert(now)) >= longest => return Answer::Agreed,
            None if settings.wait_policy.is_none() => {
                let why = format!("its gates are to agree for {}, and this round waits for nothing", Period(longest));
                return Answer::Open(why);
            }
            None => {}
        }
        if settings.suspension.look() {
            return Answer::Open("the sync was suspended before its gates agreed".to_owned());
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = settings.stop.cancelled() => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Asks all of them once; returns what the first says that does not agree.
async fn objection(gates: &[OnCluster]) -> Option<String> {
    for gate in gates {
        let why = match gate {
            Ok(gate) => answer(gate).await.err().map(|why| format!("gate {}: {why}", gate.name)),
            Err(why) => Some(why.clone()),
        };
        if why.is_some() {
            return why;
        }
    }
    None
}

async fn answer(gate: &Gate) -> Result<(), String> {
    let form =
        gate.query.as_ref().map(|query| Serializer::new(String::new()).append_pair("query", &query.query).finish());
    let (status, content) = ask(&gate.at, form).await?;
    match &gate.query {
        Some(_) if status.is_server_error() => Err(format!("it answers {status}")),
        Some(query) => {
            judged(query, &content).unwrap_or_else(|| Err(format!("it answers {status}, and not as Prometheus does")))
        }
        None if status.is_success() => Ok(()),
        None => Err(format!("it answers {status}")),
    }
}

/// An answer of Prometheus: <https://prometheus.io/docs/prometheus/latest/querying/api/>.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Reply {
    Success { data: Data },
    Error { error: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

#[derive(Deserialize)]
struct Sample {
    value: (f64, String),
}

impl Data {
    /// Returns the numbers in it, as they are written; `None` if there are none in this type of result.
    fn numbers(self) -> Option<serde_json::Result<Vec<String>>> {
        let of = |samples: Vec<Sample>| samples.into_iter().map(|sample| sample.value.1).collect();
        match self.result_type.as_str() {
            "vector" => Some(serde_json::from_value(self.result).map(of)),
            "scalar" => Some(serde_json::from_value(self.result).map(|(_, number): (f64, String)| vec![number])),
            _ => None,
        }
    }
}

/// Judges an answer; `None` if it is none of Prometheus.
fn judged(query: &Query, content: &[u8]) -> Option<Result<(), String>> {
    let data = match serde_json::from_slice(content).ok()? {
        Reply::Error { error } => return Some(Err(format!("the query fails: {}", excerpt(&error)))),
        Reply::Success { data } => data,
    };
    let Some(numbers) = data.numbers() else {
        return Some(Err("the query returns neither a vector nor a number".to_owned()));
    };
    let numbers = numbers.ok()?;
    // Whether nothing is good or bad depends on the query.
    if numbers.is_empty() {
        return Some(Err("the query returns nothing; `or vector(0)` in it says what that means".to_owned()));
    }
    let numbers: Option<Vec<f64>> = numbers.iter().map(|number| number.parse().ok()).collect();
    Some(numbers?.into_iter().find_map(|number| query.objects(number)).map_or(Ok(()), Err))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_judged_by_all_its_numbers() {
        let query = Query { query: "up".to_owned(), min: Some(0.0), max: Some(1.0) };
        let check = |answer: &str| judged(&query, answer.as_bytes()).map(|it| it.err().unwrap_or_default());
        let good = |data: &str| check(&format!("{{\"status\":\"success\",\"data\":{data}}}"));
        let vector = |values: &[&str]| {
            let samples: Vec<String> =
                values.iter().map(|value| format!("{{\"metric\":{{}},\"value\":[1.5,\"{value}\"]}}")).collect();
            good(&format!("{{\"resultType\":\"vector\",\"result\":[{}]}}", samples.join(",")))
        };
        assert_eq!(vector(&["0.5", "1"]).as_deref(), Some(""));
        assert_eq!(vector(&["0.5", "1.5", "1"]).as_deref(), Some("1.5 is more than 1"));
        assert_eq!(vector(&["NaN"]).as_deref(), Some("the query returns no number (NaN)"));
        assert_eq!(vector(&["+Inf"]).as_deref(), Some("inf is more than 1"));
        assert!(vector(&[]).is_some_and(|why| why.starts_with("the query returns nothing")));
        assert_eq!(vector(&["many"]), None);
        assert_eq!(good(r#"{"resultType":"scalar","result":[1,"-1"]}"#).as_deref(), Some("-1 is less than 0"));
        assert!(good(r#"{"resultType":"matrix","result":[]}"#).is_some_and(|why| why.contains("neither a vector")));
        let failed = check(r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#);
        assert_eq!(failed.as_deref(), Some("the query fails: parse error"));
        for other in ["", "OK", "{}", r#"{"status":"success"}"#, "[]"] {
            assert_eq!(check(other), None, "{other}");
        }
    }
}
