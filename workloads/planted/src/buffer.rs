//! Makes host-visible buffers, which are mapped for their whole life.

use anyhow::Result;
use ash::vk;

use crate::gpu::{Gpu, Object};

/// A buffer that is mapped for the host. The device owns it with its memory.
pub struct Buffer {
    pub handle: vk::Buffer,
    pub bytes: u64,
    memory: vk::DeviceMemory,
    mapped: *mut u8,
    /// Whether writes reach the device without a flush.
    coherent: bool,
}

// SAFETY: the mapping belongs to the buffer alone and to no thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Creates a zeroed buffer for every use of any mode.
    pub fn new(gpu: &Gpu, bytes: u64) -> Result<Self> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        let handle = unsafe { gpu.device.create_buffer(&info, None)? };
        gpu.own(Object::Buffer(handle));
        let needs = unsafe { gpu.device.get_buffer_memory_requirements(handle) };
        use vk::MemoryPropertyFlags as Flags;
        let visible = Flags::HOST_VISIBLE;
        let wanted = [
            visible | Flags::HOST_COHERENT | Flags::HOST_CACHED,
            visible | Flags::HOST_COHERENT,
            visible,
        ];
        let (memory, flags) = gpu.allocate(needs.size, needs.memory_type_bits, &wanted)?;
        gpu.own(Object::Memory(memory));
        let mapped = unsafe {
            gpu.device.bind_buffer_memory(handle, memory, 0)?;
            gpu.device
                .map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?
                .cast()
        };
        let coherent = flags.contains(Flags::HOST_COHERENT);
        let buffer = Self {
            handle,
            bytes,
            memory,
            mapped,
            coherent,
        };
        buffer.write(gpu, &vec![0; bytes as usize])?;
        Ok(buffer)
    }

    /// Writes to the start of the mapping.
    pub fn write(&self, gpu: &Gpu, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() as u64 <= self.bytes);
        // SAFETY: the mapping covers the buffer, and no submitted work uses it while a mode writes.
        unsafe {
            self.mapped
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        if !self.coherent {
            unsafe { gpu.device.flush_mapped_memory_ranges(&[self.range()])? };
        }
        Ok(())
    }

    /// Lets another thread write to the start of the mapping, and waits for it.
    pub fn write_by_thread(&self, gpu: &Gpu, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() as u64 <= self.bytes);
        let mapped = self.mapped as usize;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // SAFETY: as in `write`; this thread waits for that one.
                unsafe {
                    (mapped as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
                };
            });
        });
        if !self.coherent {
            unsafe { gpu.device.flush_mapped_memory_ranges(&[self.range()])? };
        }
        Ok(())
    }

    /// Lets the system read from a file into the start of the mapping.
    pub fn read_from(&self, gpu: &Gpu, file: &mut std::fs::File, bytes: usize) -> Result<()> {
        assert!(bytes as u64 <= self.bytes);
        // SAFETY: as in `write`.
        let target = unsafe { std::slice::from_raw_parts_mut(self.mapped, bytes) };
        std::io::Read::read_exact(file, target)?;
        if !self.coherent {
            unsafe { gpu.device.flush_mapped_memory_ranges(&[self.range()])? };
        }
        Ok(())
    }

    /// Returns the contents as the device has left them; its work must have ended.
    pub fn read(&self, gpu: &Gpu) -> Result<&[u8]> {
        if !self.coherent {
            unsafe {
                gpu.device
                    .invalidate_mapped_memory_ranges(&[self.range()])?
            };
        }
        // SAFETY: as in `write`.
        Ok(unsafe { std::slice::from_raw_parts(self.mapped, self.bytes as usize) })
    }

    fn range(&self) -> vk::MappedMemoryRange<'static> {
        vk::MappedMemoryRange::default()
            .memory(self.memory)
            .size(vk::WHOLE_SIZE)
    }
}
