//! Claims of volumes: those of their own, and those that a `StatefulSet` makes for its pods.

use serde_json::Value;

use super::Sheet;
use super::services::word;
use super::values::place;
use crate::quantity::Quantity;
use crate::rules::pods::forms::{OF_NAMES, is_subdomain};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// The mode that goes together with no other one.
const ALONE: &str = MODES[3];

pub(super) fn check(sheet: &mut Sheet<'_>, path: &[&str], spec: &Value) {
    let at = place(path);
    modes(sheet, path, &spec["accessModes"]);
    let asked = &spec["resources"]["requests"]["storage"];
    let path_of = |fields: &[&'static str]| [path, fields].concat();
    if asked.is_null() {
        let message = format!("{at} does not say how much storage is wanted");
        sheet.say(&path_of(&["resources"]), (message, "write it below resources.requests.storage, such as 10Gi"));
    } else if Quantity::of(asked).is_some_and(|asked| asked <= Quantity::default()) {
        let message = format!("{at}.resources.requests.storage is {asked}, but must be more than 0");
        sheet.say(&path_of(&["resources", "requests", "storage"]), (message, "write how much is wanted, such as 10Gi"));
    }
    let class = spec["storageClassName"].as_str().filter(|class| !class.is_empty() && !is_subdomain(class));
    if let Some(class) = class {
        let message = format!("{at}.storageClassName is {class:?}, which is the name of no object");
        sheet.say(&path_of(&["storageClassName"]), (message, OF_NAMES));
    }
    word(sheet, &path_of(&["volumeMode"]), &spec["volumeMode"], &["Block", "Filesystem"]);
}

fn modes(sheet: &mut Sheet<'_>, path: &[&str], modes: &Value) {
    let at = place(path);
    let path = [path, &["accessModes"]].concat();
    let modes: Vec<&str> = modes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (message, hint) = if let Some(mode) = modes.iter().find(|mode| !MODES.contains(mode)) {
        (format!("{at}.accessModes has {mode:?}, which is none"), format!("write {}", MODES.join(" or ")))
    } else if modes.is_empty() {
        (format!("{at} has no accessModes"), format!("write one of {}", MODES.join(", ")))
    } else if modes.contains(&ALONE) && modes.iter().any(|mode| *mode != ALONE) {
        (format!("{at}.accessModes has {ALONE} beside others"), "keep it alone, or leave it out".to_owned())
    } else {
        return;
    };
    sheet.say(&path, (message, &hint));
}
