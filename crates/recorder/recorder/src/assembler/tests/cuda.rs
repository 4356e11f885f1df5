//! Tests that CUDA activities in any order become the expected rows.

mod any;
mod calls;
mod clock;
mod code;
mod instructions;
mod labels;
mod launches;
mod profiles;

use crate::Names;
use crate::assembler::Assembler;
use crate::made_up;
use gapscope_spool::Event;
use gapscope_spool::event::*;
use gapscope_spool::ids as hook;
use gapscope_spool::model::cuda::FunctionClass;
use gapscope_trace::Tables;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::{ClockMethod, Manifest, SamplingMode};
use gapscope_trace::tables::{HostCallKind, MarkerScope, OpaqueWorkKind, Table};
use proptest::prelude::*;
use std::borrow::Cow;

const FUNCTIONS: [&str; 15] = [
    "cudaLaunchKernel",
    "cudaMemcpyAsync",
    "cudaMemcpy",
    "cudaGraphLaunch",
    "cudaStreamSynchronize",
    "cudaEventQuery",
    "cudaMalloc",
    "cudaStreamWaitEvent",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cuLaunchHostFunc",
    "cuStreamWaitValue32",
    "cudaExecutionCtxSynchronize",
    "cudaMemPrefetchAsync",
    "cuMemBatchDecompressAsync",
];
const LAUNCH: u32 = 1;
const COPY_ASYNC: u32 = 2;
const COPY: u32 = 3;
const GRAPH_LAUNCH: u32 = 4;
const SYNCHRONIZE: u32 = 5;
const QUERY: u32 = 6;
const MALLOC: u32 = 7;
const WAIT_EVENT: u32 = 8;
const BEGIN_CAPTURE: u32 = 9;
const END_CAPTURE: u32 = 10;
const LAUNCH_HOST: u32 = 11;
const WAIT_VALUE: u32 = 12;
const WAIT_EXECUTION_CONTEXT: u32 = 13;
const PREFETCH: u32 = 14;
const DECOMPRESS: u32 = 15;

/// A process with one device, two streams and two kernels.
struct Cuda {
    assembler: Assembler,
    tables: Tables,
    process: ProcessId,
    written: u64,
}

impl Cuda {
    fn new() -> Cuda {
        let mut assembler = Assembler::new(SamplingMode::Dispatch);
        let process = assembler.add_process(100, 0);
        let mut cuda = Cuda {
            assembler,
            tables: Tables::default(),
            process,
            written: 0,
        };
        cuda.event(made_up::device(1, Api::Cuda, 1.0));
        for number in [1, 2] {
            cuda.event(made_up::queue(number, 1));
        }
        for (at, name) in FUNCTIONS.iter().enumerate() {
            cuda.event(CudaEvent::Function {
                function: hook::Function(at as u32 + 1),
                class: FunctionClass::from_function(name).unwrap_or_default(),
                name: Cow::Borrowed(name),
            });
        }
        for (number, entry_point) in [(1, "_Z6vecAddPKfS0_Pfi"), (2, "triton_poi_fused_0")] {
            cuda.event(made_up::kernel(number, entry_point));
        }
        // Kernel 1 runs on both streams, and kernel 2 in two sizes on the first.
        for (launch, kernel, queue, threads) in [
            (1, 1, 1, 128),
            (2, 1, 2, 128),
            (3, 2, 1, 64),
            (4, 2, 1, 256),
        ] {
            cuda.event(CudaEvent::Launch {
                launch: hook::Launch(launch),
                shape: LaunchShape {
                    kernel: hook::Kernel(kernel),
                    queue: hook::Queue(queue),
                    groups: [8, 2, 1],
                    local_size: [threads, 1, 1],
                    static_shared_bytes: 16,
                    dynamic_shared_bytes: 1024,
                    local_bytes: 0,
                    registers: 40,
                },
            });
        }
        cuda.event(CudaEvent::Route {
            route: hook::Route(1),
            queue: hook::Queue(1),
            kind: TransferKind::HostToDevice,
            source: MemoryPlace::Pageable,
            destination: MemoryPlace::Device,
        });
        cuda
    }

    fn event<'a>(&mut self, event: impl Into<Event<'a>>) {
        self.assembler
            .apply(self.process, hook::Thread(10), event, &mut self.tables);
    }

    /// Sends the activities as one batch, after the calls that threads recorded before each.
    fn batch(&mut self, told: &[Recorded]) {
        let mut packer = Packer::new(1 << 16);
        for told in told {
            match told {
                Recorded::Event(event) => {
                    self.send(&mut packer);
                    self.event(event.clone());
                }
                Recorded::Activity(activity) => packer.push(activity),
            }
        }
        self.send(&mut packer);
    }

    fn send(&mut self, packer: &mut Packer) {
        let (first, count) = (self.written, packer.count());
        self.event(CudaEvent::Activities(ActivityBatch {
            first,
            count,
            bytes: packer.bytes(),
        }));
        self.written += u64::from(count);
        packer.clear();
    }

    fn end(&mut self, at_ns: i64) {
        self.event(CommonEvent::ProcessEnd { at_ns });
    }

    fn finish(mut self) -> (Manifest, Tables) {
        self.assembler.finish(&Names::default(), &mut self.tables);
        let mut manifest = Manifest::default();
        self.assembler.describe(&mut manifest);
        (manifest, self.tables)
    }
}

fn between(start_ns: i64, end_ns: i64) -> Span {
    Span {
        start_ns,
        duration_ns: end_ns - start_ns,
    }
}

fn span(start_ns: i64, end_ns: i64) -> Option<Span> {
    Some(between(start_ns, end_ns))
}

/// A call that a thread of the program records, or an activity of the tracing library.
#[derive(Debug, Clone)]
enum Recorded {
    Event(Event<'static>),
    Activity(Activity),
}

fn call(function: u32, correlation: u32, start_ns: i64, end_ns: i64) -> Recorded {
    Recorded::Event(
        CudaEvent::Called {
            function: hook::Function(function),
            span: between(start_ns, end_ns),
            correlation: hook::Correlation(correlation),
            result: 0,
        }
        .into(),
    )
}

fn polls(function: u32, span: Span, count: u32) -> Recorded {
    Recorded::Event(
        CudaEvent::Polled {
            function: hook::Function(function),
            thread: hook::Thread(10),
            span,
            count,
            busy_ns: i64::from(count),
            result: 600,
        }
        .into(),
    )
}

fn kernel(launch: u32, correlation: u32, start_ns: i64, end_ns: i64) -> Recorded {
    Recorded::Activity(Activity::Kernel {
        launch: hook::Launch(launch),
        span: span(start_ns, end_ns),
        correlation: hook::Correlation(correlation),
        node: hook::GraphNode::NONE,
    })
}

fn wait(kind: WaitKind, queue: u32, correlation: u32, start_ns: i64, end_ns: i64) -> Recorded {
    Recorded::Activity(Activity::Wait {
        kind,
        queue: hook::Queue(queue),
        event: hook::CudaEvent::NONE,
        occurrence: 0,
        span: span(start_ns, end_ns),
        correlation: hook::Correlation(correlation),
    })
}

fn node(launch: u32, correlation: u32, start_ns: i64, end_ns: i64) -> Recorded {
    Recorded::Activity(Activity::Kernel {
        launch: hook::Launch(launch),
        span: span(start_ns, end_ns),
        correlation: hook::Correlation(correlation),
        node: hook::GraphNode::new(hook::Graph(1), 0),
    })
}

/// Returns a call that enqueued something without a record of the device.
fn submission(queue: u32, correlation: u32) -> Recorded {
    Recorded::Activity(Activity::Submission {
        queue: hook::Queue(queue),
        correlation: hook::Correlation(correlation),
    })
}
