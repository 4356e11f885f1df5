//! Finds the function of each mode; the files are groups of modes. A mode gets the command line, does its work, and
//! adds to the truth what a trace should show; [`Mode`] describes each.

mod bench;
mod descriptors;
mod ending;
mod host;
mod host_access;
mod kernels;
mod labels;
mod memory;
mod processes;
mod queues;
mod render_pass;
mod resolve;
mod reuse;
mod shader_objects;
mod transfers;
mod windows;

use anyhow::Result;

use crate::args::{Args, Mode};
use crate::truth::Truth;

/// Runs the mode and adds its work to `truth`.
pub fn run(args: &Args, truth: &mut Truth) -> Result<()> {
    let mode = match args.mode {
        Mode::Steady => host::steady,
        Mode::Spin => host::spin,
        Mode::HostSleep => host::host_sleep,
        Mode::HostSleepAsync => host::host_sleep_async,
        Mode::FenceEach => host::fence_each,
        Mode::Polling => host::polling,
        Mode::PipelinesInLoop => kernels::pipelines_in_loop,
        Mode::Bench => bench::bench,
        Mode::Resubmit => reuse::resubmit,
        Mode::Simultaneous => reuse::simultaneous,
        Mode::Secondary => reuse::secondary,
        Mode::HostPoolReset => reuse::host_pool_reset,
        Mode::Indirect => kernels::indirect,
        Mode::Base => kernels::base,
        Mode::Specialise => kernels::specialise,
        Mode::PushDescriptors => descriptors::push_descriptors,
        Mode::UpdatedSets => descriptors::updated_sets,
        Mode::DynamicOffsets => descriptors::dynamic_offsets,
        Mode::PartlyWritten => descriptors::partly_written,
        Mode::PingPong => queues::ping_pong,
        Mode::Submit2 => queues::submit2,
        Mode::Protected => queues::protected,
        Mode::Sparse => queues::sparse,
        Mode::Threads => queues::threads,
        Mode::Submitter => queues::submitter,
        Mode::Devices => queues::devices,
        Mode::TransferStall => transfers::transfer_stall,
        Mode::Transfers => transfers::transfers,
        Mode::RenderPass => render_pass::render_pass,
        Mode::Suspended => render_pass::suspended,
        Mode::Resolve => resolve::resolve,
        Mode::Extensions => render_pass::extensions,
        Mode::ShaderObjects => shader_objects::shader_objects,
        Mode::Labels => labels::labels,
        Mode::Memory => memory::memory,
        Mode::Children => processes::children,
        Mode::Fork => processes::fork,
        Mode::Abandon => ending::abandon,
        Mode::Killed => ending::killed,
        Mode::InFlight => ending::in_flight,
        Mode::Churn => ending::churn,
        Mode::DeviceLost => ending::device_lost,
        Mode::Windows => windows::windows,
        Mode::HostWrites => host_access::host_writes,
        Mode::WaitFirst => host_access::wait_first,
        Mode::Queries => host_access::queries,
    };
    mode(args, truth)
}
