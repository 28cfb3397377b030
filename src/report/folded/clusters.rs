//! Some of the clusters of a report, in as many words as there is room for.

use std::fmt;

/// The most clusters that are named, unless all are to be.
const MOST: usize = 8;

/// Some of the clusters of a report: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clusters<'a> {
    /// Their names, in order.
    pub names: Vec<&'a str>,
    /// The names of all others.
    others: Vec<&'a str>,
}

impl<'a> Clusters<'a> {
    /// Takes those at some positions, which rise.
    pub(crate) fn of(all: &[&'a str], on: &[usize]) -> Self {
        let others = (0..all.len()).filter(|position| on.binary_search(position).is_err());
        Self { names: on.iter().map(|position| all[*position]).collect(), others: others.map(|it| all[it]).collect() }
    }

    /// Returns the heading of what is said of them: `cluster eu-1`, `on 3 of 40 clusters (…)`.
    pub(crate) fn heading(&self, names_all: bool) -> String {
        if let [name] = self.names.as_slice() {
            format!("cluster {name}")
        } else {
            format!("on {}", self.words(names_all))
        }
    }

    /// Puts them into words: `eu-1`, `37 of 40 clusters (all but eu-3, us-1, us-2)`, `all 40 clusters`.
    pub(crate) fn words(&self, names_all: bool) -> String {
        let (number, most) = (self.names.len(), if names_all { usize::MAX } else { MOST });
        let all = number + self.others.len();
        let named = match (&*self.names, &*self.others) {
            ([name], _) => return (*name).to_owned(),
            (_, []) if number > most => return format!("all {number} clusters"),
            (names, []) => return format!("all {number} clusters ({})", names.join(", ")),
            (names, _) if number <= most => names.join(", "),
            (_, others) if others.len() <= most => format!("all but {}", others.join(", ")),
            (names, _) => format!("{} and {} more", names[..most].join(", "), number - most),
        };
        format!("{number} of {all} clusters ({named})")
    }
}

impl fmt::Display for Clusters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(false))
    }
}
