//! Runs work of the layer on the program's queues: copies memory of the GPU to where the host can read it
//! ([`Staging::read`]), runs command buffers to their end ([`Staging::run`]), and measures the time of submissions
//! ([`Staging::around`]). Nobody else uses the queues meanwhile.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ash::vk::{self, Handle};
use gapscope_capture::model::EndReason;
use gapscope_vulkan_layer::layer::Queue;

use super::submit_call::TimingPair;
use crate::api::device::Device;

/// The most bytes that are copied at a time; larger reads take several copies.
const MAX_STAGING_BYTES: u64 = 64 << 20;

/// The reason why work of the layer on the device failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{what}: {result:?}")]
    Vulkan {
        what: &'static str,
        result: vk::Result,
    },
    #[error("it is not finished after {0} s")]
    NotFinished(u64),
    #[error("the device has no memory that the host can read")]
    NoHostMemory,
    #[error("a command buffer that is not known")]
    UnknownCommandBuffer,
    #[error("nothing can be copied")]
    NoStaging,
}

impl From<Failure> for EndReason {
    fn from(failure: Failure) -> EndReason {
        EndReason::Failed(failure.to_string())
    }
}

#[derive(Debug, Clone, Copy)]
pub struct BufferPiece {
    pub buffer: vk::Buffer,
    pub offset: u64,
    pub bytes: u64,
}

/// The layer's objects on a device, for one window (the part of the program's work that is captured).
pub struct Staging {
    device: &'static Device,
    /// Signalled when the layer's last submission is finished.
    fence: vk::Fence,
    /// The objects by queue family, made at the family's first use.
    families: HashMap<u32, StagingFamily>,
    /// The buffer that is copied to; absent before the first copy.
    host: Option<HostBuffer>,
}

/// The objects for the queues of a family.
struct StagingFamily {
    pool: vk::CommandPool,
    copy: vk::CommandBuffer,
    /// Two timestamps and the command buffers that write them; `None` where the family has none.
    timing: Option<(vk::QueryPool, TimingPair)>,
}

/// A mapped buffer.
#[derive(Clone, Copy)]
struct HostBuffer {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    bytes: u64,
    mapped: *const u8,
}

// SAFETY: the mapping is ours alone, and a window is used by one thread at a time.
unsafe impl Send for Staging {}
// SAFETY: as above; nothing is read through a shared reference.
unsafe impl Sync for Staging {}

/// Returns a function that makes a failure of `what` from Vulkan's result.
pub fn failed(what: &'static str) -> impl Fn(vk::Result) -> Failure {
    move |result| Failure::Vulkan { what, result }
}

impl Staging {
    pub fn new(device: &'static Device) -> Result<Staging, Failure> {
        let info = vk::FenceCreateInfo::default();
        // SAFETY: the device is live.
        let fence = unsafe { device.next.create_fence(&info, None) };
        Ok(Staging {
            device,
            fence: fence.map_err(failed("a fence cannot be made"))?,
            families: HashMap::new(),
            host: None,
        })
    }

    /// Waits until a queue has done all that was submitted to it.
    pub fn wait(&mut self, queue: vk::Queue, at_most: Duration) -> Result<(), Failure> {
        self.submit(queue, &[])?;
        self.await_fence(at_most)
    }

    /// Runs command buffers on a queue, to their end.
    ///
    /// # Safety
    /// They are executable there.
    pub unsafe fn run(
        &mut self,
        queue: vk::Queue,
        buffers: &[vk::CommandBuffer],
        at_most: Duration,
    ) -> Result<(), Failure> {
        let info = vk::SubmitInfo::default().command_buffers(buffers);
        self.submit(queue, &[info])?;
        self.await_fence(at_most)
    }

    /// Returns a new command buffer for the queues of a family.
    pub fn command_buffer(&mut self, family: u32) -> Result<vk::CommandBuffer, Failure> {
        let pool = self.family(family)?.pool;
        Ok(self.allocate(pool, 1)?[0])
    }

    /// Makes command buffers that the layers below accept.
    fn allocate(
        &self,
        pool: vk::CommandPool,
        count: u32,
    ) -> Result<Vec<vk::CommandBuffer>, Failure> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .command_buffer_count(count);
        // SAFETY: the pool is ours.
        let buffers = unsafe { self.device.next.allocate_command_buffers(&info) };
        let buffers = buffers.map_err(failed("command buffers cannot be made"))?;
        for buffer in &buffers {
            if let Some(set) = self.device.set_loader_data {
                // SAFETY: the loader's function for handles that a layer has made.
                let set = unsafe { set(self.device.handle, buffer.as_raw() as *mut _) };
                set.result()
                    .map_err(failed("command buffers cannot be made"))?;
            }
        }
        Ok(buffers)
    }

    fn submit(&self, queue: vk::Queue, infos: &[vk::SubmitInfo<'_>]) -> Result<(), Failure> {
        // SAFETY: the window has the queue to itself; the fence is unsignalled and not in use.
        let result = unsafe { self.device.next.queue_submit(queue, infos, self.fence) };
        result.map_err(failed("work of the capture cannot be submitted"))
    }

    /// Waits for the layer's last submission, and makes the fence usable again.
    fn await_fence(&self, at_most: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        let next = &self.device.next;
        loop {
            // SAFETY: the fence is ours and has been submitted.
            match unsafe { next.wait_for_fences(&[self.fence], true, 1_000_000_000) } {
                Ok(()) => break,
                Err(vk::Result::TIMEOUT) if begun.elapsed() < at_most => {}
                Err(vk::Result::TIMEOUT) => {
                    return Err(Failure::NotFinished(at_most.as_secs()));
                }
                Err(error) => return Err(failed("the device does not answer")(error)),
            }
        }
        // SAFETY: the fence is signalled and not in use.
        let reset = unsafe { next.reset_fences(&[self.fence]) };
        reset.map_err(failed("a fence cannot be used again"))
    }

    /// Copies pieces, each of at most [`MAX_STAGING_BYTES`], to the host and calls `each` with the index and the
    /// bytes of each piece, in their order.
    pub fn read(
        &mut self,
        queue: &Queue,
        pieces: &[BufferPiece],
        mut each: impl FnMut(usize, &[u8]) -> Result<(), EndReason>,
    ) -> Result<(), EndReason> {
        let mut done = 0;
        while done < pieces.len() {
            let mut bytes = 0;
            let mut count = 0;
            for piece in &pieces[done..] {
                if count > 0 && bytes + piece.bytes > MAX_STAGING_BYTES {
                    break;
                }
                bytes += piece.bytes;
                count += 1;
            }
            let batch = &pieces[done..done + count];
            let host = self.host(bytes)?;
            self.copy(queue, batch, host)?;
            let mut at = 0;
            for (index, piece) in batch.iter().enumerate() {
                // SAFETY: the mapping is as large as the batch, and the device is done with it.
                let content = unsafe {
                    std::slice::from_raw_parts(host.mapped.add(at), piece.bytes as usize)
                };
                each(done + index, content)?;
                at += piece.bytes as usize;
            }
            done += count;
        }
        Ok(())
    }

    /// Copies pieces one behind the other into the host's buffer, after all earlier work of the queue, and waits.
    fn copy(
        &mut self,
        queue: &Queue,
        pieces: &[BufferPiece],
        host: HostBuffer,
    ) -> Result<(), Failure> {
        let buffer = self.family(queue.family)?.copy;
        let next = &self.device.next;
        let begin = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        let visible = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::TRANSFER_READ);
        let to_host = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ);
        let (all, transfer, by_host) = (
            vk::PipelineStageFlags::ALL_COMMANDS,
            vk::PipelineStageFlags::TRANSFER,
            vk::PipelineStageFlags::HOST,
        );
        let none = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is ours and not in use; the program's buffers are live, since what uses them is being
        // submitted or has just run; the ranges are inside of them.
        unsafe {
            next.begin_command_buffer(buffer, &begin)
                .map_err(failed("copying"))?;
            next.cmd_pipeline_barrier(buffer, all, transfer, none, &[visible], &[], &[]);
            let mut at = 0;
            let mut rest = pieces;
            while let Some(first) = rest.first() {
                let same = rest
                    .iter()
                    .take_while(|piece| piece.buffer == first.buffer)
                    .count();
                let mut regions: Vec<vk::BufferCopy> = Vec::new();
                for piece in &rest[..same] {
                    match regions.last_mut() {
                        Some(last) if last.src_offset + last.size == piece.offset => {
                            last.size += piece.bytes;
                        }
                        _ => regions.push(vk::BufferCopy {
                            src_offset: piece.offset,
                            dst_offset: at,
                            size: piece.bytes,
                        }),
                    }
                    at += piece.bytes;
                }
                next.cmd_copy_buffer(buffer, first.buffer, host.buffer, &regions);
                rest = &rest[same..];
            }
            next.cmd_pipeline_barrier(buffer, transfer, by_host, none, &[to_host], &[], &[]);
            next.end_command_buffer(buffer).map_err(failed("copying"))?;
        }
        let buffers = [buffer];
        let info = vk::SubmitInfo::default().command_buffers(&buffers);
        self.submit(queue.handle, &[info])?;
        self.await_fence(Duration::from_secs(600))
    }

    /// Returns a mapped buffer that is large enough.
    fn host(&mut self, bytes: u64) -> Result<HostBuffer, Failure> {
        if let Some(host) = self.host.filter(|host| host.bytes >= bytes) {
            return Ok(host);
        }
        if let Some(old) = self.host.take() {
            // SAFETY: it is ours and not in use.
            unsafe { self.destroy_host(old) };
        }
        let bytes = bytes.next_power_of_two().clamp(1 << 20, MAX_STAGING_BYTES);
        let next = &self.device.next;
        let info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: the device is live, and what is made here is ours; it is destroyed where a later step fails.
        let host = unsafe {
            let buffer = next
                .create_buffer(&info, None)
                .map_err(failed("no buffer to copy to"))?;
            let made = self.back(buffer, bytes);
            if made.is_err() {
                next.destroy_buffer(buffer, None);
            }
            made?
        };
        self.host = Some(host);
        Ok(host)
    }

    /// Gives a buffer memory, and maps it.
    ///
    /// # Safety
    /// The buffer is ours and has no memory.
    unsafe fn back(&self, buffer: vk::Buffer, bytes: u64) -> Result<HostBuffer, Failure> {
        use vk::MemoryPropertyFlags as Flags;
        let next = &self.device.next;
        // SAFETY: as the caller promises.
        unsafe {
            let needs = next.get_buffer_memory_requirements(buffer);
            let coherent = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
            let kinds = self.device.memory.memory_types_as_slice();
            let find = |wanted: Flags| {
                (kinds.iter().enumerate()).position(|(index, kind)| {
                    needs.memory_type_bits >> index & 1 == 1 && kind.property_flags.contains(wanted)
                })
            };
            let kind = find(coherent | Flags::HOST_CACHED).or_else(|| find(coherent));
            let kind = kind.ok_or(Failure::NoHostMemory)?;
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(kind as u32);
            let memory = next.allocate_memory(&info, None);
            let memory = memory.map_err(failed("no memory to copy to"))?;
            let mapped = next.bind_buffer_memory(buffer, memory, 0).and_then(|()| {
                next.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
            });
            match mapped {
                Ok(mapped) => {
                    let mapped = mapped.cast_const().cast();
                    Ok(HostBuffer {
                        buffer,
                        memory,
                        bytes,
                        mapped,
                    })
                }
                Err(error) => {
                    next.free_memory(memory, None);
                    Err(failed("no memory to copy to")(error))
                }
            }
        }
    }

    /// # Safety
    /// The buffer is the layer's and not in use.
    unsafe fn destroy_host(&self, host: HostBuffer) {
        // SAFETY: as the caller promises.
        unsafe {
            self.device.next.destroy_buffer(host.buffer, None);
            self.device.next.free_memory(host.memory, None);
        }
    }

    fn family(&mut self, index: u32) -> Result<&StagingFamily, Failure> {
        if !self.families.contains_key(&index) {
            let family = self.new_family(index)?;
            self.families.insert(index, family);
        }
        Ok(&self.families[&index])
    }

    fn new_family(&self, index: u32) -> Result<StagingFamily, Failure> {
        let next = &self.device.next;
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(index);
        // SAFETY: the device is live and has the family, of which the program has a queue.
        let pool = unsafe { next.create_command_pool(&info, None) };
        let pool = pool.map_err(failed("a command pool cannot be made"))?;
        let buffers = self.allocate(pool, 3)?;
        let around = TimingPair {
            before: buffers[1],
            after: buffers[2],
        };
        Ok(StagingFamily {
            pool,
            copy: buffers[0],
            timing: self.timing(index, around),
        })
    }

    /// Records command buffers that write timestamps before and after other work; `None` where the family has none.
    fn timing(&self, index: u32, around: TimingPair) -> Option<(vk::QueryPool, TimingPair)> {
        let family = self.device.families.get(index as usize)?;
        let resets = vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS;
        if family.timestamp_valid_bits == 0 || !family.queue_flags.intersects(resets) {
            return None;
        }
        let next = &self.device.next;
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(2);
        let begin = vk::CommandBufferBeginInfo::default();
        let (top, bottom) = (
            vk::PipelineStageFlags::TOP_OF_PIPE,
            vk::PipelineStageFlags::BOTTOM_OF_PIPE,
        );
        // SAFETY: the device is live, and the command buffers are ours.
        unsafe {
            let pool = next.create_query_pool(&info, None).ok()?;
            let recorded = (|| {
                next.begin_command_buffer(around.before, &begin)?;
                next.cmd_reset_query_pool(around.before, pool, 0, 2);
                next.cmd_write_timestamp(around.before, top, pool, 0);
                next.end_command_buffer(around.before)?;
                next.begin_command_buffer(around.after, &begin)?;
                next.cmd_write_timestamp(around.after, bottom, pool, 1);
                next.end_command_buffer(around.after)
            })();
            if recorded.is_err() {
                next.destroy_query_pool(pool, None);
                return None;
            }
            Some((pool, around))
        }
    }

    /// Returns command buffers that time what runs between them on a queue of this family.
    pub fn around(&mut self, family: u32) -> Option<TimingPair> {
        let family = self.family(family).ok()?;
        family.timing.map(|(_, around)| around)
    }

    /// Returns the time for which the device worked between the command buffers of [`Self::around`], which have
    /// run.
    pub fn elapsed_ns(&mut self, family: u32) -> Option<u64> {
        let bits = self
            .device
            .families
            .get(family as usize)?
            .timestamp_valid_bits;
        let (pool, _) = self.family(family).ok()?.timing?;
        let mut ticks = [0_u64; 2];
        // SAFETY: both queries have been written.
        unsafe {
            let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
            self.device
                .next
                .get_query_pool_results(pool, 0, &mut ticks, flags)
                .ok()?;
        }
        let elapsed = ticks[1].wrapping_sub(ticks[0]);
        let elapsed = if bits < 64 {
            elapsed & ((1 << bits) - 1)
        } else {
            elapsed
        };
        Some((elapsed as f64 * f64::from(self.device.timestamp_period_ns)) as u64)
    }

    /// Destroys the objects.
    ///
    /// # Safety
    /// None of them is in use any more.
    pub unsafe fn destroy(&mut self) {
        if let Some(host) = self.host.take() {
            // SAFETY: as the caller promises.
            unsafe { self.destroy_host(host) };
        }
        let next = &self.device.next;
        // SAFETY: as the caller promises.
        unsafe {
            for (_, family) in self.families.drain() {
                if let Some((pool, _)) = family.timing {
                    next.destroy_query_pool(pool, None);
                }
                next.destroy_command_pool(family.pool, None);
            }
            next.destroy_fence(self.fence, None);
        }
    }
}
