//! Devices, contexts and streams: written when work names them, so that idle devices are no part of the trace.

use crate::cupti::fields::{self, Record};
use crate::cupti::numbers;
use crate::driver;
use crate::recorder::Recorder;
use gapscope_spool::event::{
    ClockSource, CommonEvent, CudaEvent, DeviceLimits, Object, StreamKind,
};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ffi::CStr;

/// VkQueueFlags of a stream: compute and transfer.
const COMPUTE_AND_TRANSFER: u32 = 2 | 4;

#[derive(Debug, Default)]
pub struct Objects {
    /// By CUPTI's number of the device.
    devices: FxHashMap<u32, Device>,
    /// By context: its device and its default stream.
    contexts: FxHashMap<u32, (u32, u32)>,
    /// By context and stream.
    streams: FxHashMap<(u32, u32), (StreamKind, i32)>,
    queues: FxHashMap<(u32, u32), ids::Queue>,
    /// What the program calls streams.
    names: FxHashMap<(u32, u32), String>,
    /// The queue of the last record.
    last: ((u32, u32), ids::Queue),
}

#[derive(Debug, Default)]
struct Device {
    facts: Option<Facts>,
    used: bool,
    written: bool,
}

#[derive(Debug)]
struct Facts {
    name: String,
    uuid: [u8; 16],
    memory_bytes: u64,
    limits: DeviceLimits,
}

/// The id in events; CUPTI's numbers begin at 0, which means "none" here.
fn id_of(device: u32) -> ids::Device {
    ids::Device(device.wrapping_add(1))
}

impl Objects {
    /// # Safety
    /// It is a device's record.
    pub unsafe fn device_facts(&mut self, record: &Record<'_>, recorder: &Recorder) {
        use fields::device::*;
        // SAFETY: as the caller promises; the name is NUL-terminated or null.
        unsafe {
            let number = record.get(ID);
            let name = record.get(NAME) as *const std::ffi::c_char;
            let name = if name.is_null() {
                String::new()
            } else {
                CStr::from_ptr(name).to_string_lossy().into_owned()
            };
            let partition = record.get(PARTITION) != 0;
            let (name, uuid) = if partition {
                let instances = (record.get(GPU_INSTANCE), record.get(COMPUTE_INSTANCE));
                let own = record.get(PARTITION_UUID);
                partition_of(name, instances, record.get(UUID), own)
            } else {
                (name, record.get(UUID))
            };
            let device = self.devices.entry(number).or_default();
            device.facts = Some(Facts {
                name,
                uuid,
                memory_bytes: record.get(MEMORY),
                limits: DeviceLimits {
                    capability: (record.get(MAJOR), record.get(MINOR)),
                    multiprocessors: record.get(MULTIPROCESSORS),
                    core_clock_khz: record.get(CLOCK),
                    // CUPTI: kBytes a second.
                    memory_bytes_per_s: record.get(BANDWIDTH).saturating_mul(1000),
                    l2_bytes: u64::from(record.get(L2)),
                    threads_per_multiprocessor: record.get(WARPS).saturating_mul(record.get(WARP)),
                    registers_per_multiprocessor: record.get(REGISTERS),
                    shared_bytes_per_multiprocessor: u64::from(record.get(SHARED)),
                    groups_per_multiprocessor: record.get(BLOCKS),
                    partition,
                },
            });
            if device.used {
                write_device(number, device, recorder);
            }
        }
    }

    /// The id of a device, which is part of the trace from now on.
    pub fn device(&mut self, number: u32, recorder: &Recorder) -> ids::Device {
        let device = self.devices.entry(number).or_default();
        device.used = true;
        if device.facts.is_some() {
            write_device(number, device, recorder);
        }
        id_of(number)
    }

    /// # Safety
    /// It is a context's record.
    pub unsafe fn context(&mut self, record: &Record<'_>) {
        use fields::context::*;
        // SAFETY: as the caller promises.
        unsafe {
            let default_stream = u32::from(record.get(DEFAULT_STREAM));
            self.contexts
                .insert(record.get(ID), (record.get(DEVICE), default_stream));
        }
    }

    /// # Safety
    /// It is a stream's record.
    pub unsafe fn stream(&mut self, record: &Record<'_>, recorder: &Recorder) {
        use fields::stream::*;
        // SAFETY: as the caller promises.
        unsafe {
            let key = (record.get(CONTEXT), record.get(ID));
            // CUpti_ActivityStreamFlag
            let kind = match record.get(FLAG) {
                1 => StreamKind::Blocking,
                2 => StreamKind::NonBlocking,
                3 => StreamKind::Default,
                _ => StreamKind::Unknown,
            };
            let facts = (kind, record.get(PRIORITY) as i32);
            self.streams.insert(key, facts);
            if let Some(queue) = self.queues.get(&key) {
                write_stream(*queue, facts, recorder);
            }
        }
    }

    /// The queue of a stream.
    #[inline]
    pub fn queue(
        &mut self,
        device: u32,
        context: u32,
        stream: u32,
        recorder: &Recorder,
    ) -> ids::Queue {
        let key = (context, stream);
        if self.last.0 == key && self.last.1 != ids::Queue::NONE {
            return self.last.1;
        }
        let queue = match self.queues.get(&key) {
            Some(queue) => *queue,
            None => self.new_queue(device, key, recorder),
        };
        self.last = (key, queue);
        queue
    }

    /// The queue of a stream whose record does not say its device; 0 when there is none, or when nothing is known of it.
    pub fn known_queue(&mut self, context: u32, stream: u32, recorder: &Recorder) -> ids::Queue {
        if stream == numbers::NO_ID {
            return ids::Queue::NONE;
        }
        match (
            self.queues.get(&(context, stream)),
            self.contexts.get(&context),
        ) {
            (Some(queue), _) => *queue,
            (None, Some((device, _))) => self.queue(*device, context, stream, recorder),
            (None, None) => ids::Queue::NONE,
        }
    }

    /// Whether this context's device is known.
    pub fn knows(&self, context: u32) -> bool {
        self.contexts.contains_key(&context)
    }

    /// Any queue of a context; 0 when it has none so far.
    pub fn queue_of_context(&self, context: u32) -> ids::Queue {
        let queues = self.queues.iter().filter(|((of, _), _)| *of == context);
        queues.map(|(_, queue)| *queue).min().unwrap_or_default()
    }

    /// The program named a stream, which may not be in use yet.
    pub fn name(&mut self, context: u32, stream: u32, name: &str, recorder: &Recorder) {
        let key = (context, stream);
        if let Some(queue) = self.queues.get(&key) {
            write_name(*queue, name, recorder);
        }
        self.names.insert(key, name.to_owned());
    }

    #[cold]
    fn new_queue(&mut self, device: u32, key: (u32, u32), recorder: &Recorder) -> ids::Queue {
        let (context, stream) = key;
        // Its own record may come later, and says its default stream.
        let of_work = (device, numbers::NO_ID);
        self.contexts.entry(context).or_insert(of_work);
        let queue = ids::Queue(self.queues.len() as u32 + 1);
        self.queues.insert(key, queue);
        recorder.write(&CommonEvent::Queue {
            queue,
            device: self.device(device, recorder),
            family: context,
            index: stream,
            flags: COMPUTE_AND_TRANSFER,
            timestamp_bits: 64,
        });
        let is_default = self
            .contexts
            .get(&context)
            .is_some_and(|(_, default)| *default == stream);
        match self.streams.get(&key) {
            Some(facts) => write_stream(queue, *facts, recorder),
            None if is_default => write_stream(queue, (StreamKind::Default, 0), recorder),
            None => {}
        }
        if let Some(name) = self.names.get(&key) {
            write_name(queue, name, recorder);
        }
        queue
    }

    /// Writes the devices that were used and of which CUPTI has told nothing.
    pub fn close(&mut self, recorder: &Recorder) {
        for (number, device) in &mut self.devices {
            if device.used {
                write_device(*number, device, recorder);
            }
        }
    }
}

/// Name and uuid of a part of a GPU (MIG): its own, for the parts of one GPU work at the same time as different GPUs do.
fn partition_of(
    name: String,
    (gpu, compute): (u32, u32),
    whole: [u8; 16],
    own: [u8; 16],
) -> (String, [u8; 16]) {
    // The driver's own names say the profile: `NVIDIA A100-SXM4-40GB MIG 1g.5gb`.
    let name = match name.contains("MIG") {
        true => name,
        false => format!("{name} MIG"),
    };
    let uuid = match own {
        own if own != [0; 16] => own,
        _ => {
            // As the driver does not tell it: the GPU's, told apart by the instances.
            let mut uuid = whole;
            for (byte, number) in uuid
                .iter_mut()
                .zip(gpu.to_le_bytes().into_iter().chain(compute.to_le_bytes()))
            {
                *byte ^= number;
            }
            uuid
        }
    };
    (format!("{name} {gpu}/{compute}"), uuid)
}

fn write_name(queue: ids::Queue, name: &str, recorder: &Recorder) {
    recorder.write(&CommonEvent::Name {
        object: Object::Queue(queue),
        name,
    });
}

fn write_stream(queue: ids::Queue, (kind, priority): (StreamKind, i32), recorder: &Recorder) {
    recorder.write(&CudaEvent::Stream {
        queue,
        kind,
        priority,
    });
}

fn write_device(number: u32, device: &mut Device, recorder: &Recorder) {
    if std::mem::replace(&mut device.written, true) {
        return;
    }
    let facts = device.facts.as_ref();
    recorder.write(&CommonEvent::Device {
        device: id_of(number),
        api: Cow::Borrowed("cuda"),
        name: facts.map_or_else(
            || Cow::Owned(format!("CUDA device {number}")),
            |f| Cow::Owned(f.name.clone()),
        ),
        driver: Cow::Owned(driver_versions()),
        uuid: facts.map_or([0; 16], |f| f.uuid),
        nanoseconds_per_tick: 1.0,
        clock: ClockSource::Host,
        heaps: facts.map_or(Vec::new(), |f| vec![f.memory_bytes]),
    });
    if let Some(facts) = facts {
        recorder.write(&CudaEvent::DeviceLimits {
            device: id_of(number),
            limits: facts.limits,
        });
    }
}

/// `NVIDIA 580.159.04`, with the CUDA version that it supports.
fn driver_versions() -> String {
    // NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build ...
    let module = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let version = module
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .find(|word| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let cuda = driver::version().map(|v| format!("CUDA {}.{}", v / 1000, v % 1000 / 10));
    match (version, cuda) {
        (Some(version), Some(cuda)) => format!("NVIDIA {version}, {cuda}"),
        (Some(version), None) => format!("NVIDIA {version}"),
        (None, Some(cuda)) => cuda,
        (None, None) => String::new(),
    }
}
