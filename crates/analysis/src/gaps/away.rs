//! Why the next work had not been submitted: what the submitting thread did before the submission call, and inside it.

use super::explain::{Explainer, push};
use super::{Cause, GapPart};
use crate::host::HostThread;
use crate::intervals::Interval;
use crate::thresholds::ROUND_TRIP_NS;

impl Explainer<'_> {
    /// Explains the time before a submission call by what its thread did. True: it was in a waiting call as the gap
    /// began.
    pub(super) fn explain_host(
        &self,
        late: Interval,
        thread: HostThread,
        error_ns: i64,
        parts: &mut Vec<GapPart>,
    ) -> bool {
        let segments = self.host.segments(thread, late);
        let waited = segments
            .iter()
            .any(|s| s.blocks() && s.call_start_ns <= late.start_ns.saturating_add(error_ns));
        let in_calls: i64 = segments
            .iter()
            .map(|s| s.interval.intersection(late).length_ns())
            .sum();
        let outside = if waited && late.length_ns() - in_calls <= ROUND_TRIP_NS {
            Cause::AfterHostWait
        } else {
            Cause::HostLate
        };
        let mut from_ns = late.start_ns;
        for segment in segments {
            let inside = segment.interval.intersection(late);
            push(parts, Interval::new(from_ns, inside.start_ns), outside);
            push(parts, inside, segment.cause());
            from_ns = inside.end_ns;
        }
        push(parts, Interval::new(from_ns, late.end_ns), outside);
        waited
    }

    /// Explains the time inside a submission call: what happens inside it, on the same thread, may be something else.
    pub(super) fn explain_call(
        &self,
        inside: Interval,
        thread: HostThread,
        call: Cause,
        parts: &mut Vec<GapPart>,
    ) {
        let mut from_ns = inside.start_ns;
        for segment in self.host.segments(thread, inside) {
            let cause = segment.cause();
            if !matches!(cause, Cause::HostCompile | Cause::Recording) {
                continue;
            }
            let part = segment.interval.intersection(inside);
            push(parts, Interval::new(from_ns, part.start_ns), call);
            push(parts, part, cause);
            from_ns = part.end_ns;
        }
        push(parts, Interval::new(from_ns, inside.end_ns), call);
    }
}
