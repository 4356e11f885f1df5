//! A mode that itself starts and ends windows, parts of its run that the recorder writes as one trace each.

use anyhow::Result;
use ash::vk::CommandBufferUsageFlags as Usage;
use serde::Serialize;

use crate::args::Args;
use crate::recorded::Recorded;
use crate::recorder::Recorder;
use crate::setup::Setup;
use crate::truth::Truth;

/// The content of a window.
#[derive(Serialize)]
struct Window {
    /// The number of command buffers that were submitted in the window.
    command_buffers: u32,
    /// The number of these that were recorded outside every window, so that the recorder cannot know their content.
    unknown_command_buffers: u32,
    /// The number of dispatches in the other command buffers.
    dispatches: u32,
    /// The number of dispatches in all command buffers.
    executed_dispatches: u32,
}

/// Records three command buffers, one before and two in windows, submits them before, in, between and after three
/// windows, and notes in `truth` what each window holds. The n-th has one dispatch more than the one before it.
pub fn windows(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, recorder) = (&setup.gpu, Recorder::find());
    let buffers = gpu.primaries(&gpu.queues[0], 3)?;
    let record = |index: usize| {
        let dispatches = args.n + index as u32;
        setup
            .spin
            .record(gpu, buffers[index], Usage::empty(), dispatches)
    };
    let submit = |recorded: &Recorded| {
        gpu.submit(&[recorded], setup.fence)?;
        setup.wait()
    };
    let mut number = 0;
    let mut window = |work: &mut dyn FnMut() -> Result<()>| {
        number += 1;
        let path = args.captures.as_ref();
        let path = path.map(|folder| folder.join(format!("{number}.gapscope")));
        match &recorder {
            Some(recorder) => recorder.capture(path.as_deref(), work),
            None => work(),
        }
    };
    let before = record(0)?;
    submit(&before)?;
    let mut inside = None;
    window(&mut || {
        submit(&before)?;
        let recorded = record(1)?;
        inside = Some(recorded);
        submit(&recorded)
    })?;
    let inside = inside.expect("the first window has recorded it");
    submit(&inside)?;
    submit(&before)?;
    let mut later = None;
    window(&mut || {
        submit(&inside)?;
        later = Some(record(2)?);
        Ok(())
    })?;
    let later = later.expect("the second window has recorded it");
    submit(&later)?;
    window(&mut || {
        submit(&later)?;
        submit(&record(0)?)
    })?;
    submit(&before)?;
    let n = args.n;
    let windows = [
        Window {
            command_buffers: 2,
            unknown_command_buffers: 1,
            dispatches: n + 1,
            executed_dispatches: 2 * n + 1,
        },
        Window {
            command_buffers: 1,
            unknown_command_buffers: 0,
            dispatches: n + 1,
            executed_dispatches: n + 1,
        },
        Window {
            command_buffers: 2,
            unknown_command_buffers: 0,
            dispatches: 2 * n + 2,
            executed_dispatches: 2 * n + 2,
        },
    ];
    truth.note("windows", serde_json::to_value(windows)?);
    truth.note("captured", recorder.is_some());
    setup.report(truth)
}
