//! Events, waits, and captures of streams.

use super::{Cuda, check, made};
use std::ffi::c_uint;

impl Cuda {
    /// Uses two streams: the second waits for an event of the first, and the host for both.
    pub fn waits(&self, name: &str) {
        let (first, second) = (self.stream(1), self.stream(0));
        let event = made(|event| (self.create_event)(event, 0));
        self.launches(name, 3, first);
        check((self.record_event)(event, first));
        check((self.stream_waits)(second, event, 0));
        self.launches(name, 2, second);
        check((self.wait_event)(event));
        check((self.wait_stream)(second));
        self.synchronise();
    }

    /// Does the same as [`Self::waits`] through the runtime.
    pub fn runtime_waits(&self, name: &str) {
        let (first, second) = (self.stream(1), self.stream(0));
        let events = [self.event(), self.event()];
        self.launches(name, 3, first);
        check((self.runtime_record_event)(events[0], first));
        check((self.runtime_record_event_with)(events[1], first, 0));
        check((self.runtime_stream_waits)(second, events[0], 0));
        check((self.runtime_stream_waits)(second, events[1], 0));
        self.launches(name, 2, second);
        check((self.runtime_wait_event)(events[1]));
        check((self.runtime_wait_stream)(second));
        check((self.runtime_wait_device)());
        for event in events {
            check((self.runtime_destroy_event)(event));
        }
    }

    /// Uses the default stream by its handle, and the thread's own one by its handle and by calls that mean it by null.
    pub fn own_stream(&self, name: &str) {
        const LEGACY: usize = 1;
        const OWN: usize = 2;
        let events = [self.event(), self.event()];
        self.launches(name, 1, OWN);
        check((self.record_event_own)(events[0], 0));
        self.launches(name, 1, 0);
        check((self.record_event)(events[1], LEGACY));
        check((self.stream_waits)(LEGACY, events[0], 0));
        self.launches(name, 1, LEGACY);
        check((self.wait_own_stream)(0));
        check((self.wait_stream)(OWN));
        check((self.wait_own_stream)(LEGACY));
    }

    /// Captures two streams, the second by waiting for an event of the first; then uses both events as usual.
    pub fn captured_waits(&self, name: &str) {
        let (first, second) = (self.stream(1), self.stream(1));
        let (event, other) = (self.event(), self.event());
        check((self.record_event)(event, first));
        check((self.begin_capture)(first, 0));
        self.launches(name, 1, first);
        check((self.record_event)(event, first));
        check((self.stream_waits)(second, event, 0));
        check((self.record_event)(other, second));
        check((self.stream_waits)(first, other, 0));
        made(|graph| (self.end_capture)(first, graph));
        self.launches(name, 1, first);
        check((self.record_event)(event, first));
        check((self.stream_waits)(second, event, 0));
        self.launches(name, 1, second);
    }

    /// Destroys an event and waits for another one with its handle, which was never recorded.
    pub fn reused_event(&self, name: &str) {
        let (first, second) = (self.stream(1), self.stream(1));
        let event = self.event();
        self.launches(name, 1, first);
        check((self.record_event)(event, first));
        check((self.destroy_event)(event));
        assert_eq!(self.event(), event, "the stub gives the handle again");
        check((self.stream_waits)(second, event, 0));
        check((self.wait_event)(event));
    }

    /// Waits for events that graphs record, too, one by a node and one by a capture: the awaited record is unknown.
    pub fn graph_events(&self, name: &str) {
        const EXTERNAL: c_uint = 1;
        let (first, second) = (self.stream(1), self.stream(1));
        let events = [self.event(), self.event()];
        self.launches(name, 1, first);
        made(|node| (self.add_event_node)(node, 0, 0, 0, events[0]));
        check((self.begin_capture)(first, 0));
        check((self.runtime_record_event_with)(events[1], first, EXTERNAL));
        made(|graph| (self.end_capture)(first, graph));
        for event in events {
            check((self.record_event)(event, first));
            check((self.stream_waits)(second, event, 0));
        }
        self.launches(name, 1, second);
    }

    /// Makes calls that fail: for streams and events that do not exist, and during a capture.
    pub fn refused_waits(&self, name: &str) {
        const NOTHING: usize = 999_999;
        let (stream, event) = (self.stream(1), self.event());
        self.launches(name, 1, stream);
        check((self.record_event)(event, stream));
        for code in [
            (self.record_event)(event, NOTHING),
            (self.record_event)(NOTHING, stream),
            (self.runtime_record_event)(NOTHING, stream),
            (self.stream_waits)(NOTHING, event, 0),
            (self.runtime_stream_waits)(stream, NOTHING, 0),
            (self.wait_stream)(NOTHING),
            (self.runtime_wait_stream)(NOTHING),
            (self.wait_event)(NOTHING),
            (self.runtime_wait_event)(NOTHING),
            (self.ask_event)(NOTHING),
            (self.ask_stream)(NOTHING),
        ] {
            assert_ne!(code, 0, "a call that should fail");
        }
    }

    /// Calls CUDA in a forked child, which cannot use it.
    pub fn refused_in_child(&self) {
        assert_ne!((self.wait_stream)(0), 0);
        assert_ne!((self.runtime_wait_device)(), 0);
    }

    /// Records an event on a stream of the first context while another one is current.
    pub fn other_context(&self, name: &str) {
        let (stream, event) = (self.stream(1), self.event());
        let first = self.current();
        self.launches(name, 1, stream);
        self.context(0);
        check((self.record_event)(event, stream));
        check((self.stream_waits)(0, event, 0));
        check((self.wait_stream)(stream));
        self.launches(name, 1, 0);
        self.synchronise();
        self.use_context(first);
        self.synchronise();
    }

    pub fn many_events(&self, count: u64) {
        let stream = self.stream(1);
        for _ in 0..count {
            check((self.record_event)(self.event(), stream));
        }
    }

    /// Has a second stream of this thread wait for each event of the first, and the host for the last.
    pub fn hand_over(&self, times: u64) {
        let (first, second, event) = (self.stream(1), self.stream(1), self.event());
        for _ in 0..times {
            check((self.runtime_record_event)(event, first));
            check((self.runtime_stream_waits)(second, event, 0));
        }
        check((self.runtime_wait_event)(event));
    }
}
