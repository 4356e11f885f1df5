//! Reads barriers (which order commands) and waits for events. Both versions of Vulkan's functions go in; stages and
//! accesses as synchronization2, the newer version, has them come out: what a barrier waits for comes "after" it in
//! names here (it runs after that), and what waits for the barrier "before".

use ash::vk;

use crate::arguments::slice;

/// The stages and accesses before a barrier and after it, as in synchronization2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dependency {
    /// The stages and accesses that the barrier waits for.
    pub after_stages: u64,
    pub after_access: u64,
    /// The stages and accesses that wait for the barrier.
    pub before_stages: u64,
    pub before_access: u64,
}

/// A range of a buffer that a barrier is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferRange {
    pub buffer: vk::Buffer,
    pub offset: u64,
    /// The size; it may be `VK_WHOLE_SIZE`.
    pub bytes: u64,
}

/// The barriers of a command, as the program passes them.
#[derive(Clone, Copy)]
pub enum Barriers<'a> {
    /// The barriers of a Vulkan 1.0 function.
    V1(BarriersV1<'a>),
    /// The barriers of a function of synchronization2.
    V2(&'a [vk::DependencyInfo<'a>]),
}

/// The barriers of a Vulkan 1.0 command, which all have the same stages.
#[derive(Clone, Copy)]
pub struct BarriersV1<'a> {
    /// The stages that the barriers wait for.
    pub source_stages: vk::PipelineStageFlags,
    /// The stages that wait for the barriers.
    pub destination_stages: vk::PipelineStageFlags,
    pub flags: vk::DependencyFlags,
    pub memory: &'a [vk::MemoryBarrier<'a>],
    pub buffers: &'a [vk::BufferMemoryBarrier<'a>],
    pub images: &'a [vk::ImageMemoryBarrier<'a>],
}

impl Barriers<'_> {
    /// Returns all stages that the barriers wait for, and all that wait for them.
    ///
    /// # Safety
    /// The program's own structures, during its call.
    pub unsafe fn stages(&self) -> (u64, u64) {
        if let Barriers::V1(barriers) = self {
            return (
                barriers.source_stages.as_raw().into(),
                barriers.destination_stages.as_raw().into(),
            );
        }
        let mut stages = (0, 0);
        // SAFETY: as the caller promises.
        unsafe {
            self.for_each(|dependency, _| {
                stages.0 |= dependency.after_stages;
                stages.1 |= dependency.before_stages;
            });
        }
        stages
    }

    /// Visits the dependencies, those of buffers with their ranges. A dependency of images has stages alone.
    ///
    /// # Safety
    /// The program's own structures, during its call.
    pub unsafe fn for_each(&self, mut visit: impl FnMut(Dependency, Option<BufferRange>)) {
        match self {
            Barriers::V1(barriers) => {
                let dependency = |after: vk::AccessFlags, before: vk::AccessFlags| Dependency {
                    after_stages: barriers.source_stages.as_raw().into(),
                    after_access: after.as_raw().into(),
                    before_stages: barriers.destination_stages.as_raw().into(),
                    before_access: before.as_raw().into(),
                };
                for m in barriers.memory {
                    visit(dependency(m.src_access_mask, m.dst_access_mask), None);
                }
                if barriers.memory.is_empty() {
                    // Without a memory barrier, the stages still depend on each other.
                    visit(
                        dependency(vk::AccessFlags::empty(), vk::AccessFlags::empty()),
                        None,
                    );
                }
                for b in barriers.buffers {
                    let range = BufferRange {
                        buffer: b.buffer,
                        offset: b.offset,
                        bytes: b.size,
                    };
                    visit(
                        dependency(b.src_access_mask, b.dst_access_mask),
                        Some(range),
                    );
                }
            }
            // SAFETY: as the caller promises.
            Barriers::V2(infos) => unsafe {
                infos.iter().for_each(|info| for_each2(info, &mut visit));
            },
        }
    }

    /// Returns whether the barriers also concern images, or move a buffer between queue families.
    ///
    /// # Safety
    /// The program's own structures, during its call.
    pub unsafe fn concern_more(&self) -> bool {
        match self {
            Barriers::V1(barriers) => {
                let moves = |b: &vk::BufferMemoryBarrier<'_>| {
                    b.src_queue_family_index != b.dst_queue_family_index
                };
                !barriers.images.is_empty() || barriers.buffers.iter().any(moves)
            }
            Barriers::V2(infos) => infos.iter().any(|info| {
                // SAFETY: as the caller promises.
                let buffers = unsafe {
                    slice(
                        info.p_buffer_memory_barriers,
                        info.buffer_memory_barrier_count,
                    )
                };
                let moves = |b: &vk::BufferMemoryBarrier2<'_>| {
                    b.src_queue_family_index != b.dst_queue_family_index
                };
                info.image_memory_barrier_count > 0 || buffers.iter().any(moves)
            }),
        }
    }
}

/// Visits the dependencies of a barrier of synchronization2, those of buffers with their ranges.
///
/// # Safety
/// `info` is valid.
unsafe fn for_each2(
    info: &vk::DependencyInfo<'_>,
    visit: &mut impl FnMut(Dependency, Option<BufferRange>),
) {
    // SAFETY: as the caller promises.
    let (memory, buffers, images) = unsafe {
        (
            slice(info.p_memory_barriers, info.memory_barrier_count),
            slice(
                info.p_buffer_memory_barriers,
                info.buffer_memory_barrier_count,
            ),
            slice(
                info.p_image_memory_barriers,
                info.image_memory_barrier_count,
            ),
        )
    };
    for m in memory {
        let dependency = Dependency {
            after_stages: m.src_stage_mask.as_raw(),
            after_access: m.src_access_mask.as_raw(),
            before_stages: m.dst_stage_mask.as_raw(),
            before_access: m.dst_access_mask.as_raw(),
        };
        visit(dependency, None);
    }
    for i in images {
        let dependency = Dependency {
            after_stages: i.src_stage_mask.as_raw(),
            before_stages: i.dst_stage_mask.as_raw(),
            ..Dependency::default()
        };
        visit(dependency, None);
    }
    for b in buffers {
        let dependency = Dependency {
            after_stages: b.src_stage_mask.as_raw(),
            after_access: b.src_access_mask.as_raw(),
            before_stages: b.dst_stage_mask.as_raw(),
            before_access: b.dst_access_mask.as_raw(),
        };
        let range = BufferRange {
            buffer: b.buffer,
            offset: b.offset,
            bytes: b.size,
        };
        visit(dependency, Some(range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_a_barrier_are_told_alike() {
        let buffers = [vk::BufferMemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::TRANSFER_READ)
            .offset(16)
            .size(4)];
        let memory = [vk::MemoryBarrier::default()];
        let (after, before) = (
            vk::PipelineStageFlags::COMPUTE_SHADER,
            vk::PipelineStageFlags::TRANSFER,
        );
        let one = Barriers::V1(BarriersV1 {
            source_stages: after,
            destination_stages: before,
            flags: vk::DependencyFlags::empty(),
            memory: &memory,
            buffers: &buffers,
            images: &[],
        });
        let stages = |stages: vk::PipelineStageFlags| {
            vk::PipelineStageFlags2::from_raw(stages.as_raw().into())
        };
        let buffers = [vk::BufferMemoryBarrier2::default()
            .src_stage_mask(stages(after))
            .src_access_mask(vk::AccessFlags2::SHADER_WRITE)
            .dst_stage_mask(stages(before))
            .dst_access_mask(vk::AccessFlags2::TRANSFER_READ)
            .offset(16)
            .size(4)];
        let memory = [vk::MemoryBarrier2::default()
            .src_stage_mask(stages(after))
            .dst_stage_mask(stages(before))];
        let info = vk::DependencyInfo::default()
            .memory_barriers(&memory)
            .buffer_memory_barriers(&buffers);
        let infos = [info];
        let two = Barriers::V2(&infos);
        let told = |barriers: Barriers<'_>| {
            let mut told = Vec::new();
            // SAFETY: the structures are valid.
            unsafe {
                barriers.for_each(|dependency, range| told.push((dependency, range)));
                (told, barriers.stages(), barriers.concern_more())
            }
        };
        assert_eq!(told(one), told(two));
        assert_eq!(told(two).0.len(), 2);
    }
}
