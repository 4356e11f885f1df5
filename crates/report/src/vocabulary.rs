//! The words of the API that a program used. Analyses and JSON have words of their own, the same for all APIs.

use gapscope_analysis::Findings;
use gapscope_trace::manifest::Api;

/// Words for what a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vocabulary {
    /// One queue, and several.
    pub queue: (&'static str, &'static str),
    /// One command buffer, and several.
    pub command_buffer: (&'static str, &'static str),
    /// One submission, and several.
    pub submission: (&'static str, &'static str),
    /// True for CUDA.
    pub cuda: bool,
}

const NEUTRAL: Vocabulary = Vocabulary {
    queue: ("queue", "queues"),
    command_buffer: ("command buffer", "command buffers"),
    submission: ("submission", "submissions"),
    cuda: false,
};

const CUDA: Vocabulary = Vocabulary {
    queue: ("stream", "streams"),
    command_buffer: ("graph launch", "graph launches"),
    submission: ("launch", "launches"),
    cuda: true,
};

impl Vocabulary {
    /// The words of the API that all devices were used through; the common ones where there are several.
    pub fn of(findings: &Findings) -> Vocabulary {
        let mut devices = findings.devices.iter();
        let cuda = |api: &Api| *api == Api::Cuda;
        match devices.next() {
            Some(first) if cuda(&first.api) && devices.all(|d| cuda(&d.api)) => CUDA,
            _ => NEUTRAL,
        }
    }
}
