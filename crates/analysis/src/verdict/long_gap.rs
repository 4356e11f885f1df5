//! Says of a verdict that it speaks mostly of one gap, such as the start of a program: how much of the time the gap is, and what the
//! verdict on the rest would be. The times of all devices and their idle time go in, and a sentence comes out.

use super::times::Times;
use crate::bound::Bound;
use crate::gaps::{Cause, Gap, IdleTime, Side};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Nanoseconds, Percent, ratio};
use gapscope_timeline::thresholds::{IDLE_SHARE, PHASE_WORKS};

impl Times<'_> {
    /// Returns the sentence on the longest gap of the devices, where that gap is most of the judged time and there are enough other gaps that
    /// the rest is a program of its own.
    pub(super) fn long_gap(&self, idle: &IdleTime) -> Option<String> {
        let longest = idle.longest.first()?;
        if idle.gap_count < PHASE_WORKS || self.path.is_some() {
            return None;
        }
        let span = interval(longest);
        let mut rest = self.clone();
        let mut gap_ns = 0i64;
        // Other devices idle meanwhile, too.
        for part in idle.longest.iter().flat_map(|gap| &gap.parts) {
            // The judged time is without that of the recording.
            if part.cause == Cause::Recording {
                continue;
            }
            let ns = part.interval().intersection(span).length_ns();
            gap_ns = gap_ns.saturating_add(ns);
            let side = match part.cause.side() {
                Side::Host => &mut rest.host_ns,
                Side::Sync => &mut rest.sync_ns,
                Side::Launch => &mut rest.launch_ns,
                Side::Unknown => &mut rest.unknown_ns,
            };
            *side = side.saturating_sub(ns).max(0);
        }
        let share = ratio(gap_ns, self.window_ns);
        if share < IDLE_SHARE {
            return None;
        }
        rest.window_ns = self.window_ns.saturating_sub(gap_ns);
        let rest = match Bound::from_times(&rest) {
            _ if self.contradicted_ns > 0 => {
                "the times of host and device contradict each other, so what bounds the rest is unknown"
                    .to_owned()
            }
            Bound::Unknown => "what bounds the rest is unknown".to_owned(),
            bound => format!("the rest is {bound}"),
        };
        Some(format!(
            "One gap of {}, between {} and {}, is {} of the judged time; {rest}.",
            Nanoseconds(longest.duration_ns),
            longest.before.name,
            longest.after.name,
            Percent(share),
        ))
    }
}

fn interval(gap: &Gap) -> Interval {
    Interval::new(gap.start_ns, gap.start_ns.saturating_add(gap.duration_ns))
}
