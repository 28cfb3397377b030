//! Pages of somebody else in another tab, which would like to know or to do something.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use serde_json::json;

use super::{open, ordinary, until};
use crate::browser::chromium::Chromium;

/// A page that tries all that a page can, and says what it got.
const PAGE: &str = "<!doctype html><title>evil</title><body><script>
    const port = location.hash.slice(1);
    const own = `http://127.0.0.1:${port}`;
    const got = window.got = {};
    const tell = (name, promise) => promise.then((it) => { got[name] = it; }, () => { got[name] = 'nothing'; });
    const say = async (answer) => `${answer.type} ${answer.status} ${await answer.text()}`;
    tell('read', fetch(`${own}/api/v1/fleet`).then(say));
    tell('blind', fetch(`${own}/api/v1/fleet`, {mode: 'no-cors'}).then(say));
    tell('post', fetch(`${own}/api/v1/approvals`, {method: 'POST', body: 'token=a'}).then(say));
    tell('put', fetch(`${own}/api/v1/approvals`, {method: 'PUT'}).then(say));
    tell('name', fetch(`http://evil.example:${port}/api/v1/fleet`, {mode: 'no-cors'}).then(say));
    tell('events', new Promise((done, fail) => { const it = new EventSource(`${own}/api/v1/events`); it.onmessage = done; it.onopen = () => done('open'); it.onerror = fail; }));
    const part = (tag, attributes) => new Promise((done, fail) => {
        const it = Object.assign(document.createElement(tag), attributes, {onload: () => done('loaded'), onerror: fail});
        document.body.append(it);
    });
    tell('script', part('script', {src: `${own}/dashboard/app.js`, type: 'module'}));
    tell('classic', part('script', {src: `${own}/api/v1/fleet`}));
    tell('image', part('img', {src: `${own}/dashboard/icon.svg`}));
    const frame = document.createElement('iframe');
    frame.src = `${own}/dashboard/`;
    frame.onload = () => { let text; try { text = frame.contentDocument ? frame.contentDocument.body.innerText : 'closed'; } catch { text = 'closed'; } got.frame = text; };
    document.body.append(frame);
</script>";

/// Serves the page of somebody else, for as long as this process lives; returns its port.
fn evil() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let port = listener.local_addr().expect("it has an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _read = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
            let _written = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{PAGE}", PAGE.len());
        }
    });
    port
}

#[test]
fn pages_of_others_can_neither_know_nor_do_anything() {
    let (fleet, evil) = (ordinary(), evil());
    // The name of somebody else leads to this host, as it does after DNS rebinding.
    let mut chromium = Chromium::start_with("--host-resolver-rules=MAP evil.example 127.0.0.1");
    for host in ["127.0.0.1", "evil.example", "localhost"] {
        chromium.visit("about:blank");
        chromium.visit(&format!("http://{host}:{evil}/#{}", fleet.port));
        until(&mut chromium, "Object.keys(window.got).length === 10");
        let got = chromium.evaluate("window.got");
        assert_eq!(got["frame"], "closed", "{host}: {got}");
        for name in ["read", "post", "put", "events", "script", "classic", "image"] {
            assert_eq!(got[name], "nothing", "{host} {name}: {got}");
        }
        // Nobody can read what comes of such requests, if anything does.
        for name in ["blind", "name"] {
            assert!(got[name] == "nothing" || got[name] == "opaque 0 ", "{host} {name}: {got}");
        }
    }
    // As its own page it would be allowed everything, and it is not one.
    for path in ["dashboard/", "api/v1/fleet", ""] {
        chromium.visit(&format!("http://evil.example:{}/{path}", fleet.port));
        let text = chromium.evaluate("document.body.innerText");
        assert!(text.as_str().is_some_and(|text| text.contains("this host has another name here")), "{path}: {text}");
    }
    open(&mut chromium, &fleet, "fleet", super::VIEWS[0].1);
    assert_eq!(
        chromium.evaluate("fetch('/api/v1/fleet').then((it) => it.status)"),
        json!(200),
        "its own page is answered"
    );
}
