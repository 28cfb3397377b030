use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use tokio::time::{advance, timeout};

use super::*;

/// A clock that stands still until it is moved.
#[derive(Default)]
struct Still(Mutex<Duration>);

impl Still {
    fn pass(&self, time: Duration) {
        *self.0.lock().expect("no test panics while it holds the clock") += time;
    }
}

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock().expect("no test panics while it holds the clock")
    }
}

fn progress() -> (Arc<Still>, Progress) {
    let clock = Arc::new(Still::default());
    (Arc::clone(&clock), Progress::new(clock))
}

/// A service manager: a socket, and what was said on it.
fn manager(folder: &Path) -> (UnixDatagram, Notifier) {
    let path = folder.join("notify");
    let socket = UnixDatagram::bind(&path).expect("a fresh folder takes a socket");
    socket.set_nonblocking(true).expect("a socket can be made to answer at once");
    (socket, Notifier::new(Some(path.into_os_string())))
}

/// The next message, or nothing.
fn heard(socket: &UnixDatagram) -> Option<String> {
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

#[test]
fn the_service_manager_hears_each_state_in_one_message() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (socket, notifier) = manager(folder.path());
    notifier.ready("3 syncs");
    assert_eq!(heard(&socket).as_deref(), Some("READY=1\nSTATUS=3 syncs"));
    notifier.stopping();
    assert_eq!(heard(&socket).as_deref(), Some("STOPPING=1"));
    assert_eq!(heard(&socket), None);
}

#[test]
fn a_reload_carries_the_monotonic_time_in_the_same_message() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (socket, notifier) = manager(folder.path());
    notifier.reloading();
    let message = heard(&socket).expect("a message was sent");
    let time = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("both in one message");
    let uptime = fs::read_to_string("/proc/uptime").expect("Linux tells its uptime");
    let uptime: f64 = uptime.split(' ').next().and_then(|text| text.parse().ok()).expect("seconds come first");
    let microseconds: f64 = time.parse().expect("a number of microseconds");
    assert!(
        (uptime - microseconds / 1e6).abs() < 60.0,
        "{microseconds} µs is not the time since the start of the host"
    );
}

#[test]
fn a_status_cannot_begin_another_assignment() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (socket, notifier) = manager(folder.path());
    notifier.ready("cluster x\nMAINPID=1\u{7}");
    assert_eq!(heard(&socket).as_deref(), Some("READY=1\nSTATUS=cluster x MAINPID=1 "));
}

#[test]
fn an_abstract_socket_is_understood_and_an_absent_one_is_no_error() {
    let name = format!("gatewright-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a short name is a name");
    let socket = UnixDatagram::bind_addr(&address).expect("the name is ours");
    socket.set_nonblocking(true).expect("a socket can be made to answer at once");
    Notifier::new(Some(format!("@{name}").into())).stopping();
    assert_eq!(heard(&socket).as_deref(), Some("STOPPING=1"));
    Notifier::new(None).ready("");
    Notifier::new(Some("".into())).ready("");
    Notifier::new(Some("/nonexistent/notify".into())).ready("");
}

#[test]
fn a_loop_that_is_silent_for_too_long_is_named() {
    let (clock, progress) = progress();
    let gateways = progress.watch("sync gateways");
    let _pools = progress.watch("sync pools");
    clock.pass(Duration::from_secs(50));
    gateways.touch();
    clock.pass(Duration::from_secs(11));
    let stuck = progress.stuck(STUCK_AFTER);
    assert_eq!(stuck, [Stuck { name: "sync pools".to_owned(), silent: Duration::from_secs(61) }]);
}

#[test]
fn a_loop_that_ends_is_forgotten_and_one_that_panics_is_not() {
    let (clock, progress) = progress();
    drop(progress.watch("a loop that ended"));
    let pulse = progress.watch("a loop that panicked");
    let panicked = std::thread::spawn(move || {
        let _pulse = pulse;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.join().is_err());
    clock.pass(Duration::from_secs(61));
    let names: Vec<String> = progress.stuck(STUCK_AFTER).into_iter().map(|stuck| stuck.name).collect();
    assert_eq!(names, ["a loop that panicked"]);
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_is_pinged_at_half_its_time_while_every_loop_moves() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (socket, notifier) = manager(folder.path());
    let (clock, progress) = progress();
    let pulse = progress.watch("sync gateways");
    let watched = progress.clone();
    let pinging = tokio::spawn(async move { keep_alive(&notifier, &watched, Duration::from_mins(1)).await });
    let mut pings = Vec::new();
    for second in 0..180_u64 {
        if second < 60 {
            pulse.touch();
        }
        tokio::task::yield_now().await;
        if heard(&socket).as_deref() == Some("WATCHDOG=1") {
            pings.push(second);
        }
        clock.pass(Duration::from_secs(1));
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(pings, [0, 30, 60, 90], "the loop stopped after 59 s, which shows 60 s later");
    pinging.abort();
}

#[tokio::test]
async fn signals_are_orders() {
    let mut signals = Signals::new().expect("a test may listen for signals");
    for (name, order) in [("HUP", Signal::Reload), ("TERM", Signal::Stop), ("INT", Signal::Stop)] {
        send_to_self(name);
        let heard = timeout(Duration::from_secs(10), signals.next()).await;
        assert_eq!(heard.expect("the signal arrives"), order, "SIG{name}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a signal has to come from somewhere")]
fn send_to_self(signal: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("kill -{signal} {}", std::process::id())]).stderr(Stdio::piped());
    let mut shell = shell.spawn().expect("there is a shell");
    let mut complaint = String::new();
    if let Some(mut stderr) = shell.stderr.take() {
        stderr.read_to_string(&mut complaint).expect("a shell speaks UTF-8");
    }
    assert!(shell.wait().expect("the shell ends").success(), "{complaint}");
}
