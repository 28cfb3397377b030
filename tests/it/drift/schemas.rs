//! An API server whose schemas cannot be read: what else is seen of it is told all the same.

use serde_json::{Value, json};

use super::theirs::{Theirs, many};
use super::{estimated, report, told};
use crate::cluster::ApiServer;
use crate::cluster::proxy::{Answer, Proxy};
use crate::errors::kubeconfig;

/// The proxy speaks as somebody who may do everything; its client is told that it may not.
fn may_only_read(proxy: &Proxy) {
    let deny = |review: &mut Value| review["status"] = json!({"allowed": false, "resourceRules": []});
    proxy.answer(usize::MAX, |seen| seen.is("POST", "/selfsubject"), Answer::Changed(std::sync::Arc::new(deny)));
}

#[test]
fn schemas_that_cannot_be_read_spoil_no_report() {
    let server = ApiServer::start();
    let (theirs, proxy) = (Theirs::new(&server, &many(2)), Proxy::start(&server));
    let desk = theirs.desk("admin");
    let through = kubeconfig(&proxy.kubeconfig(), ", allowInsecureTls: true, timeout: 20s");
    desk.replace("gatewright.yaml", &kubeconfig(&server.kubeconfig("admin"), ""), &through);
    theirs.kubectl(&["set", "image", "deployment/gw-1", "kgateway-proxy=ghcr.io/somebody/else:1"]);
    theirs.kubectl(&["set", "env", "deployment/gw-0", "DEBUG=1"]);

    let plan = || report(&desk.run(&["plan", "--format", "json"]).exits(0));
    may_only_read(&proxy);
    let sound = plan();
    assert_eq!(estimated(&sound), (2, 2), "{sound}");
    assert!(proxy.seen().iter().any(|seen| seen.is("GET", "/openapi/v3/apis/apps/v1")), "{:?}", proxy.seen());
    for answer in [
        Answer::Refused(503, "the schemas are being put together"),
        Answer::Refused(500, "the schemas are being put together"),
        Answer::Replaced(502),
        Answer::Truncated,
        Answer::Page("text/html", "<p>log in"),
    ] {
        proxy.recovers();
        may_only_read(&proxy);
        proxy.answer(usize::MAX, |seen| seen.is("GET", "/openapi/v3"), answer);
        let found = plan();
        assert_eq!((told(&found), estimated(&found)), (told(&sound), (2, 2)));
        let remark = found["clusters"]["only"]["remarks"][0].as_str().expect("there is a remark");
        assert!(
            remark.starts_with("the schemas of apps/v1, v1 cannot be read, so defaults are guessed there: "),
            "{remark}"
        );
    }

    // Credentials that are refused are another matter.
    proxy.recovers();
    may_only_read(&proxy);
    proxy.answer(usize::MAX, |seen| seen.is("GET", "/openapi/v3"), Answer::Refused(401, "who are you"));
    let run = desk.run(&["plan"]);
    assert!(run.code != 0 && run.out.contains("who are you"), "{}\n{}", run.out, run.err);
}
