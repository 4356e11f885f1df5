//! The inputs of a [`crate::TimelineBuilder`], which makes rows of them: calls of an API, and work of devices. A
//! correlation joins the two.

use gapscope_model::cuda::FunctionClass;
use gapscope_model::{GraphId, GraphNodeId, MemoryPlace, Span, TransferKind};
use gapscope_trace::build::CountedId;
use gapscope_trace::ids::{KernelId, LabelId, QueueId, ThreadId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The number by which a tracing library joins a call to its work, within one process. Calls have ascending numbers, so that
/// they also say which of two calls came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Correlation(pub u64);

/// Widens correlations of 32 bits, which wrap, to numbers that ascend.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct CorrelationWidener {
    /// The greatest correlation so far; `None` before the first.
    latest: Option<u64>,
}

impl CorrelationWidener {
    /// Returns the correlation whose low 32 bits are `narrow` and that is closest to the latest one; `None` for 0, by which tracing
    /// libraries say that there is no call.
    #[inline]
    pub fn widen(&mut self, narrow: u32) -> Option<Correlation> {
        if narrow == 0 {
            return None;
        }
        // The first one leaves room below, for records that come late.
        let latest = self.latest.unwrap_or(1 << 32 | u64::from(narrow));
        let step = narrow.wrapping_sub(latest as u32) as i32;
        let wide = latest.wrapping_add_signed(step.into());
        // A damaged correlation far ahead must not shift all that follow.
        const MAX_STEP: i32 = 1 << 28;
        let known = if step < MAX_STEP {
            latest.max(wide)
        } else {
            latest
        };
        self.latest = Some(known);
        Some(Correlation(wide))
    }
}

/// The number of a function that a process calls, as its producer counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FunctionId(pub u32);

impl CountedId for FunctionId {
    fn counted(index: usize) -> FunctionId {
        FunctionId(index as u32)
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function that a process calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Function {
    /// What the function does.
    pub class: FunctionClass,
    /// Its name without suffixes for versions.
    pub name: Arc<str>,
}

/// One call of a function on a host thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCall {
    /// The function.
    pub function: FunctionId,
    /// The thread; `None` where the producer does not know it.
    pub thread: Option<ThreadId>,
    /// The number that the call's work has, too.
    pub correlation: Option<Correlation>,
    /// From the call to its return.
    pub span: Span,
    /// What the call returned; 0 is success.
    pub result: i32,
    /// The queue that the call waits for, or puts something on.
    pub queue: CallQueue,
    /// Host nodes of the graph that the call launched, where their number is known.
    pub host_functions: Option<u32>,
    /// The executable graph that the call launched, where the producer says it.
    pub graph: Option<GraphId>,
}

/// The queue of a call that leaves no work with a queue of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallQueue {
    /// A record with the call's correlation may say it: [`crate::TimelineBuilder::queue_of_call`].
    ComesLater,
    /// This queue.
    Known(QueueId),
    /// Nothing says it.
    Unknown,
}

impl CallQueue {
    /// Returns the queue where it is known.
    pub fn known(self) -> Option<QueueId> {
        match self {
            CallQueue::Known(queue) => Some(queue),
            CallQueue::ComesLater | CallQueue::Unknown => None,
        }
    }
}

/// A piece of work on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceWork {
    /// The queue that ran the work.
    pub queue: QueueId,
    /// When it ran; `None` where that is unknown.
    pub span: Option<Span>,
    /// The work is a node of a graph, or a whole graph.
    pub of_graph: bool,
    /// The executable graph that the work is a node of; `None` where the producer does not say it.
    pub graph: Option<GraphId>,
    /// The node of a graph that the work is; `None` where the producer does not say it.
    pub graph_node: Option<GraphNodeId>,
    /// The label that the producer's file itself gives the work. `None`: the work has that of its call.
    pub label: Option<LabelId>,
    /// What the work is.
    pub kind: DeviceWorkKind,
}

/// What a piece of device work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceWorkKind {
    /// A kernel.
    Kernel {
        /// The kernel.
        kernel: KernelId,
        /// Workgroups in x, y and z.
        groups: [Option<u32>; 3],
    },
    /// A copy or a fill.
    Transfer {
        /// What it does.
        kind: TransferKind,
        /// Bytes written.
        bytes: Option<u64>,
        /// The memory of the host's end.
        host_memory: Option<MemoryPlace>,
    },
    /// A move of pages of managed memory. The driver makes it where a processor touches the pages, and no call launches it.
    PageMove {
        /// The way that the pages go.
        kind: TransferKind,
        /// Bytes moved.
        bytes: Option<u64>,
    },
    /// A graph that was timed as a whole.
    Graph,
}

impl DeviceWork {
    /// Tells whether a copying call without `Async` in its name returns only when this copy has ended, as CUDA documents: copies to
    /// the host do, and those from pinned memory. From pageable memory only a staging copy is awaited, on a device nothing.
    pub(crate) fn is_awaited(&self) -> bool {
        match self.kind {
            DeviceWorkKind::Transfer {
                kind, host_memory, ..
            } => match kind {
                TransferKind::DeviceToHost => true,
                TransferKind::HostToDevice => host_memory == Some(MemoryPlace::Pinned),
                _ => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_that_wrap_ascend() {
        let mut widener = CorrelationWidener::default();
        let mut widen = |narrow| widener.widen(narrow);
        let last = widen(u32::MAX).unwrap();
        let first = widen(1).unwrap();
        assert_eq!(first.0, last.0 + 2, "0 is skipped by tracing libraries");
        assert_eq!(widen(u32::MAX), Some(last), "a record of before comes late");
        assert_eq!(widen(0), None);
    }
}
