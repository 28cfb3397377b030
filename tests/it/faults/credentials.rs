//! Credentials that end while a round is under way.

use super::{Place, all_of};
use crate::cluster::proxy::{Answer, Seen, TOKEN};

/// The server takes the first token until the Service is written, and from then on the second one only.
#[test]
fn a_token_that_ends_in_the_middle_of_a_round_is_replaced() {
    let place = Place::new("");
    place.site.want(&["edge"], 80);
    let is_late = |seen: &Seen| seen.authorization.ends_with(TOKEN) && seen.is("PATCH", "/services/");
    place.proxy.answer(1, |seen| seen.is("PATCH", "/configmaps/"), Answer::After(place.proxy.writer("second")));
    place.proxy.answer(1, is_late, Answer::Refused(401, "Unauthorized"));
    place.sync().exits(0).says("4 objects created");
    let objects = all_of("edge");
    place.did("PATCH", &objects.each_ref().map(String::as_str));
    let of_second = place.proxy.seen().iter().filter(|seen| seen.authorization == "Bearer second").count();
    assert!(of_second >= 3, "Service, Deployment and inventory");
    place.is_settled("edge");
}

#[test]
fn a_token_that_ends_and_is_not_replaced_stops_the_round_without_loss() {
    let place = Place::new("");
    place.site.want(&["edge"], 80);
    place.proxy.answer(usize::MAX / 4, |seen| seen.is("PATCH", "/services/"), Answer::Refused(401, "Unauthorized"));
    place.sync().exits(1).says("FAILED: Unauthorized").says("2 objects created");
    assert_eq!(place.site.left_of("edge").len(), 2);
    place.proxy.recovers();
    place.sync().exits(0).says("2 objects created");
    place.is_settled("edge");
}
