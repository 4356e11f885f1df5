//! Times a caller's kernels and copies on a device: SPIR-V and sizes go in, nanoseconds come out. The crate
//! `gapscope-device-peaks` measures Vulkan devices with it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Instant;

use ash::vk;

use crate::adapter::{DeviceChoice, Instance};
use crate::clock::DeviceClock;
use crate::error::Error;
use crate::gpu::Gpu;
use crate::memory::{allocate, buffer, region_type};
use crate::pipelines::{compute_pipeline, set_layout};
use crate::recording::CommandRecording;

/// Number of bindings of every kernel: storage buffers 0 and 1.
const BINDINGS: u32 = 2;

/// Features that kernels with cooperative matrices need, beside the feature of their type.
const MATRICES: [&str; 2] = ["cooperativeMatrix", "vulkanMemoryModel"];

/// An open device with two storage buffers, to which its kernels are bound.
pub struct Bench {
    gpu: Rc<Gpu>,
    clock: DeviceClock,
    /// The features that were enabled.
    features: BTreeSet<&'static str>,
    /// Whether the device is the processor.
    software: bool,
    /// Size of the greatest heap of device memory.
    local_bytes: u64,
    /// Size of each buffer, a power of two.
    bytes: u64,
    buffers: Vec<(vk::Buffer, vk::DeviceMemory)>,
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipelines: Vec<vk::Pipeline>,
    pool: vk::DescriptorPool,
    set: vk::DescriptorSet,
}

/// One of the two buffers, by its binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer(u32);

/// A kernel of a bench, by its index.
#[derive(Debug, Clone, Copy)]
pub struct Kernel(usize);

/// The types of inputs and sums of cooperative matrices, which a subgroup multiplies together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixType {
    /// Floats of 16 bits, added up in 32 bits.
    F16,
    /// Signed integers of 8 bits, added up in 32 bits.
    Int8,
}

/// Work that can be timed.
#[derive(Debug, Clone, Copy)]
pub enum BenchWork {
    /// A dispatch of a kernel with a number of workgroups by axis.
    Dispatch(Kernel, [u32; 3]),
    /// A copy of one buffer as a whole to another by `vkCmdCopyBuffer`.
    Copy(Buffer, Buffer),
}

impl Bench {
    /// Opens a device with two buffers of at most `max_bytes`: less where the device binds less, or where they would take more than
    /// a quarter of its memory. Without a `choice` it is the device of the name `captured`, else the first.
    ///
    /// # Errors
    /// The device cannot be used, has no timestamps or no memory.
    pub fn open(
        choice: Option<&DeviceChoice>,
        captured: &str,
        max_bytes: u64,
    ) -> Result<Bench, Error> {
        let instance = Instance::for_thread()?;
        let adapter = instance.adapter(choice, captured)?;
        let mut features = BTreeSet::from(["synchronization2"]);
        if MATRICES.iter().all(|name| adapter.features.has(name)) {
            let types = ["shaderFloat16", "shaderInt8"];
            features.extend(MATRICES);
            features.extend(types.iter().filter(|name| adapter.features.has(name)));
        }
        let gpu = Gpu::open(&adapter, None, &features, &BTreeSet::new())?;
        if gpu.timestamp_bits == 0 {
            return Err(Error::NoTimestamps(gpu.properties.name.clone()));
        }
        // SAFETY: the device is of this instance.
        let properties = unsafe {
            instance
                .raw
                .get_physical_device_properties(adapter.physical)
        };
        let heaps = &gpu.memory.memory_heaps[..gpu.memory.memory_heap_count as usize];
        let local = heaps
            .iter()
            .filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
        let local_bytes = local.map(|heap| heap.size).max().unwrap_or(0);
        let mut bench = Bench {
            clock: DeviceClock::new(&gpu),
            software: properties.device_type == vk::PhysicalDeviceType::CPU,
            local_bytes,
            bytes: 0,
            features,
            gpu,
            buffers: Vec::new(),
            set_layout: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pipelines: Vec::new(),
            pool: vk::DescriptorPool::null(),
            set: vk::DescriptorSet::null(),
        };
        bench.make(max_bytes)?;
        Ok(bench)
    }

    /// Makes the buffers, fills their words with 1, and makes what binds them to kernels.
    fn make(&mut self, max_bytes: u64) -> Result<(), Error> {
        let limits = &self.gpu.properties.limits;
        let bytes = (u64::from(limits.max_storage_buffer_range))
            .min(self.gpu.properties.max_allocation_bytes)
            .min(self.local_bytes / 8)
            .min(max_bytes);
        // The size is a power of two, so that any shape of a dispatch divides it.
        let bytes = 1_u64 << bytes.max(1).ilog2();
        self.bytes = bytes;
        for _ in 0..BINDINGS {
            self.add_buffer(bytes)?;
        }
        let kinds: BTreeMap<u32, _> = (0..BINDINGS)
            .map(|binding| (binding, (vk::DescriptorType::STORAGE_BUFFER, 1)))
            .collect();
        self.set_layout = set_layout(&self.gpu, &kinds)?;
        let layouts = [self.set_layout];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(BINDINGS)];
        let pool = vk::DescriptorPoolCreateInfo::default()
            .max_sets(1)
            .pool_sizes(&sizes);
        let raw = &self.gpu.raw;
        // SAFETY: the structures are complete, and what they name is of this device.
        unsafe {
            self.layout = (raw.create_pipeline_layout(&info, None))
                .map_err(Error::from_call("make a pipeline layout"))?;
            self.pool = (raw.create_descriptor_pool(&pool, None))
                .map_err(Error::from_call("make a descriptor pool"))?;
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pool)
                .set_layouts(&layouts);
            let sets = raw.allocate_descriptor_sets(&info);
            self.set = sets.map_err(Error::from_call("make a descriptor set"))?[0];
        }
        for (binding, (buffer, _)) in (0..).zip(&self.buffers) {
            let whole = [vk::DescriptorBufferInfo::default()
                .buffer(*buffer)
                .range(vk::WHOLE_SIZE)];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(self.set)
                .dst_binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&whole);
            // SAFETY: set and buffer are of this device; nothing uses the set.
            unsafe { raw.update_descriptor_sets(&[write], &[]) };
        }
        // Memory that was never written may have no pages yet.
        let buffers: Vec<vk::Buffer> = self.buffers.iter().map(|(buffer, _)| *buffer).collect();
        self.gpu.once("fill memory", |commands| {
            for buffer in buffers {
                // SAFETY: the command buffer is being recorded.
                unsafe { raw.cmd_fill_buffer(commands, buffer, 0, vk::WHOLE_SIZE, 1) };
            }
        })
    }

    /// Makes a buffer with memory of its own on the device.
    fn add_buffer(&mut self, bytes: u64) -> Result<(), Error> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let made = buffer(&self.gpu, bytes, usage)?;
        self.buffers.push((made, vk::DeviceMemory::null()));
        // SAFETY: the buffer is of this device.
        let needs = unsafe { self.gpu.raw.get_buffer_memory_requirements(made) };
        let local = vk::MemoryPropertyFlags::DEVICE_LOCAL.as_raw();
        let of_type = region_type(&self.gpu.memory, needs.memory_type_bits, local);
        let memory = allocate(
            &self.gpu,
            needs.size,
            of_type.ok_or(Error::Memory { bytes })?,
        )?;
        if let Some(last) = self.buffers.last_mut() {
            last.1 = memory;
        }
        // SAFETY: the memory is new and large enough.
        unsafe { self.gpu.raw.bind_buffer_memory(made, memory, 0) }
            .map_err(Error::from_call("bind memory"))
    }

    /// Returns the device's name.
    pub fn name(&self) -> &str {
        &self.gpu.properties.name
    }

    /// Returns the driver's name with its version.
    pub fn driver(&self) -> &str {
        &self.gpu.properties.driver
    }

    /// Returns the device's UUID as hexadecimal.
    pub fn uuid(&self) -> &str {
        &self.gpu.properties.uuid
    }

    /// Returns whether the device computes on the processor.
    pub fn is_software(&self) -> bool {
        self.software
    }

    /// Returns the shapes `[m, n, k]` in which a subgroup multiplies matrices of this type and adds them up; empty if
    /// the device cannot.
    pub fn matrices(&self, of: MatrixType) -> Vec<[u32; 3]> {
        let (feature, input, sum) = match of {
            MatrixType::F16 => (
                "shaderFloat16",
                vk::ComponentTypeKHR::FLOAT16,
                vk::ComponentTypeKHR::FLOAT32,
            ),
            MatrixType::Int8 => (
                "shaderInt8",
                vk::ComponentTypeKHR::SINT8,
                vk::ComponentTypeKHR::SINT32,
            ),
        };
        if !MATRICES
            .iter()
            .chain([&feature])
            .all(|name| self.features.contains(name))
        {
            return Vec::new();
        }
        // The driver lists saturating multiplications separately.
        let listed = self.gpu.properties.matrices.iter();
        let shapes: BTreeSet<[u32; 3]> = listed
            .filter_map(|shape| shape.for_types(input.as_raw(), sum.as_raw()))
            .collect();
        shapes.into_iter().collect()
    }

    /// Returns the size of each buffer, a power of two.
    pub fn buffer_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the two buffers in the order of their bindings.
    pub fn buffers(&self) -> [Buffer; 2] {
        [Buffer(0), Buffer(1)]
    }

    /// Makes a kernel from SPIR-V with the entry point `main`. It may use the bindings 0 and 1 of set 0, and must
    /// stay inside the buffers.
    ///
    /// # Errors
    /// The driver refuses it.
    pub fn kernel(&mut self, words: &[u32]) -> Result<Kernel, Error> {
        let stage = vk::PipelineShaderStageCreateInfo::default().name(c"main");
        let info = vk::ComputePipelineCreateInfo::default().layout(self.layout);
        let pipeline = compute_pipeline(&self.gpu.raw, words, stage, info)?;
        self.pipelines.push(pipeline);
        Ok(Kernel(self.pipelines.len() - 1))
    }

    /// Records the same work `count` times, each with a full barrier after it, and once more before them, untimed.
    ///
    /// # Errors
    /// The driver refuses the work, or the device was lost.
    pub fn record(&self, work: BenchWork, count: u32) -> Result<Timed<'_>, Error> {
        let recording = CommandRecording::begin(&self.gpu, 1)?;
        let all = vk::PipelineStageFlags2::ALL_COMMANDS;
        self.add(recording.commands, work);
        recording.stamp(0, all);
        for _ in 0..count {
            self.add(recording.commands, work);
        }
        recording.stamp(1, all);
        self.gpu.end(recording.commands)?;
        Ok(Timed {
            bench: self,
            recording,
            count,
        })
    }

    /// Records the work once, with a full barrier after it.
    fn add(&self, commands: vk::CommandBuffer, work: BenchWork) {
        let raw = &self.gpu.raw;
        let compute = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the command buffer is being recorded; what is bound and copied is of this device.
        unsafe {
            match work {
                BenchWork::Dispatch(Kernel(number), [x, y, z]) => {
                    raw.cmd_bind_pipeline(commands, compute, self.pipelines[number]);
                    let sets = [self.set];
                    raw.cmd_bind_descriptor_sets(commands, compute, self.layout, 0, &sets, &[]);
                    raw.cmd_dispatch(commands, x, y, z);
                }
                BenchWork::Copy(Buffer(from), Buffer(to)) => {
                    let bytes = self.bytes;
                    let region = [vk::BufferCopy::default().size(bytes)];
                    let [from, to] = [from, to].map(|number| self.buffers[number as usize].0);
                    raw.cmd_copy_buffer(commands, from, to, &region);
                }
            }
        }
        self.gpu.full_barrier(commands);
    }
}

/// Recorded work that can be run and timed repeatedly.
pub struct Timed<'a> {
    bench: &'a Bench,
    recording: CommandRecording,
    /// The number of repetitions that were recorded.
    count: u32,
}

impl Timed<'_> {
    /// Runs the work, and returns the nanoseconds that each repetition took with its barrier.
    ///
    /// # Errors
    /// The device was lost, or wrote no timestamps.
    pub fn run(&self) -> Result<f64, Error> {
        self.bench.gpu.run(self.recording.commands, "measure")?;
        let ticks = self.recording.ticks()?;
        let &[Some(start), Some(end)] = ticks.as_slice() else {
            return Err(Error::Unsupported(
                "the device wrote no timestamps".to_owned(),
            ));
        };
        let ns = self.bench.clock.between_ns((start, end));
        Ok(ns as f64 / f64::from(self.count))
    }

    /// Runs the work, and returns the nanoseconds from its submission until it has been waited for, by the host
    /// clock.
    ///
    /// # Errors
    /// The device was lost.
    pub fn await_all(&self) -> Result<f64, Error> {
        let begun = Instant::now();
        self.bench.gpu.run(self.recording.commands, "measure")?;
        Ok(begun.elapsed().as_nanos() as f64)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let raw = &self.gpu.raw;
        // SAFETY: all handles are of this device or null, and nothing runs.
        unsafe {
            let _ = raw.device_wait_idle();
            for pipeline in &self.pipelines {
                raw.destroy_pipeline(*pipeline, None);
            }
            raw.destroy_descriptor_pool(self.pool, None);
            raw.destroy_pipeline_layout(self.layout, None);
            raw.destroy_descriptor_set_layout(self.set_layout, None);
            for (buffer, memory) in &self.buffers {
                raw.destroy_buffer(*buffer, None);
                raw.free_memory(*memory, None);
            }
        }
    }
}
