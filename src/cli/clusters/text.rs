//! The clusters as a person reads them: a line each, and below them what is wrong.

use std::collections::BTreeSet;
use std::fmt::Display;

use gatewright_engine::text::count;

use super::{Kind, LastRound, Line, Standing};
use crate::cli::table::table;
use crate::cluster::right::Right;
use crate::reconcile::gone;
use crate::report::status::json_word;

/// The most characters of a cell that may become long; JSON has all of it.
const MOST: usize = 28;

/// The most rights that are named.
const MOST_RIGHTS: usize = 3;

/// The last column is for those who want all: what tells one cluster from every other.
const HEADER: [&str; 10] =
    ["CLUSTER", "LABELS", "KIND", "VERSION", "GATEWAY API", "STATE", "LAST ROUND", "SYNCS", "RIGHTS", "IDENTITY"];

/// Returns the table, and what is to be said of single clusters.
pub(super) fn of(lines: &[Line], is_wide: bool) -> String {
    if lines.is_empty() {
        return "there are no clusters\n".to_owned();
    }
    let room = if is_wide { usize::MAX } else { MOST };
    let rows = lines.iter().map(|line| row(line, room));
    let notes: Vec<String> = lines.iter().flat_map(notes).collect();
    let gap = if notes.is_empty() { "" } else { "\n" };
    let shown = if is_wide {
        table(HEADER, &rows.collect::<Vec<_>>())
    } else {
        table(narrow(HEADER), &rows.map(narrow).collect::<Vec<_>>())
    };
    format!("{shown}{gap}{}", notes.concat())
}

fn narrow<T>([cells @ .., _]: [T; 10]) -> [T; 9] {
    cells
}

fn row(line: &Line, room: usize) -> [String; 10] {
    let labels = line.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let kind = match line.kind {
        Some(Kind::ApiServer) => "server",
        Some(Kind::Directory) => "directory",
        None => "-",
    };
    [
        line.name.clone(),
        listed(labels, room),
        kind.to_owned(),
        line.version.clone().unwrap_or_else(|| "-".to_owned()),
        gateway_api(line),
        json_word(&line.state),
        last_round(line),
        if line.syncs.is_empty() { "none".to_owned() } else { listed(line.syncs.keys().cloned(), room) },
        rights(line),
        line.identity.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Lists words in a cell, as many as there is room for.
fn listed(words: impl Iterator<Item = String>, room: usize) -> String {
    let words: Vec<String> = words.collect();
    let (mut cell, mut shown) = (String::new(), 0);
    for word in &words {
        let comma = if cell.is_empty() { "" } else { "," };
        if !cell.is_empty() && cell.len() + word.len() > room {
            break;
        }
        cell = format!("{cell}{comma}{word}");
        shown += 1;
    }
    match words.len() - shown {
        0 if cell.is_empty() => "-".to_owned(),
        0 => cell,
        more => format!("{cell},+{more}"),
    }
}

fn gateway_api(line: &Line) -> String {
    match (&line.gateway_api, line.state, line.kind) {
        (Some(api), ..) => {
            let said = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
            format!("{} {}", said(&api.bundle), said(&api.channel))
        }
        (None, Standing::Reachable, Some(Kind::ApiServer)) if line.unknown.contains_key("Gateway API") => {
            "?".to_owned()
        }
        (None, Standing::Reachable, Some(Kind::ApiServer)) => "none".to_owned(),
        _ => "-".to_owned(),
    }
}

/// The round that says most: of several syncs the one that went worst, and of these the newest.
fn last_round(line: &Line) -> String {
    let severity = |round: &&LastRound| [0, 4, 3, 1].iter().position(|code| *code == round.code);
    let rounds = line.syncs.values().filter_map(|sync| sync.last_round.as_ref());
    let worst = rounds.max_by_key(|round| (severity(round), round.finished));
    let told = |round: &LastRound| format!("{} {}", round.finished.strftime("%F %H:%M"), json_word(&round.state));
    worst.map_or_else(|| "-".to_owned(), told)
}

fn rights(line: &Line) -> String {
    let known: Vec<&BTreeSet<Right>> = line.syncs.values().filter_map(|sync| sync.missing_rights.as_ref()).collect();
    let missing: BTreeSet<&Right> = known.iter().copied().flatten().collect();
    match (missing.len(), known.len()) {
        (0, 0) if line.state == Standing::Reachable && line.unknown.keys().any(|what| what.starts_with("rights")) => {
            "?".to_owned()
        }
        (0, 0) => "-".to_owned(),
        (0, number) if number < line.syncs.len() => "?".to_owned(),
        (0, _) => "all".to_owned(),
        (number, _) => format!("{number} missing"),
    }
}

fn notes(line: &Line) -> Vec<String> {
    let mut notes = Vec::new();
    let name = &line.name;
    let mut note = |text: &dyn Display, hint: Option<&str>| {
        notes.push(format!("{name}: {text}\n"));
        notes.extend(hint.map(|hint| format!("  {hint}\n")));
    };
    if line.state == Standing::Gone {
        note(&gone::WORDS, Some(&gone::hint(name)));
    }
    if let Some(error) = &line.error {
        note(&error.message, error.hint.as_deref());
    }
    if let Some(account) = &line.impersonates {
        note(&format!("requests are made as {account}"), None);
    }
    for (sync, account) in line.syncs.iter().filter_map(|(sync, it)| Some((sync, it.impersonates.as_ref()?))) {
        note(&format!("sync {sync} acts as {account}"), None);
    }
    for (what, why) in &line.unknown {
        note(&format!("{what}: not known: {why}"), None);
    }
    for (sync, of_sync) in &line.syncs {
        let Some(missing) = of_sync.missing_rights.as_ref().filter(|missing| !missing.is_empty()) else { continue };
        let named: Vec<String> = missing.iter().take(MOST_RIGHTS).map(Right::to_string).collect();
        let more = if missing.len() > MOST_RIGHTS { ", …" } else { "" };
        let number = count(missing.len(), "right");
        let hint = format!("`gatewright rbac {sync} --cluster {name}` prints all that it needs");
        note(&format!("sync {sync} lacks {number}: {}{more}", named.join(", ")), Some(&hint));
    }
    notes
}
