//! Ingresses: their hosts, paths and backends.

use serde_json::Value;

use super::Sheet;
use super::ports::{named, number};
use super::services::is_set;
use super::values::{is_label, place};
use crate::check::suggest;
use crate::rules::pods::forms::{OF_NAMES, is_subdomain};
use crate::text::did_you_mean;

const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

pub(super) fn check(sheet: &mut Sheet<'_>, spec: &Value) {
    let rules = spec["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() && !spec["defaultBackend"].is_object() {
        let message = "spec has neither rules nor a defaultBackend".to_owned();
        sheet.say(&["spec"], (message, "write one of them"));
    }
    if spec["defaultBackend"].is_object() {
        backend(sheet, &["spec", "defaultBackend"], &spec["defaultBackend"]);
    }
    for (index, rule) in rules.iter().enumerate() {
        let index = index.to_string();
        host(sheet, &["spec", "rules", &index, "host"], &rule["host"]);
        let (path, http) = (["spec", "rules", &index, "http"], &rule["http"]);
        let paths = http["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
        if http.is_object() && paths.is_empty() {
            sheet.say(&path, (format!("{} has no paths", place(&path)), "write one, with its backend"));
        }
        for (at, it) in paths.iter().enumerate() {
            of_path(sheet, &[path.as_slice(), &["paths", &at.to_string()]].concat(), it);
        }
    }
    for (index, tls) in spec["tls"].as_array().into_iter().flatten().enumerate() {
        for (at, name) in tls["hosts"].as_array().into_iter().flatten().enumerate() {
            host(sheet, &["spec", "tls", &index.to_string(), "hosts", &at.to_string()], name);
        }
    }
}

fn host(sheet: &mut Sheet<'_>, path: &[&str], value: &Value) {
    let host = value.as_str().unwrap_or_default();
    let is_address = path.last() == Some(&"host") && host.parse::<std::net::IpAddr>().is_ok();
    let name = host.strip_prefix("*.").unwrap_or(host);
    if !host.is_empty() && (is_address || !is_subdomain(name)) {
        let message = format!("{} is {host:?}, which is the name of no host", place(path));
        sheet.say(path, (message, OF_NAMES));
    }
}

fn of_path(sheet: &mut Sheet<'_>, path: &[&str], it: &Value) {
    let (at, text) = (place(path), it["path"].as_str().unwrap_or_default());
    match it["pathType"].as_str() {
        None => {
            let message = format!("{at} has no pathType");
            sheet.say(&[path, &["pathType"]].concat(), (message, "write Prefix or Exact"));
        }
        Some(ty) if !PATH_TYPES.contains(&ty) => {
            let words = PATH_TYPES.join(" or ");
            let message = format!("{at}.pathType is {ty:?}, but must be {words}");
            let hint = did_you_mean(suggest(ty, PATH_TYPES)).unwrap_or_else(|| format!("write {words}"));
            sheet.say(&[path, &["pathType"]].concat(), (message, &hint));
        }
        Some(ty) => {
            let is_right = text.starts_with('/') || text.is_empty() && ty == "ImplementationSpecific";
            if !is_right {
                let message = format!("{at}.path is {text:?}, but must begin with /");
                sheet.say(&[path, &["path"]].concat(), (message, "write a path such as /"));
            }
        }
    }
    backend(sheet, &[path, &["backend"]].concat(), &it["backend"]);
}

fn backend(sheet: &mut Sheet<'_>, path: &[&str], backend: &Value) {
    let (at, service) = (place(path), &backend["service"]);
    let (message, hint) = match (service.is_object(), backend["resource"].is_object()) {
        (true, true) => (format!("{at} has a service and a resource"), "keep one of them"),
        (false, false) => (format!("{at} names nothing"), "write the name and the port of a service"),
        (false, true) => return,
        (true, false) => return of_service(sheet, &[path, &["service"]].concat(), service),
    };
    sheet.say(path, (message, hint));
}

fn of_service(sheet: &mut Sheet<'_>, path: &[&str], service: &Value) {
    let (at, name) = (place(path), service["name"].as_str().unwrap_or_default());
    if !is_label(name) {
        let message = format!("{at}.name is {name:?}, which is the name of no Service");
        sheet.say(&[path, &["name"]].concat(), (message, "write the name of a Service"));
    }
    let port = &service["port"];
    let path = [path, &["port"]].concat();
    match (is_set(&port["name"]), is_set(&port["number"])) {
        (true, true) => sheet.say(&path, (format!("{at}.port has a name and a number"), "keep one of them")),
        (false, false) => sheet.say(&path, (format!("{at} has no port"), "write its number, or its name")),
        (true, false) => named(sheet, &path, ("name", &port["name"])),
        (false, true) => number(sheet, &path, ("number", &port["number"]), 1),
    }
}
