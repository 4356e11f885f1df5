//! Keeps the commands of a command buffer, with the program's handles. They are resolved into the objects of a
//! capture when the program submits the command buffer.

use std::sync::Arc;

use ash::vk;
use gapscope_capture::model::{CopyRegion, Dependency, Label};
use gapscope_vulkan_layer::descriptors::{Descriptor, SetLayout};

use crate::objects::kernels::{Pipeline, PipelineLayout};

/// A command of a command buffer.
#[derive(Clone)]
pub enum Command {
    /// A compute pipeline is bound; `None` if it is not known.
    Pipeline(Option<Arc<Pipeline>>),
    /// Descriptor sets are bound from the index `first` on, with their dynamic offsets.
    Sets {
        layout: Arc<PipelineLayout>,
        first: u32,
        sets: Vec<vk::DescriptorSet>,
        offsets: Vec<u32>,
    },
    /// Descriptors are pushed for the set at the index `set`: pairs of index and descriptor.
    PushDescriptors {
        pipeline_layout: Arc<PipelineLayout>,
        set: u32,
        layout: Arc<SetLayout>,
        written: Vec<(u32, Descriptor)>,
    },
    /// Bytes of the push constants are set.
    PushConstants {
        /// `None` if the layout is not known.
        layout: Option<Arc<PipelineLayout>>,
        stages: vk::ShaderStageFlags,
        offset: u32,
        bytes: Vec<u8>,
    },
    /// A kernel runs with `groups` workgroups, numbered from `base` on.
    Dispatch {
        base: [u32; 3],
        groups: [u32; 3],
    },
    /// A kernel runs; the workgroups are in a buffer.
    DispatchIndirect {
        buffer: vk::Buffer,
        offset: u64,
    },
    /// Regions of a buffer are copied to another.
    Copy {
        from: vk::Buffer,
        to: vk::Buffer,
        regions: Vec<CopyRegion>,
    },
    /// A buffer is filled with a value.
    Fill {
        buffer: vk::Buffer,
        offset: u64,
        bytes: u64,
        value: u32,
    },
    /// Data of the command is written to a buffer.
    Update {
        buffer: vk::Buffer,
        offset: u64,
        data: Vec<u8>,
    },
    /// Later commands wait for earlier ones.
    Barrier(Barrier),
    SetEvent(vk::Event),
    ResetEvent(vk::Event),
    /// Later commands wait for events.
    WaitEvents(Vec<vk::Event>, Barrier),
    Label(Label),
    /// Results of queries are copied: `bytes` at most.
    QueryResults {
        buffer: vk::Buffer,
        offset: u64,
        bytes: u64,
    },
    /// Secondary command buffers are executed.
    Secondary(Vec<vk::CommandBuffer>),
    /// A command that touches no memory of buffers, and that cannot be recorded a second time.
    Once,
    /// A command that no capture can hold.
    Refused(&'static str),
}

impl Command {
    /// Returns whether the command only sets up those that follow.
    pub fn is_state(&self) -> bool {
        matches!(
            self,
            Command::Pipeline(_)
                | Command::Sets { .. }
                | Command::PushDescriptors { .. }
                | Command::PushConstants { .. }
        )
    }

    /// Returns whether the command is a dispatch, direct or indirect.
    pub fn is_dispatch(&self) -> bool {
        matches!(
            self,
            Command::Dispatch { .. } | Command::DispatchIndirect { .. }
        )
    }
}

/// A barrier. Images are left out, since no work of a window touches any.
#[derive(Default, Clone)]
pub struct Barrier {
    /// Whether each dependency has stages of its own, as in synchronization2.
    pub has_own_stages: bool,
    /// Whether the barrier also concerns images or the families that own a buffer, which is not kept.
    pub is_more: bool,
    pub flags: u32,
    /// The dependencies of all memory; those of buffers are in `buffers`.
    pub memory: Vec<Dependency>,
    pub buffers: Vec<BufferBarrier>,
}

/// A barrier for a range of a buffer.
#[derive(Clone)]
pub struct BufferBarrier {
    pub dependency: Dependency,
    pub buffer: vk::Buffer,
    pub offset: u64,
    /// The size; it may be `VK_WHOLE_SIZE`.
    pub bytes: u64,
}

/// The commands that have been recorded into a command buffer since it was begun.
#[derive(Default)]
pub struct CommandBuffer {
    pub commands: Vec<Command>,
}

impl CommandBuffer {
    /// Returns the number of dispatches in the command buffer itself, and the secondary command buffers that it
    /// executes.
    pub fn dispatches(&self) -> (u64, Vec<vk::CommandBuffer>) {
        let mut count = 0;
        let mut secondary = Vec::new();
        for command in &self.commands {
            match command {
                Command::Dispatch { .. } | Command::DispatchIndirect { .. } => count += 1,
                Command::Secondary(buffers) => secondary.extend(buffers),
                _ => {}
            }
        }
        (count, secondary)
    }

    /// Returns the texts of the labels.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().filter_map(|command| match command {
            Command::Label(Label::Begin(text) | Label::Instant(text)) => Some(text.as_str()),
            _ => None,
        })
    }
}
