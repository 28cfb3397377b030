//! The contents of `ConfigMap`s and Secrets. Values are not shown, be they secret or not.

use std::collections::BTreeSet;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::Sheet;
use crate::rules::pods::forms::{OF_KEYS, is_key};

/// The base64 that servers read: bits that are left over do not matter to them.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Types of Secrets, each with the keys that it needs.
const NEEDED: [(&str, &[&str]); 3] = [
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

/// The annotation by which a Secret with a token names its account.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

pub(super) fn check(sheet: &mut Sheet<'_>, body: &Value) {
    for field in ["binaryData", "data", "stringData"] {
        keys(sheet, field, &body[field]);
    }
    if sheet.object.id().kind == "Secret" {
        encoded(sheet, ("data", &body["data"]), "stringData");
        secret(sheet, body);
        return;
    }
    encoded(sheet, ("binaryData", &body["binaryData"]), "data");
    for key in body["data"].as_object().into_iter().flat_map(|data| data.keys()) {
        if body["binaryData"].get(key).is_some() {
            let message = format!("data and binaryData both have {key:?}");
            sheet.say_of(&["binaryData", key], true, (message, Some("keep one of them".to_owned())));
        }
    }
}

fn keys(sheet: &mut Sheet<'_>, field: &str, entries: &Value) {
    for key in entries.as_object().into_iter().flat_map(|entries| entries.keys()).filter(|key| !is_key(key)) {
        let message = format!("{field} has the key {key:?}, which is none");
        sheet.say_of(&[field, key], true, (message, Some(OF_KEYS.to_owned())));
    }
}

/// Says which values are not written as bytes are.
fn encoded(sheet: &mut Sheet<'_>, (field, entries): (&str, &Value), plain: &str) {
    for (key, value) in entries.as_object().into_iter().flatten() {
        if value.as_str().is_some_and(|text| decoded(text).is_none()) {
            let message = format!("{field} has {key:?}, whose value is no base64");
            let hint = format!("write the text below {plain}, or encode it");
            sheet.say_of(&[field, key], true, (message, Some(hint)));
        }
    }
}

/// Reads bytes, in lines or not.
fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.replace(['\r', '\n'], "")).ok()
}

/// Says what a Secret needs to be of its type.
fn secret(sheet: &mut Sheet<'_>, body: &Value) {
    let ty = body["type"].as_str().unwrap_or_default();
    let entries = |field: &str| body[field].as_object().into_iter().flat_map(|entries| entries.keys());
    let keys: BTreeSet<&str> = entries("data").chain(entries("stringData")).map(String::as_str).collect();
    let mut miss = |key: &str| {
        let message = format!("data has no {key:?}, which the type {ty} needs");
        sheet.say(&["data", key], (message, "write it, or another type"));
    };
    for (_, needed) in NEEDED.iter().filter(|(known, _)| *known == ty) {
        needed.iter().filter(|key| !keys.contains(*key)).for_each(|key| miss(key));
    }
    match ty {
        "kubernetes.io/basic-auth" if !keys.contains("username") && !keys.contains("password") => miss("username"),
        "kubernetes.io/ssh-auth" if is_empty(body, "ssh-privatekey") => miss("ssh-privatekey"),
        "kubernetes.io/dockercfg" => credentials(sheet, body, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => credentials(sheet, body, ".dockerconfigjson"),
        "kubernetes.io/service-account-token" => {
            let annotations = &body["metadata"]["annotations"];
            if annotations[ACCOUNT].as_str().is_none_or(str::is_empty) {
                let message = format!("metadata.annotations has no {ACCOUNT:?}, which the type {ty} needs");
                sheet.say(&["metadata", "annotations", ACCOUNT], (message, "write the name of the account"));
            }
        }
        _ => {}
    }
}

fn is_empty(body: &Value, key: &str) -> bool {
    let is_filled = |field: &str| body[field][key].as_str().is_some_and(|text| !text.is_empty());
    !is_filled("data") && !is_filled("stringData")
}

/// Says that what is to be the credentials for registries is none.
fn credentials(sheet: &mut Sheet<'_>, body: &Value, key: &str) {
    let plain = body["stringData"][key].as_str().map(|text| text.as_bytes().to_vec());
    let Some(bytes) = plain.or_else(|| decoded(body["data"][key].as_str()?)) else { return };
    let read: Result<Value, _> = serde_json::from_str(&String::from_utf8_lossy(&bytes));
    if !read.is_ok_and(|value| value.is_object() || value.is_null()) {
        let message = format!("data has {key:?}, whose value is no JSON object");
        sheet.say(&["data", key], (message, "write what the program that logs in has written"));
    }
}
