use std::io;

use crate::cli::Failure;
use crate::state::StateError;

#[test]
fn who_has_no_room_left_is_told_so() {
    let hint = |kind: io::ErrorKind| Failure::from(StateError::Write("state/a".into(), kind.into())).hint;
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
        assert!(hint(kind).is_some_and(|hint| hint.starts_with("make room")), "{kind}");
    }
    assert!(hint(io::ErrorKind::PermissionDenied).is_some_and(|hint| hint.starts_with("let this user write")));
}
