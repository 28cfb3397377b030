//! The rollouts that are under way, for people: units of which the same is true are one.

use std::collections::BTreeMap;

use gatewright_engine::object::ObjectId;
use jiff::Timestamp;

use super::record::{Ledger, Member, Record, Stage};

/// The progress of the same change of some units.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Progress<'a> {
    /// The revision.
    pub revision: &'a str,
    /// When it began.
    pub since: Timestamp,
    /// The clusters that have it, with the stage that it has reached there.
    pub members: BTreeMap<&'a String, &'a Stage>,
    /// The clusters that wait for it.
    pub waiting: Vec<&'a String>,
    /// The units.
    pub units: Vec<&'a ObjectId>,
}

/// Returns those of a sync that are not over.
pub(crate) fn open(ledger: &Ledger) -> Vec<Progress<'_>> {
    let mut groups: Vec<Progress<'_>> = Vec::new();
    for record in ledger.units.iter().filter(|record| record.is_open()) {
        let mut progress = Progress::of(record);
        let is_same = |known: &&mut Progress<'_>| {
            (known.revision, known.since) == (progress.revision, progress.since)
                && (&known.members, &known.waiting) == (&progress.members, &progress.waiting)
        };
        match groups.iter_mut().find(is_same) {
            Some(known) => known.units.append(&mut progress.units),
            None => groups.push(progress),
        }
    }
    groups
}

impl<'a> Progress<'a> {
    fn of(record: &'a Record) -> Self {
        let members = record.members.iter().map(|(name, Member { stage, .. })| (name, stage)).collect();
        let waiting = record.wants.keys().collect();
        Self { revision: &record.revision, since: record.since, members, waiting, units: vec![&record.unit] }
    }
}
