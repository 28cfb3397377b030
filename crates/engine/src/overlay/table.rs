//! The table of an overlay: one row of values for each cluster, in the overlay itself or in a file beside it.

use std::sync::Arc;

use serde_json::Value;

use super::Overlay;
use crate::check::suggest;
use crate::problem::{Place, Problem};
use crate::spec::Specs;
use crate::spec::tables::table_path;
use crate::yaml::{Content, Node};

/// The field of an overlay with the rows of its table.
pub(super) const ROWS: [&str; 3] = ["spec", "values", "byCluster"];

/// A table of values.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The file that it stands in.
    pub file: Arc<str>,
    /// The rows, by cluster.
    rows: Arc<Node>,
}

impl Table {
    /// Reads the table of an overlay, if it has one.
    pub(super) fn of(overlay: &Overlay, specs: &Specs) -> Result<Option<Self>, Vec<Problem>> {
        let Some(values) = &overlay.spec.values else { return Ok(None) };
        let table = if let Some(file) = &values.file {
            Self::in_file(overlay, file, specs).map_err(|problem| vec![*problem])?
        } else {
            let rows = overlay.document.root.at(ROWS).cloned();
            let rows = Arc::new(rows.unwrap_or_else(|| Node::of_value(&Value::Null)));
            Self { file: Arc::clone(&overlay.document.file), rows }
        };
        let problems = table.flaws(overlay);
        if problems.is_empty() { Ok(Some(table)) } else { Err(problems) }
    }

    fn in_file(overlay: &Overlay, file: &str, specs: &Specs) -> Result<Self, Box<Problem>> {
        let fail = |message: String| overlay.document.problem(&["spec", "values", "file"], message);
        let path = table_path(&overlay.document.file, file)
            .ok_or_else(|| fail(format!("{file:?} is no path within the source")))?;
        if let Some((path, rows)) = specs.tables.get_key_value(path.as_str()) {
            return Ok(Self { file: Arc::clone(path), rows: Arc::clone(rows) });
        }
        if !specs.overlay_folders.hold(&path) {
            let problem = fail(format!("tables in the folder of {path} do not count"));
            return Err(problem.hint("move it to a folder whose overlays count").into());
        }
        if let Some(unclear) = specs.reading.unclear_file(&path) {
            return Err(fail(format!("there is no table in {unclear}")).into());
        }
        if specs.reading.files.contains_key(path.as_str()) {
            return Err(fail(format!("{path} holds objects, and no table of values by cluster")).into());
        }
        let folder = path.rsplit_once('/').map(|(folder, _)| folder);
        let beside = specs.reading.files.keys().filter(|other| other.rsplit_once('/').map(|(it, _)| it) == folder);
        Err(fail(format!("there is no file {path} in the source")).meant(suggest(&path, beside.map(|it| &**it))).into())
    }

    /// Returns what is wrong with its form.
    fn flaws(&self, overlay: &Overlay) -> Vec<Problem> {
        let problem = |node: &Node, message: String| {
            Problem::document(Place::at(&self.file, node.position), message).about(overlay.document.id.clone())
        };
        let is_map = |node: &Node| matches!(node.content, Content::Map(_));
        if !is_map(&self.rows) {
            return vec![problem(&self.rows, "a table of values names clusters, each with its values".to_owned())];
        }
        let rows = self.rows.fields().filter(|(_, row)| !is_map(&row.node));
        let message =
            |name: &str| format!("the values of cluster {name:?} must be a mapping, such as {{ip: 192.0.2.10}}");
        rows.map(|(name, row)| problem(&row.node, message(name))).collect()
    }

    /// Returns the names of the clusters that it has rows for, in their order.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &str> {
        self.rows.fields().map(|(name, _)| name)
    }

    /// Returns a value of a cluster with its place, or says what the table lacks.
    pub(super) fn get(&self, cluster: &str, path: &[String]) -> Result<(&Node, Place), String> {
        let Some(row) = self.rows.get(cluster) else {
            return Err(format!("{} has no row for the cluster", self.file));
        };
        let mut node = row;
        for (depth, step) in path.iter().enumerate() {
            node = node.get(step).ok_or_else(|| {
                let place = Place::at(&self.file, row.position);
                format!("the row of the cluster at {place} has no {:?}", path[..=depth].join("."))
            })?;
        }
        Ok((node, Place::at(&self.file, node.position)))
    }
}
