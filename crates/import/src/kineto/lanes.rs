//! Processes and threads of the host.

use super::category::Category;
use super::event::Event;
use super::facts::Lane;
use super::json::{self, bare, members};
use super::number::whole;
use gapscope_trace::ids::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;

/// Threads whose number is no thread id of a system get one from here on.
const MADE_UP: u32 = 0xf000_0000;

/// A process of the host.
#[derive(Debug, Default, Clone)]
pub(super) struct HostProcess {
    pub(super) pid: u32,
    pub(super) name: Option<String>,
}

/// All threads of the host, and their processes.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) all: Vec<Lane>,
    /// By pid and tid as they are written.
    by_text: FxHashMap<Box<[u8]>, u32>,
    key: Vec<u8>,
    last: Option<(Vec<u8>, u32)>,
    pub(super) processes: Vec<HostProcess>,
    by_pid: FxHashMap<Box<[u8]>, ProcessId>,
    /// Names by pid, and by pid and tid, as metadata events give them.
    process_names: FxHashMap<Box<[u8]>, String>,
    thread_names: FxHashMap<Box<[u8]>, String>,
    made_up: u32,
}

impl Lanes {
    /// The lane of a thread.
    #[inline]
    pub(super) fn of(&mut self, pid: &[u8], tid: &[u8]) -> u32 {
        self.key.clear();
        self.key.extend_from_slice(pid);
        self.key.push(0);
        self.key.extend_from_slice(tid);
        if let Some((key, lane)) = &self.last
            && *key == self.key
        {
            return *lane;
        }
        let lane = match self.by_text.get(self.key.as_slice()) {
            Some(lane) => *lane,
            None => self.add(pid, tid),
        };
        self.last = Some((self.key.clone(), lane));
        lane
    }

    fn add(&mut self, pid: &[u8], tid: &[u8]) -> u32 {
        let process = self.process(pid);
        let small = whole(tid).and_then(|tid| u32::try_from(tid).ok());
        let thread = ThreadId(small.filter(|tid| *tid < MADE_UP).unwrap_or_else(|| {
            self.made_up += 1;
            MADE_UP + self.made_up
        }));
        let lane = self.all.len() as u32;
        let own = whole(tid).is_none().then(|| json::text(tid).into());
        self.all.push(Lane {
            process,
            thread,
            name: own,
            annotations: Vec::new(),
            open: Vec::new(),
        });
        self.by_text.insert(self.key.as_slice().into(), lane);
        lane
    }

    /// The process with a number, or with what stands there instead.
    pub(super) fn process(&mut self, pid: &[u8]) -> ProcessId {
        if let Some(id) = self.by_pid.get(pid) {
            return *id;
        }
        let number = whole(pid).and_then(|pid| u32::try_from(pid).ok());
        self.processes.push(HostProcess {
            pid: number.unwrap_or(0),
            name: number.is_none().then(|| json::text(pid).into_owned()),
        });
        let id = ProcessId(self.processes.len() as u32);
        self.by_pid.insert(pid.into(), id);
        id
    }

    /// Takes the names of processes and threads.
    pub(super) fn metadata(&mut self, event: &Event) {
        let name = || {
            let named = members(event.args).find(|(key, _)| *key == b"name")?;
            let text = json::text(bare(named.1)).trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        match event.name {
            b"process_name" => {
                if let Some(name) = name() {
                    self.process_names.insert(event.pid.into(), name);
                }
            }
            b"thread_name" => {
                if let Some(name) = name() {
                    let key = [event.pid, b"\0", event.tid].concat();
                    self.thread_names.insert(key.into(), name);
                }
            }
            _ => {}
        }
    }

    /// What a complete event without a category is.
    pub(super) fn category_of(&self, _event: &Event) -> Category {
        Category::Other
    }

    /// Gives processes and threads the names that came.
    pub(super) fn name_all(&mut self) {
        for (pid, id) in &self.by_pid {
            if let Some(name) = self.process_names.get(pid) {
                self.processes[id.0 as usize - 1].name = Some(name.clone());
            }
        }
        for (key, lane) in &self.by_text {
            if let Some(name) = self.thread_names.get(key) {
                self.all[*lane as usize].name = Some(name.as_str().into());
            }
        }
    }
}
