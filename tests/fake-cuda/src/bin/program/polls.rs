//! Waits by asking again and again.

use super::{Cuda, check, made};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const NOT_READY: c_int = 600;

/// Asks until the answer is yes; returns how often.
fn asked(ask: impl Fn() -> c_int) -> u64 {
    for asked in 1u64.. {
        let code = ask();
        if code != NOT_READY {
            check(code);
            return asked;
        }
    }
    0
}

impl Cuda {
    /// Launches kernels and awaits each by asking for an event again and again, through the runtime or the driver; then one by asking for
    /// the stream. Prints how often it asked for each.
    pub fn polls(&self, name: &str, count: u64, runtime: bool) {
        let ask = if runtime {
            self.runtime_ask_event
        } else {
            self.ask_event
        };
        let stream = self.stream(1);
        let event = self.event();
        let mut events = 0u64;
        for _ in 0..count {
            self.launches(name, 1, stream);
            check((self.record_event)(event, stream));
            events += asked(|| ask(event));
        }
        self.launches(name, 1, stream);
        let streams = asked(|| (self.ask_stream)(stream));
        println!("asked {events} {streams}");
    }

    /// Asks for an event, whatever the answer, until `stop`; tells when it has begun.
    pub fn polls_until(&self, name: &str, begun: &AtomicBool, stop: &AtomicBool) {
        let (stream, event) = (self.stream(1), self.event());
        self.launches(name, 1, stream);
        check((self.record_event)(event, stream));
        while !stop.load(Relaxed) {
            let code = (self.ask_event)(event);
            assert!([0, NOT_READY].contains(&code), "CUDA said {code}");
            begun.store(true, Relaxed);
        }
    }

    pub(super) fn event(&self) -> usize {
        made(|event| (self.create_event)(event, 0))
    }
}
