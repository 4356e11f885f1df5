//! Measures what devices can do at best: bandwidth of their memory, rates of multiply-adds and of matrix units, the interval and
//! latency of launches, on CUDA and Vulkan. The figures are kept by [`gapscope_trace::measured`].
//!
//! Each figure but the latency is the median of repetitions, timed by the device, after a warm-up until its clocks are settled.
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[allow(unsafe_code)]
mod cuda;
mod error;
mod measurement;
mod samples;
mod selection;
mod vulkan;

use gapscope_model::Api;
use gapscope_replay::DeviceChoice;
use gapscope_trace::measured::MeasuredDevice;

pub use error::Error;
use samples::Effort;
use selection::Selection;
pub use vulkan::{Bandwidth, Copier, copy_bandwidth};

/// The devices that were measured, and those that were not.
#[derive(Debug, Default)]
pub struct Measurements {
    /// The devices that were measured.
    pub devices: Vec<MeasuredDevice>,
    /// The devices that could not be measured, as sentences without their full stop.
    pub failed: Vec<String>,
    /// Why an interface has no devices here, as sentences without their full stop.
    pub absent: Vec<String>,
    /// All devices by their numbers, whether or not they were asked for: name and interface. All of CUDA come before all of Vulkan.
    pub listed: Vec<String>,
}

/// Measures devices one after the other: those that `choice` numbers or names, else all. `progress` is called with
/// the name of the next measurement. With `quick` the figures are less certain.
pub fn measure(
    choice: Option<&DeviceChoice>,
    quick: bool,
    progress: &dyn Fn(&str),
) -> Measurements {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let mut found = Measurements::default();
    let mut selection = Selection::new(choice);
    let cuda = cuda::measure(&mut selection, effort, progress);
    let vulkan = vulkan::measure(&mut selection, effort, progress);
    for (api, devices) in [(Api::Cuda, cuda), (Api::Vulkan, vulkan)] {
        let api = selection::name(api);
        for (name, device) in devices.unwrap_or_else(|error| {
            found.absent.push(format!("{api}: {error}"));
            Vec::new()
        }) {
            match device {
                Ok(measurement) => found.devices.push(measurement.finish()),
                Err(error) => {
                    (found.failed).push(format!("{name} ({api}) cannot be measured: {error}"))
                }
            }
        }
    }
    found.listed = selection.listed;
    found
}
