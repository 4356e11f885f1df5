//! Holds command pools, command buffers and the commands in them.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use ash::vk;

use crate::config::config;
use crate::external_sync::ExternalSync;
use crate::object::{Body, Header, Object};
use crate::pipeline::Pipeline;
use crate::query::{Query, QueryPool};

/// A command. Addresses are those of the GPU's view of memory, checked when the command was recorded.
pub enum Command {
    Dispatch {
        groups: [u32; 3],
        pipeline: Option<&'static Object<Pipeline>>,
    },
    DispatchIndirect {
        address: usize,
        pipeline: Option<&'static Object<Pipeline>>,
    },
    Draw {
        pipeline: Option<&'static Object<Pipeline>>,
    },
    RenderPass,
    Copy {
        from: usize,
        to: usize,
        bytes: u64,
    },
    Fill {
        to: usize,
        bytes: u64,
        word: u32,
    },
    Update {
        to: usize,
        data: Box<[u8]>,
    },
    /// A transfer with an image, which takes time and moves nothing.
    ImageTransfer {
        bytes: u64,
    },
    ResetQueries(QueryRange),
    Timestamp {
        pool: &'static Object<QueryPool>,
        query: u32,
        at_top: bool,
    },
    CopyQueries(Box<CopyQueries>),
    /// A performance query starts.
    StartCounting,
    StopCounting(QueryRange),
    /// The work after the barrier starts when all the work before it has ended.
    Barrier,
    Execute(Arc<Program>),
}

#[derive(Clone, Copy)]
pub struct QueryRange {
    pub pool: &'static Object<QueryPool>,
    pub first: u32,
    pub count: u32,
}

pub struct CopyQueries {
    pub range: QueryRange,
    pub to: usize,
    pub stride: u64,
    pub flags: vk::QueryResultFlags,
}

/// A command recording, and what it must not outlive.
#[derive(Default)]
pub struct Program {
    pub commands: Vec<Command>,
    pub objects: Vec<&'static Header>,
    pub queries: Vec<QueryRange>,
    pub secondaries: Vec<Secondary>,
}

pub struct Secondary {
    pub buffer: &'static Object<CommandBuffer>,
    pub recording: u64,
    pub program: Arc<Program>,
}

impl Program {
    pub fn clear(&mut self) {
        self.commands.clear();
        self.objects.clear();
        self.queries.clear();
        self.secondaries.clear();
    }

    pub fn uses(&mut self, object: &'static Header) {
        // Most commands use what the command before them used.
        if !config().null
            && self
                .objects
                .last()
                .is_none_or(|&last| !std::ptr::eq(last, object))
        {
            self.objects.push(object);
        }
    }

    pub fn uses_queries(&mut self, range: QueryRange) {
        self.uses(&range.pool.header);
        if !config().null {
            self.queries.push(range);
        }
    }

    /// Marks what the recording uses as in use, from submission to completion.
    pub fn begin_use(&self) {
        self.objects.iter().for_each(|object| object.begin_use());
        for range in &self.queries {
            range.each(|query| query.begin_use());
        }
        for secondary in &self.secondaries {
            secondary.buffer.header.begin_use();
            secondary.program.begin_use();
        }
    }

    pub fn end_use(&self) {
        self.objects.iter().for_each(|object| object.end_use());
        for range in &self.queries {
            range.each(|query| query.end_use());
        }
        for secondary in &self.secondaries {
            secondary.buffer.header.end_use();
            secondary.program.end_use();
        }
    }
}

impl QueryRange {
    fn each(&self, visit: impl Fn(&Query)) {
        self.queries().iter().for_each(visit);
    }

    pub fn queries(&self) -> &'static [Query] {
        self.pool
            .range("a recorded range", self.first, self.count)
            .unwrap_or_default()
    }
}

pub struct CommandPool {
    pub family: u32,
    pub queue_flags: vk::QueueFlags,
    pub timestamp_bits: u32,
    pub enabled: crate::features::Enabled,
    pub flags: vk::CommandPoolCreateFlags,
    pub buffers: Mutex<Vec<&'static Object<CommandBuffer>>>,
    /// All recording into buffers of one pool is externally synchronised.
    pub sync: ExternalSync,
}

impl CommandPool {
    pub fn is_protected(&self) -> bool {
        self.flags.contains(vk::CommandPoolCreateFlags::PROTECTED)
    }
}

impl Body for CommandPool {
    type Handle = vk::CommandPool;
}

pub struct CommandBuffer {
    pub pool: &'static Object<CommandPool>,
    pub level: vk::CommandBufferLevel,
    /// Whether a buffer that is for one submission has been submitted.
    pub submitted_once: AtomicBool,
    pub recording: UnsafeCell<Recording>,
}

impl Body for CommandBuffer {
    type Handle = vk::CommandBuffer;
}

// SAFETY: `recording` is reached by the one thread that Vulkan lets use the buffer, which `CommandPool::sync` enforces.
unsafe impl Sync for CommandBuffer {}
// SAFETY: as above; the addresses inside are of mappings that all threads share.
unsafe impl Send for CommandBuffer {}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum State {
    #[default]
    Initial,
    Recording,
    Executable,
}

#[derive(Default)]
pub struct Recording {
    pub state: State,
    pub usage: vk::CommandBufferUsageFlags,
    pub program: Program,
    pub executable: Option<Arc<Program>>,
    /// Counts command recordings, so that a primary buffer knows whether its secondaries are still those it was
    /// recorded with.
    pub number: u64,
    pub in_render_pass: bool,
    /// Whether the open rendering will be suspended at its end.
    pub suspending: bool,
    /// Whether a rendering is suspended: nothing may act before it is resumed.
    pub suspended: bool,
    /// Whether the recording begins with the rest of a rendering that another command buffer has suspended.
    pub resumes: bool,
    /// The active performance query.
    pub counting: Option<QueryRange>,
    pub compute_pipeline: Option<&'static Object<Pipeline>>,
    pub graphics_pipeline: Option<&'static Object<Pipeline>>,
}

impl Recording {
    /// Keeps the allocations of the last command recording where no submission holds them.
    pub fn reset(&mut self) {
        if let Some(program) = self
            .executable
            .take()
            .and_then(|program| Arc::try_unwrap(program).ok())
        {
            self.program = program;
        }
        self.program.clear();
        self.state = State::Initial;
        self.number += 1;
        self.in_render_pass = false;
        (self.suspending, self.suspended, self.resumes) = (false, false, false);
        self.counting = None;
        (self.compute_pipeline, self.graphics_pipeline) = (None, None);
    }
}

impl CommandBuffer {
    /// Returns the recording. The caller holds the pool's `sync`, or Vulkan's rules give it the buffer.
    #[expect(
        clippy::mut_from_ref,
        reason = "external synchronisation is Vulkan's way to hand out the one reference"
    )]
    pub unsafe fn recording(&self) -> &mut Recording {
        &mut *self.recording.get()
    }
}
