//! Makes mapped buffers of device memory, into which command buffers copy the results of queries, so that the host
//! can read them.

use ash::vk;

/// The bytes that a software GPU adds to an allocation: its memory is a file without a name, which is larger than
/// asked for.
const SOFTWARE_DRIVERS_ADD: u64 = 64 << 10;

/// A memory type that the host can read.
#[derive(Clone, Copy)]
pub struct ResultMemory {
    /// The index of the memory type.
    memory_type: u32,
    /// Whether host and device see each other's writes without a flush.
    coherent: bool,
}

impl ResultMemory {
    /// Chooses a host-visible memory type, cached where there is one.
    pub fn choose(memory: &vk::PhysicalDeviceMemoryProperties) -> Option<ResultMemory> {
        use vk::MemoryPropertyFlags as Flags;
        let types = &memory.memory_types[..memory.memory_type_count as usize];
        let wishes = [
            Flags::HOST_VISIBLE | Flags::HOST_COHERENT | Flags::HOST_CACHED,
            Flags::HOST_VISIBLE | Flags::HOST_COHERENT,
            Flags::HOST_VISIBLE,
        ];
        wishes.into_iter().find_map(|wish| {
            let index = types.iter().position(|t| {
                t.property_flags.contains(wish)
                    && !t
                        .property_flags
                        .intersects(Flags::PROTECTED | Flags::DEVICE_COHERENT_AMD)
            })?;
            Some(ResultMemory {
                memory_type: index as u32,
                coherent: types[index].property_flags.contains(Flags::HOST_COHERENT),
            })
        })
    }
}

/// A buffer with its mapped memory.
#[derive(Clone, Copy)]
pub struct ResultBuffer {
    pub buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    coherent: bool,
}

impl ResultBuffer {
    /// Makes a buffer of `bytes` bytes, and returns it with the address of its pairs (a query's value, availability).
    pub fn create(
        next: &ash::Device,
        result_memory: ResultMemory,
        bytes: u64,
    ) -> Option<(ResultBuffer, *mut [u64; 2])> {
        let mut made = ResultBuffer {
            buffer: vk::Buffer::null(),
            memory: vk::DeviceMemory::null(),
            coherent: result_memory.coherent,
        };
        // SAFETY: what has been made is destroyed once.
        let address = unsafe { made.fill(next, result_memory.memory_type, bytes) };
        if address.is_none() {
            // SAFETY: as above; null handles are passed over.
            unsafe { made.destroy(next) };
        }
        address.map(|address| (made, address))
    }

    /// Makes the buffer and its mapped memory, and returns the memory's address; `None` where a step fails, or where
    /// the memory would exceed the process's limit on the size of files.
    ///
    /// # Safety
    /// `self` holds null handles; the caller destroys what is left in them.
    unsafe fn fill(
        &mut self,
        next: &ash::Device,
        memory_type: u32,
        bytes: u64,
    ) -> Option<*mut [u64; 2]> {
        let info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: each structure is valid for its call, and each object is made before it is used.
        unsafe {
            self.buffer = next.create_buffer(&info, None).ok()?;
            let needs = next.get_buffer_memory_requirements(self.buffer);
            if needs.memory_type_bits & 1 << memory_type == 0
                || gapscope_spool::exceeds_file_limit(needs.size + SOFTWARE_DRIVERS_ADD)
            {
                return None;
            }
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(memory_type);
            self.memory = next.allocate_memory(&info, None).ok()?;
            next.bind_buffer_memory(self.buffer, self.memory, 0).ok()?;
            let flags = vk::MemoryMapFlags::empty();
            let address = next.map_memory(self.memory, 0, vk::WHOLE_SIZE, flags);
            let address = address.ok().filter(|address| !address.is_null())?;
            Some(address.cast())
        }
    }

    /// Destroys the buffer and its memory.
    ///
    /// # Safety
    /// The objects are ours, and idle.
    pub unsafe fn destroy(self, next: &ash::Device) {
        // SAFETY: as the caller promises; destroying a null handle does nothing.
        unsafe {
            next.destroy_buffer(self.buffer, None);
            next.free_memory(self.memory, None);
        }
    }

    /// Makes writes of the host visible to the device, where the memory is not coherent.
    pub fn flush(&self, next: &ash::Device, offset: u64, bytes: u64) {
        if !self.coherent {
            // SAFETY: the range lies in a mapping of ours and is aligned to 256 bytes, the greatest atom size that
            // the specification allows.
            let _ = unsafe { next.flush_mapped_memory_ranges(&[self.range(offset, bytes)]) };
        }
    }

    /// Makes writes of the device visible to the host, where the memory is not coherent.
    pub fn invalidate(&self, next: &ash::Device, offset: u64, bytes: u64) {
        if !self.coherent {
            // SAFETY: as in `flush`.
            let _ = unsafe { next.invalidate_mapped_memory_ranges(&[self.range(offset, bytes)]) };
        }
    }

    /// Returns a range of the mapping, by its offset and length in bytes.
    fn range(&self, offset: u64, bytes: u64) -> vk::MappedMemoryRange<'static> {
        vk::MappedMemoryRange::default()
            .memory(self.memory)
            .offset(offset)
            .size(bytes)
    }
}
