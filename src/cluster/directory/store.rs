//! Objects as files: list, get, apply, delete.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use gatewright_engine::live::Live;
use gatewright_engine::marks::{OWNER_ANNOTATION, OWNER_LABEL, SYNC_LABEL};
use gatewright_engine::object::{Gvk, Object, ObjectId};
use gatewright_engine::yaml;
use serde_json::Value;

use super::Problem;
use super::file::{self, digest};
use super::records;
use crate::cluster::{Mode, Precondition};

/// The marks, which are for clusters: where and key.
const MARKS: [(&str, &str); 3] = [("labels", SYNC_LABEL), ("labels", OWNER_LABEL), ("annotations", OWNER_ANNOTATION)];

/// Returns every object of a kind that is where it belongs, sorted by path.
pub(super) fn list(root: &Path, kind: &Gvk) -> Result<Vec<Live>, Problem> {
    let beginning = format!("{}-", file::stem(&kind.group, &kind.kind));
    let mut found = Vec::new();
    for folder in names_in(root)? {
        if folder.starts_with('.') || !root.join(&folder).is_dir() {
            continue;
        }
        for name in names_in(&root.join(&folder))? {
            let path = Path::new(&folder).join(&name);
            if !name.starts_with(&beginning) || path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            match read(root, &path) {
                // A longer group or another kind may begin with the same letters.
                Ok(Some(live)) if live.object.id().kind == kind.kind && live.object.id().group == kind.group => {
                    found.push(live);
                }
                Ok(_) => {}
                Err(problem) => {
                    tracing::warn!(path = %path.display(), %problem, "a file that is no object is passed over");
                }
            }
        }
    }
    Ok(found)
}

/// Reads one object. A file in its place that is something else is an error: the place is taken.
pub(super) fn get(root: &Path, id: &ObjectId) -> Result<Option<Live>, Problem> {
    let live = read(root, &file::path_of(id)?)?;
    match &live {
        Some(live) if live.object.id() != id => {
            Err(Problem::Unusable(format!("its file holds {} instead", live.object.id())))
        }
        _ => Ok(live),
    }
}

/// Writes an object without our marks, or says what would be written.
pub(super) fn apply(root: &Path, object: Object, only_if: &Precondition, mode: Mode) -> Result<Live, Problem> {
    let id = object.id().clone();
    let path = file::path_of(&id)?;
    let text = yaml::to_string(&without_marks(object.into_body()));
    let _lock = match mode {
        Mode::Real => Some(records::lock(root)?),
        Mode::DryRun => None,
    };
    check(get(root, &id)?.as_ref(), only_if)?;
    if mode == Mode::Real {
        file::write(root, &path, &text, file::mode_of(&id))?;
    }
    // What it will be read as, which is not always to the letter what it was.
    parse(&path, &text)
}

/// Deletes the object that was read. One that is already gone is no problem.
pub(super) fn delete(root: &Path, id: &ObjectId, only_if: &Precondition) -> Result<(), Problem> {
    if get(root, id)?.is_none() {
        return Ok(());
    }
    let _lock = records::lock(root)?;
    check(get(root, id)?.as_ref(), only_if)?;
    file::delete(root, &file::path_of(id)?)
}

fn check(live: Option<&Live>, only_if: &Precondition) -> Result<(), Problem> {
    let problem = match (live, only_if) {
        (None, Precondition::Absent) => return Ok(()),
        (Some(live), Precondition::Unchanged { uid, resource_version })
            if live.uid == *uid && live.resource_version == *resource_version =>
        {
            return Ok(());
        }
        (Some(_), Precondition::Absent) => "its file exists already",
        (Some(_), Precondition::Unchanged { .. }) => "its file has changed in the meantime",
        (None, Precondition::Unchanged { .. }) => "its file no longer exists",
    };
    Err(Problem::Changed(problem.to_owned()))
}

fn read(root: &Path, path: &Path) -> Result<Option<Live>, Problem> {
    file::read(root, path)?.map(|text| parse(path, &text)).transpose()
}

fn parse(path: &Path, text: &str) -> Result<Live, Problem> {
    let no_object = |why: String| Problem::Unusable(format!("{} holds no object: {why}", path.display()));
    let mut documents =
        yaml::parse_values(text).map_err(|error| no_object(format!("line {}: {error}", error.position.line)))?;
    let (Some(body), true) = (documents.pop(), documents.is_empty()) else {
        return Err(no_object("there is not exactly one document in it".to_owned()));
    };
    let object = Object::new(body).map_err(|error| no_object(error.to_string()))?;
    let resource_version = digest(text.as_bytes());
    Ok(Live { object, uid: digest(path.as_os_str().as_encoded_bytes()), resource_version })
}

fn without_marks(mut body: Value) -> Value {
    for (field, key) in MARKS {
        let Some(metadata) = body["metadata"].as_object_mut() else { continue };
        let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) else { continue };
        if entries.remove(key).is_some() && entries.is_empty() {
            metadata.remove(field);
        }
    }
    body
}

/// Returns the names in a folder, sorted; none if there is no such folder. Names that are no text are none of ours.
pub(super) fn names_in(folder: &Path) -> Result<Vec<String>, Problem> {
    let problem = |error| Problem::Io(folder.to_owned(), error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(problem)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(problem)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
