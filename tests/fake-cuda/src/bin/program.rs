//! A program that uses CUDA and NVTX, step by step as its arguments say. It loads `libcuda.so.1` as programs do, so that it runs on the
//! stub. A step that fails ends it.
//!
//! ```text
//! LD_LIBRARY_PATH=FOLDER fake-cuda-program launch:1000 sync sleep:200 kill
//! ```
//!
//! | step | does |
//! |---|---|
//! | `launch:N`, `runtime:N` | N kernels on the default stream, through the driver or the runtime |
//! | `noise:N` | N times what PyTorch asks at each launch: three times the device, and the last error |
//! | `threads:T:N` | T threads, each with a stream of its own and N kernels |
//! | `grids:N` | N kernels, each with another grid |
//! | `copies`, `waits`, `memory`, `pool` | transfers both ways and a fill; events between streams; allocations |
//! | `runtime-waits`, `own-stream` | as `waits`, through the runtime; through the default streams' other handles |
//! | `captured-waits`, `reused-event` | events in a capture and after it; one with the handle of a destroyed one |
//! | `operations` | functions of the host, waits for values and semaphores, and prefetches on streams |
//! | `unrecorded` | what leaves no record: a decompression, a prefetch, managed memory, a graph that the device may launch |
//! | `host-nodes:N` | graphs with host nodes, N and as many again in a graph inside |
//! | `graph-events` | waits for events that graphs record too |
//! | `refused-waits`, `other-context` | calls that fail; the stream of a context that is not current |
//! | `many-events:N` | N events, each recorded on a stream once |
//! | `wait-threads:T:N` | T threads, N times an event on one stream of its own, and another that waits for it |
//! | `read`, `peer`, `managed` | a copy that the call awaits; copies between devices; managed memory |
//! | `polls:N`, `runtime-polls:N` | N kernels, each awaited by asking again and again; prints how often |
//! | `poll-threads:T:N` | T threads at the same time, each as `polls:N` |
//! | `poll-while:STEP`, `launch-while:STEP` | another step, while a thread asks, or launches kernels, again and again |
//! | `attribute:N` | prints whether CUPTI's attribute is set |
//! | `graph:NODES:TIMES`, `runtime-graph:…` | a graph, launched again and again |
//! | `labelled-graph:NODES:TIMES` | a graph, made inside the label `warm-up` with its nodes inside `model`, launched inside `decode` |
//! | `reload` | a kernel, then another whose name lies where the first one's lay |
//! | `load:FILE,…` | a kernel of each file, PTX or a cubin |
//! | `device:D` | a context on device D, current from here on |
//! | `end-context` | the current context is destroyed |
//! | `green` | a green context, current from here on, with a kernel on a stream of its own |
//! | `profiler`, `profiler-first` | a profiler inside: subscribes to CUPTI, or takes its buffers; prints what it got |
//! | `nvtx`, `payloads` | each kind of NVTX call; labels with values in structures |
//! | `far-category` | a label with a category that has too great a number |
//! | `labels:N` | N labels with a launch inside |
//! | `fork:STEP`, `spawn:STEP` | a child without or with exec runs a step, and ends by `_exit` |
//! | `fork-exit:STEP` | the same, and ends by `exit` |
//! | `capture:STEP` | a step with recording on, by the in-process interface; with a path in `GAPSCOPE_CAPTURE`, a capture of its own |
//! | `compute:KERNEL:N[:HOW]` | N launches of a kernel of `driver/kernels.rs`; prints a checksum of the memory that it used. HOW is `packed`, `library`, `cooperative`, `cluster`, `shared` or `own` |
//! | `compute-graph:KERNEL:NODES:TIMES` | the same, as the kernels of a captured graph |
//! | `same-names:N` | N launches of the kernel `same` of each of two modules, which do different things |
//! | `pipeline:N` | N times a kernel, a copy to the device, a kernel that uses the results of both, a fill, and a copy on the device |
//! | `reallocate` | kernels on memory that is freed between them, so that smaller memory is at the same address |
//! | `host-memory`, `managed-memory` | kernels that use page-locked memory, both kinds of it, or managed memory |
//! | `global-address` | a kernel with a parameter that points into a global |
//! | `sparse` | kernels that use small parts of large memory |
//! | `spin:MS` | a kernel waits for a word that the host writes after so many milliseconds |
//! | `spin-for-kernel` | a kernel waits for a word that a later kernel of another stream writes |
//! | `fault` | a kernel uses memory that is not there; prints what the next call says |
//! | `device-malloc`, `collective` | kernels that call `malloc`, and that have the name of one of NCCL's |
//! | `inside:LABEL:STEP` | another step inside a label |
//! | `flushes:N`, `calls:N` | waits until CUPTI has been flushed, or the driver called, N times more |
//! | `filter` | from then on, a system call that opens a file ends the program |
//! | `sync`, `sleep:MS`, `no-cuda` | waits; `no-cuda` as the first step leaves CUDA alone |
//! | `exit:CODE`, `_exit`, `abort`, `kill` | ends |

#[path = "../cubin.rs"]
mod cubin;
#[path = "program/cuda.rs"]
mod cuda;
#[path = "program/filter.rs"]
mod filter;
#[path = "program/nvtx.rs"]
mod nvtx;
#[path = "program/nvtx_tables.rs"]
mod nvtx_tables;
#[path = "program/payloads.rs"]
mod payloads;
#[path = "program/profiler.rs"]
mod profiler;

use cuda::Cuda;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const KERNEL: &str = "_Z3addPfS_i";

fn main() {
    let steps: Vec<String> = std::env::args().skip(1).collect();
    if steps.first().is_some_and(|s| s == "no-cuda") {
        nvtx::labels(3, || {});
        return;
    }
    let cuda = Cuda::load();
    if steps.first().is_some_and(|s| s == "profiler-first") {
        profiler::subscribe();
    }
    if steps.first().is_none_or(|s| s != "fork-first") {
        cuda.initialise();
    }
    for step in &steps {
        run(&cuda, step);
    }
}

fn run(cuda: &Cuda, step: &str) {
    let mut words = step.splitn(2, ':');
    let (name, rest) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let numbers: Vec<u64> = rest.split(':').filter_map(|w| w.parse().ok()).collect();
    let number = |index: usize| {
        *numbers
            .get(index)
            .unwrap_or_else(|| panic!("{step} wants more numbers"))
    };
    match name {
        "launch" => cuda.launches(KERNEL, number(0), 0),
        "runtime" => cuda.runtime_launches(KERNEL, number(0)),
        "noise" => cuda.noise(number(0)),
        "threads" => on_threads(cuda, number(0), || {
            cuda.launches(KERNEL, number(1), cuda.stream(1));
        }),
        "grids" => cuda.grids(KERNEL, number(0)),
        "copies" => cuda.copies(),
        "waits" => cuda.waits(KERNEL),
        "runtime-waits" => cuda.runtime_waits(KERNEL),
        "own-stream" => cuda.own_stream(KERNEL),
        "captured-waits" => cuda.captured_waits(KERNEL),
        "reused-event" => cuda.reused_event(KERNEL),
        "graph-events" => cuda.graph_events(KERNEL),
        "refused-waits" => cuda.refused_waits(KERNEL),
        "other-context" => cuda.other_context(KERNEL),
        "many-events" => cuda.many_events(number(0)),
        "wait-threads" => on_threads(cuda, number(0), || cuda.hand_over(number(1))),
        "operations" => cuda.operations(KERNEL),
        "unrecorded" => cuda.unrecorded(KERNEL),
        "host-nodes" => cuda.host_nodes(KERNEL, number(0)),
        "loops" => cuda.loops(KERNEL, number(0)),
        "memory" => cuda.memory(),
        "read" => cuda.read(),
        "peer" => cuda.peer(),
        "managed" => cuda.managed(),
        "polls" => cuda.polls(KERNEL, number(0), false),
        "runtime-polls" => cuda.polls(KERNEL, number(0), true),
        "poll-threads" => on_threads(cuda, number(0), || cuda.polls(KERNEL, number(1), false)),
        "poll-while" => meanwhile(cuda, rest, |begun, stop| {
            cuda.polls_until(KERNEL, begun, stop);
        }),
        "launch-while" => meanwhile(cuda, rest, |begun, stop| {
            while !stop.load(Relaxed) {
                cuda.launches(KERNEL, 1, 0);
                begun.store(true, Relaxed);
            }
        }),
        "attribute" => cuda.attribute(number(0) as u32),
        "payloads" => payloads::everything(cuda),
        "pool" => cuda.pool(),
        "graph" => cuda.graph(KERNEL, number(0) as u32, number(1), false),
        "runtime-graph" => cuda.graph(KERNEL, number(0) as u32, number(1), true),
        "labelled-graph" => {
            let graph = nvtx::inside(c"warm-up", || {
                cuda.make_graph_inside(KERNEL, number(0), |add| nvtx::inside(c"model", add))
            });
            nvtx::inside(c"decode", || cuda.launch_graph(graph, number(1), false));
        }
        "compute" => cuda.compute(rest),
        "compute-graph" => cuda.compute_graph(rest),
        "same-names" => cuda.same_names(number(0)),
        "pipeline" => cuda.pipeline(number(0)),
        "host-memory" => cuda.host_memory(),
        "reallocate" => cuda.reallocate(),
        "managed-memory" => cuda.managed_memory(),
        "global-address" => cuda.global_address(),
        "sparse" => cuda.sparse(),
        "spin" => cuda.spin(number(0)),
        "spin-for-kernel" => cuda.spin_for_kernel(),
        "fault" => cuda.fault(),
        "device-malloc" => cuda.device_malloc(),
        "collective" => cuda.collective(),
        "inside" => {
            let (label, step) = rest.split_once(':').expect("a label and a step");
            let label = std::ffi::CString::new(label).expect("a text");
            nvtx::inside(&label, || run(cuda, step));
        }
        "green" => cuda.green(KERNEL),
        "load" => cuda.load_files(rest),
        "reload" => cuda.reload(["_Z5firstv", "_Z6secondv"]),
        "device" => cuda.context(number(0) as i32),
        "end-context" => cuda.end_context(),
        "profiler" => profiler::steal(cuda, || cuda.launches(KERNEL, 100, 0)),
        "profiler-first" | "fork-first" => {}
        "nvtx" => nvtx::everything(cuda),
        "far-category" => nvtx::far_category(),
        "labels" => nvtx::labels(number(0), || cuda.launches(KERNEL, 1, 0)),
        "fork" => fork(cuda, rest, false),
        "fork-exit" => fork(cuda, rest, true),
        "spawn" => spawn(rest),
        "capture" => profiler::capture(cuda, || run(cuda, rest)),
        "sync" => cuda.synchronise(),
        "flushes" => cuda.await_flushes(number(0)),
        "calls" => cuda.await_calls(number(0)),
        "filter" => filter::set(),
        "sleep" => std::thread::sleep(Duration::from_millis(number(0))),
        "exit" => std::process::exit(number(0) as i32),
        // SAFETY: they end the process, as they should.
        "_exit" => unsafe { libc::_exit(0) },
        "abort" => std::process::abort(),
        // SAFETY: as above.
        "kill" => unsafe {
            libc::raise(libc::SIGKILL);
        },
        _ => panic!("there is no step {step}"),
    }
}

/// Works on this many threads at once, in this thread's context.
fn on_threads(cuda: &Cuda, threads: u64, work: impl Fn() + Sync) {
    let context = cuda.current();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                cuda.use_context(context);
                work();
            });
        }
    });
}

/// Runs a step while another thread works, which tells when it has started and is asked to stop.
fn meanwhile(cuda: &Cuda, step: &str, work: impl Fn(&AtomicBool, &AtomicBool) + Sync) {
    let (begun, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let context = cuda.current();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            cuda.use_context(context);
            work(&begun, &stop);
        });
        while !begun.load(Relaxed) && !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let done = catch_unwind(AssertUnwindSafe(|| run(cuda, step)));
        stop.store(true, Relaxed);
        done.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// Runs a step in a child without exec. The child cannot use the parent's CUDA: its launches fail, which is no failure of the test.
fn fork(cuda: &Cuda, step: &str, in_order: bool) {
    // SAFETY: the child does one step and ends.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "fork");
        if child == 0 {
            match step {
                "nothing" => {}
                "labels" => nvtx::labels(5, || {}),
                "waits" => cuda.refused_in_child(),
                "launch" => assert_ne!(
                    cuda.try_launch(KERNEL),
                    0,
                    "CUDA does not work in a forked child"
                ),
                "cuda" => {
                    cuda.initialise();
                    cuda.launches(KERNEL, 7, 0);
                    cuda.synchronise();
                }
                _ => panic!("a child cannot {step}"),
            }
            if in_order {
                libc::exit(0);
            }
            std::thread::sleep(Duration::from_millis(250));
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert_eq!(status, 0, "the child's end");
    }
}

/// Runs a step in a child with exec, which inherits the environment.
fn spawn(step: &str) {
    let program = std::env::current_exe().expect("this program");
    let status = std::process::Command::new(program)
        .arg(step)
        .status()
        .expect("the child runs");
    assert!(status.success(), "{status}");
}
