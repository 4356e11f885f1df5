//! Times of commands, and the bandwidth of the device that they are measured on.

use super::Deps;
use crate::failure::Failure;
use crate::progress;
use gapscope_capture::Capture;
use gapscope_capture::model::Command;
use gapscope_dependencies::{Bandwidth, Dependencies};
use gapscope_fuse::Copier;
use gapscope_replay::{DeviceChoice, Options};
use gapscope_timeline::quantity;

/// Timed runs, if nothing else is said.
const RUNS: u32 = 5;

/// Runs the window, and gives its commands their times. Without a bandwidth it says why there is none.
pub fn add(
    arguments: &Deps,
    capture: &Capture,
    found: &mut Dependencies,
    remarks: &mut Vec<String>,
) -> Result<(), Failure> {
    let options = Options {
        device: arguments.device.as_deref().map(DeviceChoice::of),
        repeat: arguments.repeat.unwrap_or(RUNS),
        warm_up: 1,
        ..Options::default()
    };
    let times = progress::while_running("timing each command", || {
        gapscope_replay::command_times(capture, &options)
    });
    let times = times.map_err(|error| Failure::new(error.to_string()))?;
    let executed = capture.executed().enumerate();
    let work = executed.filter(|(_, of)| !matches!(of, Command::Barrier(_) | Command::Label(_)));
    for (node, (place, _)) in found.graph.nodes.iter_mut().zip(work) {
        node.duration_ns = times.median_ns.get(&place).copied();
    }
    let measured = progress::while_running("measuring the device's bandwidth", || {
        gapscope_fuse::bandwidth(capture, options.device.as_ref())
    });
    found.bandwidth = match measured {
        Ok(Some(of)) => Ok(Bandwidth {
            bytes_per_s: of.bytes_per_s,
            source: format!(
                "{} between two buffers of {} on {} ({})",
                match of.by {
                    Copier::Command => "copies",
                    Copier::Kernel => "a copying kernel",
                },
                quantity::bytes(of.buffer_bytes),
                times.device,
                times.driver
            ),
        }),
        Ok(None) => Err("the device's queue has no timestamps".to_owned()),
        Err(error) => Err(format!(
            "the device's bandwidth cannot be measured: {error}"
        )),
    };
    if times.outputs_different > 0 {
        remarks.push(format!(
            "{} of {} of the runs that were timed differ from what the program had.",
            quantity::count(times.outputs_different),
            quantity::count_of(times.outputs_compared, "output", "outputs")
        ));
    }
    Ok(())
}
