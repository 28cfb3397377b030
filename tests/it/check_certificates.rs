//! Certificates in a source, as openssl makes them: what `check` says of those that no data plane could use.

use std::fmt::Write as _;
use std::fs;

use gatewright::basics::clock::{Clock as _, SystemClock};
use jiff::SignedDuration;
use tempfile::TempDir;

use crate::cluster::process::command;
use crate::program::Desk;

/// Settings of an authority that signs for any time.
const SETTINGS: &str = "\
[ca]
default_ca = it
[it]
new_certs_dir = .
database = index.txt
serial = serial
default_md = sha256
policy = names
unique_subject = no
copy_extensions = copy
[names]
commonName = supplied
";

const EC: &str = "-algorithm EC -pkeyopt ec_paramgen_curve:prime256v1";
const KEYS: [&str; 3] = [EC, "-algorithm RSA -pkeyopt rsa_keygen_bits:2048", "-algorithm ED25519"];

const NAMES: &str = "-addext subjectAltName=DNS:edge.example.com,DNS:*.shop.example.com";

/// A folder in which openssl works.
struct Openssl(TempDir);

/// A certificate and its key, each PEM.
struct Pair {
    certificate: String,
    key: String,
}

impl Openssl {
    fn new() -> Self {
        let folder = TempDir::new().expect("temporary folders can be made");
        for (file, text) in [("ca.cnf", SETTINGS), ("index.txt", ""), ("serial", "01\n")] {
            fs::write(folder.path().join(file), text).expect("it can be written");
        }
        Self(folder)
    }

    fn run(&self, args: &str) {
        let output = command("openssl").args(args.split(' ')).current_dir(self.0.path()).output();
        let output = output.expect("the tests need openssl");
        assert!(output.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.path().join(file)).expect("openssl has written it")
    }

    /// Makes a certificate that is valid from and until some hours from now.
    fn pair(&self, sort: &str, names: &str, hours: [i64; 2]) -> Pair {
        let now = SystemClock::new().now();
        let [start, end] = hours.map(|hours| (now + SignedDuration::from_hours(hours)).strftime("%Y%m%d%H%M%SZ"));
        self.run(&format!("genpkey {sort} -out it.key"));
        let names = if names.is_empty() { String::new() } else { format!(" {names}") };
        self.run(&format!("req -new -key it.key -subj /CN=edge.example.com{names} -out it.csr"));
        let time = format!("-startdate {start} -enddate {end}");
        self.run(&format!("ca -config ca.cnf -batch -selfsign -notext -keyfile it.key -in it.csr {time} -out it.crt"));
        Pair { certificate: self.read("it.crt"), key: self.read("it.key") }
    }

    fn usual(&self) -> Pair {
        self.pair(EC, NAMES, [-24, 24 * 365])
    }
}

/// A folder with a Gateway for a hostname, whose certificate is in the Secret `edge`.
fn desk(hostname: &str) -> Desk {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", "stateDir: ./state\n");
    desk.write(
        "specs/edge.yaml",
        &format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: edge, namespace: infra}}\nspec:\n  \
             gatewayClassName: kgateway\n  listeners:\n    - name: https\n      hostname: {hostname:?}\n      port: 443\n      \
             protocol: HTTPS\n      tls: {{certificateRefs: [{{name: edge}}]}}\n"
        ),
    );
    desk
}

fn block(key: &str, text: &str) -> String {
    let lines = text.lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "    {line}");
        all
    });
    format!("  {key}: |\n{lines}")
}

fn secret(data: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: edge, namespace: infra}}\ntype: kubernetes.io/tls\n{data}")
}

fn of_pair(certificate: &str, key: &str) -> String {
    secret(&format!("stringData:\n{}{}", block("tls.crt", certificate), block("tls.key", key)))
}

/// Says what `check` finds in a Secret, without what is the same in all cases; empty if it finds nothing.
fn found(desk: &Desk, secret: &str) -> String {
    desk.write("specs/secret.yaml", secret);
    let run = desk.run(&["check", "specs", "--format", "short"]).exits(0);
    assert!(!run.err.contains("PRIVATE KEY"), "{}", run.err);
    let reference = "Gateway infra/edge: spec.listeners[0].tls.certificateRefs[0] names Secret infra/edge";
    // What a Secret of its type has to hold at all is said by another rule.
    run.err
        .lines()
        .filter(|line| !line.ends_with("[GW036]"))
        .map(|line| line.split_once("warning: ").map_or(line, |(_, said)| said))
        .fold(String::new(), |all, said| {
            all + said.strip_prefix(reference).unwrap_or(said).trim_start_matches([',', ' ']) + "\n"
        })
}

#[test]
fn a_certificate_and_its_key_belong_together() {
    let (openssl, desk) = (Openssl::new(), desk("edge.example.com"));
    let other = openssl.usual();
    for sort in KEYS {
        let pair = openssl.pair(sort, NAMES, [-24, 24 * 365]);
        assert_eq!(found(&desk, &of_pair(&pair.certificate, &pair.key)), "", "{sort}");
        // The first one is that of the server, whatever comes after it.
        let chain = pair.certificate.clone() + &other.certificate;
        assert_eq!(found(&desk, &of_pair(&chain, &pair.key)), "", "{sort}");
        let expected = "and its tls.key is not the key of the certificate in its tls.crt \
                        (correct it at specs/secret.yaml:7) [GW039]\n";
        assert_eq!(found(&desk, &of_pair(&other.certificate, &pair.key)), expected, "{sort}");
        assert_eq!(found(&desk, &of_pair(&(other.certificate.clone() + &pair.certificate), &pair.key)), expected);
    }
    // As they were written before there was PKCS #8.
    let pair = openssl.usual();
    openssl.run("ec -in it.key -out old.key");
    let old = openssl.read("old.key");
    assert!(old.contains("BEGIN EC PRIVATE KEY"), "another form");
    assert_eq!(found(&desk, &of_pair(&pair.certificate, &old)), "");
    assert!(found(&desk, &of_pair(&other.certificate, &old)).contains("is not the key"));
}

#[test]
fn what_is_no_certificate_or_no_key_is_told() {
    let (openssl, desk) = (Openssl::new(), desk("edge.example.com"));
    let Pair { certificate, key } = openssl.usual();
    openssl.run("pkcs8 -topk8 -v2 aes256 -passout pass:hushhush -in it.key -out locked.key");
    let no_key = "and its tls.key holds no private key in PEM that is not encrypted";
    let no_certificate = "and its tls.crt holds something else than certificates in PEM";
    let half = &certificate[..certificate.len() / 2];
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cases = [
        (of_pair(&certificate, &openssl.read("locked.key")), no_key),
        (of_pair(&certificate, &certificate), no_key),
        (of_pair("/etc/ssl/edge.pem", &key), no_certificate),
        (of_pair(half, &key), no_certificate),
        (of_pair(garbage, &key), no_certificate),
        (of_pair(&(certificate.clone() + garbage), &key), no_certificate),
        (of_pair(&key, &key), no_certificate),
        (secret(&format!("stringData:\n{}", block("tls.crt", &certificate))), "and it has no tls.key"),
        (secret("stringData: {password: hushhush}\n"), "and it has no tls.crt"),
        (
            secret(&format!("data:\n{}{}", block("tls.crt", &certificate), block("tls.key", &key))),
            "and its tls.crt is not base64, as all below data must be",
        ),
    ];
    for (secret, expected) in cases {
        let said = found(&desk, &secret);
        assert!(said.starts_with(expected) && said.ends_with(" [GW039]\n"), "{said}\n{secret}");
        assert!(!said.contains("hushhush") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn what_cannot_be_known_is_not_told() {
    let desk = desk("edge.example.com");
    for secret in [
        secret(""),
        secret("data: {}\n"),
        secret("data: {tls.crt: '', tls.key: ''}\n"),
        secret(
            "data: {tls.crt: 'ENC[AES256_GCM,data:aGk=]', tls.key: 'ENC[AES256_GCM,data:aGk=]'}\nsops: {version: 3.9.0}\n",
        ),
    ] {
        let said = found(&desk, &secret);
        assert!(!["GW039", "GW040", "GW041"].iter().any(|rule| said.contains(rule)), "{said}{secret}");
    }
}

#[test]
fn a_certificate_is_of_its_time() {
    let (openssl, desk) = (Openssl::new(), desk("edge.example.com"));
    let day = 24;
    let cases = [
        ([-2, 365 * day], ""),
        ([-100 * day, 15 * day], ""),
        ([-100 * day, 13 * day], "whose certificate expires on "),
        // One that lives for six days is renewed while it has two.
        ([-3 * day, 3 * day], ""),
        ([-5 * day, day], "whose certificate expires on "),
        ([-400 * day, -1], "whose certificate expired on "),
        ([1, 100 * day], "whose certificate is not valid before "),
    ];
    for (hours, expected) in cases {
        let pair = openssl.pair(EC, NAMES, hours);
        let said = found(&desk, &of_pair(&pair.certificate, &pair.key));
        let is_expected = said.starts_with(expected) && said.is_empty() == expected.is_empty();
        assert!(is_expected && (said.is_empty() || said.ends_with(" [GW040]\n")), "{hours:?}: {said}");
    }
}

#[test]
fn a_listener_has_a_certificate_for_its_hostname() {
    let openssl = Openssl::new();
    let pair = openssl.usual();
    let nameless = openssl.pair(EC, "", [-24, 24 * 365]);
    let verdict = |hostname: &str, pair: &Pair| found(&desk(hostname), &of_pair(&pair.certificate, &pair.key));
    for covered in ["edge.example.com", "a.shop.example.com", "*.shop.example.com", "*.example.com"] {
        assert_eq!(verdict(covered, &pair), "", "{covered}");
    }
    for bare in ["www.example.com", "shop.example.com", "a.b.shop.example.com", "*.example.org", "xedge.example.com"] {
        let expected = format!(
            "Gateway infra/edge: spec.listeners[0].hostname is {bare:?}, and no certificate of the listener is for it: Secret \
             infra/edge (use a certificate for it, or a hostname of *.shop.example.com, edge.example.com) [GW041]\n"
        );
        assert_eq!(verdict(bare, &pair), expected);
    }
    let said = verdict("edge.example.com", &nameless);
    assert!(
        said.contains("no certificate of the listener is for it") && said.contains("there is none in this one"),
        "{said}"
    );
}

/// In a round it is a warning as in a check; what has expired is for `check` to say.
#[test]
fn a_round_says_it_and_holds_nothing() {
    let openssl = Openssl::new();
    let (pair, old) = (openssl.usual(), openssl.pair(EC, NAMES, [-400 * 24, -24]));
    let desk = Desk::quickstart("gatewright.yaml");
    desk.run(&["sync"]).exits(0);
    desk.write("specs/shop/secret.yaml", &{
        let text = of_pair(&old.certificate, &pair.key);
        text.replace("name: edge, namespace: infra", "name: shop-example-com, namespace: shop")
    });
    desk.replace("specs/shop/storefront.yaml", "port: 8080", "port: 8081");
    let run = desk.run(&["sync"]).exits(0).says("2 objects updated");
    assert!(run.out.contains("[GW039]") && !run.out.contains("[GW040]"), "{}", run.out);
    desk.run(&["check", "specs"]).exits(0).complains("[GW040]\n");
}
