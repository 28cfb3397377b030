//! Values and templates to objects.
//!
//! Templates are Tera. A value can only enter a template through an encoding filter ([`functions`]); printing one as
//! it is is an error, so that no value can change the structure of a document. What comes out is parsed as strictly
//! as what users write, though only once for many Gateways (`holes`): a duplicate key or a document without a name
//! is an error with the template's name.

pub(crate) mod calls;
pub mod functions;
mod holes;
mod steps;
pub(crate) mod syntax;

use std::error::Error as StdError;
use std::io;

use serde_json::Value;
use tera::{Context, Tera};

use crate::object::{Object, ObjectError};
use crate::yaml::YamlError;
use calls::Fault;
use holes::Texts;

/// Templates, ready to be filled.
pub struct Renderer {
    tera: Tera,
    templates: Vec<String>,
    texts: Texts,
}

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot load the template")]
pub struct TemplateError(#[source] tera::Error);

/// Filling a template failed.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The values do not fit the templates' language.
    #[error("cannot pass the values to the templates")]
    Values(#[source] tera::Error),
    /// A template asks for a value that is not there, or uses one in a way that is not allowed.
    #[error("cannot fill template {0:?}")]
    Fill(String, #[source] tera::Error),
    /// Output that is not YAML.
    #[error("template {0:?} yields no YAML, line {1} of its output")]
    Yaml(String, u32, #[source] YamlError),
    /// Output that is not an object.
    #[error("template {0:?} yields no object")]
    Object(String, #[source] ObjectError),
}

impl Renderer {
    /// Loads templates, `(name, text)`, in the order in which they are to be rendered.
    pub fn new(templates: &[(String, String)]) -> Result<Self, TemplateError> {
        Self::with_parts(templates, &[])
    }

    /// Loads expressions, `(name, text)`, each to be evaluated by itself.
    pub(crate) fn of_expressions(expressions: impl Iterator<Item = (String, String)>) -> Result<Self, TemplateError> {
        let text = |(name, expression)| (name, format!("{{{{ ({expression}) | json }}}}"));
        Self::new(&expressions.map(text).collect::<Vec<_>>())
    }

    /// Loads templates, and parts that they may include and that yield nothing by themselves.
    pub(crate) fn with_parts(
        templates: &[(String, String)],
        parts: &[(String, String)],
    ) -> Result<Self, TemplateError> {
        let mut tera = Tera::new();
        // Every template escapes; the escape function refuses. Filters that encode mark their result as safe.
        tera.autoescape_on([""]);
        tera.set_escape_fn(|_, _| {
            Err(io::Error::other("a value must pass through an encoding filter, as in {{ name | json }}"))
        });
        functions::register(&mut tera);
        steps::register(&mut tera);
        let all = templates.iter().chain(parts).map(|(name, text)| (name.as_str(), steps::counted(text)));
        tera.add_raw_templates(all).map_err(TemplateError)?;
        let templates = templates.iter().map(|(name, _)| name.clone()).collect();
        Ok(Self { tera, templates, texts: Texts::default() })
    }

    /// Fills every template with the same values and returns the objects, in the order of the templates.
    pub fn render(&self, values: &Value) -> Result<Vec<Object>, RenderError> {
        let (objects, errors) = self.render_each(values);
        errors.into_iter().next().map_or(Ok(objects), Err)
    }

    /// Does the same, and goes on where a template cannot be filled.
    pub(crate) fn render_each(&self, values: &Value) -> (Vec<Object>, Vec<RenderError>) {
        let context = match Context::from_serialize(values) {
            Ok(context) => context,
            Err(error) => return (Vec::new(), vec![RenderError::Values(error)]),
        };
        let (mut objects, mut errors) = (Vec::with_capacity(self.templates.len()), Vec::new());
        for name in &self.templates {
            match self.filled(name, &context) {
                Ok(filled) => objects.extend(filled),
                Err(error) => errors.push(error),
            }
        }
        (objects, errors)
    }

    /// Returns what an expression comes to, one of [`Self::of_expressions`].
    pub(crate) fn evaluate(&self, name: &str, values: &Value) -> Result<Value, RenderError> {
        let context = Context::from_serialize(values).map_err(RenderError::Values)?;
        let fail = |source| RenderError::Fill(name.to_owned(), source);
        let text = self.text(name, &context)?;
        serde_json::from_str(text.trim_matches([holes::BEGIN, holes::END]))
            .map_err(|error| fail(tera::Error::message(format!("the expression yields no value: {error}"))))
    }

    /// Returns the names of the templates, in their order.
    pub(crate) fn templates(&self) -> &[String] {
        &self.templates
    }

    /// Fills one template and returns its objects.
    pub fn fill(&self, name: &str, values: &Value) -> Result<Vec<Object>, RenderError> {
        self.filled(name, &Context::from_serialize(values).map_err(RenderError::Values)?)
    }

    fn filled(&self, name: &str, context: &Context) -> Result<Vec<Object>, RenderError> {
        let text = self.text(name, context)?;
        let fail = |source: YamlError| RenderError::Yaml(name.to_owned(), source.position.line, source);
        let object = |body| Object::new(body).map_err(|source| RenderError::Object(name.to_owned(), source));
        self.texts.read(&text).map_err(fail)?.into_iter().map(object).collect()
    }

    /// Fills a template, as far as its steps lead.
    fn text(&self, name: &str, context: &Context) -> Result<String, RenderError> {
        let fail = |source| RenderError::Fill(name.to_owned(), source);
        let mut text = steps::Text::default();
        steps::begin();
        self.tera.render_to(name, context, &mut text).map_err(fail)?;
        String::from_utf8(text.0).map_err(|error| fail(tera::Error::message(error.to_string())))
    }
}

impl TemplateError {
    /// Returns what is wrong with one of the templates, each fault with its line, or 0 if it is about the whole of it.
    pub(crate) fn faults(&self, template: &str) -> Vec<Fault> {
        let drawn = self.0.to_string();
        drawn.split("\n\n").filter_map(|drawn| fault(drawn, template)).collect()
    }
}

/// Reads what Tera draws, unless it is about another template.
fn fault(drawn: &str, template: &str) -> Option<Fault> {
    let said = told(drawn);
    let whole = |message: &str| Some(Fault { line: 0, message: message.to_owned(), hint: None });
    let Some((_, place)) = drawn.split_once("--> ") else { return whole(&said) };
    let rest = place.trim_start().strip_prefix(template)?.strip_prefix(':')?;
    let line = rest.split(':').next().and_then(|line| line.parse().ok());
    let message = said.split_once(": ").map_or(said.as_str(), |(_, message)| message);
    Some(Fault { line: line.unwrap_or_default(), message: message.to_owned(), hint: None })
}

impl RenderError {
    /// Returns the error and its causes as one line.
    pub fn line(&self) -> String {
        let mut line = self.to_string();
        let mut next = self.source();
        while let Some(cause) = next {
            line = format!("{line}: {}", told(&cause.to_string()));
            next = cause.source();
        }
        line
    }
}

/// The words of Tera before the reason why a value was not written.
const WRITING: &str = "Io error while writing rendered value to output: Other: ";

/// Says on one line what Tera draws on several: the message, the place, the line of the template, and a mark below it.
fn told(drawn: &str) -> String {
    let lines: Vec<&str> = drawn.lines().map(str::trim).collect();
    let message = lines.first().and_then(|line| line.strip_prefix("error: "));
    let place = lines.iter().find_map(|line| line.strip_prefix("--> "));
    let is_numbered = |line: &&&str| line.starts_with(|c: char| c.is_ascii_digit());
    let text = lines.iter().find(is_numbered).and_then(|line| line.split_once('|'));
    match (message, place, text) {
        (Some(message), Some(place), Some((_, text))) => {
            format!("{place}: {message}, in `{}`", steps::shown(text).trim())
        }
        // What the escape function says comes as an error of a writer.
        _ => drawn.trim_start_matches(WRITING).split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render(template: &str, values: &Value) -> Result<Vec<Object>, RenderError> {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata:\n{template}");
        Renderer::new(&[("t.yaml".to_owned(), text)]).expect("the template loads").render(values)
    }

    #[test]
    fn no_value_changes_the_structure() {
        for text in [
            "a: b\nkind: Secret",
            "{{ x }}",
            "\"",
            "'",
            "# no",
            "- x",
            "\u{2028}",
            "a\u{85}b",
            "---\n",
            "\0\u{1b}",
            "{% if %}",
            "*a",
            "&a",
        ] {
            let objects = render("  k: {{ v | json }}\n", &json!({ "v": text })).expect("it renders");
            assert_eq!(objects[0].body()["data"]["k"], text);
        }
    }

    #[test]
    fn the_keys_of_a_value_are_sorted_in_a_text_too() {
        let value: Value =
            (0..50).map(|n| (format!("k{n}"), json!({"b": 1, "a": 2}))).collect::<serde_json::Map<_, _>>().into();
        let objects = render("  k: |\n    {{ v | json }}\n", &json!({ "v": value })).expect("it renders");
        assert_eq!(objects[0].body()["data"]["k"], format!("{value}\n"));
    }

    #[test]
    fn an_encoded_value_can_be_encoded_again() {
        let template = "  a: {{ v | json | json }}\n  b: {% set x = v | json %}{{ x | json }}\n  c: {% set x = v | json %}{{ x }}\n";
        let objects = render(template, &json!({"v": {"k": "é\u{1}"}})).expect("it renders");
        let data = &objects[0].body()["data"];
        assert_eq!(data["a"], r#"{"k":"\u00e9\u0001"}"#);
        assert_eq!(data["b"], data["a"]);
        assert_eq!(data["c"], json!({"k": "é\u{1}"}));
    }

    #[test]
    fn a_text_is_replaced_in_all_texts_of_a_value() {
        let values = json!({"v": {"x": ["axb", 1, {"k": "x"}]}, "y": "{{ z }}"});
        let objects = render("  a: {{ v | substitute(from=\"x\", to=y) | json }}\n", &values).expect("it renders");
        assert_eq!(objects[0].body()["data"]["a"], json!({"x": ["a{{ z }}b", 1, {"k": "{{ z }}"}]}));
    }

    #[test]
    fn json_may_be_a_part_of_a_text() {
        let values = json!({"v": {"b": "\u{1}", "a": 2}});
        let objects = render("  a: {{ (\"k:\" ~ (v | json_text)) | json }}\n", &values).expect("it renders");
        assert_eq!(objects[0].body()["data"]["a"], r#"k:{"a":2,"b":"\u0001"}"#);
    }

    #[test]
    fn a_value_without_an_encoding_filter_is_refused() {
        for template in ["  k: {{ v }}\n", "  k: {{ v | safe }}\n", "  k: {{ v | upper }}\n"] {
            let error = render(template, &json!({"v": "x"})).expect_err("it is not encoded");
            assert!(error.line().contains("encoding filter"), "{}", error.line());
        }
    }

    #[test]
    fn a_missing_value_is_an_error() {
        let error = render("  k: {{ missing | json }}\n", &json!({})).expect_err("it is not there");
        assert!(error.line().contains("not there"), "{}", error.line());
    }

    #[test]
    fn loops_within_loops_over_a_long_list_come_to_an_end() {
        let template = "  k: {% for a in v %}{% for b in v %}{% if a == b %}{% endif %}{% endfor %}{% endfor %}1\n";
        let objects = render(template, &json!({"v": vec![1; 500]})).expect("these are few");
        assert_eq!(objects[0].body()["data"]["k"], 1);
        let error = render(template, &json!({"v": vec![1; 5_000]})).expect_err("these are many");
        assert!(error.line().contains("the loops of the template go round more than"), "{}", error.line());
        assert!(!error.line().contains("gatewright_step"), "{}", error.line());
    }

    #[test]
    fn a_template_that_writes_a_key_twice_is_refused() {
        let error = render("  k: 1\n  k: 2\n", &json!({})).expect_err("the key is there twice");
        assert!(matches!(error, RenderError::Yaml(..)));
    }
}
