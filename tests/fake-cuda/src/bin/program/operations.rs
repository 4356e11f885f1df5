//! Operations that streams wait for: host functions, values, semaphores, prefetches.

use super::{Cuda, check, made};
use std::ffi::{c_int, c_uint};

/// CUstreamBatchMemOpParams
#[repr(C)]
pub struct Operation {
    operation: c_uint,
    rest: [u64; 5],
}

const WAIT_VALUE_32: c_uint = 1;
const WRITE_VALUE_32: c_uint = 2;
/// CUgraphNodeType
const HOST: c_int = 3;
const CHILD: c_int = 4;
const CONDITIONAL: c_int = 13;

fn operations(of: [c_uint; 2]) -> [Operation; 2] {
    of.map(|operation| Operation {
        operation,
        rest: [0; 5],
    })
}

impl Cuda {
    /// Puts each operation on a stream, with a kernel before and after; then on a stream that is captured, and on one that does not exist.
    pub fn operations(&self, name: &str) {
        const NOTHING: usize = 999_999;
        let (stream, captured) = (self.stream(1), self.stream(1));
        self.launches(name, 1, stream);
        self.each_operation(stream, check);
        self.launches(name, 1, stream);
        check((self.begin_capture)(captured, 0));
        self.each_operation(captured, check);
        made(|graph| (self.end_capture)(captured, graph));
        self.each_operation(NOTHING, |code| {
            assert_ne!(code, 0, "a call that should fail")
        });
        // A batch without a wait puts nothing on the stream that is waited for.
        let writes = operations([WRITE_VALUE_32, WRITE_VALUE_32]);
        check((self.batch)(stream, 2, writes.as_ptr(), 0));
    }

    /// Has the device work without a record of it.
    pub fn unrecorded(&self, name: &str) {
        const DEVICE_LAUNCH: u64 = 4;
        let stream = self.stream(1);
        self.managed();
        check((self.decompress)(64, 1, 0, 0, stream));
        check((self.runtime_prefetch)(64, 4096, 1, 0, stream));
        let graph = (self.create_graph)(self.function(name), 2);
        let executable = made(|executable| (self.instantiate)(executable, graph, DEVICE_LAUNCH));
        check((self.launch_graph)(executable, stream));
    }

    fn each_operation(&self, stream: usize, check: impl Fn(c_int)) {
        let batch = operations([WRITE_VALUE_32, WAIT_VALUE_32]);
        check((self.launch_host)(stream, 64, 0));
        check((self.runtime_launch_host)(stream, 64, 0));
        check((self.runtime_add_callback)(stream, 64, 0, 0));
        check((self.wait_value)(stream, 64, 1, 0));
        check((self.batch)(stream, 2, batch.as_ptr(), 0));
        check((self.runtime_wait_external)(64, 64, 1, stream));
        check((self.runtime_prefetch)(64, 4096, 1, 0, stream));
    }

    /// Launches two graphs that are a loop of two kernels and nothing else on a stream, this often each, with a kernel after each, and waits.
    pub fn loops(&self, name: &str, count: u64) {
        let stream = self.stream(1);
        let function = self.function(name);
        let loops = [(); 2].map(|()| {
            let graph = (self.create_graph)(function, 0);
            let body = (self.create_graph)(function, 2);
            (self.add_to_graph)(graph, CONDITIONAL, body);
            made(|executable| (self.instantiate)(executable, graph, 0))
        });
        for _ in 0..count {
            for executable in loops {
                check((self.launch_graph)(executable, stream));
                self.launches(name, 1, stream);
            }
        }
        self.synchronise();
    }

    /// Instantiates graphs with this many host nodes, and with as many again in an inner graph; one whose number is unknown because the
    /// device decides; and one with the handle of the first, which is gone.
    pub fn host_nodes(&self, name: &str, count: u64) {
        let function = self.function(name);
        let graph = |host_nodes: u64| {
            let graph = (self.create_graph)(function, 2);
            (0..host_nodes).for_each(|_| (self.add_to_graph)(graph, HOST, 0));
            graph
        };
        let launched = |graph| {
            let executable = made(|executable| (self.instantiate)(executable, graph, 0));
            check((self.launch_graph)(executable, 0));
            executable
        };
        let outer = graph(count);
        (self.add_to_graph)(outer, CHILD, graph(count));
        let first = launched(outer);
        let unknown = graph(count);
        (self.add_to_graph)(unknown, CONDITIONAL, 0);
        launched(unknown);
        check((self.destroy_graph)(first));
        assert_eq!(launched(graph(0)), first, "the stub gives the handle again");
    }
}
