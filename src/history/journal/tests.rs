use std::cell::Cell;

use gatewright_engine::plan::Plan;
use tempfile::TempDir;

use super::*;
use crate::report::action::StepAction;
use crate::report::{Mode, StepReport};

/// A host that keeps reports.
struct Host {
    folder: TempDir,
    reports: PathBuf,
    max_bytes: u64,
    formats: BTreeSet<ReportFormat>,
    state: State,
    /// The number of times that others were told.
    told: Cell<usize>,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(folder.path().join("state"));
        let (reports, formats) = (folder.path().join("state/reports"), [ReportFormat::Text].into());
        Self { folder, reports, max_bytes: 1 << 30, formats, state, told: Cell::new(0) }
    }

    fn settings(&self) -> Settings<'_> {
        let keep = Duration::from_hours(30 * 24);
        Settings { dir: &self.reports, keep, max_bytes: self.max_bytes, formats: &self.formats, latest: None }
    }

    /// Keeps a report that says of one cluster how many objects are missing there.
    fn record(
        &self,
        second: i64,
        missing: usize,
        tell: impl FnOnce(&Path) -> Result<(), StateError>,
    ) -> Result<bool, StateError> {
        let mut report = report(second, missing);
        compare(&self.state, &mut report);
        expire(&self.state, &self.settings(), report.finished);
        record(&self.state, &self.settings(), &report, |kept| {
            self.told.set(self.told.get() + 1);
            tell(kept)
        })
    }

    /// Tells whether the next report is compared with this one.
    fn knows(&self, missing: usize) -> (bool, bool) {
        let found = |report: &ClusterReport| report.steps.len() == missing;
        let last = last(&self.state, "edge", "only").is_some_and(|report| found(&report.clusters["only"]));
        (last, before(&self.state, "edge", "only").is_some_and(|before| found(&before.report)))
    }
}

fn report(second: i64, missing: usize) -> Report {
    let step = |number: usize| {
        let id = |kind: &str| ObjectId::new("", kind, "shop", &format!("n{number}"));
        StepReport::new(id("Gateway"), id("Service"), StepAction::Missing, None)
    };
    let steps = (0..missing).map(step).collect();
    let cluster = ClusterReport { state: ClusterState::Compared, steps, ..ClusterReport::of(&Plan::default()) };
    let now = Timestamp::from_second(second).expect("it is a time");
    Report { clusters: [("only".to_owned(), cluster)].into(), ..Report::about(("edge", "specs"), Mode::Report, now) }
}

#[test]
fn what_nobody_could_be_told_is_news_in_the_next_report() {
    let host = Host::new();
    assert!(host.record(1, 0, |_| Ok(())).expect("it is kept"), "a first report is new");
    assert_eq!((host.told.get(), host.knows(0)), (1, (true, true)));
    let failed = host.record(2, 1, |kept| {
        assert!(read(kept).is_some(), "what others are told of is in the history");
        assert_eq!(host.knows(0), (true, true), "a process that ends here has told nobody");
        Err(StateError::Write(kept.to_owned(), std::io::ErrorKind::StorageFull.into()))
    });
    assert!(failed.is_err() && host.knows(0) == (true, true));
    let mut news = None;
    let again = host.record(3, 1, |kept| {
        news = Some(kept.to_path_buf());
        Ok(())
    });
    assert!(again.expect("it is kept"));
    let news = read(&news.expect("it is told again")).expect("it is in the history");
    assert_eq!(news.clusters["only"].trend.as_ref().map(|trend| (trend.new, trend.still)), Some((1, 0)));
    assert_eq!((host.told.get(), host.knows(1)), (3, (true, true)));
    assert!(!host.record(4, 1, |_| Ok(())).expect("it is kept"), "it is told once");
    assert_eq!(host.told.get(), 3);
}

#[test]
fn what_the_history_does_not_have_nobody_is_told_until_it_has() {
    let host = Host::new();
    let reports = host.folder.path().join("state/reports");
    fs::create_dir_all(host.folder.path().join("state")).expect("a temporary folder can be written");
    fs::write(&reports, "in its place").expect("a temporary folder can be written");
    assert!(host.record(1, 1, |_| Ok(())).is_err());
    assert_eq!((host.told.get(), host.knows(1)), (0, (false, false)));
    fs::remove_file(&reports).expect("it is there");
    assert!(host.record(2, 1, |_| Ok(())).expect("it is kept"));
    assert_eq!((host.told.get(), host.knows(1), files(&reports).len()), (1, (true, true), 1));
}

#[test]
fn no_more_reports_are_kept_than_may_be_and_the_oldest_go_first() {
    let mut host = Host::new();
    let reports = host.reports.clone();
    let reports = || files(&reports);
    for second in 0..20 {
        host.record(second * 60, usize::try_from(second).expect("it is small"), |_| Ok(())).expect("it can be kept");
    }
    let all = reports();
    assert_eq!(all.len(), 20);
    let size = |path: &PathBuf| fs::metadata(path).expect("it is there").len();
    let newest: u64 = all.iter().take(3).map(size).sum();
    host.max_bytes = newest;
    host.record(3_000, 30, |_| Ok(())).expect("it can be kept");
    let left = files(&host.reports);
    assert_eq!(left[1..], all[..left.len() - 1], "the newest stay");
    assert!((2..=5).contains(&left.len()), "{left:?}");
}

#[test]
fn an_unchanged_object_is_counted_and_not_repeated_in_the_history() {
    let host = Host::new();
    let mut report = report(60, 1);
    let cluster = report.clusters.get_mut("only").expect("it is there");
    let id = |kind: &str| ObjectId::new("", kind, "shop", "n");
    cluster.steps.extend((0..500).map(|_| StepReport::new(id("Gateway"), id("Service"), StepAction::Unchanged, None)));
    record(&host.state, &host.settings(), &report, |_| Ok(())).expect("it can be kept");
    let kept = history(&host.reports, None).find_map(|(_, report)| report).expect("it is new");
    let kept = &kept.clusters["only"];
    assert_eq!((kept.steps.len(), kept.unlisted, kept.unchanged()), (1, 500, 500));
    let last = last(&host.state, "edge", "only").expect("it is kept");
    assert_eq!(last.clusters["only"].steps.len(), 501, "the last one is whole");
}
