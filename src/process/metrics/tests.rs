use super::*;

/// Metrics in which everything was said once.
fn full() -> Metrics {
    let metrics = Metrics::new("1.2.3");
    metrics.reloaded(true);
    metrics.memory_is_short(true);
    metrics.round("gateways", "eu-1", "done");
    metrics.round_took("gateways", 0.3);
    metrics.succeeded("gateways", "eu-1", 1_780_000_000.5);
    metrics.objects("gateways", "eu-1", &BTreeMap::from([(("current", "Service"), 12), (("held", "Job"), 1)]));
    metrics.units("gateways", "eu-1", &BTreeMap::from([("unhealthy", 1)]));
    metrics.problems("gateways", "eu-1", 2);
    metrics.changed("gateways", "eu-1", "update", 3);
    metrics.holds("gateways", "eu-1", &BTreeMap::from([("maxDelete", 1)]));
    metrics.suspended("gateways", true);
    metrics.notified("ops", "delivered", 1);
    metrics.notifications_wait("ops", 2);
    metrics.polled("platform", "changed");
    metrics.source_succeeded("platform", 1_780_000_000.0);
    metrics.cluster_up("eu-1", true);
    metrics.unreachable("us-1", Some(1_780_000_000.0));
    metrics.cluster_secrets("fleet", true);
    metrics
}

fn page(metrics: &Metrics) -> String {
    metrics.encode().expect("metrics can be written to memory")
}

/// The samples of a page, without the histogram's buckets.
fn samples(metrics: &Metrics) -> Vec<String> {
    let page = page(metrics);
    page.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket")).map(str::to_owned).collect()
}

#[test]
fn everything_that_is_said_is_shown() {
    assert_eq!(
        samples(&full()),
        [
            "gatewright_build_info{version=\"1.2.3\"} 1",
            "gatewright_config_last_reload_successful 1",
            "gatewright_memory_short 1",
            "gatewright_rounds_total{sync=\"gateways\",cluster=\"eu-1\",result=\"done\"} 1",
            "gatewright_round_duration_seconds_sum{sync=\"gateways\"} 0.3",
            "gatewright_round_duration_seconds_count{sync=\"gateways\"} 1",
            "gatewright_last_success_timestamp_seconds{sync=\"gateways\",cluster=\"eu-1\"} 1780000000.5",
            "gatewright_objects{sync=\"gateways\",cluster=\"eu-1\",state=\"current\",kind=\"Service\"} 12",
            "gatewright_objects{sync=\"gateways\",cluster=\"eu-1\",state=\"held\",kind=\"Job\"} 1",
            "gatewright_units{sync=\"gateways\",cluster=\"eu-1\",state=\"unhealthy\"} 1",
            "gatewright_problems{sync=\"gateways\",cluster=\"eu-1\"} 2",
            "gatewright_changes_total{sync=\"gateways\",cluster=\"eu-1\",action=\"update\"} 3",
            "gatewright_holds{sync=\"gateways\",cluster=\"eu-1\",guard=\"maxDelete\"} 1",
            "gatewright_sync_suspended{sync=\"gateways\"} 1",
            "gatewright_source_polls_total{source=\"platform\",result=\"changed\"} 1",
            "gatewright_source_last_success_timestamp_seconds{source=\"platform\"} 1780000000.0",
            "gatewright_cluster_up{cluster=\"eu-1\"} 1",
            "gatewright_cluster_unreachable_since_timestamp_seconds{cluster=\"us-1\"} 1780000000.0",
            "gatewright_notifications_total{webhook=\"ops\",result=\"delivered\"} 1",
            "gatewright_notifications_waiting{webhook=\"ops\"} 2",
            "gatewright_cluster_secrets_last_read_successful{cluster_secrets=\"fleet\"} 1",
        ]
    );
}

#[test]
fn the_page_is_complete_and_the_same_each_time() {
    let metrics = full();
    for cluster in ["eu-9", "ap-1", "us-3"] {
        metrics.cluster_up(cluster, false);
    }
    let first = page(&metrics);
    assert!(first.ends_with("# EOF\n"));
    assert!(first.contains("# TYPE gatewright_round_duration_seconds histogram\n"));
    assert!(first.contains("# UNIT gatewright_last_success_timestamp_seconds seconds\n"));
    assert_eq!(first, page(&metrics));
}

#[test]
fn a_hold_that_is_lifted_is_gone() {
    let metrics = full();
    metrics.holds("gateways", "eu-2", &BTreeMap::from([("emptyRender", 1)]));
    metrics.holds("gateways", "eu-1", &BTreeMap::new());
    let holds: Vec<String> = samples(&metrics).into_iter().filter(|line| line.contains("_holds")).collect();
    assert_eq!(holds, ["gatewright_holds{sync=\"gateways\",cluster=\"eu-2\",guard=\"emptyRender\"} 1"]);
}

#[test]
fn what_leaves_the_configuration_is_forgotten() {
    let two = || {
        let metrics = full();
        metrics.round("pools", "us-1", "done");
        metrics.round_took("pools", 1.0);
        metrics.cluster_up("us-1", true);
        metrics.polled("lab", "unchanged");
        metrics.cluster_secrets("argo", false);
        metrics
    };
    let check = |forget: &dyn Fn(&Metrics), gone: &str, kept: &str| {
        let metrics = two();
        forget(&metrics);
        let page = page(&metrics);
        assert!(!page.contains(gone), "{gone} is still in\n{page}");
        assert!(page.contains(kept), "{kept} is not in\n{page}");
    };
    check(&|metrics| metrics.forget(&[("sync", "gateways")]), "sync=\"gateways\"", "sync=\"pools\"");
    check(&|metrics| metrics.forget(&[("cluster", "eu-1")]), "cluster=\"eu-1\"", "cluster=\"us-1\"");
    check(&|metrics| metrics.forget(&[("source", "platform")]), "source=\"platform\"", "source=\"lab\"");
    let forget = |metrics: &Metrics| metrics.forget(&[("cluster_secrets", "fleet")]);
    check(&forget, "cluster_secrets=\"fleet\"", "cluster_secrets=\"argo\"");
    check(
        &|metrics| metrics.forget(&[("sync", "gateways"), ("cluster", "eu-1")]),
        "sync=\"gateways\",cluster=\"eu-1\"",
        "cluster_up{cluster=\"eu-1\"}",
    );
}

#[test]
fn a_webhook_that_is_gone_is_forgotten() {
    let metrics = full();
    metrics.notified("other", "failed", 1);
    metrics.forget(&[("webhook", "ops")]);
    let page = page(&metrics);
    assert!(!page.contains("webhook=\"ops\"") && page.contains("webhook=\"other\",result=\"failed\"} 1"), "{page}");
}

#[test]
fn a_name_cannot_break_the_page() {
    let metrics = Metrics::new("1");
    metrics.cluster_up("a\"b\\c\nd", true);
    assert!(page(&metrics).contains("gatewright_cluster_up{cluster=\"a\\\"b\\\\c\\nd\"} 1\n"), "{}", page(&metrics));
}

#[test]
fn every_metric_is_in_the_documentation_and_nothing_else() {
    let documented: Vec<&str> = include_str!("../../../docs/metrics.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `gatewright_"))
        .filter_map(|line| line.split(['`', '{']).next())
        .collect();
    let page = page(&full());
    let mut shown: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE gatewright_"))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
        .collect();
    let mut documented: Vec<String> = documented.into_iter().map(str::to_owned).collect();
    shown.sort();
    documented.sort();
    assert_eq!(documented, shown);
}
