//! The way in which the daemon saves memory that runs short: fewer rounds at a time, and renderings are made again instead
//! of kept.
//!
//! That costs time, and less than what comes otherwise: beyond `MemoryHigh=` the kernel slows all of the process down, and
//! beyond `MemoryMax=` it ends it.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::process::memory::MemoryGroup;
use crate::process::metrics::Metrics;
use crate::reconcile::places::Places;

/// The time between two looks.
const BETWEEN: Duration = Duration::from_secs(2);

/// Memory is short from this share on of what may be used, in percent.
const SHORT: u64 = 85;

/// It is not short any more below this one.
const ENOUGH: u64 = 70;

/// Looks how much memory is used, and saves it where it runs short, for as long as somebody waits for this. `forget` drops
/// what can be made again.
pub(super) async fn relieve(group: &MemoryGroup, places: &Places, metrics: &Metrics, forget: impl Fn()) {
    let uses = |percent: u64| group.used_percent().is_some_and(|used| used >= percent);
    loop {
        while !uses(SHORT) {
            sleep(BETWEEN).await;
        }
        let used_percent = group.used_percent();
        warn!(used_percent, "memory runs short: fewer rounds at a time, and no rendering is kept");
        metrics.memory_is_short(true);
        // Rounds that are under way keep their places, and only then there are fewer.
        let (mut narrowing, mut narrowed) = (pin!(places.narrow()), None);
        while uses(ENOUGH) {
            forget();
            match narrowed {
                None => narrowed = timeout(BETWEEN, narrowing.as_mut()).await.ok(),
                Some(_) => sleep(BETWEEN).await,
            }
        }
        metrics.memory_is_short(false);
        info!(used_percent = group.used_percent(), "there is enough memory again");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn where_memory_runs_short_there_are_fewer_rounds_until_there_is_enough_again() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).expect("it can be written");
        write("memory.high", "100");
        write("memory.stat", "anon 0\n");
        write("memory.current", "84");
        let group = MemoryGroup::find("0::/\n", folder.path()).expect("it is there");
        let (places, metrics, forgotten) = (Places::default(), Metrics::new("0"), Cell::new(0));
        let all = places.free();
        let script = async {
            // Time for two looks.
            let looks = || sleep(BETWEEN * 2 + Duration::from_millis(1));
            looks().await;
            assert_eq!((places.free(), forgotten.get()), (all, 0));
            write("memory.current", "85");
            looks().await;
            let few = places.free();
            assert!(few > 0 && few < all, "{few} of {all}");
            assert!(forgotten.get() > 0 && metrics.encode().is_ok_and(|page| page.contains("memory_short 1")));
            // What is between the two changes nothing.
            write("memory.current", "75");
            looks().await;
            assert_eq!(places.free(), few);
            write("memory.current", "69");
            looks().await;
            assert_eq!(places.free(), all);
            let before = forgotten.get();
            looks().await;
            assert_eq!(forgotten.get(), before);
            assert!(metrics.encode().is_ok_and(|page| page.contains("memory_short 0")));
        };
        tokio::select! {
            () = relieve(&group, &places, &metrics, || forgotten.set(forgotten.get() + 1)) => {}
            () = script => {}
        }
    }
}
