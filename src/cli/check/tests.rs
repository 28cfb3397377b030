use gatewright_engine::problem::{Place, Problem};
use gatewright_engine::rules;
use gatewright_engine::yaml::Position;
use serde_json::json;

use super::*;
use crate::report::junit;

/// A warning of a rule, on one of several clusters, and an error without a rule, of which only the file is known.
fn findings() -> Vec<ProblemReport> {
    let place = Place::at(&"shop, eu/a:b.yaml".into(), Position { line: 7, column: 3 });
    let id = rules::UNSUPPORTED_ADDRESS_TYPE;
    let warning = Problem::warning(place, "spec.a is \"<50%>\",\nbut <b> is meant").hint("write it").by(id);
    let error = Problem::file(Place::file("b.yaml"), "the file is empty");
    let of = |problem, clusters: &[&str]| {
        let clusters = clusters.iter().map(|name| (*name).to_owned()).collect();
        ProblemReport { problem, clusters, since: None }
    };
    vec![of(warning, &["eu-1"]), of(error, &[])]
}

#[test]
fn commands_of_a_workflow_are_one_line_each() {
    assert_eq!(
        github::commands(&findings()),
        "::warning file=shop%2C eu/a%3Ab.yaml,line=7,col=3,title=GW005::spec.a is \"<50%25>\",\\u{a}but <b> is meant (write it); \
         on cluster eu-1\n::error file=b.yaml,line=1,col=1::the file is empty\n"
    );
    assert_eq!(github::commands(&[]), "");
}

#[test]
fn a_log_names_the_rules_that_were_broken_and_where() {
    let log = sarif::log(&findings());
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "GW005");
    assert_eq!(run["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(1));
    let (warning, error) = (&run["results"][0], &run["results"][1]);
    assert_eq!((&warning["ruleId"], &warning["level"]), (&json!("GW005"), &json!("warning")));
    let at = &warning["locations"][0]["physicalLocation"];
    assert_eq!(at["artifactLocation"]["uri"], "shop%2C%20eu/a%3Ab.yaml");
    assert_eq!(at["region"], json!({"startLine": 7, "startColumn": 3}));
    assert_eq!((&error["ruleId"], &error["level"]), (&json!("invalid"), &json!("error")));
    assert_eq!(error["message"]["text"], "the file is empty");
}

#[test]
fn a_suite_has_a_case_for_each_finding_or_one_that_passed() {
    let written = |findings: &[ProblemReport]| {
        let mut out = Vec::new();
        junit::write_findings(findings, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("it is text")
    };
    let xml = written(&findings());
    assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{xml}");
    assert!(xml.contains("spec.a is &quot;&lt;50%&gt;&quot;,\\u{a}but &lt;b&gt; is meant"), "{xml}");
    assert!(written(&[]).contains("tests=\"1\" failures=\"0\""));
}
