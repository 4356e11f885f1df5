//! Each text of advice in the sources has a program in which it is given, and one that looks alike in which it is not.
//!
//! The texts are read from the sources, so that one without a pair fails here.

use crate::advice_pairs::{
    calls, calls_that_wait, graphs, hands_over, other_context, pair, short_launches,
};
use crate::outside_of_calls::{decoder, sample, sampled};
use crate::program::Program;
use crate::true_causes::{
    calls_meanwhile, copies, cuda, launches, reads_back, slow_launches, under_pressure,
};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};

/// The sources whose texts are advice: each from the first mark to the second.
const SOURCES: [(&str, &str, &str); 4] = [
    (include_str!("../../src/gaps/advice.rs"), "", ""),
    (
        include_str!("../../src/gaps/advice/launch_calls.rs"),
        "",
        "",
    ),
    (
        include_str!("../../src/code/waited_for.rs"),
        "pub fn advice",
        "pub(super) fn new",
    ),
    (include_str!("../../src/gaps/cause.rs"), "\ncauses! {", ""),
];
/// Shorter texts, and shorter pieces of texts between their figures, join others.
const LEAST_TEXT: usize = 12;
const LEAST_PIECE: usize = 16;

type Plant = Box<dyn Fn() -> Findings>;

/// Texts of the advice on a cause, a program in which they are given, and one in which none of them is.
struct TextPair(Cause, &'static [&'static str], Plant, Plant);

fn of<F: Fn() -> Findings + 'static>(plant: F) -> Plant {
    Box::new(plant)
}

/// A program on Vulkan whose calls of 500 us each submit so many command buffers.
fn submissions(command_buffers: u64) -> Findings {
    let mut p = Program::new();
    for turn in 0..3 {
        let t = turn * 1_000;
        p.line(&format!(
            "submission id={turn} process=1 queue=1 thread=7 start_ns={}us duration_ns=500us command_buffers={command_buffers}
             command_buffer id={turn} process=1 queue=1 submission={turn} dispatches=1
             dispatch command_buffer={turn} queue=1 kernel=1 start_ns={}us duration_ns=100us",
            t + 200,
            t + 800
        ));
    }
    p.findings()
}

/// A program on Vulkan that pauses between its submissions, and makes a call in the pause.
fn vulkan(call: &str) -> Findings {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 1_000;
        p.dispatch(1, [t, t + 5], t + 10, 100);
        p.call(call, [t + 120, t + 900]);
    }
    p.findings()
}

/// Two queues of Vulkan on one GPU, of which the second waits for the first and starts 5 us after it.
fn vulkan_queues() -> Findings {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 1_000;
        let first = p.dispatch(1, [t - 10, t - 5], t, 100);
        let second = p.dispatch(2, [t - 4, t - 1], t + 105, 90);
        p.depends(second, first);
    }
    p.findings()
}

/// Two GPUs, of which the first waits for work of the second until `until` us, or does not wait. Two processes use the second.
fn vulkan_gpus(plant: impl FnOnce(&mut Program)) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
         process id=1 pid=10 hook=vulkan\nprocess id=2 pid=11 hook=vulkan
         device id=1 process=1 api=vulkan name=GPU uuid=aa clock.error_ns=0
         device id=2 process=1 api=vulkan name=GPU uuid=bb clock.error_ns=0
         device id=3 process=2 api=vulkan name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=3 device=2\nqueue id=4 device=3
         kernel id=1 process=1 name=work",
    );
    p.dispatch(1, [-20, -10], 0, 100);
    p.call("other-call", [-9, -8]);
    plant(&mut p);
    p.findings()
}

/// Work of the first GPU that waits for work of the second, which runs until `until` us.
fn waits_for_gpu(until: i64) -> Findings {
    vulkan_gpus(|p| {
        let other = p.dispatch(3, [-20, -10], 0, until);
        let id = p.dispatch(1, [10, 15], until.max(100) + 5, 100);
        p.depends(id, other);
    })
}

/// Work of this process or of another one that was submitted before the kernel of this one began.
fn takes_turns(process: u32, queue: u32) -> Findings {
    vulkan_gpus(|p| {
        p.line(&format!(
            "submission id=90 process={process} queue={queue} thread=9 start_ns=-9us duration_ns=5us command_buffers=1
             command_buffer id=90 process={process} queue={queue} submission=90 dispatches=1
             dispatch command_buffer=90 queue={queue} kernel=1 start_ns=140us duration_ns=100us"
        ));
    })
}

/// A command buffer with so many dispatches, 20 us apart.
fn dispatches(count: i64) -> Findings {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 1_000;
        let id = p.submit(1, [t, t + 5]);
        p.line(&format!(
            "command_buffer id={id} process=1 queue=1 submission={id} dispatches={count}"
        ));
        for position in 0..count {
            let start = t + 10 + position * 120;
            p.line(&format!(
                "dispatch command_buffer={id} position={position} queue=1 kernel=1 start_ns={start}us duration_ns=100us"
            ));
        }
    }
    p.findings()
}

/// A program whose executable is `executable` with two launches and a pause.
fn paused(executable: &str, call: bool) -> Findings {
    let mut p = Program::from_text(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda executable={executable}
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work"
    ));
    p.launch(1, [0, 5], 10, 100);
    p.launch(1, [500, 505], 510, 100);
    if call {
        p.call("map-memory", [200, 201]);
    }
    p.findings()
}

/// Launches of kernels of `kernel` us, `count` of them, in calls of 10 us.
fn many(count: i64, kernel: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..count {
        let t = turn * (kernel + 11);
        p.launch(1, [t, t + 10], t + 11, kernel);
    }
    p.findings()
}

/// Launches that are in progress for as long as their kernels run, after `before` us.
fn blocking(before: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * (before + 970);
        p.launch(1, [t, t + before + 910], t + before, 900);
        p.call("other-call", [t + before + 911, t + before + 912]);
    }
    p.findings()
}

/// Waits for the device, after kernels alone or after copies to the host too.
fn synchronises(copies: bool) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * 1_000;
        let id = p.launch(1, [t, t + 5], t + 8, 100);
        if copies {
            p.line(&format!(
                "transfer submission={id} queue=1 kind=device-to-host bytes=4 host_memory=pinned start_ns={}us duration_ns=2us",
                t + 109
            ));
        }
        p.call("wait-device-idle", [t + 10, t + 900]);
    }
    p.findings()
}

/// A `cudaFree` on a thread, from 5 to 108 us, that waits for each kernel of 100 us; the next launch is from `from` to `to` us.
fn frees(thread: u32, from: i64, to: i64) -> Findings {
    let mut p = cuda();
    let period = to + 5;
    for turn in 0..50 {
        let t = turn * period;
        p.launch(1, [t - period + from, t - period + to], t, 100);
        p.line(&format!(
            "host_call process=1 thread={thread} call=free-memory function=cudaFree start_ns={}us duration_ns=103us",
            t + 5
        ));
        p.call("other-call", [t + 1, t + 2]);
    }
    p.findings()
}

/// Graphs of two kernels in calls of 500 us, and `others` launches in none.
fn graphs_and(kernels: usize, others: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..3 {
        let t = turn * 1_000;
        let all = [[t + 650, 50], [t + 710, 50]];
        p.graph(1, [t + 100, t + 600], &all[..kernels], "");
    }
    for turn in 3..3 + others {
        let t = turn * 1_000;
        p.launch(1, [t + 500, t + 600], t + 650, 100);
    }
    p.findings()
}

/// Copies of a kind in calls of 500 us, which start after the call.
fn starts_copies(kind: &str, bytes: u64) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * 1_000;
        let id = p.mark(1, "transfer", [t, t + 500]);
        p.line(&format!(
            "transfer submission={id} queue=1 kind={kind} bytes={bytes} host_memory=pinned start_ns={}us duration_ns=480us",
            t + 510
        ));
    }
    p.findings()
}

/// A function of the host before each of two kernels, of which the first `timed` have times.
fn host_functions(timed: usize) -> Findings {
    let mut p = cuda();
    p.launch(1, [0, 5], 10, 100);
    for turn in 0..2 {
        let t = turn * 600;
        p.mark(1, "host-function", [t + 6, t + 7]);
        p.launch(1, [t + 8, t + 9], t + 500, 100);
        if (turn as usize) < timed {
            p.line(&format!(
                "host_call process=1 call=host-function queue=1 start_ns={}us duration_ns=380us",
                t + 112
            ));
        }
    }
    p.findings()
}

/// A late thread while thread 8 loads code, until after the next launch, or not.
fn compiled_meanwhile(call: &'static str) -> Findings {
    let mut p = cuda();
    for turn in 0..20 {
        let t = turn * 10_000;
        p.launch(1, [t, t + 5], t + 8, 100);
        p.call("other-call", [t + 110, t + 111]);
        p.call_on(8, call, [t + 120, t + 10_006]);
    }
    p.findings()
}

/// Work of HIP of this process or of another one that was submitted before the kernel of this one began.
fn hip_turns(process: u32) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
         process id=1 pid=10 hook=cuda\nprocess id=2 pid=11 hook=cuda
         device id=1 process=1 api=hip name=GPU uuid=aa clock.error_ns=0
         device id=2 process=2 api=hip name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=2
         kernel id=1 process=1 name=work",
    );
    p.launch(1, [-20, -10], 0, 100);
    p.call("other-call", [-9, -8]);
    p.line(&format!(
        "submission id=90 process={process} queue={process} thread=9 start_ns=-9us duration_ns=5us kind=kernel
         dispatch submission=90 queue={process} kernel=1 start_ns=140us duration_ns=100us"
    ));
    p.findings()
}

/// Calls of HIP: one of a function between two launches.
fn hip(call: &str, function: &str) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda executable=/usr/bin/app
         device id=1 process=1 api=hip name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work",
    );
    p.launch(1, [-20, -10], 0, 100);
    p.line(&format!(
        "host_call process=1 thread=7 call={call} function={function} start_ns=110us duration_ns=280us"
    ));
    p.launch(1, [391, 395], 398, 100);
    p.findings()
}

fn sleeps(columns: &'static str) -> Plant {
    of(move || sampled(|at| sample(at, columns), ""))
}

const RUNS: &str = "state=running stack=1";

fn pairs() -> Vec<TextPair> {
    let every_fourth = |turn: i64| if turn % 4 == 0 { 6_000 } else { 5 };
    let small = || of(|| reads_back("pageable", 4, 925, 100));
    let large = || of(|| reads_back("pageable", 4 << 20, 1_100, 100));
    let slept = |texts, columns| TextPair(HostLate, texts, sleeps(columns), sleeps(RUNS));
    vec![
        TextPair(
            ContextSwitch,
            &["processes take turns on the device: submit from one process"],
            of(|| takes_turns(2, 4)),
            of(|| takes_turns(1, 1)),
        ),
        TextPair(
            ContextSwitch,
            &["processes or contexts take turns on the device: submit from one"],
            of(|| hip_turns(2)),
            of(|| hip_turns(1)),
        ),
        TextPair(
            WithinCommandBuffer,
            &["barriers between dispatches, or commands that are not recorded"],
            of(|| dispatches(3)),
            of(|| dispatches(1)),
        ),
        TextPair(
            AfterHostWait,
            &[
                "most of it waits for small results to be read back",
                "read them back less often",
            ],
            small(),
            large(),
        ),
        TextPair(
            AfterHostWait,
            &[
                "most of it waits for copies of pageable memory",
                "pin the memory (",
                "), and copy asynchronously",
            ],
            large(),
            small(),
        ),
        TextPair(
            AfterHostWait,
            &["synchronise less often"],
            of(|| synchronises(false)),
            of(|| calls_that_wait("free-memory", "cudaFree")),
        ),
        TextPair(
            AfterHostWait,
            &["copy results asynchronously to pinned memory"],
            of(|| synchronises(true)),
            of(|| synchronises(false)),
        ),
        TextPair(
            AfterHostWait,
            &["launches do so where CUDA_LAUNCH_BLOCKING"],
            of(|| blocking(8)),
            of(|| blocking(2_000)),
        ),
        TextPair(
            AfterHostWait,
            &["call it outside of the loop, or less often"],
            of(|| calls_meanwhile("other-call", "cuStreamDestroy", 200, [10, 113])),
            of(|| calls_meanwhile("free-memory", "cudaFree", 200, [10, 113])),
        ),
        TextPair(
            AfterHostWait,
            &[" waits for the GPU: "],
            of(|| calls_meanwhile("free-memory", "cudaFree", 200, [10, 113])),
            of(|| calls_that_wait("wait-queue-idle", "cudaStreamSynchronize")),
        ),
        TextPair(
            AfterHostWait,
            &[
                " of another thread waits for the GPU, and the ",
                " thread went on only after it: ",
            ],
            of(|| frees(8, 160, 165)),
            of(|| frees(7, 160, 165)),
        ),
        TextPair(
            AfterHostWait,
            &[" thread is blocked behind its lock: "],
            of(|| frees(8, 50, 113)),
            of(|| frees(8, 160, 165)),
        ),
        TextPair(
            AfterHostWait,
            &["submit the next work before waiting"],
            of(|| vulkan("wait-fences")),
            of(|| synchronises(true)),
        ),
        TextPair(
            ContextSwitch,
            &["; the device is used by "],
            of(|| other_context(4)),
            of(|| other_context(1)),
        ),
        TextPair(
            LaunchLatency,
            &["the device's own time to start work: fewer and larger kernels"],
            of(|| calls("other-call", "cuCtxSetLimit")),
            of(|| submissions(2)),
        ),
        TextPair(
            LaunchLatency,
            &[
                "the device's own time to start work; ",
                " are in each submission already: submit the next before the last has ended",
            ],
            of(|| submissions(2)),
            of(|| submissions(1)),
        ),
        TextPair(
            LaunchLatency,
            &["fewer and larger submissions"],
            of(|| submissions(1)),
            of(|| submissions(2)),
        ),
        TextPair(
            HostCompile,
            &["build graphs before the loop"],
            of(|| calls("build-graph", "cudaGraphInstantiate")),
            of(|| calls("load-module", "cuModuleLoadData")),
        ),
        TextPair(
            HostCompile,
            &[
                "new code is built and loaded ",
                " before each load: build it once and keep it",
            ],
            of(|| decoder(|_| 50_000, |_| true, "")),
            of(|| decoder(|_| 50_000, |token| token % 5 == 0, "")),
        ),
        TextPair(
            HostCompile,
            &["load modules and instantiate graphs before the loop"],
            of(|| hip("load-module", "hipModuleLoad")),
            of(|| hip("build-graph", "hipGraphInstantiate")),
        ),
        TextPair(
            HostCompile,
            &["create pipelines and shaders before the loop"],
            of(|| vulkan("create-pipelines")),
            of(|| calls("load-module", "cuModuleLoadData")),
        ),
        TextPair(
            HostAllocate,
            &[
                "it was mostly in ",
                ": allocate that memory once, and reuse it",
            ],
            of(|| calls("allocate-memory", "cudaHostAlloc")),
            of(|| calls("allocate-memory", "cudaMalloc")),
        ),
        TextPair(
            HostAllocate,
            &[", which takes from a pool already: let the pool keep its memory"],
            of(|| calls("allocate-memory", "cudaMallocAsync")),
            of(|| calls("allocate-memory", "cudaMalloc")),
        ),
        TextPair(
            HostAllocate,
            &["from a memory pool (hipMallocAsync)"],
            of(|| hip("allocate-memory", "hipMalloc")),
            of(|| hip("allocate-memory", "hipHostMalloc")),
        ),
        TextPair(
            HostAllocate,
            &["allocate once and reuse; keep buffers mapped"],
            of(|| vulkan("allocate-memory")),
            of(|| calls("allocate-memory", "cudaMalloc")),
        ),
        TextPair(
            QueueHandover,
            &["most is between devices: give each device more work"],
            of(|| hands_over("kernel", 3)),
            of(|| hands_over("kernel", 1)),
        ),
        TextPair(
            QueueHandover,
            &["most is of copies, which overlap kernels where they are"],
            of(|| hands_over("copy", 1)),
            of(|| hands_over("kernel", 1)),
        ),
        TextPair(
            QueueHandover,
            &["keep work that depends on each other on one queue"],
            of(vulkan_queues),
            of(|| hands_over("kernel", 1)),
        ),
        TextPair(
            OtherQueue,
            &["shorten that, or give this queue independent work"],
            of(|| waits_for_gpu(300)),
            of(|| waits_for_gpu(100)),
        ),
        TextPair(
            HostCall,
            &[", which waits for the display or the compositor"],
            of(|| calls("acquire-image", "vkAcquireNextImageKHR")),
            of(|| calls("other-call", "cuCtxSetLimit")),
        ),
        TextPair(
            HostCall,
            &[": call it before the loop, or less often"],
            of(|| calls("other-call", "cuCtxSetLimit")),
            of(|| calls("acquire-image", "vkAcquireNextImageKHR")),
        ),
        TextPair(
            GraphLaunch,
            &[" kernels already: launch the next before the last has ended"],
            of(|| graphs(5)),
            of(|| graphs(1)),
        ),
        TextPair(
            HostLate,
            &["launch ahead, or put many launches into a graph"],
            of(|| short_launches(5, 50)),
            of(|| short_launches(5, 2_000)),
        ),
        TextPair(
            HostLate,
            &["launch ahead, or prepare the work on another thread"],
            of(|| short_launches(5, 2_000)),
            of(|| short_launches(5, 50)),
        ),
        TextPair(
            HostLate,
            &["launch ahead"],
            of(|| graphs_and(2, 0)),
            of(|| vulkan("map-memory")),
        ),
        TextPair(
            HostLate,
            &["prepare work ahead, or submit more at once"],
            of(|| vulkan("map-memory")),
            of(|| graphs_and(2, 0)),
        ),
        TextPair(
            HostLate,
            &[" thread ran its own code: "],
            sleeps(RUNS),
            sleeps("state=blocked stack=1 system_call=futex"),
        ),
        slept(
            &[
                " thread slept, waiting for ",
                "shorten what the other thread does meanwhile",
            ],
            "state=blocked stack=1 system_call=futex",
        ),
        slept(
            &["let the other process run ahead"],
            "state=blocked stack=1 system_call=wait4",
        ),
        slept(
            &["ask earlier for what is awaited"],
            "state=blocked stack=1 system_call=recvmsg",
        ),
        slept(
            &["shorten the sleep, or wait for the event itself"],
            "state=blocked stack=1 system_call=nanosleep",
        ),
        slept(
            &["read ahead on another thread"],
            "state=blocked stack=1 system_call=pread64",
        ),
        slept(
            &["prepare work ahead"],
            "state=blocked stack=1 system_call=ioctl",
        ),
        TextPair(
            HostLate,
            &["it had nothing to do: send it more work at once"],
            of(|| {
                let frame = "frame id=9 kind=native function=epoll_wait library=/usr/lib/libc.so.6\nstack id=9 frame=9";
                sampled(
                    |at| sample(at, "state=blocked stack=9 system_call=epoll_wait"),
                    frame,
                )
            }),
            sleeps(RUNS),
        ),
        TextPair(
            HostLate,
            &["the launching thread was outside of GPU calls, such as in Python: "],
            of(|| paused("/usr/bin/python3", true)),
            of(|| paused("/usr/bin/app", true)),
        ),
        TextPair(
            HostLate,
            &["the launching thread was outside of GPU calls: "],
            of(|| paused("/usr/bin/app", true)),
            of(|| paused("/usr/bin/python3", true)),
        ),
        TextPair(
            HostLate,
            &["the submitting thread was outside of GPU calls: "],
            of(|| vulkan("map-memory")),
            of(|| paused("/usr/bin/app", true)),
        ),
        TextPair(
            HostLate,
            &["it is not known which thread ", ", or what it did"],
            of(|| paused("/usr/bin/app", false)),
            of(|| paused("/usr/bin/app", true)),
        ),
        TextPair(
            HostLate,
            &[
                " of it other threads compiled or loaded code, for which the submitting thread may have waited: ",
            ],
            of(|| compiled_meanwhile("load-module")),
            of(|| compiled_meanwhile("other-call")),
        ),
        TextPair(
            HostLate,
            &[
                "a task waited for ",
                " of the time, perhaps the submitting thread: ",
                "stop other programs, or use fewer threads",
            ],
            of(|| under_pressure("machine stalled on cpu (some)", 95)),
            of(|| under_pressure("machine stalled on cpu (some)", 20)),
        ),
        TextPair(
            HostLate,
            &["read ahead, or from faster storage"],
            of(|| under_pressure("machine stalled on io (some)", 80)),
            of(|| under_pressure("machine stalled on cpu (some)", 95)),
        ),
        TextPair(
            HostFunction,
            &["; at most so long, ", "as it is not recorded when they ran"],
            of(|| host_functions(0)),
            of(|| host_functions(2)),
        ),
        TextPair(
            HostFunction,
            &["; at most so long for "],
            of(|| host_functions(1)),
            of(|| host_functions(2)),
        ),
        TextPair(
            SubmitCall,
            &["most of it copies pageable memory, which the call itself moves: "],
            of(|| copies("pageable", 4 << 20)),
            of(|| copies("pinned", 4 << 20)),
        ),
        TextPair(
            SubmitCall,
            &[" are in each submission already: submit less often, or from a thread of its own"],
            of(|| submissions(2)),
            of(|| submissions(1)),
        ),
        TextPair(
            SubmitCall,
            &["put several command buffers into one submission"],
            of(|| submissions(1)),
            of(|| submissions(2)),
        ),
        TextPair(
            SubmitCall,
            &[
                "most of it launches graphs, of ",
                " kernels each: launch the next before the last has ended",
            ],
            of(|| graphs_and(2, 0)),
            of(|| many(100, 20)),
        ),
        TextPair(
            SubmitCall,
            &[" kernels each: a graph helps only with more kernels in it"],
            of(|| graphs_and(1, 0)),
            of(|| graphs_and(2, 0)),
        ),
        TextPair(
            SubmitCall,
            &["most of it reads back small results: "],
            of(|| starts_copies("device-to-host", 4)),
            of(|| starts_copies("host-to-device", 4)),
        ),
        TextPair(
            SubmitCall,
            &["most of it starts copies: join small ones"],
            of(|| starts_copies("host-to-device", 4)),
            of(|| starts_copies("device-to-host", 4)),
        ),
        TextPair(
            SubmitCall,
            &["launch the next before the last work has ended"],
            of(|| many(100, 900)),
            of(|| many(100, 20)),
        ),
        TextPair(
            SubmitCall,
            &["put the launches that are in no graph into one"],
            of(|| graphs_and(2, 27)),
            of(|| many(100, 20)),
        ),
        TextPair(
            SubmitCall,
            &[
                "one call took ",
                "where the usual call takes ",
                "what held it up is not in the trace",
            ],
            of(|| launches(100, &[50], |_| 1)),
            of(|| launches(100, &[], |_| 1)),
        ),
        TextPair(
            SubmitCall,
            &[
                " calls took ",
                " of it (the longest ",
                "what held them up is not in the trace",
            ],
            of(|| launches(100, &[50, 60, 70], |_| 1)),
            of(|| launches(100, &[50], |_| 1)),
        ),
        TextPair(
            SubmitCall,
            &["where a launch takes some µs"],
            of(|| slow_launches(|_| 8_000, |_| 1, None)),
            of(move || slow_launches(every_fourth, |_| 1, None)),
        ),
        TextPair(
            SubmitCall,
            &["it was the first of this kernel"],
            of(|| launches(100, &[50], |turn| 1 + u32::from(turn >= 50))),
            of(|| launches(100, &[50], |_| 1)),
        ),
        TextPair(
            SubmitCall,
            &["most were the first of their kernel"],
            of(|| slow_launches(|_| 8_000, |turn| 3 + turn, None)),
            of(|| slow_launches(|_| 8_000, |_| 1, None)),
        ),
        TextPair(
            SubmitCall,
            &[
                "most waited while another thread was in ",
                ", perhaps for one lock of the driver: call it at another time",
            ],
            of(|| {
                slow_launches(
                    |_| 8_000,
                    |_| 1,
                    Some("call=allocate-memory function=cudaMalloc"),
                )
            }),
            of(|| {
                slow_launches(
                    |_| 8_000,
                    |_| 1,
                    Some("call=wait-queue-idle function=cudaStreamSynchronize"),
                )
            }),
        ),
    ]
}

#[test]
fn each_text_is_given_in_a_program_that_it_helps_and_not_in_one_that_it_cannot_help() {
    let mut wrong = Vec::new();
    for TextPair(cause, texts, helps, cannot) in pairs() {
        let [helped, not_helped] = [helps(), cannot()]
            .map(|findings| findings.advice_on(cause).unwrap_or_default().to_owned());
        for text in texts {
            if !helped.contains(text) {
                wrong.push(format!("{cause}: \"{text}\" is not in: {helped}"));
            }
            if not_helped.contains(text) {
                wrong.push(format!("{cause}: \"{text}\" is in: {not_helped}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the texts between quotes in a source, without those of comments and of other fields than advice.
fn texts(source: &'static str) -> impl Iterator<Item = &'static str> {
    let lines = source.lines().map(str::trim);
    let lines = lines.filter(|line| {
        let is_other = ["//", "sentence:", "host_was:", "name:", "colour:"];
        !is_other.iter().any(|start| line.starts_with(start))
    });
    lines.flat_map(|line| line.split('"').skip(1).step_by(2))
}

#[test]
fn each_text_of_advice_has_a_pair() {
    let mut paired: Vec<&str> = pairs().iter().flat_map(|pair| pair.1.to_vec()).collect();
    for cause in Cause::ALL {
        paired.extend(pair(cause).map(|pair| pair.helps.1));
    }
    let (mut count, mut without) = (0, Vec::new());
    for (source, from, until) in SOURCES {
        let from = source.find(from).expect("the beginning");
        let source = &source[from..];
        let until = Some(until).filter(|until| !until.is_empty());
        let until = until.map_or(source.len(), |until| source.find(until).expect("the end"));
        for text in texts(&source[..until]) {
            let least = if text.contains('{') {
                LEAST_PIECE
            } else {
                LEAST_TEXT
            };
            let pieces = text.split(['{', '}']).step_by(2);
            let long = pieces.filter(|piece| piece.len() >= least && piece.contains(' '));
            for piece in long {
                count += 1;
                if !paired.iter().any(|paired| piece.contains(paired)) {
                    without.push(piece);
                }
            }
        }
    }
    assert!(
        without.is_empty(),
        "texts without a pair of programs: {without:#?}"
    );
    assert!(count > 50, "{count}");
}
