//! Converts a program's barriers (which order commands), of either version of Vulkan's functions, to barriers as a
//! capture keeps them, with the stages and accesses of synchronization2 (the newer version).

use ash::vk;
use gapscope_capture::model::Dependency;
use gapscope_vulkan_layer::barriers::{Barriers, BarriersV1};

use crate::objects::command::{Barrier, BufferBarrier};

/// Returns a barrier as it is kept.
///
/// # Safety
/// The program's own structures, during its call.
pub unsafe fn barrier(barriers: Barriers<'_>) -> Barrier {
    let mut kept = Barrier {
        has_own_stages: matches!(barriers, Barriers::V2(_)),
        flags: match barriers {
            Barriers::V1(barriers) => barriers.flags.as_raw(),
            Barriers::V2(infos) => infos
                .first()
                .map_or(0, |info| info.dependency_flags.as_raw()),
        },
        ..Barrier::default()
    };
    // SAFETY: as the caller promises.
    unsafe {
        kept.is_more = barriers.concern_more();
        barriers.for_each(|dependency, range| {
            let dependency = Dependency {
                after_stages: dependency.after_stages,
                after_access: dependency.after_access,
                before_stages: dependency.before_stages,
                before_access: dependency.before_access,
            };
            match range {
                Some(range) => kept.buffers.push(BufferBarrier {
                    dependency,
                    buffer: range.buffer,
                    offset: range.offset,
                    bytes: range.bytes,
                }),
                None => kept.memory.push(dependency),
            }
        });
    }
    kept
}

/// Returns the barrier that a wait for events becomes: without flags, and without the host among the stages that it
/// waits for.
///
/// # Safety
/// The program's own structures, during its call.
pub unsafe fn wait(barriers: Barriers<'_>) -> Barrier {
    let barriers = match barriers {
        // The host may have set an event, and the host is no stage of a barrier in a queue.
        Barriers::V1(barriers) => Barriers::V1(BarriersV1 {
            source_stages: match barriers.source_stages & !vk::PipelineStageFlags::HOST {
                none if none.is_empty() => vk::PipelineStageFlags::TOP_OF_PIPE,
                stages => stages,
            },
            ..barriers
        }),
        two => two,
    };
    // SAFETY: as the caller promises.
    let barrier = unsafe { barrier(barriers) };
    Barrier {
        flags: 0,
        ..barrier
    }
}
