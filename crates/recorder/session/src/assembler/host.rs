//! What the host says: calls, and labels on queues and threads.

use super::Assembler;
use super::commands;
use gapscope_spool::event::{Call, LabelEdge, LabelScope};
use gapscope_trace::tables::{HostCallKind, Marker, MarkerScope, Table, Tables};

impl Assembler {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn label(
        &mut self,
        process: u32,
        thread: u32,
        scope: LabelScope,
        edge: LabelEdge,
        text: u32,
        at_ns: i64,
        tables: &mut Tables,
    ) {
        self.saw(at_ns);
        let queue = match scope {
            LabelScope::Queue(queue) => Some(self.queue(process, queue)),
            LabelScope::Thread | LabelScope::Domain(_) | LabelScope::Range { .. } => None,
        };
        let state = &mut self.processes[process as usize];
        let text = commands::text(&state.texts, &mut self.labels, text);
        let (open, place) = match queue {
            Some(queue) => (
                &mut self.queues[queue as usize].labels,
                (MarkerScope::Queue, Some(queue), None),
            ),
            None => (
                state.thread_labels.entry(thread).or_default(),
                (MarkerScope::Thread, None, Some(thread)),
            ),
        };
        let parent = open.last().map(|(label, _)| *label);
        match edge {
            LabelEdge::Begin => open.push((self.labels.label(parent, text), at_ns)),
            LabelEdge::End => {
                if let Some((label, begin_ns)) = open.pop() {
                    host_marker(process, place, label, begin_ns, Some(at_ns), tables);
                }
            }
            LabelEdge::Instant => {
                let label = self.labels.label(parent, text);
                host_marker(process, place, label, at_ns, Some(at_ns), tables);
            }
        }
    }
}

pub(super) fn host_marker(
    process: u32,
    (scope, queue, thread): (MarkerScope, Option<u32>, Option<u32>),
    label: u32,
    begin_ns: i64,
    end_ns: Option<i64>,
    tables: &mut Tables,
) {
    tables.markers.push(Marker {
        process,
        scope,
        label,
        queue,
        thread,
        command_buffer: None,
        start_ns: Some(begin_ns),
        duration_ns: end_ns.map(|end| end.saturating_sub(begin_ns)),
    });
}

pub(super) fn host_call(call: Call) -> HostCallKind {
    match call {
        Call::Submit => HostCallKind::Submit,
        Call::BindSparse => HostCallKind::BindSparse,
        Call::WaitFences => HostCallKind::WaitFences,
        Call::WaitSemaphores => HostCallKind::WaitSemaphores,
        Call::WaitQueueIdle => HostCallKind::WaitQueueIdle,
        Call::WaitDeviceIdle => HostCallKind::WaitDeviceIdle,
        Call::PollFence => HostCallKind::PollFence,
        Call::PollSemaphore => HostCallKind::PollSemaphore,
        Call::GetQueryResults => HostCallKind::GetQueryResults,
        Call::MapMemory => HostCallKind::MapMemory,
        Call::AllocateMemory => HostCallKind::AllocateMemory,
        Call::FreeMemory => HostCallKind::FreeMemory,
        Call::CreatePipelines => HostCallKind::CreatePipelines,
        Call::CreateShaderModule => HostCallKind::CreateShaderModule,
        Call::Present => HostCallKind::Present,
        Call::AcquireImage => HostCallKind::AcquireImage,
    }
}
