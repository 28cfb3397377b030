//! The reading of a source as evidence: which files were read whole, and which documents nobody understands.
//!
//! Absence is evidence only where the reading was whole. A folder that became a link, a file that is half written and
//! a document that lost its `kind` all look as if a spec had been withdrawn; here stands what tells them apart.
//! What follows from it for deletions is decided in [`crate::plan`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::object::ObjectId;
use crate::problem::Place;

/// Everything that a reading of a source says about the absence of specs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Files and folders that were not read, by path; the empty path is the whole source.
    pub unread: BTreeMap<Arc<str>, Unread>,
    /// The files that were read, and how many documents of each say which object they are.
    pub files: BTreeMap<Arc<str>, usize>,
    /// The files that an ignore file leaves out.
    pub ignored: BTreeSet<Arc<str>>,
    /// The files with overlays that do not count, because of their folder.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uncounted: BTreeSet<Arc<str>>,
    /// Documents that are no specs as they stand, and may have been meant as some.
    pub suspects: Vec<Suspect>,
}

/// Something that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The reason, lower case.
    pub reason: String,
    /// Whether specs are expected there, so that it may hold any spec at all. Elsewhere, as behind a link, it only
    /// hides what stood at or below its path.
    pub may_hold_any: bool,
}

/// A document that is no spec as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspect {
    /// The place.
    pub place: Place,
    /// The flaw.
    pub flaw: Flaw,
    /// The group, kind, namespace and name that it gives; `None` where it gives none that can be read.
    pub group: Option<String>,
    /// As above.
    pub kind: Option<String>,
    /// As above; a document may mean the default one by giving none.
    pub namespace: Option<String>,
    /// As above.
    pub name: Option<String>,
}

/// The flaw of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "flaw", content = "detail")]
pub enum Flaw {
    /// It does not say which object it is; what it lacks, in words.
    Unidentified(String),
    /// Its group or kind is not known, and close to one that is: the kind that was probably meant.
    Misspelled(String),
    /// No pack claims it.
    Unclaimed,
    /// It says no namespace, and so means the default one.
    Unplaced,
}

impl Flaw {
    /// Tells whether nobody knows what a document with it is.
    pub(crate) fn is_unclear(&self) -> bool {
        !matches!(self, Self::Unclaimed | Self::Unplaced)
    }
}

/// The reason why the absence of a spec says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unclear {
    /// The file or document that it is about.
    pub place: Place,
    /// The reason, in words that follow the place.
    pub why: String,
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

impl Reading {
    /// Records a path that was not read.
    pub fn skip(&mut self, path: &str, reason: &str, may_hold_any: bool) {
        self.unread.insert(path.into(), Unread { reason: reason.to_owned(), may_hold_any });
    }

    /// Returns the path at or above a file that was not read, with the reason.
    pub(crate) fn unread_above(&self, file: &str) -> Option<(&Arc<str>, &Unread)> {
        let ends = file.match_indices('/').map(|(end, _)| end);
        let mut above = [0].into_iter().chain(ends).chain([file.len()]).map(|end| &file[..end]);
        above.find_map(|path| self.unread.get_key_value(path))
    }

    /// Returns why the absence of a spec that a file has fed says nothing, as far as that file can tell.
    pub(crate) fn unclear_file(&self, file: &str) -> Option<Unclear> {
        let about = |why: String| Some(Unclear { place: Place::file(file), why });
        if let Some((path, unread)) = self.unread_above(file) {
            return Some(Unclear { place: Place::file(Arc::clone(path)), why: unread.reason.clone() });
        }
        if self.ignored.contains(file) {
            return about("the file is there, and an ignore file leaves it out".to_owned());
        }
        if self.is_folder(file) {
            return about("it is a folder now".to_owned());
        }
        match self.files.get(file) {
            None => None,
            Some(0) if !self.suspects.iter().any(|suspect| *suspect.place.file == *file) => {
                about("the file is there, and holds no document any more".to_owned())
            }
            Some(_) => self.spoiling(file).map(Suspect::unclear).next(),
        }
    }

    fn is_folder(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let first = self.files.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded)).next();
        first.is_some_and(|(file, _)| file.starts_with(&below))
    }

    /// Returns the documents of a file of which nobody knows what they are.
    pub(crate) fn spoiling(&self, file: &str) -> impl Iterator<Item = &Suspect> {
        let is_unclear = |suspect: &&Suspect| suspect.flaw.is_unclear();
        self.suspects.iter().filter(move |suspect| *suspect.place.file == *file).filter(is_unclear)
    }

    /// Tells whether the kind or group of a document was probably meant as another one.
    pub(crate) fn is_misspelled(&self, place: &Place) -> bool {
        let is_meant = |suspect: &Suspect| matches!(suspect.flaw, Flaw::Misspelled(_)) && suspect.place == *place;
        self.suspects.iter().any(is_meant)
    }

    /// Returns the document that may be a spec with a slip in what it says of itself, if there is one.
    pub(crate) fn near_miss(&self, unit: &ObjectId) -> Option<Unclear> {
        self.suspects.iter().find(|suspect| suspect.may_be(unit)).map(Suspect::unclear)
    }

    /// Returns the document that may be a spec which has lost its namespace, if there is one. It stays one in every round, until
    /// somebody has written which namespace is meant: by then the object without one has been made.
    pub(crate) fn unplaced(&self, unit: &ObjectId) -> Option<Unclear> {
        let is_it = |suspect: &&Suspect| {
            let said = [&suspect.group, &suspect.kind, &suspect.name].map(Option::as_deref);
            suspect.flaw == Flaw::Unplaced && said == [&unit.group, &unit.kind, &unit.name].map(|it| Some(it.as_str()))
        };
        let found = self.suspects.iter().filter(|_| !unit.namespace.is_empty()).find(is_it)?;
        let why = format!(
            "{} says no namespace, and may be meant for {}: write namespace: default if it is not",
            found.named(),
            unit.namespace
        );
        Some(Unclear { place: found.place.clone(), why })
    }

    /// Returns why a file that has fed a unit, and does not any more, may not have been taken out on purpose: it is still
    /// there.
    pub(crate) fn left_out(&self, file: &str) -> Option<Unclear> {
        let why = if self.ignored.contains(file) {
            "the file is there, and an ignore file leaves it out"
        } else if self.uncounted.contains(file) {
            "the file is there, and its folder is none whose overlays count"
        } else {
            return None;
        };
        Some(Unclear { place: Place::file(file), why: why.to_owned() })
    }

    /// Returns the path that may hold any spec, among those that are not known to have held others.
    pub(crate) fn unread_anywhere(&self, is_known: impl Fn(&str) -> bool) -> Option<Unclear> {
        let any = self.unread.iter().find(|(path, unread)| unread.may_hold_any && !is_known(path));
        any.map(|(path, unread)| Unclear { place: Place::file(Arc::clone(path)), why: unread.reason.clone() })
    }
}

impl Suspect {
    /// The reason for which it leaves something unclear.
    pub(crate) fn unclear(&self) -> Unclear {
        let why = match &self.flaw {
            Flaw::Unidentified(what) => what.clone(),
            Flaw::Misspelled(meant) => {
                format!("{} may be meant as {meant}", self.kind.as_deref().unwrap_or("the document"))
            }
            Flaw::Unclaimed => format!("no pack claims {}", self.named()),
            Flaw::Unplaced => format!("{} says no namespace", self.named()),
        };
        Unclear { place: self.place.clone(), why }
    }

    fn named(&self) -> String {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let group = self.group.as_deref().filter(|group| !group.is_empty());
        let kind = group.map_or_else(|| text(&self.kind), |group| format!("{}.{group}", text(&self.kind)));
        format!("{kind} {}", text(&self.name))
    }

    /// Tells whether it may be a spec that somebody wanted to write, and not another one: something of what it says of
    /// itself is missing or close to what that spec says, and nothing is far from it.
    ///
    /// A document of the very same kind that gives a name is another object of that kind: a renamed one.
    fn may_be(&self, unit: &ObjectId) -> bool {
        let is_near = |said: &Option<String>, meant: &str| said.as_deref().is_none_or(|said| is_slip(said, meant));
        let is_same = |said: &Option<String>, meant: &str| said.as_deref() == Some(meant);
        let is_kind = is_same(&self.kind, &unit.kind);
        let is_named = self.name.is_some() && is_near(&self.name, &unit.name);
        let is_there = is_near(&self.namespace, &unit.namespace) || unit.namespace.is_empty();
        match self.flaw {
            Flaw::Unidentified(_) => {
                let says_something = is_named || self.kind.is_some();
                let is_group = is_near(&self.group, &unit.group);
                says_something
                    && is_near(&self.kind, &unit.kind)
                    && is_group
                    && is_near(&self.name, &unit.name)
                    && is_there
            }
            Flaw::Unplaced => false,
            Flaw::Misspelled(_) | Flaw::Unclaimed => {
                let is_group = is_same(&self.group, &unit.group);
                // The kind as it is and a version without its group, as in `apiVersion: v1`.
                let lost_group = self.group.as_deref().is_none_or(str::is_empty) && is_kind && !is_group;
                let is_slip = is_near(&self.group, &unit.group) && is_near(&self.kind, &unit.kind);
                !(is_kind && is_group) && is_same(&self.name, &unit.name) && is_there && (is_slip || lost_group)
            }
        }
    }
}

/// Tells whether one word may have been meant as another: a few characters are wrong, or the end is cut off.
pub(crate) fn is_slip(said: &str, meant: &str) -> bool {
    let (said, meant) = (said.trim().to_lowercase(), meant.to_lowercase());
    let is_cut = !said.is_empty() && meant.starts_with(&said);
    is_cut || strsim::damerau_levenshtein(&said, &meant) <= 1 + meant.len().min(said.len()) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        let files = [("a/one.yaml", 2), ("a/empty.yaml", 0), ("b/x.yaml/y.yaml", 1)];
        let mut reading = Reading {
            files: files.into_iter().map(|(file, documents)| (file.into(), documents)).collect(),
            ..Reading::default()
        };
        reading.skip("linked", "it is a symbolic link", false);
        reading.skip("c/broken.yaml", "it is not YAML", true);
        reading.ignored.insert("a/out.yaml".into());
        reading
    }

    #[test]
    fn a_file_that_is_gone_says_so_and_one_that_was_not_read_says_nothing() {
        let why = |file: &str| reading().unclear_file(file).map(|unclear| unclear.to_string()).unwrap_or_default();
        assert_eq!(why("a/gone.yaml"), "");
        assert_eq!(why("a/one.yaml"), "");
        assert_eq!(why("linkedfile.yaml"), "", "it does not stand below the link");
        for (file, expected) in [
            ("linked/deep/gone.yaml", "linked: it is a symbolic link"),
            ("linked", "linked: it is a symbolic link"),
            ("c/broken.yaml", "c/broken.yaml: it is not YAML"),
            ("a/empty.yaml", "a/empty.yaml: the file is there, and holds no document any more"),
            ("a/out.yaml", "a/out.yaml: the file is there, and an ignore file leaves it out"),
            ("b/x.yaml", "b/x.yaml: it is a folder now"),
        ] {
            assert_eq!(why(file), expected);
        }
        let mut whole = Reading::default();
        whole.skip("", "its ignore file cannot be read", true);
        assert!(whole.unclear_file("any.yaml").is_some());
    }

    /// Tells whether a document holds the Gateway `infra/edge`.
    fn holds(flaw: Flaw, group: Option<&str>, kind: Option<&str>, namespace: Option<&str>, name: Option<&str>) -> bool {
        let text = |part: Option<&str>| part.map(str::to_owned);
        let place = Place::file("a.yaml");
        let (group, kind, namespace, name) = (text(group), text(kind), text(namespace), text(name));
        let suspects = vec![Suspect { place, flaw, group, kind, namespace, name }];
        let unit = ObjectId::new("gateway.networking.k8s.io", "Gateway", "infra", "edge");
        Reading { suspects, ..Reading::default() }.near_miss(&unit).is_some()
    }

    #[test]
    fn a_document_with_a_slip_in_its_identity_may_be_the_spec_that_is_gone() {
        const GROUP: &str = "gateway.networking.k8s.io";
        let unclaimed =
            |group, kind, namespace, name| holds(Flaw::Unclaimed, Some(group), Some(kind), Some(namespace), Some(name));
        assert!(unclaimed(GROUP, "Gatewya", "infra", "edge"));
        assert!(unclaimed(GROUP, "gateway", "infra", "edge"));
        assert!(unclaimed(GROUP, "Gate", "infra", "edge"));
        assert!(unclaimed("gateway.networking.k8s.oi", "Gateway", "infra", "edge"));
        assert!(unclaimed("gateway.networking.k8s.io", "Gatewayy", "infar", "edge"));
        assert!(unclaimed("", "Gateway", "infra", "edge"), "apiVersion: v1");
        assert!(!unclaimed(GROUP, "Gateway", "infra", "edge-2"), "a rename");
        assert!(!unclaimed(GROUP, "HTTPRoute", "infra", "edge"), "a neighbor of the same name");
        assert!(!unclaimed("mesh.example.com", "Gateway", "infra", "edge"), "a neighbor of the same kind");
        assert!(!unclaimed("", "ConfigMap", "infra", "edge"));
        assert!(!unclaimed(GROUP, "Gatewya", "elsewhere", "edge"));
        let unidentified = |group, kind, namespace, name| {
            holds(Flaw::Unidentified("it has no name".to_owned()), group, kind, namespace, name)
        };
        assert!(unidentified(Some(GROUP), Some("Gateway"), Some("infra"), None));
        assert!(unidentified(Some(GROUP), None, Some("infra"), Some("edge")));
        assert!(unidentified(None, None, None, Some("edge")));
        assert!(unidentified(None, Some("Gateway"), None, None));
        assert!(!unidentified(None, None, None, None), "it could be anything, such as values of a chart");
        assert!(!unidentified(Some("kustomize.config.k8s.io"), Some("Kustomization"), None, None));
        assert!(!unidentified(Some(GROUP), Some("Gateway"), Some("infra"), Some("other")));
    }
}
