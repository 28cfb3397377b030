//! Reports of rounds by hand: kept, and told to others.

use gatewright_engine::error::Chain;

use super::Session;
use crate::cli::complain;
use crate::history::audit_log::{self, Event};
use crate::history::journal;
use crate::reconcile::model::Order;
use crate::report::Report;
use crate::state::suspension;
use crate::webhooks;

impl Session<'_> {
    /// Keeps a report, and leaves word for others. That it cannot be kept is no reason to fail: what it tells has
    /// happened.
    pub(in crate::cli) fn keep(&self, report: &Report) {
        webhooks::catch_up(&self.state, &self.config, report, (&self.metrics, &self.context.actor()));
        if let Some(event) = Event::of_round(report)
            && let Err(error) = audit_log::record(&self.state, self.context.clock.now(), &self.context.actor(), event)
        {
            tracing::warn!(error = %Chain(&error), "cannot write the audit log");
        }
        if let Err(error) = webhooks::keep(&self.state, &self.config, report, &self.metrics) {
            tracing::warn!(error = %Chain(&error), "cannot keep the report");
        }
    }

    /// Keeps on every cluster that there was no round, because the sync is suspended.
    pub(in crate::cli) fn rest(&self, order: &Order) {
        let Ok(Some(suspension)) = suspension::of(&self.state, &order.sync, self.believed()) else { return };
        for cluster in order.clusters.keys() {
            let last = journal::last(&self.state, &order.sync, cluster);
            let names = (order.sync.as_str(), order.settings.source.as_str());
            let mut report = Report::suspended(last, names, cluster, suspension.clone(), self.context.clock.now());
            journal::compare(&self.state, &mut report);
            self.keep(&report);
        }
    }

    /// Sends what others are to know, and waits for it as long as one try may take. What is left is sent by the next
    /// command, or by the daemon.
    pub(in crate::cli) fn send(&self) {
        let deliveries = webhooks::deliveries(&self.state, &self.config, &self.metrics, &self.context.clock);
        let left = self.block_on(self.stop.run_until_cancelled(webhooks::flush(deliveries)));
        for (name, why) in left.into_iter().flatten() {
            complain(&format!(
                "gatewright: a notification to webhook {name:?} is not delivered yet: {why}\n  the next round sends it\n"
            ));
        }
    }
}
