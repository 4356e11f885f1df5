//! Finds where a host may have waited for something that no replay knows. Moments go in; the time of such stretches comes out.
//!
//! - Without a call, as by reading mapped memory: the host was outside of calls until the work of the device ended, and called right after.
//!   A host whose own code takes about as long as the device's work looks the same. So nobody knows what the host did, and a replay that
//!   takes the time for the host's own code would say that nothing else holds the run.
//! - In a call that takes an image from the display or gives one back. Such a call waits for an image that the device still draws, or for the
//!   display, and takes longer where the rest of a frame takes less. A replay that keeps its length would promise more images than the
//!   display shows.

use super::{Call, Kind, Recorded};
use gapscope_timeline::intervals::{Interval, length_ns, union};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HostCallKind;

/// Shorter stretches are code between two calls.
const MIN_STRETCH_NS: i64 = 50_000;
/// A call comes right after the end of work where that lies at most so far back, or this share of the stretch. By the clocks of host and
/// device it may seem to come before.
const MAX_DELAY_NS: i64 = 20_000;
const MAX_DELAY_SHARE: f64 = 0.1;

/// Returns the time in which threads that submit were outside of calls while their device worked, where their next call came right after the
/// end of that work.
pub(super) fn polled_ns(recorded: &Recorded) -> i64 {
    let mut polled: Vec<Interval> = Vec::new();
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
                    polled.push(Interval::new(since_ns, worked_until_ns));
                }
            }
            _ => {}
        }
    }
    union(&mut polled);
    length_ns(&polled)
}

/// Returns the time in which threads that submit were in long calls to the display.
pub(super) fn display_ns(recorded: &Recorded) -> i64 {
    let calls = recorded.moments.iter();
    let waits = calls.filter_map(|moment| match &moment.kind {
        Kind::Call(call)
            if is_long_call_to_display(call) && recorded.submits[call.thread as usize] =>
        {
            let end_ns = moment.at_ns.saturating_add(call.length_ns);
            Some(Interval::new(moment.at_ns, end_ns))
        }
        _ => None,
    });
    let mut waits: Vec<Interval> = waits.collect();
    union(&mut waits);
    length_ns(&waits)
}

fn is_long_call_to_display(call: &Call) -> bool {
    use HostCallKind::{AcquireImage, Present, WaitPresent};
    matches!(call.call, AcquireImage | Present | WaitPresent) && call.length_ns >= MIN_STRETCH_NS
}
