//! Names the things of a trace for reports, the page, exports and queries.
//!
//! The ids of a trace are not names: they only say which rows belong together. A queue has the name that the program gave it,
//! or one in the words of its API: `stream 7`, `queue 0.1` (family and index), `command queue 2`. Where processes share a
//! queue's name, the pid follows it. [`Words`] are the nouns of an API, [`Gpus`] the physical GPUs, and
//! [`KernelNames`] the names of kernels as people read them.

mod gpus;
mod kernels;
mod words;

pub use gpus::{Gpus, UNKNOWN_DEVICE};
pub use kernels::{KernelNames, NamedKernel, readable};
pub use words::{Noun, Words};

use gapscope_trace::Manifest;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::{Api, Device, Process, Queue};
use std::collections::HashMap;

/// The names of the things that a manifest lists. Things that it does not list have names that say so.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    words: Words,
    gpus: Gpus,
    queues: HashMap<QueueId, String>,
    threads: HashMap<(ProcessId, ThreadId), String>,
    processes: HashMap<ProcessId, String>,
    devices: HashMap<DeviceId, String>,
}

/// Returns the name of a device, which may be blank in files of other tools.
pub fn device_name(device: &Device) -> String {
    match device.name.trim() {
        "" => UNKNOWN_DEVICE.to_owned(),
        name => name.to_owned(),
    }
}

impl Vocabulary {
    /// Makes the names of a trace with this manifest.
    pub fn new(manifest: &Manifest) -> Vocabulary {
        Vocabulary {
            words: Words::from_devices(manifest),
            gpus: Gpus::new(manifest),
            queues: queue_names(manifest),
            threads: first_of_each(manifest.threads.iter().map(|thread| {
                let name = match thread.name.as_str() {
                    "" => format!("thread {}", thread.thread),
                    name => format!("{name} ({})", thread.thread),
                };
                ((thread.process, thread.thread), name)
            })),
            processes: first_of_each(manifest.processes.iter().map(|process| {
                let name = match program(process) {
                    "" => format!("process {}", process.pid),
                    name => format!("{name} (pid {})", process.pid),
                };
                (process.id, name)
            })),
            devices: first_of_each(
                (manifest.devices.iter()).map(|device| (device.id, device_name(device))),
            ),
        }
    }

    /// Returns the words of the API that all devices were used through, or the common ones where there are several APIs.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the physical GPUs.
    pub fn gpus(&self) -> &Gpus {
        &self.gpus
    }

    /// Returns the name of a queue: `main` where the program named it so; `stream 7`, `queue 0.1`, `command queue 2` where it has no name.
    pub fn queue(&self, id: QueueId) -> String {
        match self.queues.get(&id) {
            Some(name) => name.clone(),
            None => format!("queue {id} (unknown)"),
        }
    }

    /// Returns the name of a thread with its id: `main (4242)`, `thread 4242`; `unknown thread` without one.
    pub fn thread(&self, process: ProcessId, thread: impl Into<Option<ThreadId>>) -> String {
        let Some(thread) = thread.into() else {
            return "unknown thread".to_owned();
        };
        match self.threads.get(&(process, thread)) {
            Some(name) => name.clone(),
            None => format!("thread {thread}"),
        }
    }

    /// Returns the name of a process, by its program and pid: `app (pid 4242)`, or `process 4242` without a name.
    pub fn process(&self, id: ProcessId) -> String {
        match self.processes.get(&id) {
            Some(name) => name.clone(),
            None => format!("process {id} (unknown)"),
        }
    }

    /// Returns the name that the driver gives a device.
    pub fn device(&self, id: DeviceId) -> String {
        match self.devices.get(&id) {
            Some(name) => name.clone(),
            None => UNKNOWN_DEVICE.to_owned(),
        }
    }
}

/// Returns the file name of a process's executable.
pub fn program(process: &Process) -> &str {
    file_name(&process.executable)
}

/// Returns a text with a capital as its first letter.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    let capital = first.map(|first| first.to_uppercase().to_string());
    capital.unwrap_or_default() + letters.as_str()
}

/// Returns the last part of a path of any system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Collects rows by their keys. Where a manifest lists an id twice, its first row counts, as everywhere.
fn first_of_each<K: std::hash::Hash + Eq>(
    rows: impl DoubleEndedIterator<Item = (K, String)>,
) -> HashMap<K, String> {
    rows.rev().collect()
}

/// Returns the names of the manifest's queues, with the pid behind those that queues of several processes share.
fn queue_names(manifest: &Manifest) -> HashMap<QueueId, String> {
    let names = manifest.queues.iter().map(|queue| {
        let device = manifest.device(queue.device);
        let api = device.map_or(Api::Unknown, |device| device.api);
        let name = match &queue.name {
            Some(name) => name.clone(),
            None => name_by_number(queue, api),
        };
        (queue.id, device.map(|device| device.process), name)
    });
    let names: Vec<_> = names.collect();
    let mut owners: HashMap<&str, (Option<ProcessId>, bool)> = HashMap::new();
    for (_, process, name) in &names {
        let (first, shared) = owners.entry(name).or_insert((*process, false));
        *shared |= first != process;
    }
    first_of_each(names.iter().map(|(id, process, name)| {
        let shared = owners[name.as_str()].1;
        let process = process
            .filter(|_| shared)
            .and_then(|id| manifest.process(id));
        let name = match process {
            Some(process) => format!("{name} of pid {}", process.pid),
            None => name.clone(),
        };
        (*id, name)
    }))
}

/// Names a queue without a name of its own by the numbers that distinguish queues of its API.
fn name_by_number(queue: &Queue, api: Api) -> String {
    let noun = Words::new(api).queue.one;
    match api {
        // CUDA numbers its streams; Metal has no families.
        Api::Cuda | Api::Hip | Api::Metal => format!("{noun} {}", queue.index),
        Api::Vulkan | Api::Unknown => format!("{noun} {}.{}", queue.family, queue.index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::Trace;

    fn vocabulary(text: &str) -> Vocabulary {
        Vocabulary::new(&Trace::from_text(text).unwrap().manifest)
    }

    #[test]
    fn a_queue_without_a_name_is_called_as_its_api_calls_it() {
        let names = vocabulary(
            "device id=1 api=vulkan\ndevice id=2 api=cuda\ndevice id=3 api=metal
             queue id=1 device=1 family=0 index=1
             queue id=2 device=2 index=7
             queue id=3 device=3 index=2
             queue id=4 device=1 name=main
             queue id=5 device=9 family=2 index=3",
        );
        let name = |id| names.queue(QueueId(id));
        assert_eq!(name(1), "queue 0.1");
        assert_eq!(name(2), "stream 7");
        assert_eq!(name(3), "command queue 2");
        assert_eq!(name(4), "main");
        assert_eq!(name(5), "queue 2.3");
        assert_eq!(name(6), "queue 6 (unknown)");
    }

    #[test]
    fn queues_of_several_processes_that_share_a_name_have_the_pid_behind_it() {
        let names = vocabulary(
            "process id=1 pid=10\nprocess id=2 pid=20
             device id=1 process=1 api=cuda\ndevice id=2 process=2 api=cuda
             queue id=1 device=1 index=7\nqueue id=2 device=2 index=7
             queue id=3 device=2 index=13",
        );
        let name = |id| names.queue(QueueId(id));
        assert_eq!(name(1), "stream 7 of pid 10");
        assert_eq!(name(2), "stream 7 of pid 20");
        assert_eq!(name(3), "stream 13");
    }

    #[test]
    fn threads_and_processes_are_named_with_the_systems_ids() {
        let names = vocabulary(
            "process id=1 pid=10 executable=/usr/bin/app
             thread process=1 thread=11 name=main\nthread process=1 thread=12",
        );
        let thread = |id| names.thread(ProcessId(1), ThreadId(id));
        assert_eq!(thread(11), "main (11)");
        assert_eq!(thread(12), "thread 12");
        assert_eq!(thread(13), "thread 13");
        assert_eq!(names.thread(ProcessId(1), None), "unknown thread");
        assert_eq!(names.process(ProcessId(1)), "app (pid 10)");
        assert_eq!(names.process(ProcessId(2)), "process 2 (unknown)");
    }

    #[test]
    fn the_words_are_those_of_the_only_api() {
        let queue = |text| vocabulary(text).words().queue.one;
        assert_eq!(queue("device id=1 api=cuda"), "stream");
        assert_eq!(
            queue("device id=1 api=cuda\ndevice id=2 api=vulkan"),
            "queue"
        );
        assert_eq!(queue(""), "queue");
    }
}
