//! Lines about clusters: what is the same on several of them is one line.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gatewright_engine::text::count;

use super::ClusterState;
use super::folded::Clusters;

/// One line about one cluster. Those of a higher rank come later.
pub(crate) struct Line<'a> {
    /// The cluster.
    pub cluster: &'a str,
    /// The place of the line among the others.
    pub rank: u8,
    /// The line, without the name of the cluster.
    pub words: String,
}

/// Puts lines together, of which each is about another cluster: `on 37 of 40 clusters (…): no changes`.
pub(crate) fn brief(lines: &[Line<'_>], names_all: bool) -> Vec<String> {
    let mut lines: Vec<&Line<'_>> = lines.iter().collect();
    lines.sort_by_key(|line| line.cluster);
    let names: Vec<&str> = lines.iter().map(|line| line.cluster).collect();
    let mut groups: BTreeMap<(u8, &str), Vec<usize>> = BTreeMap::new();
    for (position, line) in lines.iter().enumerate() {
        groups.entry((line.rank, &line.words)).or_default().push(position);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_cached_key(|((rank, _), on)| (*rank, Reverse(on.len()), on[0]));
    let line = |((_, words), on): ((u8, &str), Vec<usize>)| {
        format!("{}: {words}", Clusters::of(&names, &on).heading(names_all))
    };
    groups.into_iter().map(line).collect()
}

/// Counts clusters by their state: `40 clusters: 37 done, 2 held, 1 unreachable`.
pub(crate) fn totals(states: impl Iterator<Item = ClusterState>) -> String {
    let mut numbers: BTreeMap<(u8, &str), usize> = BTreeMap::new();
    for state in states {
        *numbers.entry((state.rank(), state.told())).or_default() += 1;
    }
    let words: Vec<String> = numbers.iter().map(|((_, word), number)| format!("{number} {word}")).collect();
    let all = count(numbers.values().sum(), "cluster");
    if words.is_empty() { all } else { format!("{all}: {}", words.join(", ")) }
}

impl ClusterState {
    /// Returns the place of a cluster among others: first those that are as planned, last those of which nothing is
    /// known.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Planned | Self::Compared => 1,
            Self::Suspended => 2,
            Self::Held => 3,
            Self::Failed => 4,
            Self::Stopped => 5,
            Self::Unreachable => 6,
            Self::Unknown => 7,
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Compared => "compared",
            Self::Unknown => "without a round",
            Self::Done | Self::Held | Self::Stopped | Self::Suspended | Self::Failed | Self::Unreachable => self.word(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_line_is_told_once_for_all_its_clusters() {
        let line = |(cluster, rank, words): (&'static str, u8, &str)| Line { cluster, rank, words: words.to_owned() };
        let lines =
            [("a", 4, "failed"), ("b", 0, "done"), ("c", 0, "done"), ("d", 0, "done: 2 objects updated")].map(line);
        let expected = ["on 2 of 4 clusters (b, c): done", "cluster d: done: 2 objects updated", "cluster a: failed"];
        assert_eq!(brief(&lines, false), expected);
    }

    #[test]
    fn clusters_are_counted_by_their_state() {
        let states = [ClusterState::Unreachable, ClusterState::Done, ClusterState::Unknown, ClusterState::Done];
        assert_eq!(totals(states.into_iter()), "4 clusters: 2 done, 1 unreachable, 1 without a round");
        assert_eq!(totals([].into_iter()), "0 clusters");
    }
}
