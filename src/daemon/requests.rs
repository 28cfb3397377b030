//! Rounds that commands on this host ask for.

use std::sync::Arc;
use std::time::Duration;

use gatewright_engine::error::Chain;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Shared;
use crate::state::requested;

/// The interval between two looks.
const POLL: Duration = Duration::from_secs(1);

/// Takes them until the daemon ends.
pub(super) async fn take(shared: Arc<Shared>, stop: CancellationToken) {
    let looks = async {
        let mut is_told = false;
        loop {
            sleep(POLL).await;
            let taken = requested::take(&shared.state, shared.clock.now(), |sync, request| {
                let clusters = shared.enrolled.ask(sync);
                info!(sync, clusters, by = request.by, "a round was asked for");
                clusters
            });
            if let (Err(error), false) = (&taken, is_told) {
                warn!(error = %Chain(error), "cannot look for rounds that commands ask for");
            }
            is_told = taken.is_err();
        }
    };
    stop.run_until_cancelled(looks).await;
}
