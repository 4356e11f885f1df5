//! Packs records of work (kernels, transfers, graphs) and of functions that the host runs for a stream as
//! activities. Records without times are passed on without them, and the session (gapscope's process that writes the
//! trace) counts them. A correlation is CUPTI's number of the call that started the work.

use super::reader::Reader;
use super::routes::RouteKey;
use super::times::{span, work_span};
use crate::cupti::fields::{self, Field, Record};
use crate::cupti::numbers::{FIRST_WITH_ENDS_OF_GRAPHS, ON_HOST};
use crate::subscription;
use crate::window;
use gapscope_spool::event::{Activity, LossKind};
use gapscope_spool::ids;

/// The fields that all records of transfers have.
struct TransferFields {
    device: Field<u32>,
    bytes: Field<u64>,
    start: Field<u64>,
    end: Field<u64>,
    correlation: Field<u32>,
    graph: Field<u32>,
    node: Field<u64>,
}

/// The fields of the kind of record whose constants are in scope.
macro_rules! transfer_fields {
    () => {
        TransferFields {
            device: DEVICE,
            bytes: BYTES,
            start: START,
            end: END,
            correlation: CORRELATION,
            graph: GRAPH,
            node: NODE,
        }
    };
}

/// Returns the node of a graph that a record's work is.
///
/// # Safety
/// The record has these fields.
#[inline]
unsafe fn graph_node(record: &Record<'_>, graph: Field<u32>, node: Field<u64>) -> ids::GraphNode {
    // SAFETY: as the caller promises.
    unsafe { ids::GraphNode::in_graph(ids::Graph(record.get(graph)), record.get(node)) }
}

impl Reader {
    /// Packs a record of a kernel that ran.
    ///
    /// # Safety
    /// The record is a kernel's.
    #[inline]
    pub(super) unsafe fn kernel(&mut self, record: &Record<'_>) {
        use fields::kernel::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            if self.kernels.is_full() {
                self.write();
                self.kernels.forget(self.recorder);
            }
            let launch = self.kernels.launch(record, queue, self.recorder);
            let span = work_span(record.get(START), record.get(END));
            self.ended(record.get(DEVICE), span);
            self.packer.push(&Activity::Kernel {
                launch,
                span,
                correlation: ids::Correlation(record.get(CORRELATION)),
                node: graph_node(record, GRAPH, NODE),
            });
        }
    }

    /// Packs a record of a transfer with the route `key` (queue, kind and memory).
    ///
    /// # Safety
    /// The record has these fields.
    unsafe fn transfer(&mut self, record: &Record<'_>, key: RouteKey, fields: &TransferFields) {
        let route = self.routes.route(key, self.recorder);
        // SAFETY: as the caller promises.
        unsafe {
            let span = work_span(record.get(fields.start), record.get(fields.end));
            self.ended(record.get(fields.device), span);
            self.packer.push(&Activity::Transfer {
                route,
                bytes: record.get(fields.bytes),
                span,
                correlation: ids::Correlation(record.get(fields.correlation)),
                node: graph_node(record, fields.graph, fields.node),
            });
        }
    }

    /// Packs a record of a copy.
    ///
    /// # Safety
    /// The record is a copy's.
    pub(super) unsafe fn copy(&mut self, record: &Record<'_>) {
        use fields::copy::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let kinds = [KIND, SOURCE, DESTINATION].map(|field| record.get(field));
            let key = RouteKey::copy(queue, kinds);
            self.transfer(record, key, &transfer_fields!());
        }
    }

    /// Packs a record of a copy between two devices.
    ///
    /// # Safety
    /// The record is a peer copy's.
    pub(super) unsafe fn peer_copy(&mut self, record: &Record<'_>) {
        use fields::peer_copy::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let kinds = [KIND, SOURCE, DESTINATION].map(|field| record.get(field));
            // Both devices are part of the trace.
            for field in [SOURCE_DEVICE, DESTINATION_DEVICE] {
                self.queues.devices.id(record.get(field), self.recorder);
            }
            let key = RouteKey::copy(queue, kinds);
            self.transfer(record, key, &transfer_fields!());
        }
    }

    /// Packs a record of a fill.
    ///
    /// # Safety
    /// The record is a memset's.
    pub(super) unsafe fn fill(&mut self, record: &Record<'_>) {
        use fields::fill::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let key = RouteKey::fill(queue, record.get(MEMORY));
            self.transfer(record, key, &transfer_fields!());
        }
    }

    /// Packs a record of a whole graph that ran; a graph on an unknown device is counted as lost.
    ///
    /// # Safety
    /// The record is a graph's.
    pub(super) unsafe fn graph(&mut self, record: &Record<'_>) {
        use fields::graph::*;
        // SAFETY: as the caller promises.
        unsafe {
            let span = work_span(record.get(START), record.get(END));
            // This kind stays on while recording is off.
            if span.is_some_and(|span| !window::contains(span.start_ns)) {
                return;
            }
            let Some((device, queue)) = self.place_of_graph(record) else {
                let reason = "they start and end on the host, and CUPTI does not say on which device they ran";
                self.losses.add(LossKind::GraphLaunches, reason);
                return;
            };
            self.ended(device, span);
            self.packer.push(&Activity::GraphRun {
                queue,
                span,
                correlation: ids::Correlation(record.get(CORRELATION)),
            });
        }
    }

    /// Returns the device and the queue of a graph. Where the graph starts on the host, CUPTI names neither: then its
    /// queue is the only known stream with the launch's number, or the one where the graph ends.
    ///
    /// # Safety
    /// The record is a graph's.
    unsafe fn place_of_graph(&mut self, record: &Record<'_>) -> Option<(u32, ids::Queue)> {
        use fields::graph::*;
        // SAFETY: as the caller promises; the end is asked for where CUPTI has it.
        unsafe {
            let device = record.get(DEVICE);
            if device != ON_HOST {
                return Some((device, self.queue(record, [DEVICE, CONTEXT, STREAM])));
            }
            let number = record.get(STREAM);
            if let Some((device, stream)) = self.queues.only_stream(number) {
                return Some((device, self.queues.of_stream(device, stream, self.recorder)));
            }
            let has_end = subscription::cupti()
                .is_some_and(|cupti| cupti.version >= FIRST_WITH_ENDS_OF_GRAPHS);
            let device = has_end.then(|| record.get(END_DEVICE))?;
            (device != ON_HOST).then(|| {
                (
                    device,
                    self.queue(record, [END_DEVICE, END_CONTEXT, STREAM]),
                )
            })
        }
    }

    /// Packs a record of a function that the host ran for a stream.
    ///
    /// # Safety
    /// The record is a host function's.
    pub(super) unsafe fn host_launch(&mut self, record: &Record<'_>) {
        use fields::host_launch::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = [DEVICE, CONTEXT, STREAM];
            self.host_function(record, queue, [CORRELATION, THREAD], [START, END]);
        }
    }

    /// Packs a record of a function that the host ran as a node of a graph.
    ///
    /// # Safety
    /// The record is a graph's host node's.
    pub(super) unsafe fn host_node(&mut self, record: &Record<'_>) {
        use fields::host_node::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = [DEVICE, CONTEXT, STREAM];
            self.host_function(record, queue, [CORRELATION, THREAD], [START, END]);
        }
    }

    /// Packs a function that the host ran. `queue` are the fields of device, context and stream.
    ///
    /// # Safety
    /// The record has these fields.
    unsafe fn host_function(
        &mut self,
        record: &Record<'_>,
        queue: [Field<u32>; 3],
        [correlation, thread]: [Field<u32>; 2],
        [start, end]: [Field<u64>; 2],
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let Some(span) = span(record.get(start), record.get(end)) else {
                return;
            };
            // These kinds stay on while recording is off.
            if !window::contains(span.start_ns) {
                return;
            }
            let queue = self.queue(record, queue);
            self.packer.push(&Activity::HostFunction {
                queue,
                thread: ids::Thread(record.get(thread)),
                span: Some(span),
                correlation: ids::Correlation(record.get(correlation)),
            });
        }
    }
}
