//! The rows of exports as types: GPU intervals, commits, encoders (each a series of commands in a command buffer),
//! host intervals, shaders and others. Times are nanoseconds from the start of the recording; `command_buffer`,
//! `encoder` and `resource` are Metal's ids.

use crate::xctrace::cell::Thread;
use std::rc::Rc;

/// The kind of the GPU channel that an interval ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Channel {
    Compute,
    Render,
    Blit,
    Other,
}

impl Channel {
    /// Returns the channel that Instruments calls `name`, by the words in it: those of rendering first, then of
    /// copies.
    pub fn named(name: Option<&str>) -> Channel {
        let Some(name) = name else {
            return Channel::Other;
        };
        let name = name.to_ascii_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if is(&["vertex", "fragment", "render", "tiler", "object", "mesh"]) {
            Channel::Render
        } else if is(&["blit", "copy", "dma", "transfer"]) {
            Channel::Blit
        } else if is(&["compute"]) {
            Channel::Compute
        } else {
            Channel::Other
        }
    }
}

/// An interval of GPU work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GpuInterval {
    pub start_ns: i64,
    pub duration_ns: i64,
    pub channel: Channel,
    pub pid: Option<u32>,
    /// Metal's id of the command buffer; `None` if Instruments does not name it.
    pub command_buffer: Option<u64>,
    /// Metal's id of the encoder; `None` if Instruments does not name it.
    pub encoder: Option<u64>,
}

/// A command buffer that the application created and committed, on a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Submission {
    pub created_ns: i64,
    pub committed_ns: i64,
    pub pid: Option<u32>,
    pub thread: Option<Rc<Thread>>,
    pub command_buffer: u64,
}

/// An encoder that the application created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoder {
    pub pid: Option<u32>,
    pub command_buffer: Option<u64>,
    pub encoder: u64,
    pub command_buffer_label: Option<Rc<str>>,
    pub label: Option<Rc<str>>,
}

/// An interval of a host thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostInterval {
    pub start_ns: i64,
    pub duration_ns: i64,
    pub pid: Option<u32>,
    pub thread: Option<Rc<Thread>>,
    /// The kind of activity, such as `Completion Handlers`.
    pub group: Rc<str>,
    pub text: Rc<str>,
}

/// A compiled shader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shader {
    pub pid: Option<u32>,
    pub id: u64,
    pub name: Rc<str>,
    pub label: Option<Rc<str>>,
    pub shader_type: Option<Rc<str>>,
}

/// An allocated resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub at_ns: i64,
    /// The lifetime; `None` if the resource lived to the end.
    pub lifetime_ns: Option<i64>,
    pub pid: Option<u32>,
    pub resource: u64,
    pub bytes: u64,
}

/// The start or end of GPU work on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExecutionPoint {
    pub at_ns: i64,
    pub is_start: bool,
    /// Instruments' id of the piece of work.
    pub gpu_submission: u64,
}

/// The command buffer of a piece of GPU work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuSubmission {
    pub gpu_submission: u64,
    pub command_buffer: u64,
    pub encoder: Option<u64>,
    pub pid: Option<u32>,
}

/// The notice that a command buffer has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completion {
    pub at_ns: i64,
    pub command_buffer: u64,
}

/// The failure of a command buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub command_buffer: u64,
    /// The code of the `MTLCommandBufferError`.
    pub code: u64,
}

/// A spill of registers to memory by a shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spill {
    pub bytes: u64,
    pub pid: Option<u32>,
}

/// The kind of mark that a signpost (a message of a program to Instruments) sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    Begin,
    End,
    Event,
}

impl Mark {
    /// Returns the mark that Instruments calls `name`; `None` for other names.
    pub fn named(name: &str) -> Option<Mark> {
        match name {
            "Begin" => Some(Mark::Begin),
            "End" => Some(Mark::End),
            "Event" => Some(Mark::Event),
            _ => None,
        }
    }
}

/// A signpost of the SDK: the begin or the end of a label, or an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signpost {
    pub at_ns: i64,
    pub mark: Mark,
    pub pid: Option<u32>,
    pub tid: Option<u64>,
    /// The id that distinguishes labels of a process that are open at the same time.
    pub id: u64,
    /// The text of the label; `None` at ends.
    pub text: Option<Rc<str>>,
}

impl Signpost {
    /// The subsystem of the SDK's signposts (`gapscope_sdk::label`).
    pub const SUBSYSTEM: &str = "gapscope";
}
