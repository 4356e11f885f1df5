//! Measures the times of a capture's commands by running them, and the bandwidth of their device, and adds both to
//! the dependencies.

use crate::args::Deps;
use crate::failure::Failure;
use crate::progress;
use gapscope_capture::Capture;
use gapscope_capture::model::Command;
use gapscope_dependencies::{Bandwidth, Dependencies, UnknownBandwidth};
use gapscope_device_peaks::{Copier, copy_bandwidth};
use gapscope_replay::{DeviceChoice, Options};
use gapscope_timeline::quantity;

/// The number of timed runs unless the user gives one.
const DEFAULT_RUNS: u32 = 5;

/// Runs the window and sets the times of its commands and the device's bandwidth in `found`. If the bandwidth cannot
/// be measured, the reason takes its place. Outputs that differ are told in `remarks`.
pub fn add(
    arguments: &Deps,
    capture: &Capture,
    found: &mut Dependencies,
    remarks: &mut Vec<String>,
) -> Result<(), Failure> {
    let options = Options {
        device: arguments.device.as_deref().map(DeviceChoice::from_text),
        repeat: arguments.repeat.unwrap_or(DEFAULT_RUNS),
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
        copy_bandwidth(options.device.as_ref(), &capture.header.device.name)
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
        Ok(None) => Err(UnknownBandwidth::NoTimestamps),
        Err(error) => Err(UnknownBandwidth::Failed(error.to_string())),
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
