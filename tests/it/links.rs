//! What pages refer to is there: every relative link and anchor, and every page that a comment names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::cluster::binaries::in_repository;

/// Folders with pages, and single pages.
const PAGES: [&str; 7] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "templates/crds"];

/// Folders of which comments name pages.
const COMMENTS: [&str; 4] = ["config", "examples", "systemd", "packaging"];

/// Returns the files of a folder, or a file itself, by their paths from the root of the repository.
fn files(path: &str) -> Vec<String> {
    let full = in_repository(path);
    if full.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(&full).expect("the folder is there").flatten();
    let names = entries.map(|entry| entry.file_name().into_string().expect("names in the repository are text"));
    // What running an example has made is no part of it.
    let kept = names.filter(|name| !["state", "rendered", "target"].contains(&name.as_str()));
    kept.flat_map(|name| files(&format!("{path}/{name}"))).collect()
}

fn pages() -> Vec<String> {
    PAGES.iter().flat_map(|path| files(path)).filter(is_page).collect()
}

fn is_page(path: &String) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

fn read(page: &str) -> String {
    fs::read_to_string(in_repository(page)).expect("a page can be read")
}

/// Returns the lines of a page outside of its blocks of code, each with its number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// Returns a line without what stands in it as code.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Returns the anchors of a page: its headings, in the form that GitHub and mdBook give them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    let titles = headings.map(|rest| rest.trim_start_matches('#')).filter_map(|rest| rest.strip_prefix(' '));
    let anchor = |title: &str| {
        let title = title.trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let number = seen.entry(anchor.clone()).or_default();
        *number += 1;
        if *number == 1 { anchor } else { format!("{anchor}-{}", *number - 1) }
    };
    titles.map(anchor).collect()
}

/// Returns the targets of the links of a page, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let of = |(number, line): (usize, &str)| {
        let line = without_code(line);
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        targets.map(|target| (number, target.to_owned())).collect::<Vec<_>>()
    };
    prose(text).flat_map(of).collect()
}

/// Returns where a link of a page leads to, from the root of the repository.
fn resolve(page: &str, target: &str) -> PathBuf {
    let mut path = Path::new(page).parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{page}: {target} leaves the repository"),
            part => path.push(part),
        }
    }
    path
}

/// Says what is wrong with a link, if anything is.
fn mistake(page: &str, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { PathBuf::from(page) } else { resolve(page, path) };
    let full = in_repository(&path.to_string_lossy());
    if !full.exists() {
        return Some(format!("{} is not there", path.display()));
    }
    let other = if path == Path::new(page) { text.to_owned() } else { fs::read_to_string(full).unwrap_or_default() };
    let is_there = anchor.is_empty() || anchors(&other).contains(anchor);
    (!is_there).then(|| format!("{} has no heading for #{anchor}", path.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut mistakes = Vec::new();
    let mut number = 0;
    for page in pages() {
        let text = read(&page);
        for (line, target) in links(&text) {
            number += 1;
            mistakes.extend(mistake(&page, &text, &target).map(|what| format!("{page}:{line}: {what}")));
        }
    }
    assert_eq!(mistakes, [""; 0]);
    assert!(number > 300, "only {number} links were found");
}

/// A comment that sends a reader to a page must not send him nowhere.
#[test]
fn every_page_that_a_comment_names_is_there() {
    let all = COMMENTS.iter().flat_map(|folder| files(folder));
    let texts = all.filter_map(|path| fs::read_to_string(in_repository(&path)).ok().map(|text| (path, text)));
    let mut mistakes = Vec::new();
    for (path, text) in texts {
        let named = text.match_indices("docs/").filter_map(|(at, _)| text[at..].split_once(".md"));
        let named = named.map(|(name, _)| format!("{name}.md"));
        let is_name = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "/-._".contains(c));
        let lost = named.filter(is_name).filter(|name| !in_repository(name).exists());
        mistakes.extend(lost.map(|name| format!("{path}: {name} is not there")));
    }
    assert_eq!(mistakes, [""; 0]);
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = links(&read("docs/SUMMARY.md"));
    let listed: Vec<PathBuf> = summary.iter().map(|(_, target)| resolve("docs/SUMMARY.md", target)).collect();
    let unique: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let is_lost = |page: &String| !unique.contains(&PathBuf::from(page)) && page != "docs/SUMMARY.md";
    let lost: Vec<String> = files("docs").into_iter().filter(is_page).filter(is_lost).collect();
    assert_eq!(lost, [""; 0], "pages that docs/SUMMARY.md does not list");
}

#[test]
fn anchors_are_those_of_headings() {
    let text =
        "# A page\n\n## Mending: `--fix`\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n### `a_b`, and (c)\n";
    let expected = ["a-page", "a_b-and-c", "mending---fix", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    assert!(mistake("docs/a.md", text, "#twice-2").is_some());
    assert!(mistake("docs/a.md", text, "nowhere.md").is_some());
    assert_eq!(links("[a](b.md#c) `[d](e)` ![f](g.png)\n"), [(1, "b.md#c".to_owned()), (1, "g.png".to_owned())]);
}
