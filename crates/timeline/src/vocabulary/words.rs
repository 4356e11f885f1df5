//! The nouns that reports use for the things of each API, such as a CUDA stream for a queue.

use crate::quantity;
use gapscope_trace::Manifest;
use gapscope_trace::manifest::Api;
use serde::Serialize;

/// A noun in singular and plural.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Noun {
    /// The singular.
    pub one: &'static str,
    /// The plural.
    pub many: &'static str,
}

impl Noun {
    const fn new(one: &'static str, many: &'static str) -> Noun {
        Noun { one, many }
    }

    /// Returns a count with the noun: `1 stream`, `2 streams`.
    pub fn count(&self, count: u64) -> String {
        quantity::count_of(count, self.one, self.many)
    }

    /// Returns the plural with a capital letter, for the start of a sentence or a title.
    pub fn title(&self) -> String {
        let mut letters = self.many.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

/// The nouns of an API for the things of a trace. Tables, columns and JSON use the same words for all APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Words {
    /// The API, or `Unknown` for words that suit several.
    pub api: Api,
    /// The noun for a queue.
    pub queue: Noun,
    /// The noun for a command buffer.
    pub command_buffer: Noun,
    /// The noun for a submission.
    pub submission: Noun,
    /// The noun for a dispatch.
    pub dispatch: Noun,
    /// The noun for opaque work, which is timed as a whole.
    pub pass: Noun,
    /// The noun for a workgroup.
    pub workgroup: Noun,
    /// The verb for making a submission: `submit`.
    pub submit: &'static str,
    /// The verb in the third person.
    pub submits: &'static str,
}

impl Words {
    /// Returns the words of an API.
    pub const fn new(api: Api) -> Words {
        let common = Words {
            api,
            queue: Noun::new("queue", "queues"),
            command_buffer: Noun::new("command buffer", "command buffers"),
            submission: Noun::new("submission", "submissions"),
            dispatch: Noun::new("dispatch", "dispatches"),
            pass: Noun::new("pass", "passes"),
            workgroup: Noun::new("workgroup", "workgroups"),
            submit: "submit",
            submits: "submits",
        };
        match api {
            Api::Vulkan | Api::Unknown => common,
            Api::Cuda | Api::Hip => Words {
                queue: Noun::new("stream", "streams"),
                command_buffer: Noun::new("graph launch", "graph launches"),
                submission: Noun::new("launch", "launches"),
                dispatch: Noun::new("kernel", "kernels"),
                workgroup: Noun::new("block", "blocks"),
                submit: "launch",
                submits: "launches",
                ..common
            },
            Api::Metal => Words {
                queue: Noun::new("command queue", "command queues"),
                pass: Noun::new("encoder", "encoders"),
                workgroup: Noun::new("threadgroup", "threadgroups"),
                ..common
            },
        }
    }

    /// Returns the words of the API that all devices were used through, or those that suit several where the devices
    /// differ.
    pub(super) fn from_devices(manifest: &Manifest) -> Words {
        Words::common(manifest.devices.iter().map(|device| device.api))
    }

    /// Returns the words of an API where all are that one, or else those that suit several.
    pub fn common(apis: impl IntoIterator<Item = Api>) -> Words {
        let mut apis = apis.into_iter();
        let first = apis.next().unwrap_or_default();
        Words::new(match apis.all(|api| api == first) {
            true => first,
            false => Api::Unknown,
        })
    }
}
