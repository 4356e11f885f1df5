//! Each text of advice in the sources has a program in which it is given, and one that looks alike in which it is not.
//!
//! The texts are read from the sources, so that one without a pair fails here.

use crate::advice_pairs::{
    calls, calls_that_wait, graphs, hands_over, other_context, pair, short_launches, waits,
};
use crate::advice_programs::{
    SUBMITTED, UNTIMED, blocking, compiled_meanwhile, dispatches, event_returns_early,
    first_of_queue_2, frees, graphs_and, hip, hip_turns, host_functions, in_range, late_start,
    many, paused, returns_early, starts_copies, submissions, synchronises, takes_turns, vulkan,
    vulkan_queues, waits_beside, waits_for_gpu,
};
use crate::outside_of_calls::{decoder, sample, sampled};
use crate::true_causes::{
    calls_meanwhile, copies, launches, reads_back, slow_launches, under_pressure,
};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};

/// The sources whose texts are advice: each from the first mark to the second.
const SOURCES: [(&str, &str, &str); 5] = [
    (include_str!("../../src/gaps/advice.rs"), "", ""),
    (
        include_str!("../../src/gaps/advice/launch_calls.rs"),
        "",
        "",
    ),
    (
        include_str!("../../src/waited_for.rs"),
        "pub fn advice",
        "pub(super) fn new",
    ),
    (include_str!("../../src/gaps/cause.rs"), "\ncauses! {", ""),
    (
        include_str!("../../src/gaps/unknown_reason.rs"),
        "pub fn text",
        "/// Idle time of unknown cause",
    ),
];
/// Shorter texts, and shorter pieces of texts between their figures, join others.
const LEAST_TEXT: usize = 12;
const LEAST_PIECE: usize = 16;

type Plant = Box<dyn Fn() -> Findings>;

/// Texts of the advice on a cause, a program in which they are given, and one in which none of them is.
struct TextPair(Cause, &'static [&'static str], Plant, Plant);

fn plant<F: Fn() -> Findings + 'static>(program: F) -> Plant {
    Box::new(program)
}

fn sleeps(columns: &'static str) -> Plant {
    plant(move || sampled(|at| sample(at, columns), ""))
}

const RUNS: &str = "state=running stack=1";

fn pairs() -> Vec<TextPair> {
    let every_fourth = |turn: i64| if turn % 4 == 0 { 6_000 } else { 5 };
    let small = || plant(|| reads_back("pageable", 4, 925, 100));
    let large = || plant(|| reads_back("pageable", 4 << 20, 1_100, 100));
    let of_queue_2 = |kind| plant(move || waits_beside(kind));
    let slept = |texts, columns| TextPair(HostLate, texts, sleeps(columns), sleeps(RUNS));
    vec![
        TextPair(
            ContextSwitch,
            &["processes take turns on the device: submit from one process"],
            plant(|| takes_turns(2, 4)),
            plant(|| takes_turns(1, 1)),
        ),
        TextPair(
            ContextSwitch,
            &["processes or contexts take turns on the device: submit from one"],
            plant(|| hip_turns(2)),
            plant(|| hip_turns(1)),
        ),
        TextPair(
            WithinCommandBuffer,
            &["barriers between dispatches, or commands that are not recorded"],
            plant(|| dispatches(3)),
            plant(|| dispatches(1)),
        ),
        TextPair(
            AfterHostWait,
            &[
                "most of this time passes in waits for small results to be read back",
                "read results back less often",
            ],
            small(),
            large(),
        ),
        TextPair(
            AfterHostWait,
            &[
                "most of this time passes in waits for copies of pageable memory",
                "pin the memory (",
                "), and copy asynchronously",
            ],
            large(),
            small(),
        ),
        TextPair(
            AfterHostWait,
            &["synchronise less often"],
            plant(|| synchronises(false)),
            plant(|| calls_that_wait("free-memory", "cudaFree")),
        ),
        TextPair(
            AfterHostWait,
            &["copy results asynchronously to pinned memory"],
            plant(|| synchronises(true)),
            plant(|| synchronises(false)),
        ),
        TextPair(
            AfterHostWait,
            &["launches do so where CUDA_LAUNCH_BLOCKING"],
            plant(|| blocking(8)),
            plant(|| blocking(2_000)),
        ),
        TextPair(
            AfterHostWait,
            &["call it outside of the loop, or less often"],
            plant(|| calls_meanwhile("other-call", "cuStreamDestroy", 200, [10, 113])),
            plant(|| calls_meanwhile("free-memory", "cudaFree", 200, [10, 113])),
        ),
        TextPair(
            AfterHostWait,
            &[" waits for the GPU: "],
            plant(|| calls_meanwhile("free-memory", "cudaFree", 200, [10, 113])),
            plant(|| calls_that_wait("wait-queue-idle", "cudaStreamSynchronize")),
        ),
        TextPair(
            AfterHostWait,
            &[
                " of another thread waits for the GPU, and the ",
                " thread went on only after that call: ",
            ],
            plant(|| frees(8, 160, 165)),
            plant(|| frees(7, 160, 165)),
        ),
        TextPair(
            AfterHostWait,
            &[" thread is blocked behind its lock: "],
            plant(|| frees(8, 50, 113)),
            plant(|| frees(8, 160, 165)),
        ),
        TextPair(
            AfterHostWait,
            &["submit the next work before waiting"],
            plant(|| vulkan("wait-fences")),
            plant(|| synchronises(true)),
        ),
        TextPair(
            ContextSwitch,
            &["; the device is used by "],
            plant(|| other_context(4)),
            plant(|| other_context(1)),
        ),
        TextPair(
            LaunchLatency,
            &["the device's own time to start work: fewer and larger kernels"],
            plant(|| calls("other-call", "cuCtxSetLimit")),
            plant(|| submissions(2)),
        ),
        TextPair(
            LaunchLatency,
            &[
                "the device's own time to start work; ",
                " are in each submission already: submit the next before the last has ended",
            ],
            plant(|| submissions(2)),
            plant(|| submissions(1)),
        ),
        TextPair(
            LaunchLatency,
            &["fewer and larger submissions"],
            plant(|| submissions(1)),
            plant(|| submissions(2)),
        ),
        TextPair(
            HostCompile,
            &["build graphs before the loop"],
            plant(|| calls("build-graph", "cudaGraphInstantiate")),
            plant(|| calls("load-module", "cuModuleLoadData")),
        ),
        TextPair(
            HostCompile,
            &[
                "new code is built and loaded ",
                " before each load: build it once and keep it",
            ],
            plant(|| decoder(|_| 50_000, |_| true, "")),
            plant(|| decoder(|_| 50_000, |token| token % 5 == 0, "")),
        ),
        TextPair(
            HostCompile,
            &["load modules and instantiate graphs before the loop"],
            plant(|| hip("load-module", "hipModuleLoad")),
            plant(|| hip("build-graph", "hipGraphInstantiate")),
        ),
        TextPair(
            HostCompile,
            &["create pipelines and shaders before the loop"],
            plant(|| vulkan("create-pipelines")),
            plant(|| calls("load-module", "cuModuleLoadData")),
        ),
        TextPair(
            HostAllocate,
            &[
                "the host was mostly ",
                ": allocate that memory once, and reuse that memory",
            ],
            plant(|| calls("allocate-memory", "cudaHostAlloc")),
            plant(|| calls("allocate-memory", "cudaMalloc")),
        ),
        TextPair(
            HostAllocate,
            &[", which takes from a pool already: let the pool keep its memory"],
            plant(|| calls("allocate-memory", "cudaMallocAsync")),
            plant(|| calls("allocate-memory", "cudaMalloc")),
        ),
        TextPair(
            HostAllocate,
            &["from a memory pool (hipMallocAsync)"],
            plant(|| hip("allocate-memory", "hipMalloc")),
            plant(|| hip("allocate-memory", "hipHostMalloc")),
        ),
        TextPair(
            HostAllocate,
            &["allocate once and reuse; keep buffers mapped"],
            plant(|| vulkan("allocate-memory")),
            plant(|| calls("allocate-memory", "cudaMalloc")),
        ),
        TextPair(
            QueueHandover,
            &["most is between devices: give each device more work"],
            plant(|| hands_over("kernel", 3)),
            plant(|| hands_over("kernel", 1)),
        ),
        TextPair(
            QueueHandover,
            &["most is of copies, which overlap kernels where they are"],
            plant(|| hands_over("copy", 1)),
            plant(|| hands_over("kernel", 1)),
        ),
        TextPair(
            QueueHandover,
            &["keep work that depends on each other on one queue"],
            plant(vulkan_queues),
            plant(|| hands_over("kernel", 1)),
        ),
        TextPair(
            OtherQueue,
            &["shorten that, or give this queue independent work"],
            plant(|| waits_for_gpu(300)),
            plant(|| waits_for_gpu(100)),
        ),
        TextPair(
            HostCall,
            &[", which waits for the display or the compositor"],
            plant(|| calls("acquire-image", "vkAcquireNextImageKHR")),
            plant(|| calls("other-call", "cuCtxSetLimit")),
        ),
        TextPair(
            HostCall,
            &[": call it before the loop, or less often"],
            plant(|| calls("other-call", "cuCtxSetLimit")),
            plant(|| calls("acquire-image", "vkAcquireNextImageKHR")),
        ),
        TextPair(
            GraphLaunch,
            &[" kernels already: launch the next before the last has ended"],
            plant(|| graphs(5)),
            plant(|| graphs(1)),
        ),
        TextPair(
            HostLate,
            &["launch ahead, or put many launches into a graph"],
            plant(|| short_launches(5, 50)),
            plant(|| short_launches(5, 2_000)),
        ),
        TextPair(
            HostLate,
            &["launch ahead, or prepare the work on another thread"],
            plant(|| short_launches(5, 2_000)),
            plant(|| short_launches(5, 50)),
        ),
        TextPair(
            HostLate,
            &["launch ahead"],
            plant(|| graphs_and(2, 0)),
            plant(|| vulkan("map-memory")),
        ),
        TextPair(
            HostLate,
            &["prepare work ahead, or submit more at once"],
            plant(|| vulkan("map-memory")),
            plant(|| graphs_and(2, 0)),
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
            &["the thread had nothing to do: send more work to the thread at once"],
            plant(|| {
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
            plant(|| paused("/usr/bin/python3", true)),
            plant(|| paused("/usr/bin/app", true)),
        ),
        TextPair(
            HostLate,
            &["the launching thread was outside of GPU calls: "],
            plant(|| paused("/usr/bin/app", true)),
            plant(|| paused("/usr/bin/python3", true)),
        ),
        TextPair(
            HostLate,
            &["the submitting thread was outside of GPU calls: "],
            plant(|| vulkan("map-memory")),
            plant(|| paused("/usr/bin/app", true)),
        ),
        TextPair(
            HostLate,
            &["it is not known which thread ", ", or what it did"],
            plant(|| in_range("", "forward")),
            plant(|| paused("/usr/bin/app", false)),
        ),
        TextPair(
            HostLate,
            &[" thread did is not in the trace"],
            plant(|| paused("/usr/bin/app", false)),
            plant(|| in_range("thread=7", "forward")),
        ),
        TextPair(
            HostLate,
            &[" thread was in ranges of the program, and its waits in them are not in the trace: "],
            plant(|| in_range("thread=7", "forward")),
            plant(|| paused("/usr/bin/app", true)),
        ),
        TextPair(
            HostLate,
            &[
                " thread loaded data, or waited for a loader: load ahead in worker processes, or in more of them",
            ],
            plant(|| {
                in_range(
                    "thread=7",
                    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                )
            }),
            plant(|| in_range("thread=7", "forward")),
        ),
        TextPair(
            Unknown,
            &["the call that submitted the next work is not in the trace"],
            plant(|| late_start("cuda", "")),
            plant(|| late_start("cuda", SUBMITTED)),
        ),
        TextPair(
            Unknown,
            &["work without known times may have run meanwhile"],
            plant(|| late_start("cuda", &format!("{SUBMITTED}\n{UNTIMED}"))),
            plant(|| late_start("cuda", SUBMITTED)),
        ),
        TextPair(
            Unknown,
            &[
                "what the next work waited for is not in the trace, such as ",
                "a host node of a graph, a decompression of memory, or a signal of unknown source",
            ],
            plant(|| waits("decompression", "")),
            plant(|| waits("", "")),
        ),
        TextPair(
            Unknown,
            &["a semaphore of another program"],
            plant(|| late_start("vulkan", &format!("{SUBMITTED}\ndependency submission=90"))),
            plant(|| late_start("vulkan", SUBMITTED)),
        ),
        TextPair(
            Unknown,
            &[
                "the next work was free to run, and a device starts within ",
                ": it may have waited for work that is not recorded, another process's time on the device, an event from outside, or a change of the power state",
            ],
            plant(|| late_start("cuda", SUBMITTED)),
            plant(|| waits("decompression", "")),
        ),
        TextPair(
            Unknown,
            &[", or, on a software GPU, a processor"],
            plant(|| late_start("vulkan", SUBMITTED)),
            plant(|| late_start("cuda", SUBMITTED)),
        ),
        TextPair(
            Unknown,
            &[
                ": it may have waited for a move of managed memory on another stream, whose times are not recorded",
            ],
            of_queue_2("prefetch"),
            of_queue_2("wait-external"),
        ),
        TextPair(
            Unknown,
            &[
                "the first recorded work of a ",
                " may have waited for work from before the recording",
            ],
            plant(|| first_of_queue_2(-100)),
            plant(|| first_of_queue_2(50)),
        ),
        TextPair(
            Unknown,
            &[
                "waits returned before the work that they waited for ended, so the times of host and device contradict each other",
            ],
            plant(|| returns_early(194)),
            plant(|| returns_early(0)),
        ),
        TextPair(
            Unknown,
            &[
                "a wait returned up to ",
                " before the work seems to end, and the trace states no error of its clock, or too small a one: the host may have waited for that work",
            ],
            plant(|| event_returns_early(50)),
            plant(|| event_returns_early(5)),
        ),
        TextPair(
            HostLate,
            &[
                " of this time other threads compiled or loaded code, for which the submitting thread may have waited: ",
            ],
            plant(|| compiled_meanwhile("load-module")),
            plant(|| compiled_meanwhile("other-call")),
        ),
        TextPair(
            HostLate,
            &[
                "a task waited for ",
                " of the time, perhaps the submitting thread: ",
                "stop other programs, or use fewer threads",
            ],
            plant(|| under_pressure("machine stalled on cpu (some)", 95)),
            plant(|| under_pressure("machine stalled on cpu (some)", 20)),
        ),
        TextPair(
            HostLate,
            &["read ahead, or from faster storage"],
            plant(|| under_pressure("machine stalled on io (some)", 80)),
            plant(|| under_pressure("machine stalled on cpu (some)", 95)),
        ),
        TextPair(
            HostFunction,
            &["; at most so long, ", "as it is not recorded when they ran"],
            plant(|| host_functions(0)),
            plant(|| host_functions(2)),
        ),
        TextPair(
            HostFunction,
            &["; at most so long for "],
            plant(|| host_functions(1)),
            plant(|| host_functions(2)),
        ),
        TextPair(
            SubmitCall,
            &[
                "most of this time passes in copies of pageable memory, which the call itself moves: ",
            ],
            plant(|| copies("pageable", 4 << 20)),
            plant(|| copies("pinned", 4 << 20)),
        ),
        TextPair(
            SubmitCall,
            &[" are in each submission already: submit less often, or from a thread of its own"],
            plant(|| submissions(2)),
            plant(|| submissions(1)),
        ),
        TextPair(
            SubmitCall,
            &["put several command buffers into one submission"],
            plant(|| submissions(1)),
            plant(|| submissions(2)),
        ),
        TextPair(
            SubmitCall,
            &[
                "most of this time passes in launches of graphs, of ",
                " kernels each: launch the next before the last has ended",
            ],
            plant(|| graphs_and(2, 0)),
            plant(|| many(100, 20)),
        ),
        TextPair(
            SubmitCall,
            &[" kernels each: a graph helps only with more kernels in it"],
            plant(|| graphs_and(1, 0)),
            plant(|| graphs_and(2, 0)),
        ),
        TextPair(
            SubmitCall,
            &["most of this time passes in reads of small results: "],
            plant(|| starts_copies("device-to-host", 4)),
            plant(|| starts_copies("host-to-device", 4)),
        ),
        TextPair(
            SubmitCall,
            &["most of this time passes in starts of copies: join small ones"],
            plant(|| starts_copies("host-to-device", 4)),
            plant(|| starts_copies("device-to-host", 4)),
        ),
        TextPair(
            SubmitCall,
            &["launch the next before the last work has ended"],
            plant(|| many(100, 900)),
            plant(|| many(100, 20)),
        ),
        TextPair(
            SubmitCall,
            &["put the launches that are in no graph into one"],
            plant(|| graphs_and(2, 27)),
            plant(|| many(100, 20)),
        ),
        TextPair(
            SubmitCall,
            &[
                "one call took ",
                "where the usual call takes ",
                "what held the call up is not in the trace",
            ],
            plant(|| launches(100, &[50], |_| 1)),
            plant(|| launches(100, &[], |_| 1)),
        ),
        TextPair(
            SubmitCall,
            &[
                " calls took ",
                " of this time (the longest ",
                "what held the calls up is not in the trace",
            ],
            plant(|| launches(100, &[50, 60, 70], |_| 1)),
            plant(|| launches(100, &[50], |_| 1)),
        ),
        TextPair(
            SubmitCall,
            &["where a launch takes some µs"],
            plant(|| slow_launches(|_| 8_000, |_| 1, None)),
            plant(move || slow_launches(every_fourth, |_| 1, None)),
        ),
        TextPair(
            SubmitCall,
            &["the call was the first of this kernel"],
            plant(|| launches(100, &[50], |turn| 1 + u32::from(turn >= 50))),
            plant(|| launches(100, &[50], |_| 1)),
        ),
        TextPair(
            SubmitCall,
            &["most were the first of their kernel"],
            plant(|| slow_launches(|_| 8_000, |turn| 3 + turn, None)),
            plant(|| slow_launches(|_| 8_000, |_| 1, None)),
        ),
        TextPair(
            SubmitCall,
            &[
                "most waited while another thread was in ",
                ", perhaps for one lock of the driver: call it at another time",
            ],
            plant(|| {
                slow_launches(
                    |_| 8_000,
                    |_| 1,
                    Some("call=allocate-memory function=cudaMalloc"),
                )
            }),
            plant(|| {
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
        let [helped, not_helped] = [helps(), cannot()].map(|findings| match cause {
            Unknown => findings.unknown_because().unwrap_or_default().to_owned(),
            cause => findings.advice_on(cause).unwrap_or_default().to_owned(),
        });
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
