//! Does a live value say what is wanted?

use serde_json::{Number, Value};

use crate::quantity;
use crate::quantity::places::Place;

/// Tells whether a live value says what is wanted: an amount may be written in another way, and a server fills in what a
/// list or mapping as a whole leaves out. Whether something is an amount, its place says.
pub(in crate::plan) fn is_same(wanted: &Value, live: &Value, at: Place) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted.iter().all(|(key, wanted)| live.get(key).is_some_and(|live| is_same(wanted, live, at.field(key))))
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len() && wanted.iter().zip(live).all(|(wanted, live)| is_same(wanted, live, at))
        }
        (wanted, live) if wanted == live => true,
        (Value::Number(wanted), Value::Number(live)) => is_same_number(wanted, live),
        (wanted, live) => at.is_amount() && quantity::is_same(wanted, live),
    }
}

/// A server may write `1.0` as `1`; large numbers are compared digit by digit.
fn is_same_number(wanted: &Number, live: &Number) -> bool {
    let is_float = wanted.is_f64() || live.is_f64();
    is_float && wanted.as_f64().map(f64::to_bits) == live.as_f64().map(f64::to_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
    fn check(path: &[&str], wanted: Value, live: Value, expected: bool) {
        let place = path.iter().fold(Place::root("apps", "Deployment", false), |place, field| place.field(field));
        assert_eq!(is_same(&wanted, &live, place), expected, "{wanted} and {live} at {path:?}");
    }

    #[test]
    fn equal_amounts_are_the_same_only_where_amounts_stand() {
        let limits = ["spec", "template", "spec", "containers", "resources", "limits", "cpu"];
        check(&limits, json!("1.1"), json!("1100m"), true);
        check(&limits, json!(1), json!("1000m"), true);
        check(&limits, json!("1.1"), json!("1.2"), false);
        let label = ["spec", "template", "metadata", "labels", "version"];
        check(&label, json!("1.1"), json!("1.10"), false);
        check(&label, json!("0e12345"), json!("0e99999"), false);
        check(&["spec", "replicas"], json!(1), json!(1.0), true);
        check(&["spec", "replicas"], json!(1), json!("1"), false);
        check(&["spec", "big"], json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), false);
        let container = |cpu: &str, tag: &str| json!([{"resources": {"limits": {"cpu": cpu}}, "image": tag}]);
        check(&limits[..4], container("1000m", "1"), container("1", "1"), true);
        check(&limits[..4], container("1", "1.0"), container("1", "1.00"), false);
    }
}
