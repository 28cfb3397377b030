//! The outcomes of cases, counted, and the limits of what may be otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::cases::Suite;

/// More of them where a suite has no limit of its own, and it says little.
const MOST_DELIBERATE: usize = 4;

/// The outcome of a case.
pub(crate) enum Verdict {
    /// All is as the real system made it, or refused where that refused.
    Equal,
    /// All that differs is listed, for these reasons.
    Deliberate(BTreeSet<String>),
    /// The real system made something, and we said why we do not.
    Refused(Vec<String>),
    /// Something differs that is listed nowhere.
    Different(Vec<String>),
}

/// The outcomes of some cases, counted.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) different: usize,
    equal: usize,
    deliberate: usize,
    refused: usize,
    /// Those that are otherwise and may be, by the place of the limit that is about them; `None` without one.
    otherwise: BTreeMap<Option<usize>, usize>,
}

impl Tally {
    /// Counts a case.
    pub(crate) fn add(&mut self, suite: &Suite, stem: &str, verdict: &Verdict) {
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Deliberate(_) => self.deliberate += 1,
            Verdict::Refused(_) => self.refused += 1,
            Verdict::Different(_) => self.different += 1,
        }
        if matches!(verdict, Verdict::Deliberate(_) | Verdict::Refused(_)) {
            *self.otherwise.entry(suite.limit_of(stem)).or_default() += 1;
        }
    }

    /// Returns a line for every limit that is exceeded.
    pub(crate) fn exceeded(&self, suite: &Suite) -> Vec<String> {
        let line = |(limit, number): (&Option<usize>, &usize)| {
            let limit = limit.map(|index| &suite.limits[index]);
            let most = limit.map_or(MOST_DELIBERATE, |limit| limit.most);
            let of = limit.map_or_else(String::new, |limit| format!(" of {}", limit.cases.join(", ")));
            (*number > most).then(|| format!("{number}{of} are refused or deliberately different, and {most} may be"))
        };
        self.otherwise.iter().filter_map(line).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { different, equal, deliberate, refused, .. } = self;
        let all = different + equal + deliberate + refused;
        write!(f, "{equal} of {all} equal, {deliberate} deliberately different")?;
        if *refused > 0 {
            write!(f, ", {refused} refused with a reason")?;
        }
        if *different > 0 {
            write!(f, ", {different} DIFFERENT")?;
        }
        Ok(())
    }
}
