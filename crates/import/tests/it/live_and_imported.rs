//! One program recorded live and by Nsight Systems: both traces have the same rows, and therefore the same causes.

use crate::script::{self, Script};
use proptest::prelude::*;

/// What the planted program does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Kernel { stream: usize, lasts_ns: i64 },
    Copy { stream: usize, lasts_ns: i64 },
    Synchronize { stream: usize },
    Record { stream: usize, event: usize },
    Wait { stream: usize, event: usize },
    Poll,
    Allocate,
    Label,
    EndLabel,
    Pause { lasts_ns: i64 },
}

const STREAMS: usize = 3;
const EVENTS: usize = 2;
/// The global id of process 1, and of its thread 1.
const GLOBAL_PROCESS: i64 = 1 << 24;

fn step() -> impl Strategy<Value = Step> {
    let stream = 0..STREAMS;
    let event = 0..EVENTS;
    prop_oneof![
        4 => (stream.clone(), 3..200i64).prop_map(|(stream, lasts_ns)| Step::Kernel { stream, lasts_ns }),
        2 => (stream.clone(), 3..200i64).prop_map(|(stream, lasts_ns)| Step::Copy { stream, lasts_ns }),
        1 => stream.clone().prop_map(|stream| Step::Synchronize { stream }),
        2 => (stream.clone(), event.clone()).prop_map(|(stream, event)| Step::Record { stream, event }),
        2 => (stream, event).prop_map(|(stream, event)| Step::Wait { stream, event }),
        2 => Just(Step::Poll),
        1 => Just(Step::Allocate),
        2 => Just(Step::Label),
        2 => Just(Step::EndLabel),
        1 => (10..200_000i64).prop_map(|lasts_ns| Step::Pause { lasts_ns }),
    ]
}

/// A program as a script, and as the rows of an export.
#[derive(Default)]
struct Planted {
    script: String,
    calls: String,
    kernels: String,
    copies: String,
    waits: String,
    events: String,
    labels: String,
    now_ns: i64,
    correlation: u64,
    free_ns: [i64; STREAMS],
    /// When what was recorded last under each event is done.
    recorded_ns: [Option<i64>; EVENTS],
    open: Vec<(i64, usize)>,
    labels_so_far: usize,
}

impl Planted {
    fn new(steps: &[Step]) -> Planted {
        let mut planted = Planted {
            now_ns: 100,
            ..Planted::default()
        };
        // A file without any work is refused.
        planted.step(Step::Kernel {
            stream: 0,
            lasts_ns: 5,
        });
        for step in steps {
            planted.step(*step);
        }
        while !planted.open.is_empty() {
            planted.step(Step::EndLabel);
        }
        planted
    }

    fn call(&mut self, function: &str, number: u32, lasts_ns: i64, result: i32) {
        self.correlation += 1;
        let (start_ns, end_ns) = (self.now_ns, self.now_ns + lasts_ns);
        let (thread, correlation) = (GLOBAL_PROCESS + 1, self.correlation);
        let times = format!("{start_ns}..{end_ns}");
        self.script += &format!("call t1 c{correlation} {function} {times} ={result}\n");
        self.calls +=
            &format!("[{start_ns}, {end_ns}, {thread}, {correlation}, {number}, {result}]\n");
        self.now_ns = end_ns + 2;
    }

    /// Returns a stream and the latest call as the script writes them, and as the columns of an export.
    fn place(&self, stream: usize) -> (String, String) {
        let (queue, correlation) = (stream + 7, self.correlation);
        (
            format!("q{queue} c{correlation}"),
            format!("{GLOBAL_PROCESS}, 0, 1, {queue}, {correlation}"),
        )
    }

    fn work(&mut self, stream: usize, lasts_ns: i64) -> (i64, i64) {
        let start_ns = self.free_ns[stream].max(self.now_ns + 7);
        self.free_ns[stream] = start_ns + lasts_ns;
        (start_ns, start_ns + lasts_ns)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Kernel { stream, lasts_ns } => {
                self.call("cudaLaunchKernel", 1, 5, 0);
                let (start_ns, end_ns) = self.work(stream, lasts_ns);
                let (place, columns) = self.place(stream);
                self.script += &format!("kernel {place} {start_ns}..{end_ns}\n");
                self.kernels += &format!("[{start_ns}, {end_ns}, {columns}]\n");
            }
            Step::Copy { stream, lasts_ns } => {
                self.call("cudaMemcpyAsync", 2, 5, 0);
                let (start_ns, end_ns) = self.work(stream, lasts_ns);
                let (place, columns) = self.place(stream);
                let times = format!("{start_ns}..{end_ns}");
                self.script += &format!("copy {place} {times} host-to-device pinned\n");
                self.copies += &format!("[{start_ns}, {end_ns}, {columns}, 8, 1, 1, 2]\n");
            }
            Step::Synchronize { stream } => {
                let lasts_ns = (self.free_ns[stream] - self.now_ns).max(0) + 3;
                self.call("cudaStreamSynchronize", 3, lasts_ns, 0);
                let (queue, correlation) = (stream + 7, self.correlation);
                self.script += &format!("queue c{correlation} q{queue}\n");
                self.waits += &format!("[0, 0, {}, 3, null]\n", self.place(stream).1);
            }
            Step::Record { stream, event } => {
                self.call("cudaEventRecord", 4, 2, 0);
                self.recorded_ns[event] = Some(self.free_ns[stream]);
                let (place, columns) = self.place(stream);
                self.script += &format!("record {place} e{event}\n");
                self.events += &format!("[0, 0, {columns}, {event}]\n");
            }
            Step::Wait { stream, event } => {
                let Some(done_ns) = self.recorded_ns[event] else {
                    return;
                };
                self.call("cudaStreamWaitEvent", 5, 2, 0);
                self.free_ns[stream] = self.free_ns[stream].max(done_ns);
                let (place, columns) = self.place(stream);
                self.script += &format!("wait {place} e{event}\n");
                self.waits += &format!("[0, 0, {columns}, 2, {event}]\n");
            }
            Step::Poll => self.call("cudaEventQuery", 6, 2, 600),
            Step::Allocate => self.call("cudaMalloc", 7, 4, 0),
            Step::Label => {
                self.open.push((self.now_ns, self.labels_so_far));
                self.labels_so_far += 1;
                self.now_ns += 1;
            }
            Step::EndLabel => {
                let Some((start_ns, number)) = self.open.pop() else {
                    return;
                };
                let end_ns = self.now_ns;
                let text = format!("label{}", number % 3);
                self.script += &format!("label t1 {start_ns}..{end_ns} {text}\n");
                let thread = GLOBAL_PROCESS + 1;
                self.labels += &format!("[{start_ns}, {end_ns}, 59, {text:?}, {thread}]\n");
                self.now_ns += 1;
            }
            Step::Pause { lasts_ns } => self.now_ns += lasts_ns,
        }
    }

    /// The program as Nsight Systems exports it.
    fn export(&self) -> String {
        let work = "start end globalPid deviceId contextId streamId correlationId";
        format!(
            "StringIds id value\n[1, \"cudaLaunchKernel\"]\n[2, \"cudaMemcpyAsync\"]\n[3, \"cudaStreamSynchronize\"]\n\
             [4, \"cudaEventRecord\"]\n[5, \"cudaStreamWaitEvent\"]\n[6, \"cudaEventQuery\"]\n[7, \"cudaMalloc\"]\n\
             CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue\n{}\
             CUPTI_ACTIVITY_KIND_KERNEL {work}\n{}\
             CUPTI_ACTIVITY_KIND_MEMCPY {work} bytes copyKind srcKind dstKind\n{}\
             CUPTI_ACTIVITY_KIND_SYNCHRONIZATION {work} syncType eventId\n{}\
             CUPTI_ACTIVITY_KIND_CUDA_EVENT {work} eventId\n{}\
             NVTX_EVENTS start end eventType text globalTid\n{}",
            self.calls, self.kernels, self.copies, self.waits, self.events, self.labels
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_program_has_the_same_rows_recorded_and_imported(
        steps in proptest::collection::vec(step(), 1..60),
        delays in proptest::collection::vec(0.0..1.0f64, 300),
    ) {
        let planted = Planted::new(&steps);
        let script = Script::parse(&planted.script);
        // Calls come from their thread in order, records of the device whenever they like.
        let count = script.events.len();
        let mut order: Vec<(f64, usize)> = (0..count)
            .map(|at| match script.is_call(at) {
                true => (at as f64, at),
                false => (delays[at % delays.len()] * count as f64, at),
            })
            .collect();
        order.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let order: Vec<usize> = order.into_iter().map(|(_, at)| at).collect();
        let live = script.live(&order);
        let trace = crate::imported::planted(&planted.export());
        let queues = &trace.manifest.queues;
        let queue_number = |id| queues.iter().find(|queue| queue.id == id).unwrap().index;
        let imported = script::lines(&trace.tables, &trace.manifest.losses, (&|_| 1, &queue_number));
        prop_assert_eq!(live, imported);
    }
}
