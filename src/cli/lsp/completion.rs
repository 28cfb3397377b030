//! What may be written at the cursor: names of fields, their values, kinds and versions, and names of other documents.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tower_lsp_server::ls_types::{
    CompletionItem, CompletionItemKind, CompletionTextEdit, Documentation, MarkupContent, MarkupKind, TextEdit,
};

use super::cursor::{Cursor, Role, Step, plain};
use super::fields::Field;
use super::index::Index;
use super::references;
use super::setup::Setup;
use super::text::Encoding;

/// What completions are made of.
pub(super) struct Sources<'a> {
    /// Schemas of kinds.
    pub(super) setup: &'a Setup,
    /// Documents that are there.
    pub(super) index: &'a Index,
}

/// Returns what may be written at a byte of a text.
pub(super) fn complete(sources: &Sources<'_>, text: &str, offset: usize, encoding: Encoding) -> Vec<CompletionItem> {
    let Some(cursor) = Cursor::at(text, offset) else { return Vec::new() };
    let schema = sources.setup.schema(cursor.text_at(&[], "apiVersion"), cursor.text_at(&[], "kind"));
    let root = schema.as_deref().map(Field::root);
    let field = root.and_then(|root| root.follow(&cursor.path));
    let mut items = match (cursor.path.as_slice(), cursor.role) {
        ([], Role::Name) if schema.is_none() => top(),
        ([Step::Field(name)], Role::Value) if name == "apiVersion" || name == "kind" => {
            kinds(sources.setup, &cursor, name)
        }
        _ => Vec::new(),
    };
    if cursor.role != Role::Value {
        let present: BTreeSet<&str> =
            cursor.names().filter(|name| *name != plain(&text[cursor.word.clone()])).collect();
        // Nobody writes what controllers write.
        let is_written = |name: &str| !(cursor.path.is_empty() && name == "status");
        let fields = field.into_iter().flat_map(Field::properties).filter(|(name, _)| is_written(name));
        items.extend(fields.filter(|(name, _)| !present.contains(name)).map(|(name, field)| named(name, field)));
    }
    if cursor.role != Role::Name && items.is_empty() {
        items.extend(field.into_iter().flat_map(Field::values).map(value));
        if let Some(reference) = references::at(&cursor, root).filter(|_| is_named(&cursor)) {
            let mut names: BTreeSet<&str> = BTreeSet::new();
            names.extend(sources.index.all().filter(|entry| reference.may_be(entry)).map(|entry| &*entry.name));
            items.extend(names.into_iter().map(|name| item(name, CompletionItemKind::REFERENCE)));
        }
    }
    let has_colon = text[cursor.word.end..].trim_start_matches(['"', '\'']).starts_with(':');
    let range = encoding.range(text, cursor.word.clone());
    for item in &mut items {
        let is_name = item.kind == Some(CompletionItemKind::FIELD);
        let new_text = if is_name && !has_colon { format!("{}: ", item.label) } else { item.label.clone() };
        item.filter_text = Some(item.label.clone());
        item.text_edit = Some(CompletionTextEdit::Edit(TextEdit { range, new_text }));
    }
    unique(items)
}

/// Tells whether the cursor is at what names a document.
fn is_named(cursor: &Cursor) -> bool {
    matches!(cursor.path.last(), Some(Step::Field(name)) if name == "name" || name == "gatewayClassName")
}

/// Returns items, each name once.
fn unique(items: Vec<CompletionItem>) -> Vec<CompletionItem> {
    let mut found: BTreeMap<String, CompletionItem> = BTreeMap::new();
    for item in items {
        found.entry(item.label.clone()).or_insert(item);
    }
    found.into_values().collect()
}

/// Returns the fields of a document of which nothing is known yet.
fn top() -> Vec<CompletionItem> {
    ["apiVersion", "kind", "metadata", "spec"].map(|name| item(name, CompletionItemKind::FIELD)).to_vec()
}

/// Returns kinds and versions, those only that go with the other one of the two.
fn kinds(setup: &Setup, cursor: &Cursor, field: &str) -> Vec<CompletionItem> {
    let (version, kind) = (cursor.text_at(&[], "apiVersion"), cursor.text_at(&[], "kind"));
    let all = setup.kinds.iter().map(|of| (of.api_version(), of.kind.clone()));
    let of_version = |it: &(String, String)| field != "kind" || version.is_empty() || it.0 == version;
    let of_kind = |it: &(String, String)| field != "apiVersion" || kind.is_empty() || it.1 == kind;
    let fitting: Vec<(String, String)> = all.clone().filter(of_version).filter(of_kind).collect();
    let fitting = if fitting.is_empty() { all.collect() } else { fitting };
    let word = |it: (String, String)| if field == "kind" { (it.1, it.0) } else { it };
    let item = |(label, detail): (String, String)| CompletionItem {
        detail: Some(detail),
        ..item(&label, CompletionItemKind::CLASS)
    };
    fitting.into_iter().map(word).map(item).collect()
}

fn named(name: &str, field: Field<'_>) -> CompletionItem {
    let details = field.details();
    let markup = |value| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value });
    let documentation = Some(details).filter(|it| !it.is_empty()).map(markup);
    // What must be there comes first.
    let sort_text = format!("{}{name}", u8::from(!field.is_required));
    let (detail, sort_text) = (Some(field.summary()), Some(sort_text));
    CompletionItem { detail, documentation, sort_text, ..item(name, CompletionItemKind::FIELD) }
}

fn value(value: &Value) -> CompletionItem {
    item(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), CompletionItemKind::ENUM_MEMBER)
}

fn item(label: &str, kind: CompletionItemKind) -> CompletionItem {
    CompletionItem { label: label.to_owned(), kind: Some(kind), ..CompletionItem::default() }
}
