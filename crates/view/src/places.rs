//! Which groups a trace has, and what its groups, queues and threads are called.

use crate::texts::cut;
use crate::track::ThreadOf;
use gapscope_analysis::Timeline;
use gapscope_trace::Trace;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId};
use gapscope_trace::manifest::Manifest;
use serde::Serialize;

/// A GPU or a recorded process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub id: String,
    pub kind: &'static str,
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_ids: Vec<DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
}

/// The GPUs of a manifest, as the analyses number them.
#[derive(Debug, Clone, Default)]
pub struct Gpus {
    /// Ids of the devices of each.
    devices: Vec<Vec<DeviceId>>,
    names: Vec<String>,
}

impl Gpus {
    pub fn of(manifest: &Manifest) -> Gpus {
        // The queues stay out: one of an unknown device would make a GPU of its own.
        let alone = Trace {
            manifest: Manifest {
                queues: Vec::new(),
                ..manifest.clone()
            },
            ..Trace::default()
        };
        let timeline = Timeline::of(&alone);
        let devices = |gpu: &gapscope_analysis::timeline::Gpu| {
            let devices = gpu.devices.iter().map(|row| &manifest.devices[*row]);
            devices.map(|device| device.id).collect::<Vec<_>>()
        };
        let name = |gpu: &gapscope_analysis::timeline::Gpu| {
            gpu.devices
                .first()
                .map_or_else(String::new, |row| cut(&manifest.devices[*row].name))
        };
        Gpus {
            devices: timeline.gpus.iter().map(devices).collect(),
            names: timeline.gpus.iter().map(name).collect(),
        }
    }

    /// How many devices the manifest knows.
    pub fn count(&self) -> usize {
        self.devices.len()
    }

    /// The GPU of a device; one past the last for an unknown device.
    pub fn of_device(&self, device: DeviceId) -> usize {
        let mut gpus = self.devices.iter();
        gpus.position(|devices| devices.contains(&device))
            .unwrap_or(self.count())
    }

    /// The GPU of a queue.
    pub fn of_queue(&self, manifest: &Manifest, queue: QueueId) -> usize {
        manifest
            .queue(queue)
            .map_or(self.count(), |queue| self.of_device(queue.device))
    }

    /// The group of a GPU.
    pub fn group(&self, gpu: usize) -> Group {
        let name = self.names.get(gpu).map_or("unknown device", String::as_str);
        Group {
            id: format!("g{gpu}"),
            kind: "gpu",
            name: format!("GPU {}: {name}", gpu + 1),
            device_ids: self.devices.get(gpu).cloned().unwrap_or_default(),
            process: None,
        }
    }
}

/// The group of a recorded process.
pub fn process_group(manifest: &Manifest, id: ProcessId) -> Group {
    let name = match manifest.process(id) {
        Some(process) => {
            let program = process.executable.rsplit('/').next().unwrap_or_default();
            format!("{} (pid {})", cut(program), process.pid)
        }
        None => format!("process {id} (unknown)"),
    };
    Group {
        id: format!("p{id}"),
        kind: "process",
        name,
        device_ids: Vec::new(),
        process: Some(id),
    }
}

/// What a queue is called.
pub fn queue_name(manifest: &Manifest, id: QueueId) -> String {
    let Some(queue) = manifest.queue(id) else {
        return format!("queue {id} (unknown)");
    };
    let mut name = match &queue.name {
        Some(name) => format!("queue {}", cut(name)),
        None => format!("queue {}.{}", queue.family, queue.index),
    };
    let device = manifest.device(queue.device);
    if manifest.processes.len() > 1
        && let Some(process) = device.and_then(|device| manifest.process(device.process))
    {
        name.push_str(&format!(" of pid {}", process.pid));
    }
    name
}

/// What a thread is called.
pub fn thread_name(manifest: &Manifest, of: ThreadOf) -> String {
    let Some(thread) = of.thread else {
        return "unknown thread".to_owned();
    };
    let mut threads = manifest.threads.iter();
    let found = threads.find(|t| t.process == of.process && t.thread == thread);
    match found.map(|found| found.name.as_str()) {
        None | Some("") => format!("thread {thread}"),
        Some(name) => format!("{} ({thread})", cut(name)),
    }
}
