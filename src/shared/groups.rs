//! The files that hosts share, and how each is named on every one of them.
//!
//! Names come from the store, too, where others may have written: what is not a name that this program gives to such a
//! file is none.

use std::fmt;

use crate::history::archive::runs::is_run;

/// The most bytes of a name.
const MOST_BYTES: usize = 512;

/// The most bytes between two slashes: file systems take no more.
const MOST_PART: usize = 200;

/// The group whose files may lie outside of the state folder.
pub(super) const REPORTS: &str = "reports";

/// Files of one kind that hosts share.
#[derive(Debug)]
pub(super) struct Group {
    /// The folder, in the store and below the state folder.
    pub(super) folder: &'static str,
    /// The names below it.
    pub(super) form: Form,
    /// The hosts that write them.
    pub(super) writer: Writer,
    /// The reason why another host needs them.
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for people who read the list"))]
    pub(super) why: &'static str,
}

/// The names of the files of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `TOKEN.json`, which tells no sync.
    Token,
    /// `SYNC.json`.
    Sync,
    /// `SYNC/CLUSTER.json`.
    Target,
    /// `SYNC/CLUSTER/NAME`.
    Set,
    /// `RUN/CLUSTER/NAME`.
    Run,
    /// `RUN.EXTENSION`.
    Report,
}

/// The hosts that write the files of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// Any host: a person says something there.
    Anybody,
    /// The host that looks after the sync: it is the result of its rounds. Whatever another host has written there comes
    /// from before it lost the sync, and is out of date.
    Owner,
}

/// The list.
///
/// All other files of a state folder stay where they are: locks and files that are being written; `key` and
/// `installation`, which say who a host is; `requested` and `answered`, which are for the daemon of this host; `dashboard.token`, which is that of one host; `audit.jsonl`, whose lines
/// follow from each other; `clock` and `webhooks`, which are about this host alone; `known`, `fights`, `sources`,
/// `discovery`, `clusters`, `cluster-secrets` and `cluster-folders`, which are made again at the cost of requests and
/// reads; and `status/.sources`, because each host fetches for itself. Plans that people save lie wherever they say.
pub(super) const GROUPS: [Group; 11] = [
    group("approvals", Form::Token, Writer::Anybody, "a person approves on any host, and counts on it"),
    group("asked", Form::Target, Writer::Owner, "a person approves what another host holds"),
    group("suspended", Form::Sync, Writer::Anybody, "a suspended sync stays suspended, whoever looks after it"),
    group("rollouts", Form::Sync, Writer::Owner, "a rollout goes on where it was"),
    group("seen", Form::Target, Writer::Owner, "tampering is noticed only by who knows what was written"),
    group("status", Form::Target, Writer::Owner, "a finding is as old as it is, and is told once"),
    group("compared", Form::Target, Writer::Owner, "the next drift report says what is new"),
    group("begun", Form::Target, Writer::Owner, "a round that a host did not end is told of by the one that goes on"),
    group("undo", Form::Run, Writer::Owner, "what another host has done can be undone"),
    group("rendered", Form::Set, Writer::Owner, "what another host has rendered can be applied again"),
    group(REPORTS, Form::Report, Writer::Owner, "the history is that of the syncs, not of a host"),
];

const fn group(folder: &'static str, form: Form, writer: Writer, why: &'static str) -> Group {
    Group { folder, form, writer, why }
}

impl Form {
    /// Returns the number of names below the folder of the group.
    pub(super) fn depth(self) -> usize {
        match self {
            Self::Token | Self::Sync | Self::Report => 1,
            Self::Target => 2,
            Self::Set | Self::Run => 3,
        }
    }
}

/// The name of a shared file: its path in the store, which is that below the state folder, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(String);

impl Name {
    /// Reads a name; `None` if no shared file has such a name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let group = GROUPS.iter().find(|group| group.folder == parts[0])?;
        let below = &parts[1..];
        let is_whole = text.len() <= MOST_BYTES && below.len() == group.form.depth();
        if !is_whole || !below.iter().all(|part| is_part(part)) {
            return None;
        }
        let is_value = below.last().is_some_and(|last| last.strip_suffix(".json").is_some_and(|stem| !stem.is_empty()));
        let is_known = match group.form {
            Form::Token | Form::Sync | Form::Target => is_value,
            Form::Set => true,
            Form::Run | Form::Report => is_run(below[0]),
        };
        is_known.then(|| Self(text.to_owned()))
    }

    /// Returns the name as text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns its group.
    pub(super) fn group(&self) -> &'static Group {
        let folder = self.0.split('/').next();
        // A name is made of a group; the first is never asked for.
        GROUPS.iter().find(|group| Some(group.folder) == folder).unwrap_or(&GROUPS[0])
    }

    /// Tells whether the file may be written again by every host that looks after the sync: others are named after one
    /// round, which nobody else has.
    pub(super) fn is_written_again(&self) -> bool {
        match self.group().form {
            Form::Sync | Form::Target | Form::Set => true,
            Form::Token | Form::Run | Form::Report => false,
        }
    }

    /// Returns the sync that the file belongs to, if it belongs to one.
    pub(super) fn sync(&self) -> Option<&str> {
        let first = self.0.split('/').nth(1)?;
        match self.group().form {
            Form::Token => None,
            Form::Sync => first.strip_suffix(".json"),
            Form::Target | Form::Set => Some(first),
            // `TIMEZ-SYNC.CLUSTER` or `TIMEZ-SYNC`, and for a report an extension; no name of a sync has a dot.
            Form::Run | Form::Report => first.split_once("Z-")?.1.split('.').next(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Tells whether a text can be a name in a folder: one of ours, and not of a file that is hidden or being written.
pub(super) fn is_part(part: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !part.is_empty() && part.len() <= MOST_PART && !part.starts_with('.') && part.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_name_tells_the_sync_of_its_file() {
        let check = |text: &str, sync: Option<&str>| {
            let name = Name::parse(text).expect("it is the name of a shared file");
            assert_eq!((name.as_str(), name.sync()), (text, sync));
        };
        check("approvals/0a1b2c.json", None);
        check("asked/edge/west-1.json", Some("edge"));
        check("suspended/edge.json", Some("edge"));
        check("rollouts/edge.json", Some("edge"));
        check("undo/20261120T100000.000Z-edge-a.west-1/west-1/after", Some("edge-a"));
        check("undo/20261120T100000.000Z-edge-a/west-1/0a1b-1.before", Some("edge-a"));
        check("rendered/edge/west-1/index", Some("edge"));
        check("reports/20261120T100000.000Z-edge.json", Some("edge"));
        check("reports/20261120T100000.000Z-edge.west-1.txt", Some("edge"));
    }

    #[test]
    fn no_other_name_is_one() {
        let long = format!("status/edge/{}.json", "a".repeat(5_000));
        let deep = format!("undo/20261120T100000.000Z-edge{}/c/after", "/a".repeat(500));
        for text in [
            "",
            "/",
            "../x",
            "/etc/x",
            "undo/../../x",
            "undo/20261120T100000.000Z-edge/../x",
            "status/../x.json",
            "status/./x.json",
            "status//x.json",
            "status/edge/.json",
            "status/.sources/edge.json",
            "status/edge/west.json/",
            "status/edge\\..\\x/y.json",
            "status/edge/we st.json",
            "status/edge/west\0.json",
            "status/edge/wést.json",
            "status/edge/west",
            "status/edge/.gatewright-a1b2",
            "rollouts/edge.lock",
            "reports/latest.json",
            "undo/notes of a person/c/x",
            "known/edge/west.json",
            "installation",
            "key",
            "shared/conflicts/x",
            "gatewright-installation",
            &long,
            &deep,
        ] {
            assert_eq!(Name::parse(text), None, "{text:?}");
        }
    }

    /// Files of a state folder that hosts do not share, as they stand in the code.
    const OWN: [&str; 12] = [
        "host",
        "status/.sources",
        "sources",
        "clock",
        "cluster-secrets",
        "cluster-folders",
        "discovery",
        "clusters",
        "known",
        "fights",
        "requested",
        "answered",
    ];

    #[test]
    fn whatever_is_kept_in_a_state_folder_is_shared_or_is_not_by_intent() {
        let mut found = BTreeSet::new();
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        let known: BTreeSet<String> = GROUPS.iter().map(|group| group.folder).chain(OWN).map(str::to_owned).collect();
        assert!(found.len() > 10, "the stores are found: {found:?}");
        assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "who needs these?");
        assert!(GROUPS.iter().all(|group| !group.why.is_empty()));
    }

    /// Collects the folders of all stores that the code names, but for those of tests.
    fn walk(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("the code can be read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines = text.lines().filter(|line| line.contains("const ") && line.contains(": Store<"));
            let names = lines.filter_map(|line| line.split_once("Store::new(\"")?.1.split('"').next());
            found.extend(names.map(str::to_owned));
        }
    }
}
