//! A clock that jumps ahead ends nothing that was to last for a while.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::ownership::site::Site;

const YEARS_AGO: &str = "2016-03-01T12:00:00Z";

/// Sets the time back in a file of the state; to a clock that is right this looks as if it had jumped ahead.
fn set_back(site: &Site, file: &str, fields: &[(&str, &str)]) {
    let path = format!("state/{file}");
    let mut value: Value = serde_json::from_str(&site.desk.read(&path)).expect("it is JSON");
    for (field, time) in fields {
        assert!(value[*field].is_string(), "{value}");
        value[*field] = Value::from(*time);
    }
    site.desk.write(&path, &value.to_string());
}

/// Leaves records and reports of fifteen rounds of that time.
fn old_rounds(site: &Site) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for day in 10..25 {
        let run = format!("201602{day}T120000.000Z-{}.c", site.name);
        site.desk.write(&format!("state/undo/{run}/c/after"), "");
        site.desk.write(&format!("state/reports/{run}.json"), "{}");
        paths.push(site.desk.path(&format!("state/undo/{run}")));
        paths.push(site.desk.path(&format!("state/reports/{run}.json")));
    }
    paths
}

#[test]
fn a_clock_that_jumps_ahead_ends_no_suspension_and_deletes_no_record() {
    let site = Site::new("");
    site.want(&["edge"], 80);
    site.sync().exits(0).says("4 objects created");
    site.run(&["suspend", &site.name, "--reason", "change freeze", "--for", "2h"]).exits(0);

    // Ten years pass within a second.
    let suspended = format!("suspended/{}.json", site.name);
    set_back(&site, "clock.json", &[("time", YEARS_AGO)]);
    set_back(&site, &suspended, &[("since", YEARS_AGO), ("until", "2016-03-01T14:00:00Z")]);
    let old = old_rounds(&site);
    site.sync().exits(3).complains("is suspended").complains("until 2016-03-01 14:00:00 UTC");
    site.run(&["status"]).exits(0).says("suspended");
    site.want(&["edge"], 81);
    let urgent = || site.run(&["sync", "--even-if-suspended", "--reason", "urgent"]).exits(0).says("2 objects updated");
    urgent().complains("the clock has jumped ahead");
    site.want(&["edge"], 82);
    urgent();
    let gone = old.iter().filter(|path| !path.exists()).count();
    assert_eq!(gone, 0, "of {}", old.len());
    site.sync().exits(3);

    // A time that nothing speaks against ends what it should, but for the newest rounds.
    fs::remove_file(site.desk.path("state/clock.json")).expect("it was written");
    site.want(&["edge"], 83);
    site.sync().exits(0).says("2 objects updated");
    let left = |of: &str| old.iter().filter(|path| path.exists() && path.starts_with(site.desk.path(of))).count();
    assert_eq!((left("state/undo"), left("state/reports")), (0, 0));
    site.run(&["undo"]).exits(0);
    let newer = fs::read_dir(site.desk.path("state/undo")).map(Iterator::count);
    assert_eq!(newer.ok(), Some(4), "the rounds of today stay");
}
