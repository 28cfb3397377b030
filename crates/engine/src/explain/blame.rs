//! The one input that is to be named for a difference, of all that have a say in the field.

use serde_json::Value;

use super::vary::text;
use super::watched::position;
use super::{By, Effect, Said};
use crate::merge::origin::LayerName;
use crate::problem::Place;

/// An input that has a say in a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// Its effect on the field.
    pub effect: Effect,
    /// The statement of the input.
    pub said: Said,
    /// On so many fields of the object it bears.
    pub(super) breadth: usize,
}

/// Returns where the input stands that accounts for a difference: of what sets a part of a text, that of the part that
/// differs; what somebody has written before what a pack has built in. `None` where that has no place, because the place
/// of another input would be a wrong one.
pub fn place<'a>(origins: &'a [Origin], before: Option<&Value>, after: &Value) -> Option<&'a Place> {
    let effect = origins.iter().map(|origin| origin.effect).min()?;
    let direct: Vec<&Origin> = origins.iter().filter(|origin| origin.effect == effect).collect();
    let differs = |origin: &&&Origin| before.is_none_or(|before| is_in_difference(&origin.said.value, before, after));
    let differing: Vec<&Origin> = direct.iter().filter(differs).copied().collect();
    let candidates = if differing.is_empty() { direct } else { differing };
    let best = candidates.into_iter().min_by_key(|origin| (is_built_in(&origin.said), origin.breadth))?;
    best.said.place.as_ref()
}

fn is_built_in(said: &Said) -> bool {
    said.by == By::Layer(LayerName::Builtin)
}

/// Tells whether a part of a text is what differs from another text; what is no part of a text differs as a whole.
fn is_in_difference(part: &Value, before: &Value, after: &Value) -> bool {
    let (Value::String(before), Value::String(whole)) = (before, after) else { return true };
    let Some(part) = text(part).filter(|part| whole.contains(part.as_str())) else { return true };
    let alike = before.bytes().zip(whole.bytes()).take_while(|(old, new)| old == new).count();
    let rest = before.len().min(whole.len()) - alike;
    let tail = before.bytes().rev().zip(whole.bytes().rev()).take_while(|(old, new)| old == new).count().min(rest);
    let (start, end) = (position(after, &Value::from(part.as_str())), whole.len() - tail);
    start <= end && start + part.len() > alike
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn origin(layer: LayerName, line: u32, value: Value) -> Origin {
        let place = (line > 0).then(|| Place { line, ..Place::file("x.yaml") });
        let said = Said { by: By::Layer(layer), place, path: String::new(), value, values: Vec::new() };
        Origin { effect: Effect::Sets, said, breadth: 1 }
    }

    fn line(origins: &[Origin], before: &str, after: &str) -> Option<u32> {
        place(origins, Some(&json!(before)), &json!(after)).map(|place| place.line)
    }

    #[test]
    fn the_part_that_differs_is_named() {
        let image = [
            origin(LayerName::Builtin, 1, json!("ghcr.io/acme")),
            origin(LayerName::Builtin, 2, json!("proxy")),
            origin(LayerName::Overlay, 3, json!("v2.1")),
        ];
        assert_eq!(line(&image, "ghcr.io/acme/proxy:v2.0", "ghcr.io/acme/proxy:v2.1"), Some(3));
        assert_eq!(line(&image, "ghcr.io/acme/old:v2.1", "ghcr.io/acme/proxy:v2.1"), Some(2));
        assert_eq!(line(&image, "quay.io/me/proxy:v2.1", "ghcr.io/acme/proxy:v2.1"), Some(1));
        assert_eq!(line(&image, "other", "ghcr.io/acme/proxy:v2.1"), Some(3), "who has written it goes first");
        let mirror = [origin(LayerName::Overlay, 1, json!("mirror")), origin(LayerName::Gateway, 2, json!("v2"))];
        assert_eq!(line(&mirror, "mirror/proxy:v1", "mirror/proxy:v2"), Some(2));
        assert_eq!(line(&mirror, "mine/proxy:v2", "mirror/proxy:v2"), Some(1));
    }

    #[test]
    fn what_has_no_place_gets_none_of_another() {
        let image = [origin(LayerName::Builtin, 1, json!("proxy")), origin(LayerName::Settings, 0, json!("v2"))];
        assert_eq!(line(&image, "proxy:v1", "proxy:v2"), None);
        assert_eq!(place(&[], None, &json!(1)), None);
    }
}
