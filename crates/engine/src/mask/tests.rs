use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn the_fingerprint_is_the_hmac_of_the_rfc() {
    // RFC 4231, test cases 1 and 2.
    let check = |key: &[u8], message: &[u8], expected: &str| assert_eq!(hex(&hmac(key, message)), expected);
    check(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check(b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

#[test]
fn a_fingerprint_needs_the_key() {
    let (pin, ours, other) = (json!("1234"), Masker::new([1; 32]), Masker::new([2; 32]));
    assert_eq!(ours.value(&pin), Masker::new([1; 32]).value(&pin));
    assert_ne!(ours.value(&pin), other.value(&pin));
    assert_ne!(ours.value(&pin), ours.value(&json!("1235")));
    assert_eq!(Masker::default().value(&pin), "***");
    assert_eq!(format!("{ours:?}"), "Masker(…)");
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
fn check(body: Value, expected: Value) {
    assert_eq!(Masker::default().body(&body), expected);
    assert_eq!(Masker::default().body(&expected), expected, "once is enough");
}

#[test]
fn secrets_and_their_copies_are_masked() {
    check(
        json!({"kind": "Secret", "type": "Opaque", "data": {"a": "b25l"}, "stringData": {"b": "two"},
            "metadata": {"name": "a", "annotations": {"copy": "b25l", "gatewright.dev/owner": "me"}}}),
        json!({"kind": "Secret", "type": "Opaque", "data": {"a": "***"}, "stringData": {"b": "***"},
            "metadata": {"name": "a", "annotations": {"copy": "***", "gatewright.dev/owner": "me"}}}),
    );
    check(
        json!({"kind": "Service", "metadata": {"annotations": {LAST_APPLIED: "{}", "a": "b"}}}),
        json!({"kind": "Service", "metadata": {"annotations": {LAST_APPLIED: "***", "a": "b"}}}),
    );
}

#[test]
fn values_are_masked_where_their_names_say_so() {
    check(
        json!({"env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "LEVEL", "value": "info"},
            {"name": "API_TOKEN", "value": "$(TOKEN)"}, {"name": "S_KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "token"}}}]}),
        json!({"env": [{"name": "DB_PASSWORD", "value": "***"}, {"name": "LEVEL", "value": "info"},
            {"name": "API_TOKEN", "value": "$(TOKEN)"}, {"name": "S_KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "token"}}}]}),
    );
    check(
        json!({"args": ["--token=abc", "--password", "x", "--level", "info", "--secret-file", "/a"]}),
        json!({"args": ["--token=***", "--password", "***", "--level", "info", "--secret-file", "/a"]}),
    );
    check(
        json!({"clientSecret": "x", "tokens": ["a"], "password": 12, "maxTokens": 9, "imagePullSecrets": [{"name": "r"}], "volumes": [{"secret": {"secretName": "s"}}]}),
        json!({"clientSecret": "***", "tokens": ["***"], "password": "***", "maxTokens": 9, "imagePullSecrets": [{"name": "r"}], "volumes": [{"secret": {"secretName": "s"}}]}),
    );
}

#[test]
fn the_secrets_of_an_object_can_be_listed() {
    let body = json!({"kind": "Secret", "data": {"a": "b25l"}, "env": [{"name": "PIN", "value": "longer"}], "x": "--token=abc"});
    assert_eq!(Masker::secrets(&body), ["longer", "b25l", "abc"]);
}

/// Ways to set a secret, in which `@` stands for it.
const FORMS: [&str; 14] = [
    "--password=@",
    "--api-key @ -v",
    "password: @\nuser: me",
    "a=1 DB_PASSWORD=@ b=2",
    "{\"clientSecret\":\"@\",\"a\":1}",
    "\"{\\\"token\\\":\\\"@\\\"}\"",
    "https://me:@@example.com/x",
    "postgres://@@db/x?a=b",
    "Authorization: Bearer @",
    "-----BEGIN PRIVATE KEY-----\n@\n@\n-----END PRIVATE KEY-----",
    "{\"name\":\"A_TOKEN\",\"value\":\"@\"}",
    "Name:\"A_SECRET\", Value:\"@\"",
    "spec.env[0].token: Invalid value: \"@\": must be shorter",
    "https://x/y?access_token=@&z=1",
];

proptest! {
    #[test]
    fn no_piece_of_a_secret_is_left_in_a_text(
        secret in "[A-Za-z0-9]{4}[0-9][A-Za-z0-9_.~/+-]{7,40}",
        form in prop::sample::select(FORMS.to_vec()),
        before in "([a-z ]{0,9}[ \n])?",
    ) {
        // In a URL a slash ends what the secret is in.
        let secret = if form.contains("://") { secret.replace('/', "%2F") } else { secret };
        let text = format!("{before}{}", form.replace("@@", "\0@").replace('@', &secret).replace('\0', "@"));
        let text = text.replacen(&format!("@{secret}"), &format!("{secret}@"), 1);
        let masker = Masker::new([7; 32]);
        let masked = masker.text(&text);
        for piece in secret.as_bytes().windows(6) {
            let piece = String::from_utf8_lossy(piece);
            prop_assert!(!masked.contains(&*piece), "{piece:?} in {masked:?}");
        }
        prop_assert_eq!(masker.text(&masked), masked.clone(), "once is enough");
        // Another secret is another text.
        let other = masker.text(&text.replace(&secret, &format!("{secret}x")));
        prop_assert_ne!(other, masked);
    }

    #[test]
    fn what_is_masked_has_the_form_of_what_it_was(text in ".{0,60}", name in "[a-zA-Z_]{1,12}") {
        let body = serde_json::json!({"kind": "ConfigMap", "data": {name.clone(): text.clone()}, "list": [text, {"name": name}]});
        let masked = Masker::default().body(&body);
        prop_assert_eq!(masked.pointer("/list/1"), body.pointer("/list/1"));
        prop_assert_eq!(Masker::default().body(&masked), masked);
    }
}
