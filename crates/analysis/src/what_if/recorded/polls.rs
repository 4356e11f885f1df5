//! Finds where a host may have waited for its device although no call says so. Moments go in; the time of such stretches comes out.
//!
//! - Without a call, as by reading mapped memory: the host was outside of calls until the work of the device ended, and called right after.
//! - In a call that takes an image from the display or gives one back, while the device worked all the time. Such a call waits for an image
//!   that the device still draws, or for the display. A device that is done with its work does not work all the time of the call.
//!
//! A host whose own code takes about as long as the device's work looks the same. So nobody knows what the host did, and a replay that takes
//! the time for the host's own code would say that nothing else holds the run.

use super::{Call, Kind, Recorded};
use gapscope_timeline::intervals::{Interval, union};
use gapscope_timeline::quantity::ratio;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HostCallKind;

/// Shorter stretches are code between two calls.
const MIN_STRETCH_NS: i64 = 50_000;
/// A call comes right after the end of work where that lies at most so far back, or this share of the stretch. By the clocks of host and
/// device it may seem to come before.
const MAX_DELAY_NS: i64 = 20_000;
const MAX_DELAY_SHARE: f64 = 0.1;
/// A device worked all the time of a call where it worked for this share of it.
const WORKED_SHARE: f64 = 0.9;

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

/// Returns the time in which threads that submit were in calls to the display while their device worked all the time.
pub(super) fn awaited_images_ns(recorded: &Recorded) -> i64 {
    let works = recorded
        .moments
        .iter()
        .filter_map(|moment| match &moment.kind {
            Kind::Work(work) => Some(lasting(moment.at_ns, work.length_ns)),
            _ => None,
        });
    let mut works: Vec<Interval> = works.collect();
    union(&mut works);
    let waits = recorded
        .moments
        .iter()
        .filter_map(|moment| match &moment.kind {
            Kind::Call(call)
                if is_long_call_to_display(call) && recorded.submits[call.thread as usize] =>
            {
                let during = lasting(moment.at_ns, call.length_ns);
                let first = works.partition_point(|work| work.end_ns <= during.start_ns);
                let beside = works[first..]
                    .iter()
                    .take_while(|work| work.start_ns < during.end_ns);
                let worked = beside.map(|work| work.intersection(during).length_ns());
                let worked_ns = worked.fold(0, i64::saturating_add);
                (ratio(worked_ns, call.length_ns) >= WORKED_SHARE).then_some(worked_ns)
            }
            _ => None,
        });
    waits.fold(0, i64::saturating_add)
}

fn lasting(start_ns: i64, length_ns: i64) -> Interval {
    Interval::new(start_ns, start_ns.saturating_add(length_ns))
}

fn is_long_call_to_display(call: &Call) -> bool {
    use HostCallKind::{AcquireImage, Present, WaitPresent};
    matches!(call.call, AcquireImage | Present | WaitPresent) && call.length_ns >= MIN_STRETCH_NS
}
