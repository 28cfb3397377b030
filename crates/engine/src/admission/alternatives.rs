//! The rest of a schema: alternatives (`oneOf`, `anyOf`, `allOf`, `not`), formats, and bounds that are rarely met.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::definition::Version;
use super::place::Path;
use crate::check::Mistake;
use crate::text::count;
use crate::yaml::Node;

/// The longest text of a value in a message.
const LONGEST: usize = 60;

/// Returns what a schema refuses of a value.
pub(super) fn check(root: &Node, value: &Value, version: &Version) -> Vec<Mistake> {
    if version.validator.is_valid(value) {
        return Vec::new();
    }
    let mistake = |error: ValidationError<'_>| {
        let path = Path::of_pointer(error.instance_path().as_str());
        Mistake { position: path.position(root), message: told(&error), hint: None, fix: None }
    };
    let mut mistakes: Vec<Mistake> = version.validator.iter_errors(value).map(mistake).collect();
    mistakes.sort_by_key(|mistake| mistake.position);
    mistakes.dedup();
    mistakes
}

/// Says what is wrong, in words.
fn told(error: &ValidationError<'_>) -> String {
    let path = Path::of_pointer(error.instance_path().as_str()).text();
    let needed = match error.kind() {
        Kind::Format { format } => format!("a text of the format {format}"),
        Kind::Enum { options } => format!("one of {}", listed(options)),
        Kind::Constant { expected_value } => expected_value.to_string(),
        Kind::Not { .. } => return format!("{path} must not be {}", shown(error.instance())),
        Kind::Required { property } => return format!("{path} has no {property}"),
        Kind::MinProperties { limit } => return format!("{path} must have at least {}", fields(*limit)),
        Kind::MaxProperties { limit } => return format!("{path} must have at most {}", fields(*limit)),
        Kind::UniqueItems => return format!("{path} has an item twice"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => return either(&path, context),
        Kind::OneOfMultipleValid { .. } => return format!("{path} says several things of which only one may be said"),
        _ => return format!("{path}: {error}"),
    };
    format!("{path} is {}, but must be {needed}", shown(error.instance()))
}

/// Says what is wrong with each of the alternatives, once.
fn either(path: &str, alternatives: &[Vec<ValidationError<'static>>]) -> String {
    if let Some((value, formats)) = formats(alternatives) {
        return format!("{path} is {}, but must be a text of the format {}", shown(value), formats.join(" or "));
    }
    let mut said: Vec<String> = Vec::new();
    for errors in alternatives {
        let errors: Vec<String> = errors.iter().map(told).collect();
        let all = errors.join(", and ");
        if !all.is_empty() && !said.contains(&all) {
            said.push(all);
        }
    }
    match said.len() {
        0 => format!("{path} is none of what is allowed there"),
        _ => said.join("; or "),
    }
}

/// Returns the value and the formats that it may have, if alternatives are nothing but formats.
fn formats<'a>(alternatives: &'a [Vec<ValidationError<'static>>]) -> Option<(&'a Value, Vec<&'a str>)> {
    let format = |errors: &'a Vec<ValidationError<'static>>| match errors.as_slice() {
        [error] => match error.kind() {
            Kind::Format { format } => Some((error.instance().as_ref(), format.as_str())),
            _ => None,
        },
        _ => None,
    };
    let found: Vec<(&Value, &str)> = alternatives.iter().map(format).collect::<Option<_>>()?;
    Some((found.first()?.0, found.iter().map(|(_, format)| *format).collect()))
}

fn fields(number: u64) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), "field")
}

fn listed(options: &Value) -> String {
    let names = options.as_array().into_iter().flatten();
    names.map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned)).collect::<Vec<_>>().join(", ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => {
            Some(other.to_string()).filter(|text| text.len() <= LONGEST).unwrap_or_else(|| "a long text".to_owned())
        }
    }
}
