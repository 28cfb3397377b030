//! What is known of a field: what its definition says, where a name leads, and what holds where nobody sets it.

use gatewright_engine::defaults::defaults;
use gatewright_engine::editor;
use gatewright_engine::object::Gvk;
use gatewright_engine::pack::Packs;
use serde_json::Value;
use tower_lsp_server::ls_types::{Hover, HoverContents, MarkupContent, MarkupKind};

use super::cursor::{Cursor, Step};
use super::fields::Field;
use super::setup::Setup;
use super::text::Encoding;

/// Returns what is known of the field at a byte of a text, and its path.
pub(super) fn hover(setup: &Setup, text: &str, offset: usize, encoding: Encoding) -> Option<(Hover, Vec<Step>)> {
    let cursor = Cursor::at(text, offset).filter(|cursor| !cursor.word.is_empty())?;
    let (api_version, kind) = (cursor.text_at(&[], "apiVersion"), cursor.text_at(&[], "kind"));
    let schema = setup.schema(api_version, kind)?;
    let path = cursor.full_path(text);
    let field = Field::root(&schema).follow(&path)?;
    let release = release(&setup.packs, api_version, kind);
    let parts = [
        Some(format!("**{}**: {}", written(&path), field.summary())),
        Some(field.details()).filter(|details| !details.is_empty()),
        default_of_pack(&setup.packs, (api_version, kind), &path),
        Some(format!("{kind} of {api_version}{release}")),
    ];
    let value = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some((Hover { contents, range: Some(encoding.range(text, cursor.word)) }, path))
}

/// Writes a path as messages of `check` do: `spec.listeners[0].port`.
fn written(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.extend([".", name]),
            Step::Item(index) => text.extend(["[", &index.to_string(), "]"]),
        }
    }
    text
}

/// Says of which release of a product a definition is, where others may say more.
fn release(packs: &Packs, api_version: &str, kind: &str) -> String {
    let release = editor::release(packs, &Gvk::new(api_version, kind).group, kind);
    release.map(|release| format!(", by the definition of {release}")).unwrap_or_default()
}

/// Says what a parameter is where nobody sets it, and which layer says so.
fn default_of_pack(packs: &Packs, (api_version, kind): (&str, &str), path: &[Step]) -> Option<String> {
    let group = Gvk::new(api_version, kind).group;
    let pack = packs.all().iter().find(|pack| pack.own.kind.group == group && pack.own.kind.kind == kind)?;
    let class = pack.manifest.classes.keys().next().map_or("", String::as_str);
    let defaults = defaults(pack, class);
    let name = |step: &Step| match step {
        Step::Field(name) => Some(name.clone()),
        Step::Item(_) => None,
    };
    // Items of lists are no defaults of each other.
    let names = path.iter().map(name).collect::<Option<Vec<String>>>()?;
    let value = names.iter().try_fold(&defaults.document, |value, name| value.get(name))?;
    let dotted = names.get(1..)?.join(".");
    let origin = defaults.origins.iter().find(|(path, _)| *path == dotted || dotted.starts_with(&format!("{path}.")));
    let text = match value {
        Value::Object(_) | Value::Array(_) => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let from = origin.map(|(_, origin)| format!(" ({origin})")).unwrap_or_default();
    Some(format!("Where nobody sets it: `{text}`{from}."))
}
