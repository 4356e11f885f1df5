//! Sets labels and names, and notes their numbers in the truth (what tests compare a trace with).

use std::ffi::{CStr, CString};

use anyhow::{Result, bail};
use ash::{ext, vk};

use crate::Unsupported;
use crate::args::Args;
use crate::recorded::Recorded;
use crate::recording::Recording;
use crate::setup::Setup;
use crate::truth::Truth;

/// Sets in each iteration a queue label `step I` around two command buffers. The first begins the label `across`,
/// which the second ends: on a queue, labels may span command buffers. Inside, each dispatch has the label `outer`
/// and in it `inner`, with an instant `mark` between the halves of the two command buffers.
pub fn labels(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let Some(debug) = &gpu.debug_utils else {
        bail!(Unsupported("the driver has no VK_EXT_debug_utils".into()));
    };
    let queue = gpu.queues[0].handle;
    let buffers = gpu.primaries(&gpu.queues[0], 2)?;
    gpu.name(spin.pipeline, c"spin pipeline")?;
    gpu.name(spin.data.handle, c"spin data")?;
    gpu.name(queue, c"main queue")?;
    gpu.name(buffers[0], c"first half")?;
    gpu.name(buffers[1], c"second half")?;
    for iteration in 0..args.iterations {
        let first = half(
            &setup,
            debug,
            args,
            buffers[0],
            |buffer| begin(debug, buffer, c"across"),
            |buffer| unsafe {
                debug.cmd_insert_debug_utils_label(buffer, &label(c"mark"));
            },
        )?;
        let second = half(
            &setup,
            debug,
            args,
            buffers[1],
            |_| {},
            |buffer| unsafe {
                debug.cmd_end_debug_utils_label(buffer);
            },
        )?;
        let step = CString::new(format!("step {iteration}"))?;
        unsafe { debug.queue_begin_debug_utils_label(queue, &label(&step)) };
        gpu.submit(&[&first, &second], setup.fence)?;
        unsafe {
            debug.queue_insert_debug_utils_label(queue, &label(c"submitted"));
            debug.queue_end_debug_utils_label(queue);
        }
        setup.wait()?;
    }
    let per_iteration = 1 + 2 * 2 * args.n;
    truth.note("command_buffer_labels", args.iterations * per_iteration);
    truth.note("command_buffer_instants", args.iterations);
    truth.note("queue_labels", args.iterations);
    truth.note("queue_instants", args.iterations);
    truth.note("named_objects", 5);
    setup.report(truth)
}

/// Records one of the two command buffers; `before` runs before its dispatches, and `after` after them.
fn half(
    setup: &Setup,
    debug: &ext::debug_utils::Device,
    args: &Args,
    buffer: vk::CommandBuffer,
    before: impl FnOnce(vk::CommandBuffer),
    after: impl FnOnce(vk::CommandBuffer),
) -> Result<Recorded> {
    let mut recording = Recording::start(
        &setup.gpu,
        buffer,
        vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT,
    )?;
    setup.spin.bind(&recording);
    before(buffer);
    for _ in 0..args.n {
        begin(debug, buffer, c"outer");
        begin(debug, buffer, c"inner");
        recording.dispatch(setup.spin.groups);
        unsafe { debug.cmd_end_debug_utils_label(buffer) };
        recording.barrier();
        unsafe { debug.cmd_end_debug_utils_label(buffer) };
    }
    after(buffer);
    recording.end()
}

fn begin(debug: &ext::debug_utils::Device, buffer: vk::CommandBuffer, name: &CStr) {
    unsafe { debug.cmd_begin_debug_utils_label(buffer, &label(name)) };
}

fn label(name: &CStr) -> vk::DebugUtilsLabelEXT<'_> {
    vk::DebugUtilsLabelEXT::default().label_name(name)
}
