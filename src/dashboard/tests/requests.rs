//! Requests of those who want more than to look, or mean harm.

use super::*;

const API: &str = "/api/v1/fleet";

#[tokio::test]
async fn every_answer_says_what_it_may_be_used_for() {
    let desk = Desk::new(2, "{}").await;
    for path in ["/dashboard/", "/dashboard/app.js", "/dashboard/style.css", API, "/api/v1/nothing", "/", "/dashboard"]
    {
        let Answer { head, .. } = desk.ask(path).await;
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "x-frame-options: deny",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-",
        ] {
            assert!(head.contains(line), "{path}: {line} in\n{head}");
        }
        for line in ["access-control-", "set-cookie", "unsafe"] {
            assert!(!head.contains(line), "{path}: {line} in\n{head}");
        }
    }
}

#[tokio::test]
async fn only_names_of_this_host_are_answered() {
    let desk = Desk::new(2, "{names: [GW.Example.com]}").await;
    let check = async |host: &str, expected: u16| {
        for path in [API, "/dashboard/", "/"] {
            let found = desk.ask_with("GET", path, &[&format!("Host: {host}")]).await;
            let expected = if path == "/" && expected == 200 { 303 } else { expected };
            assert_eq!(found.status, expected, "{host} {path}: {}", found.body);
        }
    };
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.9.9.9:8085",
        "[::1]:8085",
        "gw.example.com",
        "GW.example.COM:443",
    ] {
        check(host, 200).await;
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8085",
        "10.0.0.7",
        "[::2]",
        "gw.example.com.evil.example",
        "0.0.0.0",
        "localhost@evil.example",
        "evil.example@localhost",
        "2130706433",
        "0x7f.1",
        "localhost.",
        "",
        "a b",
        "\u{202e}",
        "::1",
        "localhost:8085, evil.example",
    ] {
        check(host, 421).await;
    }
    let both = ["Host: localhost", "Host: evil.example"];
    assert_eq!(desk.ask_with("GET", API, &both).await.status, 421, "one of two names is that of another");
    assert!(matches!(desk.ask_with("GET", API, &[]).await.status, 400 | 421), "a name is to be said");
    let elsewhere = desk.ask_with("GET", "http://evil.example/api/v1/fleet", &["Host: localhost"]).await;
    assert_eq!(elsewhere.status, 421);
}

#[tokio::test]
async fn pages_of_others_get_nothing_from_the_api() {
    let desk = Desk::new(2, "{}").await;
    let host = "Host: localhost:8085";
    for (line, expected) in [
        ("Sec-Fetch-Site: same-origin", 200),
        ("Sec-Fetch-Site: none", 200),
        ("Origin: http://localhost:8085", 200),
        ("Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-site", 403),
        ("Sec-Fetch-Site: SAME-ORIGIN, cross-site", 403),
        ("Origin: http://localhost:3000", 403),
        ("Origin: http://evil.example", 403),
        ("Origin: null", 403),
    ] {
        for path in [API, "/api/v1/events", "/api/v1/approvals"] {
            if expected == 200 && path.ends_with("events") {
                continue;
            }
            let found = desk.ask_with("GET", path, &[host, line]).await;
            assert_eq!(found.status, expected, "{line} {path}: {}", found.body);
        }
    }
    // A link to the page may stand anywhere; it is in no frame.
    assert_eq!(desk.ask_with("GET", "/dashboard/", &[host, "Sec-Fetch-Site: cross-site"]).await.status, 200);
}

#[tokio::test]
async fn nothing_but_looking_is_answered() {
    let desk = Desk::new(2, "{}").await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"] {
        for path in [API, "/dashboard/", "/api/v1/approvals", "/api/v1/syncs/gateways/clusters/c-0000"] {
            let path = if method == "CONNECT" { "localhost:8085" } else { path };
            let found = desk.ask_with(method, path, &["Host: localhost", "Content-Length: 0"]).await;
            // To a method that is none the server itself may say no.
            assert!(matches!(found.status, 400 | 404 | 405), "{method} {path}: {} {}", found.status, found.body);
        }
    }
    for path in [API, "/dashboard/", "/dashboard/app.js"] {
        let (got, head) = (desk.ask(path).await, desk.ask_with("HEAD", path, &["Host: localhost"]).await);
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        let length =
            |answer: &Answer| answer.head.lines().find(|line| line.starts_with("content-length")).map(str::to_owned);
        assert!(length(&got).is_some() && length(&got) == length(&head), "{path}: {}", head.head);
    }
}

#[tokio::test]
async fn paths_lead_nowhere_else() {
    let desk = Desk::new(2, "{}").await;
    desk.record(&report("gateways", "c-0000", &quiet()));
    std::fs::write(desk.folder.path().join("state/secret.json"), "{\"secret\": 1}").expect("a test may");
    for path in [
        "/dashboard/../state/secret.json",
        "/dashboard/%2e%2e/state/secret.json",
        "/dashboard//app.js/..",
        "/api/v1/syncs/..%2f..%2fsecret/clusters/c-0000",
        "/api/v1/syncs/gateways/clusters/..%2f..%2f..%2fsecret",
        "/api/v1/syncs/gateways/clusters/c-0000%00",
        "/api/v1/syncs/gateways/clusters/%2e%2e",
        "/api/v1/syncs/models/clusters/c-0001",
        "/api/v1/syncs/gateways/clusters/c-0009",
        "/api/v1/syncs//clusters/",
        "/api/v1/..;/fleet",
        "/api/v2/fleet",
        "/API/v1/fleet",
    ] {
        let found = desk.ask(path).await;
        assert!(matches!(found.status, 400 | 404), "{path}: {} {}", found.status, found.body);
        assert!(!found.body.contains("secret\""), "{path}: {}", found.body);
    }
    for path in
        ["/api/v1/syncs/%ff%fe/clusters/c-0000", "/api/v1/syncs/gateways/clusters/%c3%28", "/api/v1/fleet?status=%ff"]
    {
        assert!(matches!(desk.ask(path).await.status, 400 | 404), "{path}");
    }
    for query in ["from=-1", "limit=x", "limit=99999999999999999999999", "status=fine", "order=best"] {
        assert_eq!(desk.ask(&format!("{API}?{query}")).await.status, 400, "{query}");
    }
    assert_eq!(
        desk.ask(&format!("{API}?from=18446744073709551615&limit=0&q=%00%ff&other=1")).await.json()["rows"],
        json!([])
    );
}

#[tokio::test]
async fn what_is_too_long_or_no_request_is_refused() {
    let desk = Desk::new(2, "{}").await;
    let long = "a".repeat(1 << 20);
    let path = desk.ask(&format!("/dashboard/{long}")).await;
    assert!(matches!(path.status, 400 | 404 | 414 | 431), "{}", path.status);
    let head = desk.ask_with("GET", API, &["Host: localhost", &format!("X-Long: {long}")]).await;
    assert!(matches!(head.status, 0 | 400 | 431), "{}", head.status);
    let many: Vec<String> = (0..1000).map(|number| format!("X-{number}: a")).collect();
    let many: Vec<&str> = ["Host: localhost"].into_iter().chain(many.iter().map(String::as_str)).collect();
    assert!(matches!(desk.ask_with("GET", API, &many).await.status, 0 | 400 | 431));
    for bytes in [
        &b"\xff\xfe\x00\r\n\r\n"[..],
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ] {
        assert!(matches!(desk.send(bytes).await.status, 0 | 400 | 404 | 421 | 505), "{bytes:?}");
    }
    let body =
        format!("GET {API} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 9999999999\r\n\r\nabc");
    assert_eq!(desk.send(body.as_bytes()).await.status, 200, "nobody reads a body");
    assert_eq!(desk.ask(API).await.status, 200, "and it goes on");
}
