//! The schema of what is at the cursor.

use serde_json::Value;

use super::cursor::Step;

/// A schema, and the whole that its references lead into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    root: &'a Value,
    /// The schema of the field.
    pub(super) schema: &'a Value,
    /// The words at the reference to it, where there are some.
    said: Option<&'a str>,
    /// Whether it must be there.
    pub(super) is_required: bool,
}

/// The most references that are followed one after the other.
const MOST_REFERENCES: usize = 32;

impl<'a> Field<'a> {
    /// Begins with a whole.
    pub(super) fn root(root: &'a Value) -> Self {
        Self { root, schema: root, said: None, is_required: true }
    }

    /// Follows a path; `None` where it leads to nothing that is known.
    pub(super) fn follow(self, path: &[Step]) -> Option<Self> {
        path.iter().try_fold(self, |field, step| match step {
            Step::Field(name) => field.property(name),
            Step::Item(_) => field.resolved().find_map(|it| it.schema.get("items").map(|items| it.below(items, true))),
        })
    }

    fn property(self, name: &str) -> Option<Self> {
        let named = |it: Self| {
            let below = it.schema.get("properties").and_then(|fields| fields.get(name))?;
            Some(it.below(below, it.requires(name)))
        };
        let other =
            |it: Self| it.schema.get("additionalProperties").filter(|it| it.is_object()).map(|of| it.below(of, false));
        self.resolved().find_map(named).or_else(|| self.resolved().find_map(other))
    }

    fn below(self, schema: &'a Value, is_required: bool) -> Self {
        Self { schema, is_required, said: schema.get("description").and_then(Value::as_str), ..self }
    }

    fn requires(&self, name: &str) -> bool {
        self.schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|it| it == name))
    }

    /// Returns all schemas that it stands for: itself, what it refers to, and alternatives.
    fn resolved(self) -> impl Iterator<Item = Self> {
        let (mut open, mut found) = (vec![self.schema], Vec::new());
        while let Some(schema) = open.pop() {
            if found.len() > MOST_REFERENCES {
                break;
            }
            found.push(schema);
            let reference = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
            open.extend(reference.and_then(|pointer| self.root.pointer(pointer)));
            for key in ["oneOf", "anyOf", "allOf"] {
                open.extend(schema.get(key).and_then(Value::as_array).into_iter().flatten().rev());
            }
        }
        found.into_iter().map(move |schema| Self { schema, ..self })
    }

    /// Returns the fields that may be in it, by their names.
    pub(super) fn properties(self) -> impl Iterator<Item = (&'a str, Self)> {
        self.resolved().flat_map(|it| {
            let fields = it.schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            // A part of an alternative names a field without a word about it.
            let fields = fields.filter(|(_, schema)| schema.as_object().is_some_and(|schema| !schema.is_empty()));
            fields.map(move |(name, schema)| (name.as_str(), it.below(schema, it.requires(name))))
        })
    }

    /// Returns its values, if only some are allowed.
    pub(super) fn values(self) -> Vec<&'a Value> {
        let listed = |it: Self| it.schema.get("enum").and_then(Value::as_array);
        let values: Vec<&Value> = self.resolved().filter_map(listed).flatten().filter(|it| !it.is_null()).collect();
        let is_flag = || self.types().contains(&"boolean");
        if values.is_empty() && is_flag() { vec![&Value::Bool(true), &Value::Bool(false)] } else { values }
    }

    /// Returns the names of its types.
    pub(super) fn types(self) -> Vec<&'a str> {
        let mut types: Vec<&str> = Vec::new();
        for it in self.resolved() {
            let own = match it.schema.get("type") {
                Some(Value::String(name)) => vec![name.as_str()],
                Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            let is_new = |name: &&str| *name != "null" && !types.contains(name);
            let own: Vec<&str> = own.into_iter().filter(is_new).collect();
            types.extend(own);
        }
        types
    }

    /// Returns what it is for, in words.
    pub(super) fn description(self) -> Option<&'a str> {
        let own = |it: Self| it.schema.get("description").and_then(Value::as_str);
        self.said.or_else(|| self.resolved().find_map(own))
    }

    /// Returns its default.
    pub(super) fn default(self) -> Option<&'a Value> {
        self.resolved().find_map(|it| it.schema.get("default"))
    }

    /// Says what it may be, in a line: its types, and whether it must be there.
    pub(super) fn summary(self) -> String {
        let items = || self.resolved().find_map(|it| it.schema.get("items").map(|items| it.below(items, true)));
        let word = |name: &&str| match *name {
            "array" => match items().map(|items| items.types().join(" or ")) {
                Some(types) if !types.is_empty() => format!("list of {types}"),
                _ => "list".to_owned(),
            },
            other => other.to_owned(),
        };
        let types: Vec<String> = self.types().iter().map(word).collect();
        let types = if types.is_empty() { "any value".to_owned() } else { types.join(" or ") };
        if self.is_required { format!("{types}, required") } else { types }
    }

    /// Says all that is known of it, as Markdown.
    pub(super) fn details(self) -> String {
        let mut lines = Vec::new();
        let text = |value: &Value| format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let values = self.values();
        if !values.is_empty() && !self.types().contains(&"boolean") {
            lines.push(format!("One of {}.", values.into_iter().map(text).collect::<Vec<_>>().join(", ")));
        }
        if let Some(default) = self.default() {
            lines.push(format!("Default: {}.", text(default)));
        }
        let bound = |key: &str, words: &str| {
            let bound = self.resolved().find_map(|it| it.schema.get(key));
            bound.map(|bound| format!("{words} {}.", text(bound)))
        };
        lines.extend(bound("minimum", "At least"));
        lines.extend(bound("maximum", "At most"));
        lines.extend(bound("maxLength", "Characters, at most:"));
        lines.extend(bound("maxItems", "Items, at most:"));
        lines.extend(bound("pattern", "Form:"));
        let description = self.description().map(str::to_owned);
        description.into_iter().chain((!lines.is_empty()).then(|| lines.join(" "))).collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_and_alternatives_are_followed() {
        let root = json!({"definitions": {"A": {"type": "object", "description": "all", "properties": {"b": {"$ref": "#/definitions/B"}}},
        "B": {"type": "string", "enum": ["x", "y"], "default": "x", "description": "of B"}},
        "properties": {
            "a": {"anyOf": [{"allOf": [{"$ref": "#/definitions/A"}], "description": "own"}, {"type": "null"}]},
            "list": {"type": ["array", "null"], "items": {"type": "object", "required": ["p"], "properties": {"p": {"type": "boolean"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
            "turn": {"$ref": "#/properties/turn"},
        }});
        let follow = |path: &[Step]| Field::root(&root).follow(path);
        let name = |name: &str| Step::Field(name.to_owned());
        let of = |path: &[Step]| follow(path).map(|it| (it.summary(), it.details()));
        let said = |summary: &str, details: &str| Some((summary.to_owned(), details.to_owned()));
        assert_eq!(of(&[name("a"), name("b")]), said("string", "of B\n\nOne of `x`, `y`. Default: `x`."));
        assert_eq!(of(&[name("a")]).map(|it| it.1).as_deref(), Some("own"));
        assert_eq!(of(&[name("list")]).map(|it| it.0).as_deref(), Some("list of object"));
        assert_eq!(of(&[name("list"), Step::Item(3), name("p")]).map(|it| it.0).as_deref(), Some("boolean, required"));
        assert_eq!(of(&[name("map"), name("any")]), said("integer", "At least `1`."));
        assert_eq!(of(&[name("turn")]).map(|it| it.0).as_deref(), Some("any value"), "a circle ends");
        assert!(follow(&[name("none")]).is_none());
        let names: Vec<&str> =
            follow(&[name("a")]).into_iter().flat_map(Field::properties).map(|(name, _)| name).collect();
        assert_eq!(names, ["b"]);
    }
}
