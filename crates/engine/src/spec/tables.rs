//! Files that are tables of values for overlays, and no documents.
//!
//! An overlay names its table; nothing in the table says what it is. So that nobody can make documents disappear by naming
//! their file, only overlays that count may name one, only files in folders of overlays are tables, and a file with an
//! object in it never is.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::list::items_of;
use super::room::ReadFile;
use super::{Specs, overlay};
use crate::yaml::{Content, Node};

impl Specs {
    /// Takes the tables that overlays name out of what was read.
    pub(super) fn take_tables(&mut self, read: Vec<ReadFile>) -> Vec<ReadFile> {
        let named: BTreeSet<String> = {
            let roots = read.iter().filter(|(file, _)| self.overlay_folders.hold(file));
            let roots = roots.filter_map(|(file, roots)| Some((file, roots.as_ref().ok()?)));
            roots.flat_map(|(file, roots)| roots.iter().flat_map(move |root| named_by(file, root))).collect()
        };
        let (tables, documents): (Vec<ReadFile>, Vec<ReadFile>) = read.into_iter().partition(|(file, roots)| {
            let is_table = roots.as_ref().is_ok_and(|roots| matches!(roots.as_slice(), [root] if is_table(root)));
            is_table && named.contains(&**file) && self.overlay_folders.hold(file)
        });
        for (file, roots) in tables {
            self.reading.files.insert(Arc::clone(&file), 1);
            self.tables.extend(roots.into_iter().flatten().map(|root| (Arc::clone(&file), Arc::new(root))));
        }
        documents
    }
}

/// Returns the paths of the tables that a document, or those in a list, names.
fn named_by(file: &str, root: &Node) -> Vec<String> {
    let text = |path: &[&str]| root.at(path.iter().copied()).and_then(Node::as_str).unwrap_or_default();
    if let Some(items) = items_of(root) {
        return items.items().iter().flat_map(|it| named_by(file, it)).collect();
    }
    let is_ours = text(&["apiVersion"]).split_once('/').is_some_and(|(group, _)| group == overlay::GROUP);
    let table = Some(text(&["spec", "values", "file"])).filter(|table| is_ours && !table.is_empty());
    table.and_then(|table| table_path(file, table)).into_iter().collect()
}

/// Tells whether a document says nothing of being an object.
fn is_table(root: &Node) -> bool {
    matches!(root.content, Content::Map(_)) && root.get("apiVersion").is_none() && root.get("kind").is_none()
}

/// Returns the path of a table from the root of the source, as an overlay in a file names it; `None` if it leads out.
pub(crate) fn table_path(overlay: &str, table: &str) -> Option<String> {
    let mut steps: Vec<&str> = overlay.split('/').collect();
    steps.pop();
    for step in table.split('/') {
        match step {
            "." => {}
            "" => return None,
            ".." => drop(steps.pop()?),
            step => steps.push(step),
        }
    }
    Some(steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_from_the_folder_of_its_overlay() {
        let check = |overlay, table, expected: Option<&str>| {
            assert_eq!(table_path(overlay, table).as_deref(), expected, "{table} beside {overlay}");
        };
        check("eu.yaml", "addresses.yaml", Some("addresses.yaml"));
        check("platform/eu.yaml", "./addresses.yaml", Some("platform/addresses.yaml"));
        check("platform/eu.yaml", "../tables/a.yaml", Some("tables/a.yaml"));
        check("platform/eu.yaml", "../../a.yaml", None);
        check("platform/eu.yaml", "/etc/passwd", None);
        check("platform/eu.yaml", "", None);
    }
}
