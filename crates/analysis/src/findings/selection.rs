//! Which part of a trace the analyses read.

use super::{Findings, Options};
use crate::equal_work;
use gapscope_trace::Selection;
use gapscope_trace::tables::{
    AllocatorMemory, Bindings, Buffers, CounterValues, Counters, Dependencies, Dispatches, Frames,
    HostCalls, KernelMetrics, Kernels, Labels, Markers, Memory, OpaqueWork, PcSamples, Samples,
    Stacks, Submissions, Transfers,
};

impl Findings {
    /// Returns the part of a trace that [`Findings::new`] and [`crate::activity()`] read. The other columns fill a
    /// gigabyte for ten million dispatches and their labels; [`crate::dataflow`] needs them too.
    pub fn selection() -> Selection {
        Findings::selection_with(&[])
    }

    /// Returns the part of a trace that analyses with these options read.
    pub fn selection_for(options: &Options) -> Selection {
        match options.equal_work {
            Some(_) => Findings::selection_with(equal_work::MARKERS),
            None => Findings::selection(),
        }
    }

    /// Returns the part of a trace that [`Findings::selection`] has, with additional columns of markers.
    pub fn selection_with(markers: &[&'static str]) -> Selection {
        Findings::selection_of_times()
            .columns::<Dispatches>(&["groups_x", "groups_y", "groups_z"])
            .columns::<Markers>(markers)
    }

    /// Returns the part of a trace that the timeline, gaps, labels and kernels' times are made from.
    pub fn selection_of_times() -> Selection {
        Selection::manifest()
            .columns::<Dispatches>(&[
                "command_buffer",
                "queue",
                "kernel",
                "start_ns",
                "duration_ns",
                "bindings",
                "label",
                "submission",
            ])
            .columns::<Transfers>(&[
                "command_buffer",
                "queue",
                "kind",
                "bytes",
                "start_ns",
                "duration_ns",
                "label",
                "submission",
                "host_memory",
            ])
            .columns::<OpaqueWork>(&[
                "command_buffer",
                "queue",
                "kind",
                "start_ns",
                "duration_ns",
                "label",
                "submission",
            ])
            .columns::<HostCalls>(&[
                "process",
                "thread",
                "call",
                "start_ns",
                "duration_ns",
                "count",
                "queue",
                "function",
                "result",
                "waits_for",
            ])
            .columns::<Markers>(&[
                "process",
                "scope",
                "label",
                "thread",
                "start_ns",
                "duration_ns",
                "domain",
                "payload",
            ])
            .with::<gapscope_trace::tables::CommandBuffers>()
            .with::<Submissions>()
            .with::<Dependencies>()
            .with::<Labels>()
            .with::<Memory>()
            .with::<AllocatorMemory>()
            .with::<Counters>()
            .with::<CounterValues>()
            .with::<Buffers>()
            .with::<Bindings>()
            .with::<Kernels>()
            .with::<KernelMetrics>()
            .with::<PcSamples>()
            .with::<Samples>()
            .with::<Stacks>()
            .with::<Frames>()
    }
}
