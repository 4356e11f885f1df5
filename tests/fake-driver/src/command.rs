//! Represents what a command buffer holds.

use std::sync::Arc;

use ash::vk;

use crate::command_buffer::CommandBuffer;
use crate::config::config;
use crate::object::{Header, Object};
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
        // Most commands use what the one before used.
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

    /// Held from submission to completion.
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
