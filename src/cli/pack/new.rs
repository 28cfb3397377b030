//! `gatewright pack new`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::super::{Failure, print};

/// Create a pack: a folder with a pack.yaml, defaults, a schema, templates and a first case, all of which work.
///
/// It renders a Deployment and a Service for each Gateway of a controller. From there on the files are yours.
///
/// Exit codes: 0 begun, 1 the files cannot be written, 64 usage, or there is such a folder already.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name of the pack: lower-case letters, digits and hyphens.
    #[arg(value_name = "NAME")]
    name: String,
    /// The folder in which its folder is made.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The controllerName of the classes whose Gateways it renders; example.com/NAME by default.
    #[arg(long, value_name = "CONTROLLER")]
    controller: Option<String>,
    /// The kind of its parameters, as Kind.group, or ConfigMap; NAMEParameters.example.com by default.
    #[arg(long, value_name = "KIND.GROUP")]
    parameters: Option<String>,
}

/// The files that a pack begins with.
const FILES: [(&str, &str); 8] = [
    ("pack.yaml", include_str!("scaffold/pack.yaml")),
    ("defaults.yaml", include_str!("scaffold/defaults.yaml")),
    ("parameters.schema.yaml", include_str!("scaffold/parameters.schema.yaml")),
    ("deployment.yaml", include_str!("scaffold/deployment.yaml")),
    ("service.yaml", include_str!("scaffold/service.yaml")),
    ("cases/a_gateway/in/gateway.yaml", include_str!("scaffold/gateway.yaml")),
    ("cases/a_gateway/objects.yaml", include_str!("scaffold/objects.yaml")),
    ("cases/a_gateway/units.txt", include_str!("scaffold/units.txt")),
];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    check_name(&args.name)?;
    let folder = args.dir.join(&args.name);
    if folder.exists() {
        return Err(Failure::usage(format!("{} is there already", folder.display())));
    }
    let words = words(args)?;
    for (name, text) in FILES {
        let text = words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value));
        write(&folder.join(name), &text)?;
    }
    let folder = folder.display();
    print(&format!(
        "{folder} is a pack.\n\
         gatewright pack test {folder}   renders its cases\n\
         gatewright pack lint {folder}   examines its files\n\
         gatewright --packs {folder} render {folder}/cases/a_gateway/in   renders specs with it\n"
    ));
    Ok(0)
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = name.chars().all(is_allowed) && name.starts_with(|c: char| c.is_ascii_lowercase());
    if is_name && !name.ends_with('-') && name.len() <= 40 {
        return Ok(());
    }
    Err(Failure::usage(format!("{name:?} is no name of a pack"))
        .hint("a name is lower-case letters, digits and hyphens, begins with a letter and has 40 characters at most"))
}

/// The kind of parameters that is a part of Kubernetes: its group has no name.
const CONFIG_MAP: &str = "ConfigMap";

/// Returns what is put in place of the words in capitals.
fn words(args: &Args) -> Result<Vec<(&'static str, String)>, Failure> {
    let name = args.name.clone();
    let word = |part: &str| part[..1].to_uppercase() + &part[1..];
    let title: String = name.split('-').filter(|part| !part.is_empty()).map(word).collect();
    let parameters = args.parameters.clone().unwrap_or_else(|| format!("{title}Parameters.example.com"));
    let mut words = vec![("CONTROLLER", args.controller.clone().unwrap_or_else(|| format!("example.com/{name}")))];
    words.extend(parameter_words(&parameters)?);
    words.push(("PACK", name));
    Ok(words)
}

/// Returns what says of which kind the parameters are, and how one of them is written.
fn parameter_words(parameters: &str) -> Result<[(&'static str, String); 5], Failure> {
    let words = |group: &str, kind: &str, version: &str, api: String, fields: &str| {
        let [group, kind, version, fields] = [group, kind, version, fields].map(str::to_owned);
        [
            ("PARAMETERS_GROUP", group),
            ("PARAMETERS_KIND", kind),
            ("PARAMETERS_VERSION", version),
            ("PARAMETERS_API", api),
            ("PARAMETERS_FIELDS", fields),
        ]
    };
    if parameters == CONFIG_MAP {
        return Ok(words("\"\"", CONFIG_MAP, "v1", "v1".to_owned(), "data:\n  replicas: \"2\""));
    }
    let named = parameters.split_once('.').filter(|(kind, group)| !kind.is_empty() && !group.is_empty());
    let Some((kind, group)) = named else {
        return Err(Failure::usage(format!("{parameters:?} names no kind")).hint(
            "a kind is written Kind.group, such as NginxProxy.gateway.nginx.org; parameters may be a ConfigMap, too",
        ));
    };
    Ok(words(group, kind, "v1alpha1", format!("{group}/v1alpha1"), "spec:\n  replicas: 2"))
}

/// Writes a new file.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    let file = folder.and_then(|()| OpenOptions::new().write(true).create_new(true).open(path));
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| Failure {
        message: format!("cannot write {}: {error}", path.display()),
        ..Failure::of(&error)
    })
}
