//! Functions that the program calls, and the threads that call them.

use crate::calls;
use crate::cupti::numbers::{domain, kind};
use crate::hash::FastMap;
use crate::recorder::Recorder;
use gapscope_spool::Event;
use std::borrow::Cow;

/// Numbers from here on are looked up in a map; CUPTI's have been below so far.
const DIRECT: usize = 2048;

/// The id of functions that are not recorded.
const LEFT_OUT: u32 = u32::MAX;

/// Marks the id of a function that asks for a state.
const POLL: u32 = 1 << 31;

/// What is known of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// It has this id.
    Known(u32),
    /// It has this id, and asks whether work is done.
    Poll(u32),
    /// Its calls are not recorded.
    LeftOut,
    /// CUPTI has no name for it.
    Nameless,
}

impl Function {
    fn of(id: u32) -> Function {
        match id & POLL {
            0 => Function::Known(id),
            _ => Function::Poll(id & !POLL),
        }
    }
}

#[derive(Debug, Default)]
pub struct Functions {
    /// By domain and number; 0: not written yet.
    ids: [Vec<u32>; 2],
    far: FastMap<(u32, u32), u32>,
    next: u32,
    threads: FastMap<u32, ()>,
    last_thread: u32,
}

impl Functions {
    /// CUpti_CallbackDomain of a kind of record.
    #[inline]
    pub fn domain_of(&self, kind: u32) -> u32 {
        if kind == kind::RUNTIME {
            domain::RUNTIME
        } else {
            domain::DRIVER
        }
    }

    /// A function, whose name is asked for once.
    #[inline]
    pub fn function(
        &mut self,
        domain: u32,
        call: u32,
        recorder: &Recorder,
        name: impl FnOnce() -> Option<&'static str>,
    ) -> Function {
        let ids = &self.ids[usize::from(domain == domain::RUNTIME)];
        let known = match ids.get(call as usize) {
            Some(id) => *id,
            None => self.far.get(&(domain, call)).copied().unwrap_or(0),
        };
        match known {
            0 => self.new_function(domain, call, name(), recorder),
            LEFT_OUT => Function::LeftOut,
            id => Function::of(id),
        }
    }

    #[cold]
    fn new_function(
        &mut self,
        domain: u32,
        call: u32,
        name: Option<&'static str>,
        recorder: &Recorder,
    ) -> Function {
        let Some(name) = name else {
            return Function::Nameless;
        };
        // An old CUPTI cannot be told to leave them out.
        let wanted = calls::is_wanted(name);
        let id = match (wanted, calls::is_poll(name)) {
            (false, _) => LEFT_OUT,
            (true, false) => self.next + 1,
            (true, true) => (self.next + 1) | POLL,
        };
        let ids = &mut self.ids[usize::from(domain == domain::RUNTIME)];
        ids.resize(DIRECT, 0);
        match ids.get_mut(call as usize) {
            Some(known) => *known = id,
            None => {
                self.far.insert((domain, call), id);
            }
        }
        if !wanted {
            return Function::LeftOut;
        }
        self.next += 1;
        let interface = if domain == domain::RUNTIME {
            "cuda-runtime"
        } else {
            "cuda-driver"
        };
        recorder.write(&Event::Function {
            function: self.next,
            interface: Cow::Borrowed(interface),
            name: Cow::Borrowed(calls::plain_name(name)),
        });
        Function::of(id)
    }

    /// Writes a thread with its name when it is new.
    #[inline]
    pub fn thread(&mut self, thread: u32, recorder: &Recorder) {
        if thread != self.last_thread {
            self.last_thread = thread;
            if self.threads.insert(thread, ()).is_none() {
                write_thread(thread, recorder);
            }
        }
    }
}

#[cold]
fn write_thread(thread: u32, recorder: &Recorder) {
    // It may be gone already; then it has no name.
    let name = std::fs::read(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    recorder.write(&Event::Thread {
        thread,
        name: name.trim_end(),
    });
}
