//! Tokens: what a person types to say "yes, exactly these".
//!
//! A token is a digest of who asks, where, which guard and every step that it holds, so that it cannot mean anything
//! else: one deletion more, another object of the same name, or another wanted state have another token. It is short,
//! because people type it, and its alphabet has nothing that is taken for something else. It is no secret: what it
//! permits was printed beside it, and recording it takes write access to the state of the installation.

use serde::{Deserialize, Serialize};

use super::Hold;
use crate::mask::Masker;
use crate::object::{Object, ObjectId};
use crate::plan::policies::Policies;
use crate::plan::{Action, Observed, Step};
use crate::text::digest;

/// Digits and letters without `0`, `1`, `i`, `l` and `o`.
const ALPHABET: &[u8; 31] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// Characters of a token: 59 bits.
const LENGTH: usize = 12;

/// A dash stands between so many.
const GROUP: usize = 4;

/// A step that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldStep {
    /// The object.
    pub id: ObjectId,
    /// The word for what would be done with it.
    pub action: String,
    /// The uid of the live object that it would be done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The digest of what is wanted. It is part of the token and of nothing that is printed.
    #[serde(skip)]
    pub wanted: Option<String>,
}

impl HeldStep {
    /// Describes a step.
    pub fn of(step: &Step, observed: &Observed, masker: &Masker) -> Self {
        let live = || observed.live.get(&step.id).map(|live| live.uid.clone());
        let uid = step.action.over().map(|over| over.uid.clone()).or_else(live);
        let wanted = step.object.as_ref().map(|object| wanted_digest(object, masker));
        let wanted = match step.action {
            Action::Adopt(_) => wanted.map(|wanted| with_what_is_there(&wanted, step)),
            _ => wanted,
        };
        Self { id: step.id.clone(), action: step.action.word().to_owned(), uid, wanted }
    }
}

/// Returns the digest of a wanted object and of all that would be overwritten by it: whoever lets the work of somebody else be
/// taken over has seen what it was, and agrees to nothing that was written after that.
fn with_what_is_there(wanted: &str, step: &Step) -> String {
    let there: Vec<_> = step.differences.iter().map(|difference| (&difference.path, &difference.before)).collect();
    digest(format!("{wanted}{}", serde_json::to_string(&there).unwrap_or_default()).as_bytes())
}

/// Returns the digest of a wanted object, marks included. The marks name the installation, so that the digests of two
/// installations say nothing about each other; in the place of secrets are their fingerprints.
pub(crate) fn wanted_digest(object: &Object, masker: &Masker) -> String {
    masker.digest(object)
}

/// Returns the token that lifts a guard for exactly the steps of a hold, of this sync on this cluster.
pub(in crate::plan) fn token(hold: &Hold, observed: &Observed, policies: &Policies) -> String {
    let marker = &policies.marker;
    let lines = lines(hold, |step| step.uid.as_ref());
    short(&(&marker.installation, &marker.sync, &observed.cluster, hold.guard.to_string(), lines))
}

/// Returns the token for the same steps of this sync on whichever clusters they wait: it knows neither the cluster nor
/// uids. It is a name for the tokens of those clusters, and lifts nothing itself.
pub(in crate::plan) fn fleet_token(hold: &Hold, policies: &Policies) -> String {
    let marker = &policies.marker;
    let lines = lines(hold, |_| None);
    short(&("fleet", &marker.installation, &marker.sync, hold.guard.to_string(), &hold.unit, lines))
}

/// A step, as tokens know it: object, action, uid and the digest of what is wanted.
type Line<'a> = (String, &'a String, Option<&'a String>, Option<&'a String>);

fn lines(hold: &Hold, uid: fn(&HeldStep) -> Option<&String>) -> Vec<Line<'_>> {
    let steps = hold.steps.iter();
    let mut lines: Vec<Line<'_>> =
        steps.map(|step| (step.id.key(), &step.action, uid(step), step.wanted.as_ref())).collect();
    lines.sort();
    lines
}

/// Makes a token of what it stands for.
///
/// # Panics
/// Never: steps are plain data.
fn short(all: &impl Serialize) -> String {
    let digest = digest(&serde_json::to_vec(all).expect("steps are plain data"));
    let mut number = u128::from_str_radix(&digest[..32], 16).expect("a digest is written in hexadecimal digits");
    let mut text = Vec::new();
    for _ in 0..LENGTH {
        text.push(ALPHABET[(number % 31) as usize]);
        number /= 31;
    }
    grouped(&text)
}

fn grouped(text: &[u8]) -> String {
    text.chunks(GROUP).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-")
}

/// Brings what a person has typed into the form of a token; `None` if it cannot be one.
pub fn parse(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect::<String>().to_lowercase();
    let is_token = plain.len() == LENGTH && plain.bytes().all(|byte| ALPHABET.contains(&byte));
    is_token.then(|| grouped(plain.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_need_not_have_dashes() {
        assert_eq!(parse("k7wm3xq9hd2t").as_deref(), Some("k7wm-3xq9-hd2t"));
        assert_eq!(parse(" K7WM-3xq9-HD2T ").as_deref(), Some("k7wm-3xq9-hd2t"));
        for text in ["", "k7wm", "k7wm-3xq9-hd2", "k7wm-3xq9-hd2l", "../../../../x", "k7wm-3xq9-hd2tt"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
