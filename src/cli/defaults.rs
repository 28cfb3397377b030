//! `gatewright defaults`.

use gatewright_engine::defaults::{Defaults, defaults};
use gatewright_engine::merge::origin::{LayerName, Origin};
use gatewright_engine::pack::{Pack, Packs};
use gatewright_engine::problem::Place;
use gatewright_engine::yaml;

use super::{Context, Failure, emit, render};
use crate::config::Config;

/// Print the parameters that Gateways, or other specs of a pack, begin with, as a document to start one of your own from.
///
/// If --config names a file, what it sets for the pack is part of them, and said so in a comment.
/// With --preset, print a preset that is built into the pack instead.
///
/// Exit codes: 0 printed, 64 usage, or there is no such pack, class or preset.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The pack, such as kgateway.
    #[arg(value_name = "PACK")]
    pack: String,
    /// The class, with or without the name of the pack before it: kgateway-waypoint or waypoint.
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// A preset of the pack, with or without what all their names begin with: config-llm-scheduler or scheduler.
    #[arg(long, value_name = "NAME", conflicts_with = "class")]
    preset: Option<String>,
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let config = render::config(context, false)?;
    let packs = render::packs(context, config.as_ref())?;
    let pack = pack(&packs, &args.pack)?;
    if let Some(wanted) = &args.preset {
        emit(&preset(pack, wanted)?);
        return Ok(0);
    }
    let class = class(pack, args.class.as_deref())?;
    let found = defaults(pack, class);
    emit(&format!("{}{}", warnings(&found, pack, class, config.as_ref()), yaml::to_string(&found.document)));
    Ok(0)
}

fn pack<'a>(packs: &'a Packs, name: &str) -> Result<&'a Pack, Failure> {
    let found = packs.all().iter().find(|pack| pack.manifest.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = packs.all().iter().map(|pack| pack.manifest.name.as_str()).collect();
        Failure::usage(format!("there is no pack {name:?}")).hint(format!("known packs: {}", names.join(", ")))
    })
}

/// Returns the text of a preset, with the name and namespace with which it takes the place of the one that is built in.
fn preset(pack: &Pack, wanted: &str) -> Result<String, Failure> {
    let (presets, settings) = (gatewright_packs::presets(&pack.manifest.name), pack.own.generator.settings());
    let prefix = settings["presetPrefix"].as_str().unwrap_or_default();
    let short = |name: &str| name.strip_prefix("config-llm-").unwrap_or(name).to_owned();
    let wanted_name = short(wanted.strip_prefix(prefix).unwrap_or(wanted));
    let Some((name, text)) = presets.iter().find(|(name, _)| short(name) == wanted_name) else {
        let known: Vec<String> = presets.iter().map(|(name, _)| short(name)).collect();
        let hint =
            if known.is_empty() { "it has none".to_owned() } else { format!("known presets: {}", known.join(", ")) };
        return Err(Failure::usage(format!("pack {:?} has no preset {wanted:?}", pack.manifest.name)).hint(hint));
    };
    let namespace = settings["namespace"].as_str().unwrap_or_default();
    let own = format!("  name: {prefix}{name}\n  namespace: {namespace}\n");
    let comment = "# A preset that is built in. In a source it takes the place of that one; what has no command and no\n\
                   # ports for any container, and no rules of a route, is laid over it.\n";
    Ok(format!("{comment}{}", text.replacen(&format!("  name: {name}\n"), &own, 1)))
}

/// Finds a class of a pack: by its name, or what is left of it behind the name of the pack.
fn class<'a>(pack: &'a Pack, wanted: Option<&str>) -> Result<&'a str, Failure> {
    let (name, known) = (pack.manifest.name.as_str(), pack.manifest.classes.keys().map(String::as_str));
    let long = wanted.map_or_else(|| name.to_owned(), |wanted| format!("{name}-{wanted}"));
    let is_wanted = |class: &str| Some(class) == wanted || class == long;
    if let Some(class) = known.clone().find(|class| is_wanted(class)) {
        return Ok(class);
    }
    match wanted {
        None => Ok(known.clone().next().unwrap_or(name)),
        Some(wanted) => {
            let message = format!("pack {name:?} has no class {wanted:?}");
            let names: Vec<&str> = known.collect();
            Err(Failure::usage(message).hint(format!("known classes: {}", names.join(", "))))
        }
    }
}

/// Says in comments what the parameters are, and what to know before they are used.
fn warnings(found: &Defaults, pack: &Pack, class: &str, config: Option<&Config>) -> String {
    let whose =
        if pack.manifest.controllers.is_empty() { "specs".to_owned() } else { format!("Gateways of class {class}") };
    let pack = &pack.manifest.name;
    let more = config.map(|config| format!(", and what {} sets for it", config.file.display())).unwrap_or_default();
    let mut lines = vec![format!("What {whose} begin with: the defaults of pack {pack}{more}.")];
    if let Some(config) = config {
        let set = found.origins.iter().filter_map(|(path, origin)| Some((path, set_in(config, path, origin)?)));
        lines.extend(set.map(|(path, place)| format!("{path} is set in {place}")));
    }
    if !found.appended.is_empty() {
        let lists = found.appended.join(", ");
        lines.push(format!("Parameters of your own add to these lists and do not replace them: {lists}."));
    }
    format!("# {}\n", lines.join("\n# "))
}

/// Returns where the config file says a parameter, if it does.
fn set_in(config: &Config, path: &str, origin: &Origin) -> Option<Place> {
    if origin.layer != LayerName::Settings {
        return None;
    }
    let place = &origin.place;
    if place.line != 0 {
        return Some(place.clone());
    }
    // The place is the name of a setting.
    let node = config.root().at(place.file.split('.').chain(path.rsplit('.').next()))?;
    let file = config.file.to_string_lossy();
    Some(Place { file: file.into(), line: node.position.line, column: node.position.column })
}
