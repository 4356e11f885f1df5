//! Defines the commands of command buffers that both layers (the one that records and the one that captures) follow.
//! Each is decoded from either version of its Vulkan function (1.0, or a later one with structures) and handed to the
//! layer.

use std::borrow::Cow;
use std::ffi::c_void;

use ash::vk;

use crate::barriers::Barriers;

/// A command, with the program's own arrays during its call.
#[derive(Clone, Copy)]
pub enum Command<'a> {
    /// A compute pipeline is bound.
    BindPipeline(vk::Pipeline),
    /// Descriptor sets are bound for compute.
    BindDescriptorSets {
        layout: vk::PipelineLayout,
        first: u32,
        sets: &'a [vk::DescriptorSet],
        dynamic_offsets: &'a [u32],
    },
    /// Descriptors are pushed for compute, or by a template, which has the bind point.
    PushDescriptors {
        layout: vk::PipelineLayout,
        set: u32,
        descriptors: PushedDescriptors<'a>,
    },
    /// Something is bound for another bind point than compute. The command changes nothing in a layer, but the layer passes
    /// the call on.
    BindOther,
    /// A kernel runs with `groups` workgroups; for `DispatchIndirect` their number is in a buffer.
    Dispatch {
        /// `None` if the command has no base.
        base: Option<[u32; 3]>,
        groups: [u32; 3],
    },
    DispatchIndirect {
        buffer: vk::Buffer,
        offset: u64,
    },
    /// Regions of a buffer are copied to another.
    CopyBuffer {
        from: vk::Buffer,
        to: vk::Buffer,
        regions: CopyRegions<'a>,
    },
    /// A buffer is filled with a value.
    FillBuffer {
        buffer: vk::Buffer,
        offset: u64,
        /// The size may be `VK_WHOLE_SIZE`.
        bytes: u64,
        value: u32,
    },
    /// Data of the command is written to a buffer.
    UpdateBuffer {
        buffer: vk::Buffer,
        offset: u64,
        data: &'a [u8],
    },
    /// Later commands wait for earlier ones.
    PipelineBarrier(Barriers<'a>),
    /// Later commands wait for events.
    WaitEvents(&'a [vk::Event], Barriers<'a>),
    /// Secondary command buffers are executed.
    ExecuteCommands(&'a [vk::CommandBuffer]),
}

/// The descriptors that a command pushes.
#[derive(Clone, Copy)]
pub enum PushedDescriptors<'a> {
    /// The program's writes.
    Writes(&'a [vk::WriteDescriptorSet<'a>]),
    /// The pointer leads to what the template describes.
    Template(vk::DescriptorUpdateTemplate, *const c_void),
}

/// The regions of a copy between buffers.
#[derive(Clone, Copy)]
pub enum CopyRegions<'a> {
    /// The regions of the Vulkan 1.0 function.
    V1(&'a [vk::BufferCopy]),
    /// The regions of the function of copy_commands2.
    V2(&'a [vk::BufferCopy2<'a>]),
}

impl CopyRegions<'_> {
    pub fn iter(&self) -> impl Iterator<Item = vk::BufferCopy> + '_ {
        let (v1, v2): (&[_], &[_]) = match self {
            CopyRegions::V1(regions) => (regions, &[]),
            CopyRegions::V2(regions) => (&[], regions),
        };
        let v2 = v2.iter().map(|region| vk::BufferCopy {
            src_offset: region.src_offset,
            dst_offset: region.dst_offset,
            size: region.size,
        });
        v1.iter().copied().chain(v2)
    }
}

/// A debug label in a command buffer or a queue, with its text.
pub enum Label<'a> {
    Begin(Cow<'a, str>),
    End,
    Instant(Cow<'a, str>),
}
