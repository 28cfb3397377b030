//! The forms in which receivers get a notification: ours, an event as `CloudEvents` has it, or a message for a chat.
//!
//! They are made of the JSON that waits when it is sent, so that a receiver whose form was changed gets in the new one
//! also what waited. Texts of others are plain text in messages for chats: nobody can mention a channel, or write a link.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::basics::sanitize;
use crate::config::webhooks::WebhookFormat;

/// The type of the events, which changes with the version of the form in them.
const EVENT_TYPE: &str = "dev.gatewright.notification.v1alpha1";

/// The most findings that a message for a chat names in each list.
const MOST_LINES: usize = 8;

/// The length of a list in bytes at which the rest is counted: a block of Slack takes 3,000 characters.
const LONGEST_LIST: usize = 2900;

/// A notification as it is sent.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

/// The part of a notification that messages for chats show.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    id: String,
    time: Timestamp,
    text: String,
    sync: String,
    revision: String,
    exit_code: u8,
    warnings: Vec<String>,
    new: Findings,
    resolved: Findings,
}

#[derive(Debug, Deserialize)]
struct Findings {
    count: usize,
    findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
struct Finding {
    #[serde(default)]
    clusters: Vec<String>,
    what: String,
}

/// Returns a notification that waits in the form of a receiver; `installation` is who sends it.
///
/// # Errors
/// The file of the notification is damaged.
pub(super) fn form(format: WebhookFormat, notification: &[u8], installation: &str) -> serde_json::Result<Form> {
    let (content_type, value) = match format {
        WebhookFormat::Json => {
            return Ok(Form { content_type: "application/json", body: notification.to_vec() });
        }
        WebhookFormat::Cloudevents => {
            ("application/cloudevents+json", event(&serde_json::from_slice(notification)?, installation))
        }
        WebhookFormat::Slack => ("application/json", slack(&serde_json::from_slice(notification)?)),
        WebhookFormat::Teams => ("application/json", teams(&serde_json::from_slice(notification)?)),
    };
    Ok(Form { content_type, body: sanitize::json(&value)?.into_bytes() })
}

/// An event in the structured mode of `CloudEvents` 1.0: its source and id together name it.
fn event(notification: &Value, installation: &str) -> Value {
    json!({
        "specversion": "1.0",
        "id": notification["id"],
        "source": format!("/gatewright/{installation}"),
        "type": EVENT_TYPE,
        "subject": notification["sync"],
        "time": notification["time"],
        "datacontenttype": "application/json",
        "data": notification,
    })
}

/// A message of Slack, in blocks of plain text. Its `text` is what notifications on a screen show, and the only place
/// where Slack looks for mentions and links.
fn slack(told: &Told) -> Value {
    let plain = |text: String| json!({"type": "plain_text", "text": text, "emoji": false});
    let mut blocks = vec![json!({"type": "header", "text": plain(told.title())})];
    blocks.extend(told.paragraphs().into_iter().map(|text| json!({"type": "section", "text": plain(text)})));
    blocks.push(json!({"type": "context", "elements": [plain(told.footer())]}));
    let text = told.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({"text": text, "blocks": blocks})
}

/// A message for a workflow of Teams: an Adaptive Card, of parts in which nothing is read as Markdown.
fn teams(told: &Told) -> Value {
    let part = |text: &str, look: Value| {
        let mut run = json!({"type": "TextRun", "text": text});
        run.as_object_mut().into_iter().for_each(|run| run.extend(look.as_object().cloned().unwrap_or_default()));
        json!({"type": "RichTextBlock", "inlines": [run]})
    };
    let mut body = vec![part(&told.title(), json!({"size": "Large", "weight": "Bolder", "color": told.color()}))];
    body.extend(told.paragraphs().iter().map(|text| part(text, json!({}))));
    body.push(part(&told.footer(), json!({"size": "Small", "isSubtle": true})));
    json!({"type": "message", "attachments": [{
        "contentType": "application/vnd.microsoft.card.adaptive",
        "content": {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
            "msteams": {"width": "Full"}, "body": body,
        },
    }]})
}

impl Told {
    fn title(&self) -> String {
        let word = match self.exit_code {
            0 => "well",
            1 => "failed",
            2 => "differs",
            3 => "held",
            4 => "unreachable",
            _ => "ended",
        };
        format!("{}: {word}", self.sync)
    }

    /// The color by which Adaptive Cards show how bad it is.
    fn color(&self) -> &'static str {
        match self.exit_code {
            0 => "Good",
            1 => "Attention",
            _ => "Warning",
        }
    }

    fn paragraphs(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(String::clone);
        let lists = [
            ("Warnings", self.warnings.len(), warnings.collect()),
            ("New", self.new.count, self.new.lines()),
            ("Resolved", self.resolved.count, self.resolved.lines()),
        ];
        let lists = lists.into_iter().filter(|(_, count, _)| *count > 0);
        [self.text.clone()].into_iter().chain(lists.map(|(title, count, lines)| list(title, count, &lines))).collect()
    }

    fn footer(&self) -> String {
        format!("{}, revision {}; gatewright report show {}", self.time.strftime("%F %T UTC"), self.revision, self.id)
    }
}

impl Findings {
    fn lines(&self) -> Vec<String> {
        let line = |finding: &Finding| match finding.clusters.as_slice() {
            [] => finding.what.clone(),
            clusters => format!("{} ({})", finding.what, clusters.join(", ")),
        };
        self.findings.iter().map(line).collect()
    }
}

/// Writes the first of some lines below a title, and counts the others.
fn list(title: &str, count: usize, lines: &[String]) -> String {
    let mut text = format!("{title}:");
    let mut named = 0;
    for line in lines.iter().take(MOST_LINES) {
        if text.len() + line.len() > LONGEST_LIST {
            break;
        }
        text = text + "\n• " + line;
        named += 1;
    }
    if count > named { format!("{text}\n… and {} more", count - named) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that the receivers take: a text of a block, and a whole message.
    const SLACK_TEXT: usize = 3000;
    const TEAMS_MESSAGE: usize = 28 * 1024;

    /// A notification that is as long as there is one.
    fn longest() -> Vec<u8> {
        let finding = json!({"kind": "step", "clusters": vec!["c".repeat(36); 2], "what": "<!channel> \"".repeat(25)});
        let findings = json!({"count": 400, "findings": vec![finding; 30]});
        let warnings = vec!["[a](https://example.com) *b* \\".repeat(10); 20];
        let value = json!({
            "schema": "gatewright.dev/notification/v1alpha1", "id": "20261120T060000.000Z-edge", "time": "2026-11-20T06:00:07Z",
            "text": "edge on cluster <@U1> & others", "sync": "edge", "source": "specs", "revision": "main@sha1:4be1c09",
            "exitCode": 1, "warnings": warnings, "new": findings, "resolved": findings,
        });
        serde_json::to_vec(&value).expect("it is plain data")
    }

    fn sent(format: WebhookFormat, notification: &[u8]) -> Value {
        let form = form(format, notification, "a1").expect("it is a notification");
        serde_json::from_slice(&form.body).expect("it is JSON")
    }

    #[test]
    fn an_event_holds_the_notification_as_it_is() {
        let notification: Value = serde_json::from_slice(&longest()).expect("it is JSON");
        let event = sent(WebhookFormat::Cloudevents, &longest());
        assert_eq!(event["data"], notification);
        for (attribute, expected) in [
            ("specversion", "1.0"),
            ("id", "20261120T060000.000Z-edge"),
            ("source", "/gatewright/a1"),
            ("type", "dev.gatewright.notification.v1alpha1"),
            ("subject", "edge"),
            ("time", "2026-11-20T06:00:07Z"),
        ] {
            assert_eq!(event[attribute], expected, "{attribute}");
        }
    }

    #[test]
    fn a_message_for_slack_is_plain_text_of_a_size_that_it_takes() {
        let message = sent(WebhookFormat::Slack, &longest());
        assert_eq!(message["text"], "edge on cluster &lt;@U1&gt; &amp; others");
        let blocks = message["blocks"].as_array().expect("there are some");
        let texts: Vec<&Value> =
            blocks.iter().map(|block| block.get("text").unwrap_or(&block["elements"][0])).collect();
        assert!(texts.iter().all(|text| text["type"] == "plain_text" && text["emoji"] == false), "{texts:?}");
        let lengths = texts.iter().filter_map(|text| text["text"].as_str()).map(|text| text.chars().count());
        assert!(lengths.clone().all(|length| length <= SLACK_TEXT), "{:?}", lengths.collect::<Vec<_>>());
        assert_eq!(texts[0]["text"], "edge: failed");
        let new = texts[3]["text"].as_str().expect("it is a text");
        assert!(new.starts_with("New:\n• <!channel>") && new.ends_with("\n… and 393 more"), "{new}");
        assert_eq!(
            texts[5]["text"],
            "2026-11-20 06:00:07 UTC, revision main@sha1:4be1c09; gatewright report show 20261120T060000.000Z-edge"
        );
    }

    #[test]
    fn a_message_for_teams_is_a_card_of_a_size_that_it_takes() {
        let form = form(WebhookFormat::Teams, &longest(), "a1").expect("it is a notification");
        assert!(form.body.len() < TEAMS_MESSAGE, "{} bytes", form.body.len());
        let message: Value = serde_json::from_slice(&form.body).expect("it is JSON");
        let body = &message["attachments"][0]["content"]["body"];
        let parts = body.as_array().expect("it has parts");
        assert!(parts.iter().all(|part| part["inlines"][0]["type"] == "TextRun"), "{body}");
        assert_eq!(
            (&parts[0]["inlines"][0]["text"], &parts[0]["inlines"][0]["color"]),
            (&json!("edge: failed"), &json!("Attention"))
        );
    }

    #[test]
    fn a_file_that_is_no_notification_is_an_error() {
        for format in [WebhookFormat::Cloudevents, WebhookFormat::Slack, WebhookFormat::Teams] {
            assert!(form(format, b"{", "a1").is_err(), "{format:?}");
        }
        assert!(form(WebhookFormat::Slack, b"{}", "a1").is_err());
    }
}
