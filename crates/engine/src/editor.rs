//! Kinds as JSON Schemas (draft 7), for editors and whatever else checks documents by them.
//!
//! A kind with a definition (CRD) is written as that says it, any other one as the pack that reads it does. A schema
//! says less than a check: rules in CEL, keys that may not repeat, and what other documents have to say are left out.

mod rules;
mod structural;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::admission::Definition;
use crate::pack::Packs;

/// The dialect that editors know best.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// One version of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindVersion {
    /// Its group; empty for what Kubernetes calls the core.
    pub group: String,
    /// Its name.
    pub kind: String,
    /// The version.
    pub version: String,
}

impl KindVersion {
    /// Returns what documents of it have as `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the path at which catalogs of schemas have it: `GROUP/KIND_VERSION.json`, all in small letters.
    pub fn path(&self) -> String {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        format!("{group}/{}_{}.json", self.kind, self.version).to_lowercase()
    }
}

/// Returns all versions of kinds that documents are checked by, in the order of their groups and names, the newest of
/// each first.
pub fn kinds(packs: &Packs) -> Vec<KindVersion> {
    let defined = packs.definitions().all().filter(|it| defined(packs, &it.group, &it.kind).is_some());
    let defined = defined.flat_map(|definition| {
        definition.schemas().map(|(version, _)| (definition.group.as_str(), definition.kind.as_str(), version))
    });
    let read = packs.kinds().iter().filter(|((group, kind), _)| self::defined(packs, group, kind).is_none());
    let read = read.flat_map(|((group, kind), it)| {
        it.versions.iter().map(|version| (group.as_str(), kind.as_str(), version.as_str()))
    });
    let owned = |(group, kind, version): (&str, &str, &str)| KindVersion {
        group: group.to_owned(),
        kind: kind.to_owned(),
        version: version.to_owned(),
    };
    let mut kinds: Vec<KindVersion> = defined.chain(read).map(owned).filter(|it| !it.group.is_empty()).collect();
    kinds.sort_by_cached_key(|it| (it.group.clone(), it.kind.clone(), Reverse(age(&it.version))));
    kinds
}

/// Returns the definition that says which fields a kind has. Of a product, the pack that reads the kind knows them for
/// more releases than the one of which a definition is known.
fn defined<'a>(packs: &'a Packs, group: &str, kind: &str) -> Option<&'a Definition> {
    let is_read = || packs.kinds().contains_key(&(group.to_owned(), kind.to_owned()));
    packs.definitions().of(group, kind).map(AsRef::as_ref).filter(|it| it.release().is_none() || !is_read())
}

/// Returns the release of a product that the schema of a kind is of, if other releases may take more than it says.
pub fn release(packs: &Packs, group: &str, kind: &str) -> Option<&'static str> {
    defined(packs, group, kind).and_then(Definition::release)
}

/// Returns the schema of documents of a version of a kind, if that is known.
pub fn schema(packs: &Packs, of: &KindVersion) -> Option<Value> {
    let mut schema = match defined(packs, &of.group, &of.kind) {
        Some(definition) => {
            let (_, schema) = definition.schemas().find(|(version, _)| *version == of.version)?;
            structural::converted(schema)
        }
        None => rules::written(&packs.kinds().get(&(of.group.clone(), of.kind.clone()))?.schema),
    };
    let properties = &mut schema["properties"];
    for (field, value) in [("apiVersion", of.api_version()), ("kind", of.kind.clone())] {
        properties[field] = json!({"type": "string", "enum": [value]});
    }
    properties["metadata"] = structural::metadata();
    properties["metadata"]["required"] = json!(["name"]);
    properties["status"] = json!({"description": "Written by controllers; not checked."});
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let required = required.chain(["apiVersion", "kind", "metadata"]).map(str::to_owned);
    let required: BTreeSet<String> = required.collect();
    schema["required"] = required.into_iter().collect();
    schema["$schema"] = DRAFT.into();
    schema["title"] = format!("{} {}", of.api_version(), of.kind).into();
    Some(schema)
}

/// Returns a schema that picks one of some others by `apiVersion` and `kind`; they are looked for beside it. Documents of
/// other kinds pass.
pub fn choice<'a>(kinds: impl IntoIterator<Item = &'a KindVersion>) -> Value {
    let (mut versions, mut names, mut rows) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for of in kinds {
        versions.insert(of.api_version());
        names.insert(of.kind.clone());
        rows.push(json!({
            "if": {
                "properties": {"apiVersion": {"const": of.api_version()}, "kind": {"const": of.kind}},
                "required": ["apiVersion", "kind"],
            },
            "then": {"$ref": of.path()},
        }));
    }
    let known = |names: BTreeSet<String>| {
        // The list is what editors offer; any other text is taken, too.
        json!({"anyOf": [{"enum": names}, {"type": "string"}]})
    };
    json!({
        "$schema": DRAFT,
        "type": "object",
        "properties": {"apiVersion": known(versions), "kind": known(names)},
        "required": ["apiVersion", "kind"],
        "allOf": rows,
    })
}

/// Returns what versions are compared by, as an API server has it: `v1` is newer than `v1beta2`, that than `v1alpha3`.
fn age(version: &str) -> (u8, u32, u32, String) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let (major, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let major: u32 = major.parse().ok()?;
        let (rank, minor) = match (rest, rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            ("", ..) => (3, 0),
            (_, Some(minor), _) => (2, minor.parse().ok()?),
            (_, _, Some(minor)) => (1, minor.parse().ok()?),
            _ => return None,
        };
        Some((rank, major, minor))
    };
    let (rank, major, minor) = parsed().unwrap_or_default();
    (rank, major, minor, version.to_owned())
}

#[cfg(test)]
mod tests;
