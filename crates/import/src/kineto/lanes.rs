//! Collects the processes and threads of the host that events name, and numbers the threads as lanes, in the order of
//! their first events.

use super::category::Category;
use super::event::Event;
use super::facts::{Lane, Names};
use super::json::{self, bare, members};
use super::number::whole;
use crate::functions::class_of;
use crate::inventory::UNKNOWN_PROCESS;
use crate::transfers::is_transfer;
use gapscope_trace::ids::{ProcessId, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The first thread id for threads whose name in the file is not a thread id of a system.
const MADE_UP: u32 = 0xf000_0000;

/// The maximum number of threads: no program has so many. Events of further threads are counted and dropped.
const MAX_THREADS: usize = 1 << 16;

/// A process of the host.
#[derive(Debug, Default, Clone)]
pub(super) struct HostProcess {
    pub(super) pid: u32,
    pub(super) name: Option<String>,
}

/// The threads of the host and their processes.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The threads, by the number of their lane.
    pub(super) all: Vec<Lane>,
    /// The index of each thread, by its pid and tid as the file writes them.
    by_text: FxHashMap<Box<[u8]>, u32>,
    /// The pid and tid of the event, with a zero byte between them.
    key: Vec<u8>,
    /// The key and the lane of the last event, because neighbours mostly share one.
    last: Option<(Vec<u8>, u32)>,
    pub(super) processes: Vec<HostProcess>,
    /// The index of each process, by its pid as the file writes it.
    by_pid: FxHashMap<Box<[u8]>, ProcessId>,
    /// The names of processes and threads from metadata events.
    names: Names,
    /// The processes that had events of unknown kinds before their names, and the devices' threads that had events before
    /// theirs, by pid and tid.
    unnamed: FxHashSet<Box<[u8]>>,
    /// True where a name came behind events whose kind it decides.
    is_late: bool,
    /// The number of thread ids that were made up.
    made_up: u32,
    /// The places of threads that have other ids in the file than in the trace, by their pid and tid in the file.
    places: FxHashMap<Box<[u8]>, (ProcessId, ThreadId)>,
}

impl Lanes {
    /// Returns the lanes of a file that is joined to a trace with processes of these pids. `by_pid` are its processes by
    /// the pids in the file, and `places` those of its threads that have other ids in the file.
    pub(super) fn placed(
        pids: Vec<u32>,
        by_pid: FxHashMap<Box<[u8]>, ProcessId>,
        places: FxHashMap<Box<[u8]>, (ProcessId, ThreadId)>,
    ) -> Lanes {
        let process = |pid| HostProcess { pid, name: None };
        Lanes {
            processes: pids.into_iter().map(process).collect(),
            by_pid,
            places,
            ..Lanes::default()
        }
    }

    /// Returns no lanes yet, with names that an earlier reading of the file has collected.
    pub(super) fn with_names(names: Names) -> Lanes {
        Lanes {
            names,
            ..Lanes::default()
        }
    }

    /// Returns whether a name came behind events whose kind it decides.
    pub(super) fn has_late_names(&self) -> bool {
        self.is_late
    }

    /// Returns the names that were collected.
    pub(super) fn into_names(self) -> Names {
        self.names
    }

    /// Returns true if a process has been named by an event, or is one of the trace that the file is joined to.
    pub(super) fn has_process(&self, pid: &[u8]) -> bool {
        self.by_pid.contains_key(pid)
    }

    /// Returns the index of a thread's lane; `None` if there are too many threads.
    #[inline]
    pub(super) fn index(&mut self, pid: &[u8], tid: &[u8]) -> Option<u32> {
        self.key(pid, tid);
        if let Some((key, lane)) = &self.last
            && *key == self.key
        {
            return Some(*lane);
        }
        let lane = match self.by_text.get(self.key.as_slice()) {
            Some(lane) => *lane,
            None if self.all.len() >= MAX_THREADS => return None,
            None => self.add(pid, tid),
        };
        self.last = Some((self.key.clone(), lane));
        Some(lane)
    }

    /// Sets `key` to that of a thread.
    fn key(&mut self, pid: &[u8], tid: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(pid);
        self.key.push(0);
        self.key.extend_from_slice(tid);
    }

    /// Adds the thread of `key`. Its name is the text that stands in place of a number.
    fn add(&mut self, pid: &[u8], tid: &[u8]) -> u32 {
        let (process, place) = match self.places.get(self.key.as_slice()) {
            Some((process, thread)) => (*process, Some(*thread)),
            None => (self.process(pid), None),
        };
        let small = whole(tid).and_then(|tid| u32::try_from(tid).ok());
        let own = small.filter(|tid| *tid < MADE_UP).map(ThreadId);
        let thread = place.or(own).unwrap_or_else(|| {
            self.made_up += 1;
            ThreadId(MADE_UP + self.made_up)
        });
        let lane = self.all.len() as u32;
        let name = whole(tid).is_none().then(|| json::text(tid).into());
        let own = (thread.0 >= MADE_UP).then(|| json::text(tid).into());
        self.all.push(Lane {
            process,
            thread,
            name,
            own,
            is_host: false,
            ranges: 0,
            first: None,
        });
        self.by_text.insert(self.key.as_slice().into(), lane);
        lane
    }

    /// Returns the id of the process with a pid, which may be any text.
    pub(super) fn process(&mut self, pid: &[u8]) -> ProcessId {
        if let Some(id) = self.by_pid.get(pid) {
            return *id;
        }
        let number = whole(pid).and_then(|pid| u32::try_from(pid).ok());
        let id = ProcessId(self.processes.len() as u32);
        self.processes.push(HostProcess {
            pid: number.unwrap_or(0),
            name: number.is_none().then(|| match json::text(pid) {
                text if text.is_empty() => UNKNOWN_PROCESS.to_owned(),
                text => text.into_owned(),
            }),
        });
        self.by_pid.insert(pid.into(), id);
        id
    }

    /// Returns the process of events that name none, as it is or would be.
    pub(super) fn unknown_process(&self) -> ProcessId {
        let known = self.by_pid.get(&b""[..]).copied();
        known.unwrap_or(ProcessId(self.processes.len() as u32))
    }

    /// Returns the pid of each process as the file writes it.
    pub(super) fn pids(&self) -> Vec<Box<[u8]>> {
        let mut pids = vec![Box::default(); self.processes.len()];
        for (pid, id) in &self.by_pid {
            pids[id.0 as usize] = pid.clone();
        }
        pids
    }

    /// Returns the name that metadata events give a process.
    pub(super) fn process_name(&self, pid: &[u8]) -> Option<&str> {
        self.names.processes.get(pid).map(String::as_str)
    }

    /// Returns whether a process stands for the copies of all devices.
    pub(super) fn is_of_copies(&self, pid: &[u8]) -> bool {
        self.process_name(pid).is_some_and(is_of_copies)
    }

    /// Returns the names of a process and of a thread of it, as far as metadata events have said them.
    pub(super) fn names(&self, pid: &[u8], tid: &[u8]) -> [&[u8]; 2] {
        let key = [pid, b"\0", tid].concat();
        let names = [
            self.names.processes.get(pid),
            self.names.threads.get(key.as_slice()),
        ];
        names.map(|name| name.map_or(&b""[..], |name| name.as_bytes()))
    }

    /// Takes the names of processes and threads from a metadata event.
    pub(super) fn metadata(&mut self, event: &Event) {
        let name = || {
            let named = members(event.args).find(|(key, _)| *key == b"name")?;
            let text = json::text(bare(named.1)).trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        match event.name {
            b"process_name" => {
                if let Some(name) = name() {
                    self.is_late |= self.unnamed.contains(event.pid)
                        && (device_number(&name).is_some() || is_of_copies(&name));
                    self.names.processes.insert(event.pid.into(), name);
                }
            }
            b"thread_name" => {
                if let Some(name) = name() {
                    let key = [event.pid, b"\0", event.tid].concat();
                    self.is_late |= self.unnamed.contains(key.as_slice()) && is_derived(&name);
                    self.names.threads.insert(key.into(), name);
                }
            }
            _ => {}
        }
    }

    /// Returns the category of a complete event that names none: device work if the name of its process is that of
    /// a device. Where the name comes later, [`Self::has_late_names`] tells that.
    pub(super) fn category_of(&mut self, event: &Event) -> Category {
        let process = self.names.processes.get(event.pid);
        if process.is_none() && !self.unnamed.contains(event.pid) {
            self.unnamed.insert(event.pid.into());
        }
        if self.is_of_copies(event.pid) && is_copy_of_rocprof(event.name) {
            return Category::Copy;
        }
        let Some(device) = process.and_then(|name| device_number(name)) else {
            // XLA gives host events of CUDA functions no category.
            let of_cuda = event.name.starts_with(b"cu") || event.name.starts_with(b"hip");
            let function = std::str::from_utf8(event.name).ok().filter(|_| of_cuda);
            let function = function.map(function_of);
            return match function.and_then(class_of) {
                None => Category::Other,
                Some(_) => Category::Call,
            };
        };
        self.key(event.pid, event.tid);
        let name = self.names.threads.get(self.key.as_slice());
        if name.is_none() && !self.unnamed.contains(self.key.as_slice()) {
            self.unnamed.insert(self.key.as_slice().into());
        }
        match name.map(String::as_str) {
            // XLA and TensorFlow repeat the same work in further lines by module, operation and step.
            Some(name) if is_derived(name) => Category::DeviceAnnotation,
            _ => Category::Device(device),
        }
    }

    /// Returns the category of an event of Habana's profiler (`hpu_op`), which its row tells: calls of Synapse on rows of the
    /// host, copies on the rows of engines that copy, and signals and schedules on other rows of the device. Kernels have the
    /// category of kernels.
    pub(super) fn category_of_hpu(&mut self, event: &Event) -> Category {
        self.key(event.pid, event.tid);
        let name = self.names.threads.get(self.key.as_slice());
        let name = name.map_or("", String::as_str);
        let is_of_device = (self.names.processes.get(event.pid))
            .is_some_and(|process| process.contains("/device:HPU"));
        let copies = ["DMA", "NIC"];
        match is_of_device {
            false if name.starts_with("Synapse/") => Category::Call,
            true if copies.iter().any(|engine| name.contains(engine)) => Category::Copy,
            _ => Category::Other,
        }
    }

    /// Returns the category of an event whose own is unknown: device work if the name of its process is that of a device.
    pub(super) fn category_by_process(&mut self, event: &Event) -> Category {
        let name = self.names.processes.get(event.pid);
        // TensorFlow 1 shows what the host does for a device, and the work of all streams and all copies once more.
        let is_repeated = |name: &String| {
            let mut parts = ["/job:", "/stream:all", "/memcpy"].iter();
            parts.any(|part| name.contains(part))
        };
        if name.is_some_and(is_repeated) {
            return Category::Other;
        }
        match self.category_of(event) {
            category @ (Category::Device(_) | Category::DeviceAnnotation) => category,
            _ => Category::Other,
        }
    }

    /// Gives processes and threads the names of the metadata events.
    pub(super) fn name_all(&mut self) {
        for (pid, id) in &self.by_pid {
            if let Some(name) = self.names.processes.get(pid) {
                self.processes[id.0 as usize].name = Some(name.clone());
            }
        }
        for (key, lane) in &self.by_text {
            if let Some(name) = self.names.threads.get(key) {
                self.all[*lane as usize].name = Some(name.as_str().into());
            }
        }
    }
}

/// Returns the number of the device that a process's name stands for; `None` for other names. Such names are
/// `/device:GPU:0`, `GPU1` and `GPU 2 (gfx942)`.
fn device_number(name: &str) -> Option<u32> {
    let (before, rest) = name.split_once("GPU")?;
    let is_word = before.chars().last().is_none_or(|c| !c.is_alphanumeric());
    let rest = rest.trim_start_matches([':', ' ', '#', '_']);
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..digits].parse().ok().filter(|_| is_word)
}

/// Returns whether a process's name stands for the copies of all devices, as in `1 COPY`. The first two versions of rocprof
/// number the processes that they make up.
fn is_of_copies(name: &str) -> bool {
    let word = name.trim_start_matches(|c: char| c.is_ascii_digit());
    word.trim() == "COPY"
}

/// Returns whether rocprof gives this name to a copy or fill.
fn is_copy_of_rocprof(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| is_transfer(name) || name == "FillBuffer")
}

/// Returns the function that an event of XLA is a call of: some versions add the kernel, as in `cuLaunchKernel:fusion_1`.
pub(super) fn function_of(name: &str) -> &str {
    name.split_once(':')
        .map_or(name, |(function, _)| function.trim_end())
}

/// Returns true if the name of a thread is one of the lines that XLA and TensorFlow derive from the streams of a
/// device.
fn is_derived(thread: &str) -> bool {
    [
        "XLA ",
        "TensorFlow ",
        "Framework ",
        "Steps",
        "Source",
        "Step ",
        "Async XLA",
    ]
    .iter()
    .any(|start| thread.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_the_names_of_processes() {
        assert_eq!(device_number("/device:GPU:3"), Some(3));
        assert_eq!(device_number("/job:worker/device:GPU:0 NVIDIA"), Some(0));
        assert_eq!(device_number("GPU 2 (gfx942)"), Some(2));
        assert_eq!(device_number("2 GPU1"), Some(1));
        assert_eq!(device_number("nGPU1"), None);
        assert_eq!(device_number("/host:CPU"), None);
        assert_eq!(device_number("GPU"), None);
    }

    #[test]
    fn numbers_that_are_no_threads_of_a_system_get_one() {
        let mut lanes = Lanes::default();
        let mut of = |pid: &[u8], tid: &[u8]| lanes.index(pid, tid).unwrap();
        let (a, b) = (of(b"1", b"7"), of(b"1", b"140737353922304"));
        let c = of(b"Spans", b"main");
        assert_eq!(of(b"1", b"7"), a);
        let threads = [a, b, c].map(|lane| lanes.all[lane as usize].thread.0);
        assert_eq!(threads, [7, MADE_UP + 1, MADE_UP + 2]);
        assert_eq!(lanes.all[c as usize].name.as_deref(), Some("main"));
        assert_eq!(lanes.processes.len(), 2);
    }
}
