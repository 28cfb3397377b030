//! Slips of the pen in what documents say of themselves.
//!
//! Names that resemble each other are no slips where both exist, which the table of kinds says: a `TCPRoute` is not a
//! misspelt `TLSRoute`.

/// Returns what was probably meant by something said: the nearest that it is a slip for.
pub(crate) fn slip<'a>(said: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter().filter(|known| *known != said);
    let near = known.filter_map(|known| Some((slips(said, known)?, known)));
    near.min().map(|(_, known)| known)
}

/// Returns how many characters were dropped, doubled, swapped or mistaken, if it is no more than a slip.
///
/// One of three characters, and two of six, but never more: what differs in more is another word. Letters that are
/// only of the wrong case count as none.
fn slips(said: &str, meant: &str) -> Option<usize> {
    let (said, meant) = (said.to_lowercase(), meant.to_lowercase());
    let length = said.chars().count().min(meant.chars().count());
    // What is longer by more cannot be near, and need not be compared.
    if said.chars().count().abs_diff(meant.chars().count()) > 2 {
        return None;
    }
    let distance = strsim::damerau_levenshtein(&said, &meant);
    (distance <= (length / 3).min(2)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMED: [&str; 4] = ["Gateway", "GatewayClass", "ModelPool", "ChatModelService"];

    #[test]
    fn a_misspelt_kind_is_a_slip() {
        for (said, meant) in [
            ("Gatewya", "Gateway"),
            ("Gatway", "Gateway"),
            ("gateway", "Gateway"),
            ("Gateways", "Gateway"),
            ("GatewayClas", "GatewayClass"),
            ("Gatewayclass", "GatewayClass"),
            ("MdelPol", "ModelPool"),
            ("ChatModelServices", "ChatModelService"),
        ] {
            assert_eq!(slip(said, CLAIMED), Some(meant), "{said}");
        }
    }

    #[test]
    fn another_word_is_no_slip() {
        for said in ["Route", "ModelService", "Models", "Gate", "Ga", "", "Service", "Gateway"] {
            let others = CLAIMED.into_iter().filter(|known| *known != said);
            assert_eq!(slip(said, others), None, "{said}");
        }
        assert_eq!(slip("a", ["b"]), None);
        assert_eq!(slip("Grüße", ["Grüsse"]), None, "one letter of five for two others");
    }
}
