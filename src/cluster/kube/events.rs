//! Events on an API server (`events.k8s.io/v1`).

use gatewright_engine::marks::FIELD_MANAGER;
use gatewright_engine::text::digest;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::resource::{Attempt, path_segment, root};
use super::transport::Transport;
use crate::cluster::{ClusterError, Event, EventType, NO_NAMESPACE};

const API_VERSION: &str = "events.k8s.io/v1";

/// The controller that reports, as the API asks for it: a domain and a name.
const CONTROLLER: &str = "gatewright.dev/gatewright";

/// The most bytes of a note: `noteLengthLimit` of the API's validation.
const MAX_NOTE: usize = 1024;

/// Records an Event; one that is there already is the answer that was lost.
pub(super) async fn record(transport: &Transport, event: &Event) -> Result<(), ClusterError> {
    let attempt = Attempt::to(format!("record an Event about {}", event.regarding.1));
    let sent = async {
        let namespace = namespace(event);
        path_segment("namespace", namespace)?;
        let address = format!("{}/namespaces/{namespace}/events?fieldManager={FIELD_MANAGER}", root(API_VERSION));
        let request = Request::post(address).header(CONTENT_TYPE, "application/json");
        transport.ask(request.body(body(event).to_string().into_bytes())?).await
    };
    match sent.await {
        Ok(_) => Ok(()),
        Err(failure) if failure.refusal(409).is_some_and(|refusal| refusal.is_repeated) => Ok(()),
        Err(failure) => Err(failure.into_error(&attempt)),
    }
}

fn namespace(event: &Event) -> &str {
    Some(event.regarding.1.namespace.as_str()).filter(|namespace| !namespace.is_empty()).unwrap_or(NO_NAMESPACE)
}

fn body(event: &Event) -> Value {
    let (gvk, id) = &event.regarding;
    let what = format!("{}\n{id}\n{}\n{}", event.run, event.uid, event.reason);
    let mut regarding = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "name": id.name});
    for (field, text) in [("namespace", &id.namespace), ("uid", &event.uid)] {
        if !text.is_empty() {
            regarding[field] = text.as_str().into();
        }
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "Event",
        "metadata": {
            "name": format!("gatewright.{}", &digest(what.as_bytes())[..32]),
            "namespace": namespace(event),
        },
        "type": match event.event_type {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        },
        "reason": event.reason,
        "action": event.action,
        "note": &event.note[..event.note.floor_char_boundary(MAX_NOTE)],
        "regarding": regarding,
        "eventTime": event.time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        "reportingController": CONTROLLER,
        "reportingInstance": "gatewright",
    })
}
