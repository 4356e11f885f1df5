//! Finds where a host may have waited for its device without a call, as by reading mapped memory: it was outside of calls until the work of the
//! device ended, and called right after. Moments go in; the time of such stretches comes out.
//!
//! A host whose own code takes about as long as the device's work looks the same. So nobody knows what the host did, and a replay that takes
//! the time for the host's own code would say that nothing else holds the run.

use super::{Kind, Recorded};
use gapscope_trace::lookup::NONE;

/// Shorter stretches are code between two calls.
const MIN_STRETCH_NS: i64 = 50_000;
/// A call comes right after the end of work where that lies at most so far back, or this share of the stretch. By the clocks of host and
/// device it may seem to come before.
const MAX_DELAY_NS: i64 = 20_000;
const MAX_DELAY_SHARE: f64 = 0.1;

/// Returns the time in which threads that submit were outside of calls while their device worked, where their next call came right after the
/// end of that work.
pub(super) fn polled_ns(recorded: &Recorded) -> i64 {
    let mut polled_ns = 0_i64;
    let mut worked_until_ns = i64::MIN;
    for moment in &recorded.moments {
        match &moment.kind {
            Kind::Work(work) => {
                let end_ns = moment.at_ns.saturating_add(work.length_ns);
                worked_until_ns = worked_until_ns.max(end_ns);
            }
            Kind::Call(call)
                if call.handed_by == NONE && recorded.submits[call.thread as usize] =>
            {
                let since_ns = moment.at_ns.saturating_sub(call.own_ns);
                let stretch_ns = worked_until_ns.saturating_sub(since_ns);
                let delay_ns = moment.at_ns.saturating_sub(worked_until_ns);
                let most_ns = MAX_DELAY_NS.max((MAX_DELAY_SHARE * stretch_ns as f64) as i64);
                if stretch_ns >= MIN_STRETCH_NS && (-MAX_DELAY_NS..=most_ns).contains(&delay_ns) {
                    polled_ns = polled_ns.saturating_add(stretch_ns);
                }
            }
            _ => {}
        }
    }
    polled_ns
}
