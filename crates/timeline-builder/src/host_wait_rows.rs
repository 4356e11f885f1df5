//! Writes the rows of calls that wait for work: a call goes in with what it waits for, and its row comes out once it is certain which
//! submission that is.

use crate::builder::TimelineBuilder;
use crate::event_waits::StreamPlace;
use crate::host_waits::HostWait;
use crate::input::{ApiCall, Correlation};
use crate::output::Output;
use crate::rows;
use gapscope_trace::ids::QueueId;
use gapscope_trace::tables::HostCall;

impl TimelineBuilder {
    /// Takes a call that waits for what was put on a queue up to a call, `up_to`: itself, or the one that put an event there.
    pub(crate) fn wait_of_host(
        &mut self,
        call: &ApiCall,
        queue: QueueId,
        up_to: Option<Correlation>,
        out: &mut Output<'_>,
    ) {
        let Some(correlation) = up_to.filter(|_| !self.is_unordered) else {
            return self.host_call(call, Some(queue), out);
        };
        let place = StreamPlace { queue, correlation };
        let (events, bounds) = (&self.event_waits, &self.bounds);
        (self.host_waits).waits(*call, place, out.now_ns, events, bounds);
        if let Some(settled) = self.host_waits.trimmed(queue, bounds, events) {
            self.host_wait(&settled, out);
        }
    }

    /// Writes the row of a call that waited.
    pub(crate) fn host_wait(&self, wait: &HostWait, out: &mut Output<'_>) {
        let row = HostCall {
            queue: Some(wait.queue),
            waits_for: wait.submission,
            ..self.host_call_row(&wait.call, out)
        };
        rows::host_call(out.tables, row);
    }

    /// Returns the row of a call without a queue.
    pub(crate) fn host_call_row(&self, call: &ApiCall, out: &Output<'_>) -> HostCall {
        let kind = self.class(call).host_call_kind();
        let function = self.function_name(call);
        HostCall {
            result: call.result,
            ..rows::one_host_call(out.process, call.thread, kind, call.span, function)
        }
    }

    /// Writes the calls of which it is certain what they waited for, or all that waited where nothing more comes.
    pub(crate) fn settle_host_waits(&mut self, all: bool, out: &mut Output<'_>) {
        let mut waits = std::mem::take(&mut self.host_waits);
        let (bounds, events) = (&self.bounds, &self.event_waits);
        waits.settle((out.now_ns, all), bounds, events, |wait| {
            self.host_wait(&wait, out);
        });
        self.host_waits = waits;
    }
}
