//! Texts that are documents, such as the configuration of a proxy in a ConfigMap: they are compared by what they say.
//!
//! Two writers of YAML indent, quote and order the same content in their own ways. A text comparison of the two is
//! hundreds of lines of layout, in which a changed value is not seen.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Comparison, Found, Path, Side};
use crate::mask::{MASK, Masker, texts};
use crate::yaml;

/// A value in a document that differs, with its path in the document; what is secret is masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContentDifference {
    /// The path, as `admin.address.port`.
    pub path: String,
    /// The value that is there now; `None` if nothing.
    pub before: Option<Value>,
    /// The value that will be there; `None` if nothing.
    pub after: Option<Value>,
}

/// Two texts that are documents.
pub(super) struct Content {
    /// The differences in meaning: none if only their layout differs.
    pub(super) differences: Vec<ContentDifference>,
    /// The texts as they are shown.
    pub(super) shown: (Value, Value),
}

/// Compares two texts by meaning; `None` if they are not both documents, or may not be looked into.
pub(super) fn content(before: Side<'_>, after: Side<'_>, masker: &Masker) -> Option<Content> {
    let (old, old_shown) = document(before, masker)?;
    let (new, new_shown) = document(after, masker)?;
    // The names of fields tell of secrets that nothing in the text alone does.
    let shown = |text: Side<'_>, document: &Value| {
        let without = |text: String, secret: String| text.replace(&secret, MASK);
        let text = text.shown.as_str().unwrap_or_default().to_owned();
        Value::from(Masker::secrets(document).into_iter().fold(text, without))
    };
    let shown = (shown(before, &old), shown(after, &new));
    let found = Comparison::of(&old, &new, (&old_shown, &new_shown), masker);
    let difference =
        |Found { path, before, after, .. }| ContentDifference { path: Path(&path).to_string(), before, after };
    Some(Content { differences: found.into_iter().map(difference).collect(), shown })
}

/// Reads a text as a document, or several: its values, and what is shown of them.
fn document(text: Side<'_>, masker: &Masker) -> Option<(Value, Value)> {
    let (raw, shown) = (text.raw.as_str()?, text.shown.as_str()?);
    // A text that is secret as a whole, as in a Secret, is not opened.
    if shown != masker.text(raw) {
        return None;
    }
    let mut documents = yaml::parse_values(raw).ok()?;
    let is_written =
        !documents.is_empty() && documents.iter().all(|document| document.is_object() || document.is_array());
    let document = if documents.len() == 1 { documents.remove(0) } else { Value::Array(documents) };
    if !is_written {
        return None;
    }
    let secrets: Vec<&str> = texts::secrets(raw).into_iter().map(|span| &raw[span]).collect();
    let shown = hide(masker.body(&document), &secrets, masker);
    Some((document, shown))
}

/// Masks also what is known to be secret by the text around it.
fn hide(value: Value, secrets: &[&str], masker: &Masker) -> Value {
    match value {
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, hide(value, secrets, masker))).collect(),
        Value::Array(list) => list.into_iter().map(|value| hide(value, secrets, masker)).collect(),
        Value::String(text) if secrets.iter().any(|secret| text.contains(secret)) => masker.value(&text.into()),
        value @ Value::Number(_) if secrets.contains(&value.to_string().as_str()) => masker.value(&value),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff::{Difference, differences};

    /// The differences between two texts in a ConfigMap.
    fn of_texts(before: &str, after: &str) -> Vec<Difference> {
        let config =
            |text: &str| json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"config.yaml": text}});
        differences(&config(before), &config(after), "gatewright", &Masker::new([7; 32]))
    }

    fn lines(before: &str, after: &str) -> Option<Vec<String>> {
        let found = of_texts(before, after).pop().expect("the texts differ");
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let line = |it: ContentDifference| format!("{}: {} -> {}", it.path, text(it.before), text(it.after));
        Some(found.content?.into_iter().map(line).collect())
    }

    #[test]
    fn layout_is_no_difference_of_content() {
        let ours = "admin:\n  address: {port: 19000}\nclusters:\n  - name: xds\n    type: \"STRICT_DNS\"\n";
        for theirs in [
            "clusters:\n- type: STRICT_DNS\n  name: xds\nadmin:\n  address:\n    port: 19000\n",
            "# By another writer.\n{\"admin\": {\"address\": {\"port\": 19000}}, \"clusters\": [{\"name\": \"xds\", \"type\": \"STRICT_DNS\"}]}",
        ] {
            assert_eq!(lines(theirs, ours), Some(Vec::new()));
            assert!(of_texts(theirs, ours)[0].changes_nothing());
        }
        let of_spec = |text: &str| json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "args": [text]}]}});
        let found = differences(&of_spec("{\"a\":1}"), &of_spec("{\"a\": 1}"), "gatewright", &Masker::default());
        assert!(found[0].is_layout() && !found[0].changes_nothing(), "its pods would be replaced");
    }

    #[test]
    fn what_differs_in_meaning_is_told_by_its_path() {
        let before = "admin:\n  port: 19000\nclusters:\n- name: xds\n  timeout: 5s\n- name: old\n";
        let after = "clusters:\n    - {name: xds, timeout: 6s}\nadmin: {port: 19000}\nnode: {id: a}\n";
        let expected = [
            r#"clusters[xds].timeout: "5s" -> "6s""#,
            r#"clusters[old]: {"name":"old"} -> -"#,
            r#"node: - -> {"id":"a"}"#,
        ];
        assert_eq!(lines(before, after), Some(expected.map(str::to_owned).to_vec()));
        assert_eq!(lines("a: 1\n---\nb: 2\n", "a: 1\n---\nb: 3\n"), Some(vec!["[1].b: 2 -> 3".to_owned()]));
        // A number is not a text, whoever writes it.
        assert_eq!(lines("port: '80'\n", "port: 80\n"), Some(vec![r#"port: "80" -> 80"#.to_owned()]));
    }

    #[test]
    fn other_texts_are_compared_to_the_letter() {
        for (before, after) in [("a", "b"), ("a: 1\na: 2", "a: 2"), ("{", "{}"), ("a: 1", "just words"), ("", "a: 1")] {
            assert_eq!(lines(before, after), None, "{before:?} {after:?}");
        }
    }

    #[test]
    fn secrets_in_documents_stay_hidden_and_their_change_is_seen() {
        let secret =
            |kind: &str, value: &str| json!({"kind": kind, "metadata": {}, "data": {"a": format!("b: {value}")}});
        let found = differences(&secret("Secret", "tulip1"), &secret("Secret", "tulip2"), "x", &Masker::default());
        assert!(found[0].content.is_none(), "{found:?}");
        for template in [
            "password: SECRET\n",
            "{\"db\": {\"password\": \"SECRET\"}}",
            "env:\n- name: API_TOKEN\n  value: SECRET\n",
            "args: [--token, SECRET]\n",
            "url: https://user:SECRET@example.com/\n",
            "header: 'Authorization: Bearer SECRET'\n",
        ] {
            let found =
                of_texts(&template.replace("SECRET", "tulip-one-1"), &template.replace("SECRET", "tulip-two-2"));
            let text = format!("{found:?}");
            assert!(!text.contains("tulip"), "{text}");
            let content = found[0].content.as_ref().expect("both are documents");
            assert!(!content.is_empty() && content.iter().all(|it| it.before != it.after), "{text}");
        }
    }
}
