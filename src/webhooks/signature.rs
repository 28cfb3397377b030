//! Signatures by which a receiver knows that a notification comes from this installation, as it was sent, and when:
//! those of the specification "Standard Webhooks", for which there are libraries.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Builder;
use jiff::Timestamp;
use ring::hmac;

/// Adds the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`: what is signed is the id, the time of this
/// try in seconds, and the body, with a full stop between them.
pub(super) fn sign(request: Builder, key: &[u8], id: &str, now: Timestamp, body: &[u8]) -> Builder {
    let time = now.as_second().to_string();
    request
        .header("webhook-signature", format!("v1,{}", signature(key, id, &time, body)))
        .header("webhook-id", id)
        .header("webhook-timestamp", time)
}

fn signature(key: &[u8], id: &str, time: &str, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in [id.as_bytes(), b".", time.as_bytes(), b".", body] {
        context.update(part);
    }
    STANDARD.encode(context.sign())
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::config::webhooks::key_bytes;

    /// The example of the specification's libraries.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let key = key_bytes(&SecretString::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).expect("it is one");
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        assert_eq!(signed, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
