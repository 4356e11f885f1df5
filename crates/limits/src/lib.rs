//! Measures what devices can do at best: bandwidth of their memory, rates of multiply-adds and of matrix units, the interval and
//! latency of launches, on CUDA and Vulkan. What is measured is kept by [`gapscope_trace::measured`].
//!
//! Each figure but the latency is the median of repetitions, timed by the device, after a warm-up until its clocks are settled.
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[allow(unsafe_code)]
mod cuda;
mod draft;
mod samples;
mod vulkan;

use draft::Draft;
use gapscope_trace::measured::MeasuredDevice as Kept;
use samples::Effort;

/// Called with what is measured next.
type Progress<'a> = &'a dyn Fn(&str);

/// Which devices: all of CUDA, then all of Vulkan, are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// By its number.
    Number(usize),
    /// By a part of its name.
    Name(String),
}

impl Choice {
    /// As typed: a number, or a part of a name.
    pub fn of(text: &str) -> Choice {
        match text.parse() {
            Ok(number) => Choice::Number(number),
            Err(_) => Choice::Name(text.to_owned()),
        }
    }

    /// Notes a device that is there, and says whether it was asked for.
    fn takes(choice: Option<&Choice>, there: &mut Vec<String>, api: &str, name: &str) -> bool {
        let number = there.len();
        there.push(format!("{name} ({api})"));
        match choice {
            None => true,
            Some(Choice::Number(asked)) => *asked == number,
            Some(Choice::Name(part)) => name.to_lowercase().contains(&part.to_lowercase()),
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The devices that were measured.
    pub devices: Vec<Kept>,
    /// Those that could not be, as sentences without their full stop.
    pub failed: Vec<String>,
    /// Why an interface has no devices here, as sentences without their full stop.
    pub absent: Vec<String>,
    /// The devices that there are by their numbers, whether or not they were asked for: name and interface.
    pub there: Vec<String>,
}

/// Measures devices, one after the other. `progress` is told what is measured next. With `quick` the figures are less certain.
pub fn measure(choice: Option<&Choice>, quick: bool, progress: &dyn Fn(&str)) -> Found {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let mut found = Found::default();
    let mut all = Vec::new();
    match cuda::measure(choice, &mut found.there, effort, progress) {
        Ok(devices) => all.extend(devices),
        Err(error) => found.absent.push(format!("CUDA: {error}")),
    }
    match vulkan::measure(choice, &mut found.there, effort, progress) {
        Ok(devices) => all.extend(devices),
        Err(error) => found.absent.push(format!("Vulkan: {error}")),
    }
    for device in all {
        match device {
            Ok(draft) => found.devices.push(draft.kept()),
            Err(error) => found.failed.push(error),
        }
    }
    found
}
