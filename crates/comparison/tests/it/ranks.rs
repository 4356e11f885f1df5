//! Ranks of a distributed program: collectives matched by communicator, who arrives last and why, how fast they are.

mod arrivals;
mod late;
mod matching;
mod reasons;
mod traces;

use gapscope_analysis::{Findings, Options};
use gapscope_comparison::ranks::{RankDigest, RankFindings, ranks};
use gapscope_timeline::Timeline;
use gapscope_trace::Trace;

const US: i64 = 1_000;
const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
const SEND_RECV: &str = "ncclDevKernel_SendRecv";
/// The communicator of all ranks.
const WORLD: u64 = 77;

/// The trace of a rank being written; times are in microseconds. Thread 7 calls NCCL.
struct Rank {
    text: String,
    kernels: Vec<String>,
    labels: Vec<String>,
    submissions: u64,
    communicators: i64,
}

impl Rank {
    fn new(rank: u32) -> Rank {
        Rank::with(&format!(
            "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms start_unix_ns=1700000000000000000 host.system=one
             process id=1 pid={rank} hook=cuda
             device id=1 process=1 api=cuda name=GPU uuid=a{rank} clock.error_ns=1us
             queue id=1 device=1
             dispatch queue=1 kernel=1 start_ns=1us duration_ns=5us\n"
        ))
    }

    fn with(text: &str) -> Rank {
        Rank {
            text: text.to_owned(),
            kernels: vec!["gemm".to_owned()],
            labels: Vec::new(),
            submissions: 0,
            communicators: 0,
        }
    }

    fn number(list: &mut Vec<String>, text: &str) -> usize {
        let at = list.iter().position(|known| known == text);
        at.unwrap_or_else(|| {
            list.push(text.to_owned());
            list.len() - 1
        }) + 1
    }

    /// A range of NCCL's on process 1, thread 7.
    fn range(&mut self, name: &str, payload: &str, [start, end]: [i64; 2]) {
        self.range_of(1, name, payload, [start, end]);
    }

    fn range_of(&mut self, process: u32, name: &str, payload: &str, [start, end]: [i64; 2]) {
        let label = Rank::number(&mut self.labels, name);
        let payload = match payload {
            "" => String::new(),
            text => format!("payload=\"{text}\""),
        };
        self.text += &format!(
            "marker process={process} scope=thread thread=7 label={label} domain=NCCL {payload} start_ns={start}us duration_ns={}us\n",
            end - start
        );
    }

    /// It becomes a member of a communicator.
    fn init(mut self, communicator: u64, size: u32, member: u32) -> Rank {
        let payload = format!(
            "NCCL communicator ID={communicator}, No. of ranks={size}, Rank={member}, CUDA device=0"
        );
        self.made("ncclCommInitRankConfig", &payload);
        self
    }

    /// A communicator is made; one after the other.
    fn made(&mut self, name: &str, payload: &str) {
        let at = 2 * self.communicators;
        self.communicators += 1;
        self.range(name, payload, [at, at + 1]);
    }

    /// A kernel that thread 7 launches at a time.
    fn kernel(&mut self, name: &str, launched: i64, [start, end]: [i64; 2]) {
        self.kernel_of(1, 1, name, launched, [start, end]);
    }

    fn kernel_of(
        &mut self,
        process: u32,
        queue: u32,
        name: &str,
        launched: i64,
        [start, end]: [i64; 2],
    ) {
        let kernel = Rank::number(&mut self.kernels, name);
        self.submissions += 1;
        let id = self.submissions;
        self.text += &format!(
            "submission id={id} process={process} queue={queue} kind=kernel thread=7 start_ns={launched}us duration_ns=1us\n\
             dispatch queue={queue} kernel={kernel} submission={id} start_ns={start}us duration_ns={}us\n",
            end - start
        );
    }

    /// An all-reduce of 4096 bytes whose kernel runs then; its call is 10 us before.
    fn all_reduce(mut self, communicator: u64, times: &[(i64, i64)]) -> Rank {
        for (start, end) in times {
            let times = [*start, *end];
            self.collective("ncclAllReduce", ALL_REDUCE, communicator, 4096, times);
        }
        self
    }

    fn collective(
        &mut self,
        call: &str,
        kernel: &str,
        communicator: u64,
        bytes: u64,
        [start, end]: [i64; 2],
    ) {
        let payload = match communicator {
            0 => format!("Message size [bytes]={bytes}"),
            id => format!("NCCL communicator ID={id}, Message size [bytes]={bytes}"),
        };
        self.range(call, &payload, [start - 10, start - 5]);
        self.kernel(kernel, start - 8, [start, end]);
    }

    /// A group of messages in one kernel: what is sent and received, and the other rank.
    fn messages(&mut self, messages: &[(&str, u32)], [start, end]: [i64; 2]) {
        self.range("ncclGroupStart", "", [start - 20, start - 19]);
        for (at, (name, peer)) in messages.iter().enumerate() {
            let payload = format!(
                "NCCL communicator ID={WORLD}, Message size [bytes]=1000, Peer rank={peer}"
            );
            let call = start - 18 + at as i64;
            self.range(name, &payload, [call, call + 1]);
        }
        self.range("ncclGroupEnd", "", [start - 10, start - 5]);
        self.kernel(SEND_RECV, start - 8, [start, end]);
    }

    fn trace(&self) -> Trace {
        let mut text = self.text.clone();
        for (at, name) in self.kernels.iter().enumerate() {
            text += &format!("kernel id={} process=1 name={name}\n", at + 1);
        }
        for (at, name) in self.labels.iter().enumerate() {
            text += &format!("label id={} text={name}\n", at + 1);
        }
        Trace::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// A rank of two or more with all-reduces at these microseconds, start and end.
fn rank(rank: u32, of: u32, all_reduces: &[(i64, i64)]) -> Trace {
    Rank::new(rank)
        .init(WORLD, of, rank)
        .all_reduce(WORLD, all_reduces)
        .trace()
}

fn compare(traces: &[Trace]) -> RankFindings {
    let digests: Vec<RankDigest> = (traces.iter().enumerate())
        .flat_map(|(rank, trace)| {
            RankDigest::from_timeline(&Timeline::new(trace), &findings(trace), rank as u32)
        })
        .collect();
    ranks(&digests, 10)
}

#[track_caller]
fn assert_says(found: &RankFindings, text: &str) {
    let sentences = found.sentences.join("\n");
    assert!(sentences.contains(text), "{text} is not in: {sentences}");
}

#[track_caller]
fn assert_begins(text: &str, part: &str) {
    assert!(text.starts_with(part), "{part} does not begin: {text}");
}

fn waited_us(found: &RankFindings) -> Vec<Option<i64>> {
    let waited = found.ranks.iter().map(|rank| rank.waited_ns);
    waited.map(|ns| ns.map(|ns| ns / US)).collect()
}

/// Findings over the whole work window.
fn findings(trace: &Trace) -> Findings {
    let options = Options {
        exclude_warm_up: false,
        ..Options::default()
    };
    Findings::new(trace, &options)
}
