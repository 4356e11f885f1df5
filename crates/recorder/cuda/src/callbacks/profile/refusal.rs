//! The reasons why launches were not profiled, as sentences for the report.

use crate::cupti::refusal;
use gapscope_cupti::{Failure, LibraryError, code};
use gapscope_spool::model::kernel_profile::Wanted;

pub fn communicates(kernel: &str) -> String {
    format!(
        "{kernel} was not profiled: by its name it communicates with other devices, and run again without them it would hang."
    )
}

pub fn captured(kernel: &str) -> String {
    format!(
        "Launches of {kernel} that are captured into a graph were not profiled, nor are kernels of graphs: only launches by themselves can be."
    )
}

pub fn unknown_launch(kernel: &str) -> String {
    format!("Launches of {kernel} by a function that gapscope does not know were not profiled.")
}

/// Describes a choice that was not met.
pub fn unmet(wanted: &Wanted, profiled: u32, seen: bool) -> String {
    let Wanted { name, launches } = wanted;
    match (profiled, seen) {
        (0, false) => format!(
            "--profile-kernel: no kernel whose name contains \"{name}\" was launched by itself in a process that launched others."
        ),
        (0, true) => format!(
            "--profile-kernel: no launch of a kernel whose name contains \"{name}\" could be profiled."
        ),
        _ => format!(
            "--profile-kernel: of {launches} launches of kernels whose name contains \"{name}\" there were {profiled}."
        ),
    }
}

/// The reason why a launch could not be profiled, as a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("the driver does not say which device the thread uses")]
    NoDevice,
    #[error("the GPU has none of the metrics")]
    NoMetrics,
    #[error("CUPTI measured nothing of the launch")]
    NothingMeasured,
    #[error("another thread launched a kernel in the same context meanwhile")]
    OtherLaunch,
    #[error("{}", explain(*.0))]
    Refused(#[from] Failure),
}

/// Explains a code by which CUPTI refuses, without a full stop.
fn explain(failure: Failure) -> String {
    let meaning = match failure.code {
        code::NOT_SUPPORTED => {
            Some("this libcupti or the GPU cannot do it; CUDA 12.6 or later can")
        }
        code::OUT_OF_MEMORY => Some("there is not enough memory to keep what the kernel writes"),
        code::INVALID_CHIP_NAME => Some("this libcupti does not know the GPU: a newer one may"),
        _ => None,
    };
    refusal::explain(failure, meaning)
}
