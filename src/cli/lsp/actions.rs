//! Quick fixes: what was probably meant, where a finding says so.

use tower_lsp_server::ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, Diagnostic, TextEdit, Uri, WorkspaceEdit,
};

use super::checks::SOURCE;
use super::text::Encoding;

/// The words before what was probably meant.
const MEANT: &str = "did you mean \"";

/// Returns a fix for each diagnostic that has one.
pub(super) fn fixes(uri: &Uri, diagnostics: &[Diagnostic], text: &str, encoding: Encoding) -> Vec<CodeActionOrCommand> {
    let own = diagnostics.iter().filter(|it| it.source.as_deref() == Some(SOURCE));
    own.filter_map(|diagnostic| fix(uri, diagnostic, text, encoding)).collect()
}

fn fix(uri: &Uri, diagnostic: &Diagnostic, text: &str, encoding: Encoding) -> Option<CodeActionOrCommand> {
    let meant = diagnostic.message.split_once(MEANT)?.1.split_once('"')?.0;
    let bytes = encoding.offset(text, diagnostic.range.start)..encoding.offset(text, diagnostic.range.end);
    let written = text.get(bytes)?;
    let quote = written.chars().next().filter(|char| matches!(char, '"' | '\'')).map(String::from).unwrap_or_default();
    // What is to be replaced is what the message is about; a name that stands elsewhere is not.
    let word = written.trim_matches(['"', '\'']);
    if word.is_empty() || !diagnostic.message.contains(&format!("{word:?}")) {
        return None;
    }
    let edit = TextEdit { range: diagnostic.range, new_text: format!("{quote}{meant}{quote}") };
    let changes = [(uri.clone(), vec![edit])].into_iter().collect();
    Some(CodeActionOrCommand::CodeAction(CodeAction {
        title: format!("Write {meant}"),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![diagnostic.clone()]),
        edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
        is_preferred: Some(true),
        ..CodeAction::default()
    }))
}
