//! The flags that programs take, from tables that were made of the programs themselves.
//!
//! They lie outside this repository, as the cases do: in the folder `flags` of one of those, or in `specs/flags` beside it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::lines::Line;

/// All tables.
pub(super) struct Tables(Vec<Table>);

/// The flags of a program of one version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Table {
    pub(super) program: String,
    pub(super) version: String,
    /// The parser of a program in Go: `flag` or `pflag`.
    #[serde(default)]
    parser: Option<String>,
    /// The program that gets the flags that this one does not know.
    #[serde(default)]
    pass_through: Option<PassThrough>,
    #[serde(default)]
    underscores_are_dashes: bool,
    flags: Vec<Flag>,
}

#[derive(Debug, Deserialize)]
struct PassThrough {
    #[serde(default)]
    program: Option<String>,
    #[serde(default)]
    prefix: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Flag {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    shorthand: Option<String>,
    /// Other names, with their dashes.
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    deprecated: bool,
}

/// The reason why a program would exit, or why it will in a later release.
#[derive(Debug)]
pub(super) struct Complaint {
    flag: String,
    why: String,
    pub(super) is_deprecation: bool,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.flag, self.why)
    }
}

impl Complaint {
    fn new(flag: &str, why: impl Into<String>) -> Self {
        Self { flag: flag.to_owned(), why: why.into(), is_deprecation: false }
    }

    /// Tells whether a person wrote it into specs.
    pub(super) fn is_written_in(&self, specs: &str) -> bool {
        specs.contains(self.flag.trim_matches(['-', '"']))
    }
}

impl Tables {
    /// Reads the tables beside the cases, if there are any; in CI there have to be.
    #[expect(clippy::disallowed_methods, reason = "the variable by which CI is known")]
    pub(super) fn read(cases: &[PathBuf]) -> Option<Self> {
        let beside = |folder: &PathBuf| [folder.join("flags"), folder.join("../specs/flags")];
        let folder = cases.iter().flat_map(beside).find(|folder| folder.is_dir());
        assert!(folder.is_some() || std::env::var("CI").is_err(), "there are no tables of flags beside the cases");
        Some(Self::of_texts(&texts(&folder?)))
    }

    pub(super) fn of_texts<T: AsRef<str>>(texts: &[T]) -> Self {
        let table = |text: &T| serde_json::from_str(text.as_ref()).expect("a table is JSON");
        Self(texts.iter().map(table).collect())
    }

    /// Returns the table of a program that is started.
    pub(super) fn of(&self, line: &Line) -> Option<&Table> {
        let tables: Vec<&Table> = self.0.iter().filter(|table| table.program == line.program).collect();
        let is_release = line.tag.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
        let release = match line.program.starts_with("dynamo") {
            // A tag that is none is that of whoever builds images; the graphs are those of this release.
            true if !is_release => "1.3.0",
            true => line.tag.split('-').next().unwrap_or_default(),
            false => &line.tag,
        };
        let is_of = |table: &&Table| table.version == release || table.version.starts_with(&format!("{release}.post"));
        let exact = tables.iter().copied().find(is_of);
        // Images that bring vLLM along have versions of their own.
        exact.or_else(|| tables.first().copied().filter(|table| table.program == "vllm-serve"))
    }

    /// Returns what a program would not take.
    pub(super) fn judge(&self, table: &Table, arguments: &[String]) -> Vec<Complaint> {
        match table.parser.as_deref() {
            Some(parser) => in_go(table, parser, arguments),
            None => self.in_python(table, arguments),
        }
    }

    /// Python's parser knows flags by their whole names, and values may follow in any number.
    fn in_python(&self, table: &Table, arguments: &[String]) -> Vec<Complaint> {
        let flags = arguments.iter().filter(|argument| argument.starts_with("--") && argument.len() > 2);
        let names = flags.map(|argument| argument.split('=').next().unwrap_or_default());
        let unknown = names.filter(|name| !name.contains('$') && !self.knows(table, &name[2..]));
        unknown.map(|name| Complaint::new(name, "is not known")).collect()
    }

    fn knows(&self, table: &Table, name: &str) -> bool {
        let further = |it: &PassThrough| {
            let is_passed_on = it.prefix.as_ref().is_some_and(|prefix| name.starts_with(prefix.as_str()));
            let others = self.0.iter().filter(|other| Some(&other.program) == it.program.as_ref());
            is_passed_on || others.clone().any(|other| self.knows(other, name))
        };
        table.flag_of_python(name).is_some() || table.pass_through.as_ref().is_some_and(further)
    }
}

fn texts(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("the tables can be listed").flatten().map(|entry| entry.path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    let texts: BTreeMap<PathBuf, String> =
        files.map(|file| (file.clone(), std::fs::read_to_string(file).expect("a table can be read"))).collect();
    texts.into_values().collect()
}

impl Table {
    fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.name == name)
    }

    fn flag_of_python(&self, name: &str) -> Option<&Flag> {
        let name = if self.underscores_are_dashes { name.replace('_', "-") } else { name.to_owned() };
        // A field of a value that is a mapping has the flag's name before its own.
        let whole = name.split('.').next().unwrap_or_default();
        let positive = name.strip_prefix("no-").unwrap_or_default();
        let is_alias = |flag: &&Flag| flag.aliases.iter().any(|alias| alias.trim_start_matches('-') == name);
        let negated = || self.flag(positive).filter(|flag| flag.kind == "negatable bool");
        self.flag(&name).or_else(|| self.flag(whole)).or_else(negated).or_else(|| self.flags.iter().find(is_alias))
    }
}

/// Go's parsers take one value for each flag, and a boolean one only behind an equals sign.
fn in_go(table: &Table, parser: &str, arguments: &[String]) -> Vec<Complaint> {
    let (mut found, mut rest) = (Vec::new(), arguments.iter());
    while let Some(argument) = rest.next() {
        let name = argument.trim_start_matches('-');
        if name.len() == argument.len() {
            // Go's own parser ends at the first argument that is no flag; the other one goes on.
            let hidden = rest.clone().find(|later| later.starts_with('-')).filter(|_| parser == "flag");
            found.extend(hidden.map(|later| Complaint::new(&format!("{argument:?}"), format!("hides {later}"))));
            continue;
        }
        let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        let dashes = &argument[..argument.len() - argument.trim_start_matches('-').len()];
        let shown = format!("{dashes}{name}");
        let flag = match (parser, dashes) {
            ("pflag", "-") => table.flags.iter().find(|it| it.shorthand.as_deref() == Some(name) || it.name == name),
            _ => table.flag(name),
        };
        if flag.is_some_and(|flag| flag.deprecated && !flag.refused) {
            found.push(Complaint { is_deprecation: true, ..Complaint::new(&shown, "is deprecated") });
        }
        match flag {
            None => found.push(Complaint::new(&shown, "is not known")),
            Some(_) if (parser, dashes) == ("pflag", "-") && name.len() > 1 => {
                found.push(Complaint::new(&shown, "has one dash, which is for flags of one letter"));
            }
            Some(flag) if flag.refused => found.push(Complaint::new(&shown, "is refused")),
            Some(flag) if flag.kind == "bool" => found.extend(wrong_value(flag, value.unwrap_or("true"), &shown)),
            Some(flag) => match value.or_else(|| rest.next().map(String::as_str)) {
                Some(value) => found.extend(wrong_value(flag, value, &shown)),
                None => found.push(Complaint::new(&shown, "has no value")),
            },
        }
    }
    found
}

/// Says what is wrong with a value, as far as its text tells; what a container fills in is not known yet.
fn wrong_value(flag: &Flag, value: &str, shown: &str) -> Option<Complaint> {
    if value.contains("$(") {
        return None;
    }
    match flag.kind.as_str() {
        "int" if value.parse::<i64>().is_err() => Some(Complaint::new(shown, format!("is no whole number: {value:?}"))),
        "bool"
            if !["true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False"].contains(&value) =>
        {
            Some(Complaint::new(shown, format!("is neither true nor false: {value:?}")))
        }
        _ => None,
    }
}
