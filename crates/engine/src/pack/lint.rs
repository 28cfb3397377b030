//! Mistakes in the files of a declarative pack, beyond those that keep it from being loaded.
//!
//! A template that asks in a condition for a parameter that cannot exist is silently without it: the language has no error
//! for that. So what templates and expressions read is compared here with what there is: parameters with the schema, and
//! names with those that templates see.

mod kinds;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use self::kinds::wrong_kinds;
use self::names::wrong_names;
use super::declared::whole;
use super::manifest::{Manifest, PART};
use super::texts::{Text, templates, texts};
use super::{MANIFEST, PackError, document, value};
use crate::check::{Mistake, check_layer, suggest};
use crate::problem::{Place, Problem};
use crate::render::Renderer;
use crate::schema::{Found, Schema};

/// A path below `params`, as templates write it.
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:params|said)((?:\??\.[A-Za-z_][A-Za-z0-9_]*)+)").expect("the expression is sound; a test uses it")
});

/// Files for people.
const FOR_PEOPLE: [&str; 2] = ["README", "LICENSE"];

/// Examines the files of a pack; of one that `is_declarative` it is known which names its templates see.
pub fn lint(files: &BTreeMap<&str, &str>, is_declarative: bool) -> Vec<Problem> {
    let Ok(manifest) = Manifest::read(files) else { return Vec::new() };
    let schema = schema_of(files, &manifest).ok().flatten();
    let root = document(files, MANIFEST).ok();
    let texts = texts(files, &manifest, root.as_ref());
    let mut found = unread(files, &manifest);
    found.extend(unloadable(files, &texts));
    found.extend(unused_values(files, &manifest));
    found.extend(wrong_names(&texts, Some(&manifest).filter(|_| is_declarative)));
    found.extend(wrong_kinds(files, &manifest, schema.as_ref()));
    if let Some(schema) = schema {
        found.extend(wrong_defaults(files, &manifest, &schema));
        found.extend(unknown_parameters(files, &manifest, &schema));
        found.extend(unused_parameters(files, &manifest, &schema));
    }
    found.sort();
    found.dedup();
    found
}

fn schema_of(files: &BTreeMap<&str, &str>, manifest: &Manifest) -> Result<Option<Schema>, PackError> {
    let Some(name) = &manifest.parameters.schema else { return Ok(None) };
    Schema::new(&whole(value(files, name)?)).map(Some).map_err(PackError::Schema)
}

/// The texts that see the values of a pack: templates, and the expressions in the manifest.
fn readers<'a>(files: &'a BTreeMap<&str, &str>, manifest: &'a Manifest) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all: BTreeSet<&str> = templates(files, manifest).into_iter().chain([MANIFEST]).collect();
    all.into_iter().filter_map(|name| Some((name, *files.get(name)?)))
}

/// Texts that Tera does not take, each by itself: of several together it says only the first.
fn unloadable(files: &BTreeMap<&str, &str>, texts: &[Text<'_>]) -> Vec<Problem> {
    let faults = |text: &Text<'_>| {
        let parts = files.iter().filter(|(name, _)| name.ends_with(PART) && **name != text.file);
        let parts: Vec<(String, String)> = parts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let own = [(text.file.to_owned(), text.template.to_string())];
        let faults = Renderer::with_parts(&own, &parts).err().map(|error| error.faults(text.file)).unwrap_or_default();
        faults.into_iter().map(|fault| text.problem(fault)).collect::<Vec<_>>()
    };
    texts.iter().flat_map(faults).collect()
}

/// Files that are there for nothing.
fn unread(files: &BTreeMap<&str, &str>, manifest: &Manifest) -> Vec<Problem> {
    let claims = manifest.claims.iter().chain(&manifest.reads).filter_map(|claim| claim.schema.as_deref());
    let others = [manifest.defaults.as_deref(), manifest.parameters.schema.as_deref()].into_iter().flatten();
    let read: BTreeSet<&str> = readers(files, manifest).map(|(name, _)| name).chain(claims).chain(others).collect();
    let is_lost = |name: &&str| !read.contains(name) && !FOR_PEOPLE.iter().any(|prefix| name.starts_with(prefix));
    let warning =
        |name| Problem::warning(Place::file(name), format!("{MANIFEST} does not name this file, so nobody reads it"));
    files.keys().copied().filter(is_lost).map(warning).collect()
}

/// Computed values that nothing looks at.
fn unused_values(files: &BTreeMap<&str, &str>, manifest: &Manifest) -> Vec<Problem> {
    let is_unused = |name: &str| {
        let Ok(word) = Regex::new(&format!(r"\b{}\b", regex::escape(name))) else { return false };
        // In the manifest it stands once, as a name.
        readers(files, manifest)
            .map(|(file, text)| word.find_iter(text).count() - usize::from(file == MANIFEST))
            .sum::<usize>()
            == 0
    };
    let unused = manifest.values.iter().filter(|value| is_unused(&value.name));
    unused
        .map(|value| Problem::warning(Place::file(MANIFEST), format!("no template uses the value {:?}", value.name)))
        .collect()
}

/// Defaults that the schema does not allow.
fn wrong_defaults(files: &BTreeMap<&str, &str>, manifest: &Manifest, schema: &Schema) -> Vec<Problem> {
    let Some(name) = &manifest.defaults else { return Vec::new() };
    let Ok(defaults) = document(files, name) else { return Vec::new() };
    let file = name.as_str().into();
    let problem = |mistake: Mistake| {
        let place = Place::at(&file, mistake.position);
        mistake.at(place)
    };
    check_layer(&defaults, schema, "spec", &[]).into_iter().map(problem).collect()
}

/// Parameters that texts read and that cannot be there.
fn unknown_parameters(files: &BTreeMap<&str, &str>, manifest: &Manifest, schema: &Schema) -> Vec<Problem> {
    let mut found = Vec::new();
    for (file, text) in readers(files, manifest) {
        for (number, line) in text.lines().enumerate() {
            for path in PARAMETER.captures_iter(line) {
                let parts: Vec<&str> = path[1].split(['.', '?']).filter(|part| !part.is_empty()).collect();
                found.extend(unknown(&parts, schema).map(|(message, near)| {
                    let line = u32::try_from(number + 1).unwrap_or_default();
                    Problem::document(Place { line, ..Place::file(file) }, message).meant(near)
                }));
            }
        }
    }
    found
}

/// Says where a path leaves the schema.
fn unknown<'a>(parts: &[&str], schema: &'a Schema) -> Option<(String, Option<&'a str>)> {
    let follow = |end: usize| schema.follow(["spec"].into_iter().chain(parts[..end].iter().copied()));
    let end = (1..=parts.len()).find(|&end| matches!(follow(end), Found::Unknown))?;
    let known: Vec<&str> = match follow(end - 1) {
        Found::Rule(rule) => rule.properties.keys().map(String::as_str).collect(),
        Found::Anything | Found::Unknown => Vec::new(),
    };
    Some((format!("the schema of the parameters has no {}", parts[..end].join(".")), suggest(parts[end - 1], known)))
}

/// Parameters that people may set and nothing reads.
fn unused_parameters(files: &BTreeMap<&str, &str>, manifest: &Manifest, schema: &Schema) -> Vec<Problem> {
    let (Found::Rule(rule), Some(file)) = (schema.follow(["spec"]), &manifest.parameters.schema) else {
        return Vec::new();
    };
    let mut read: BTreeSet<String> = manifest.overlays.iter().filter_map(|overlay| first(&overlay.path)).collect();
    for (_, text) in readers(files, manifest) {
        // Who passes all of them on reads each.
        if ["params |", "params)", "in params", "params["].iter().any(|whole| text.contains(whole)) {
            return Vec::new();
        }
        read.extend(PARAMETER.captures_iter(text).filter_map(|path| first(path[1].trim_start_matches(['?', '.']))));
        read.extend(
            manifest
                .checks
                .iter()
                .flat_map(|check| rule.properties.keys().filter(|name| check.rule.contains(*name)))
                .cloned(),
        );
    }
    let unused = rule.properties.keys().filter(|name| !read.contains(*name));
    unused
        .map(|name| Problem::warning(Place::file(file.as_str()), format!("nothing reads the parameter {name:?}")))
        .collect()
}

fn first(path: &str) -> Option<String> {
    path.split(['.', '?']).find(|part| !part.is_empty()).map(str::to_owned)
}
