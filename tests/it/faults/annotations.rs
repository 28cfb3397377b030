//! Annotations of live objects that somebody has filled with nonsense, on a real API server.

use crate::ownership::site::Site;

/// Annotations that others and we ourselves read, with values that nobody would write.
const NONSENSE: [&str; 9] = [
    "gatewright.dev/owner={{{",
    "gatewright.dev/health=[)",
    "gatewright.dev/health-message=\u{1b}[31m]]>",
    "gatewright.dev/managed=",
    "gatewright.dev/prune=%%",
    "gatewright.dev/recreate=\u{feff}",
    "kubectl.kubernetes.io/last-applied-configuration={\"apiVersion\": \"v1\", \"spec\": ",
    "argocd.argoproj.io/tracking-id=::",
    "argocd.argoproj.io/sync-options=,=,",
];

#[test]
fn annotations_that_make_no_sense_hold_nothing_but_their_object() {
    let site = Site::new("");
    site.want(&["edge", "other"], 80);
    site.sync().exits(0).says("8 objects created");
    for object in ["deployment/other", "service/other"] {
        site.kubectl(&[&["annotate", "--overwrite", object], NONSENSE.as_slice()].concat());
    }
    site.want(&["edge", "other"], 81);
    for arguments in [["plan"].as_slice(), &["plan", "--full"], &["status"], &["orphans"], &["tree"]] {
        let run = site.run(arguments);
        assert!([0, 3].contains(&run.code), "{arguments:?}: {}{}", run.out, run.err);
        assert!(!run.out.contains('\u{1b}') && !run.err.contains("panicked"), "{arguments:?}: {}{}", run.out, run.err);
    }
    let port = |name: &str| site.get(&format!("service/{name}"))["spec"]["ports"][0]["port"].clone();
    site.sync().says("2 objects updated");
    assert_eq!(port("edge"), 81, "the other unit goes on");

    // What has lost its mark is never deleted, and keeps nothing else.
    site.drop(&["other"]);
    site.sync();
    assert_eq!(site.left_of("edge").len(), 4);
    let left = site.left_of("other");
    assert!(["Deployment", "Service"].iter().all(|kind| left.iter().any(|it| it == kind)), "{left:?}");
}
