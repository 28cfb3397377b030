use std::fs;
use std::thread;

use proptest::prelude::*;

use super::*;

fn state() -> (tempfile::TempDir, State) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let state = State::open(folder.path());
    (folder, state)
}

fn resumed(sync: &str) -> Event {
    Event::Resumed { sync: sync.to_owned() }
}

fn write(state: &State, syncs: &[&str]) {
    for sync in syncs {
        let by = Actor::of_command(Some("anna"));
        record(state, Timestamp::UNIX_EPOCH, &by, resumed(sync)).expect("the folder can be written");
    }
}

fn text(state: &State) -> String {
    fs::read_to_string(state.path(FILE)).expect("it is there")
}

#[test]
fn each_line_follows_from_the_one_before() {
    let (_folder, state) = state();
    assert_eq!(verify(&state, None).expect("it can be read"), Ok(Verified::default()));
    write(&state, &["a", "b", "c"]);
    let verified = verify(&state, None).expect("it can be read").expect("nobody has changed it");
    assert_eq!((verified.entries, verified.cut_off), (3, 0));
    let numbers: Vec<u64> = read(&state).expect("it can be read").iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let digest = verified.digest;
    write(&state, &["d"]);
    assert!(verify(&state, Some(&digest)).expect("it can be read").is_ok());
    let other = "0".repeat(64);
    assert_eq!(verify(&state, Some(&other)).expect("it can be read"), Err(Broken::Digest(other)));
}

#[test]
fn who_writes_at_the_same_time_waits() {
    let (_folder, state) = state();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| write(&state, &["a", "b", "c", "d", "e"]));
        }
    });
    let verified = verify(&state, None).expect("it can be read").expect("nobody has changed it");
    assert_eq!((verified.entries, verified.cut_off), (20, 0));
}

#[test]
fn a_line_that_a_crash_has_cut_off_stays_and_is_counted() {
    let (_folder, state) = state();
    write(&state, &["a", "b"]);
    let whole = text(&state);
    fs::write(state.path(FILE), &whole[..whole.len() - 20]).expect("it is ours");
    write(&state, &["c"]);
    let verified = verify(&state, None).expect("it can be read").expect("a crash changes nothing");
    assert_eq!((verified.entries, verified.cut_off), (2, 1));
}

#[test]
fn a_long_line_is_found_again() {
    let (_folder, state) = state();
    write(&state, &["a", &"b".repeat(200_000), "c"]);
    fs::write(state.path(FILE), text(&state) + &"x".repeat(300_000)).expect("it is ours");
    write(&state, &["d"]);
    let verified = verify(&state, None).expect("it can be read").expect("nobody has changed it");
    assert_eq!((verified.entries, verified.cut_off), (4, 1));
}

proptest! {
    /// A change of bytes before the last line is noticed, and one of the last line by its digest, if that was kept.
    #[test]
    fn a_change_is_noticed(at in 0_usize..2000, with in "[ -~]{0,12}", takes in 0_usize..40) {
        let (_folder, state) = state();
        write(&state, &["a", "b", "c", "d", "e"]);
        let digest = verify(&state, None).expect("it can be read").expect("nobody has changed it").digest;
        let was = text(&state);
        let at = at % was.len();
        let until = (at + takes).min(was.len());
        let is = format!("{}{with}{}", &was[..at], &was[until..]);
        let is_other = is.lines().ne(was.lines());
        let noticed = match check(&is, Some(&digest)) {
            Err(_) => true,
            Ok(verified) => verified.entries < 5 || verified.cut_off > 0,
        };
        prop_assert_eq!(noticed, is_other, "{}", is);
    }
}
