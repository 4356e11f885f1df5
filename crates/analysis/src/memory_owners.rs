//! Says who holds the memory of a program's own allocator at its peak: by phase, label and line of code, from the
//! history of the allocator (the table `allocator_memory`).
//!
//! The sizes of blocks are those that the program asked for. What the allocator has reserved from the driver beyond
//! them is not used: rests of blocks that are rounded up, free blocks that are kept for later, and holes between blocks
//! that nothing fits into.
//!
//! The phase is told by the stack: code under autograd's engine is backward, code under PyTorch's optimizers is the
//! optimizer's, and other code inside of a module is forward. A block whose stack says none of it, or that is older
//! than the history, has no phase.

use crate::stacks::{CodeFrame, Stacks};
use gapscope_timeline::Timeline;
use gapscope_timeline::vocabulary::Gpus;
use gapscope_trace::ids::StackId;
use gapscope_trace::tables::{AllocatorMemoryKind, FrameKind, Table};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The memory of a program's own allocator when its blocks took most.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AllocatorPeak {
    /// The memory of the blocks, as the program asked for it.
    pub bytes: u64,
    /// When that was first reached; absent where it was before the history began.
    pub at_ns: Option<i64>,
    /// The number of blocks then.
    pub block_count: u64,
    /// What the allocator had reserved from the driver then; absent where its segments are not known, or less than the
    /// blocks.
    pub reserved_bytes: Option<u64>,
    /// What of that was not used: rounding, free blocks that are kept, and holes.
    pub unused_bytes: Option<u64>,
}

/// Who holds a part of the memory at the peak.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemoryOwner {
    /// The memory of its blocks.
    pub bytes: u64,
    /// Of the memory of all blocks at the peak.
    pub share: f64,
    /// The number of its blocks.
    pub block_count: u64,
    /// The phase of training that allocated them; absent where the stack does not tell.
    pub phase: Option<MemoryPhase>,
    /// The path of the labels, such as modules, in which they were allocated, joined by ` / `; absent where there were
    /// none.
    pub label: Option<String>,
    /// The innermost line of the program's own code that asked for them, such as `train.py:41 forward`; absent where
    /// the stack has none.
    pub line: Option<String>,
    /// The operation of the backward pass that asked for them, such as `AddmmBackward0`.
    pub operation: Option<String>,
    /// They were allocated before the allocator's history began, or the history has lost their entries.
    pub is_before_history: bool,
}

/// A phase of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryPhase {
    /// In a module, and not in one of the others.
    Forward,
    /// Under autograd's engine.
    Backward,
    /// In an optimizer's step.
    Optimizer,
}

impl MemoryPhase {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            MemoryPhase::Forward => "forward",
            MemoryPhase::Backward => "backward",
            MemoryPhase::Optimizer => "optimizer",
        }
    }
}

/// What a stack says of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct StackFacts {
    phase: Option<MemoryPhase>,
    line: Option<String>,
    operation: Option<String>,
}

/// Returns the peak of each GPU's allocator with those who hold it, the greatest first, by the index of the GPU.
pub(crate) fn memory_owners(
    timeline: &Timeline,
) -> BTreeMap<u32, (AllocatorPeak, Vec<MemoryOwner>)> {
    let rows = &timeline.trace.tables.allocator_memory;
    if rows.is_empty() {
        return BTreeMap::new();
    }
    let gpus = Gpus::new(&timeline.trace.manifest);
    let mut by_gpu: BTreeMap<u32, [Vec<usize>; 2]> = BTreeMap::new();
    for row in 0..rows.len() {
        let Some(gpu) = gpus.of_device(rows.device[row]) else {
            continue;
        };
        let [blocks, segments] = by_gpu.entry(gpu as u32).or_default();
        match rows.kind[row] {
            AllocatorMemoryKind::Block => blocks.push(row),
            AllocatorMemoryKind::Segment => segments.push(row),
            AllocatorMemoryKind::Unknown => {}
        }
    }
    let mut stacks = StackWords::new(timeline);
    let owners = by_gpu.into_iter().map(|(gpu, [blocks, segments])| {
        let at_ns = peak_time(timeline, &blocks);
        let live = |row: &&usize| is_live(timeline, **row, at_ns);
        let held: Vec<usize> = blocks.iter().filter(live).copied().collect();
        let sum = |rows_of: &mut dyn Iterator<Item = &usize>| {
            rows_of.fold(0, |sum: u64, row| sum.saturating_add(rows.bytes[*row]))
        };
        let bytes = sum(&mut held.iter());
        let reserved = sum(&mut segments.iter().filter(live));
        let reserved_bytes = Some(reserved).filter(|reserved| *reserved >= bytes && *reserved > 0);
        let peak = AllocatorPeak {
            bytes,
            at_ns: (at_ns > i64::MIN).then_some(at_ns),
            block_count: held.len() as u64,
            reserved_bytes,
            unused_bytes: reserved_bytes.map(|reserved| reserved - bytes),
        };
        (gpu, (peak, stacks.owners(&held, bytes)))
    });
    owners.collect()
}

/// Returns true for a piece that lives at a time; the least time is that before the history.
fn is_live(timeline: &Timeline, row: usize, at_ns: i64) -> bool {
    let rows = &timeline.trace.tables.allocator_memory;
    let begun = rows
        .allocated_ns
        .at(row)
        .is_none_or(|begin_ns| begin_ns <= at_ns);
    begun && rows.freed_ns.at(row).is_none_or(|end_ns| end_ns > at_ns)
}

/// Returns the time at which blocks first take most memory; the least time for that before the history.
fn peak_time(timeline: &Timeline, blocks: &[usize]) -> i64 {
    let rows = &timeline.trace.tables.allocator_memory;
    let mut changes: Vec<(i64, i128)> = Vec::with_capacity(2 * blocks.len());
    for row in blocks {
        let bytes = i128::from(rows.bytes[*row]);
        changes.push((rows.allocated_ns.at(*row).unwrap_or(i64::MIN), bytes));
        changes.extend(rows.freed_ns.at(*row).map(|at_ns| (at_ns, -bytes)));
    }
    changes.sort_unstable();
    let (mut live, mut most, mut most_at) = (0, 0, i64::MIN);
    // What comes and goes in one instant is summed first: the history has microseconds, and no order of these.
    for instant in changes.chunk_by(|before, after| before.0 == after.0) {
        live += instant.iter().map(|(_, change)| change).sum::<i128>();
        if live > most {
            (most, most_at) = (live, instant[0].0);
        }
    }
    most_at
}

/// What the stacks and labels of blocks say, each found once.
struct StackWords<'a> {
    timeline: &'a Timeline<'a>,
    stacks: Stacks<'a>,
    told: HashMap<StackId, StackFacts>,
}

impl<'a> StackWords<'a> {
    fn new(timeline: &'a Timeline<'a>) -> StackWords<'a> {
        StackWords {
            timeline,
            stacks: Stacks::new(&timeline.trace.tables),
            told: HashMap::new(),
        }
    }

    fn owners(&mut self, held: &[usize], total: u64) -> Vec<MemoryOwner> {
        let rows = &self.timeline.trace.tables.allocator_memory;
        let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for row in held {
            let mut told = match rows.stack.at(*row) {
                Some(stack) => {
                    let stacks = &self.stacks;
                    let told = self.told.entry(stack);
                    told.or_insert_with(|| told_by(&stacks.frames(stack)))
                        .clone()
                }
                None => StackFacts::default(),
            };
            let label = rows
                .label
                .at(*row)
                .and_then(|label| self.timeline.label_path(label));
            if label
                .as_deref()
                .is_some_and(|label| label.contains("Optimizer.step#"))
            {
                told.phase.get_or_insert(MemoryPhase::Optimizer);
            }
            let is_before = rows.allocated_ns.at(*row).is_none();
            let (bytes, count) = sums.entry((told, label, is_before)).or_default();
            *bytes = bytes.saturating_add(rows.bytes[*row]);
            *count += 1;
        }
        let mut owners: Vec<MemoryOwner> = (sums.into_iter())
            .map(
                |((told, label, is_before_history), (bytes, block_count))| MemoryOwner {
                    bytes,
                    share: bytes as f64 / total.max(1) as f64,
                    block_count,
                    phase: told.phase,
                    label,
                    line: told.line,
                    operation: told.operation,
                    is_before_history,
                },
            )
            .collect();
        owners.sort_by_key(|owner| Reverse(owner.bytes));
        owners
    }
}

/// Returns what the frames of a stack, the innermost first, say of what it allocated.
fn told_by(frames: &[CodeFrame]) -> StackFacts {
    let is_of = |frame: &CodeFrame, path: &str| {
        let file = frame.file.as_deref();
        frame.kind == FrameKind::Python && file.is_some_and(|file| file.contains(path))
    };
    let has = |path| frames.iter().any(|frame| is_of(frame, path));
    let mut functions = frames.iter().filter_map(|frame| frame.function.as_deref());
    let is_engine = |function: &str| {
        function.starts_with("torch::autograd::Engine::") || function == "_engine_run_backward"
    };
    let phase = match () {
        () if functions.clone().any(is_engine) => Some(MemoryPhase::Backward),
        () if has("torch/optim/") => Some(MemoryPhase::Optimizer),
        () if has("torch/nn/modules/module.py") => Some(MemoryPhase::Forward),
        () => None,
    };
    let is_own = |frame: &&CodeFrame| frame.kind == FrameKind::Python && frame.is_own();
    StackFacts {
        phase,
        line: frames.iter().find(is_own).map(CodeFrame::text),
        operation: functions.find_map(backward_operation).map(str::to_owned),
    }
}

/// Returns the operation of the backward pass that a function is the work of, such as
/// `torch::autograd::generated::AddmmBackward0::apply(…)`.
fn backward_operation(function: &str) -> Option<&str> {
    let name = function.strip_prefix("torch::autograd::")?;
    let name = name.strip_prefix("generated::").unwrap_or(name);
    let (name, _) = name.split_once("::apply(")?;
    (!name.is_empty() && !name.contains("::")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_timeline::memory_timeline;
    use gapscope_trace::Trace;

    /// A training step: a weight of before the history, an activation, its gradient, and what the optimizer keeps.
    /// Memory is in MiB.
    fn rows(more: &str) -> Trace {
        let torch = "/opt/venv/lib/python3.12/site-packages/torch";
        let text = format!(
            "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms
            process id=1 pid=7 hook=PyTorch
            device id=1 process=1
            label id=1 text=step
            label id=2 parent=1 text=blocks.0
            label id=3 text=Optimizer.step#AdamW.step
            frame id=0 kind=python function=main file=/home/a/train.py line=60
            frame id=1 kind=python function=_call_impl file={torch}/nn/modules/module.py line=1790
            frame id=2 kind=python function=forward file=/home/a/model.py line=13
            frame id=3 kind=native function=torch::autograd::Engine::thread_main()
            frame id=4 kind=native function=torch::autograd::generated::MmBackward0::apply()
            frame id=5 kind=python function=step file={torch}/optim/adamw.py line=40
            stack id=0 frame=0
            stack id=1 parent=0 frame=1
            stack id=2 parent=1 frame=2
            stack id=3 frame=3
            stack id=4 parent=3 frame=4
            stack id=5 parent=0 frame=5
            memory process=1 device=1 at_ns=0 event=allocate allocation=1 bytes=100 heap=0
            allocator_row process=1 device=1 kind=segment address=4096 bytes=100
            allocator_row process=1 device=1 kind=segment address=8192 bytes=50 allocated_ns=5ms freed_ns=50ms
            allocator_row process=1 device=1 kind=block bytes=40
            allocator_row process=1 device=1 kind=block bytes=30 allocated_ns=1ms freed_ns=20ms label=2 stack=2
            allocator_row process=1 device=1 kind=block bytes=9 allocated_ns=2ms freed_ns=20ms label=2 stack=2
            allocator_row process=1 device=1 kind=block bytes=35 allocated_ns=10ms freed_ns=40ms stack=4
            allocator_row process=1 device=1 kind=block bytes=60 allocated_ns=20ms freed_ns=21ms label=3 stack=5
            {more}"
        );
        Trace::from_text(&text).unwrap()
    }

    /// Of each owner its memory, blocks, phase, label, line and operation, and whether it is older than the history.
    fn owners_of(trace: &Trace) -> (AllocatorPeak, Vec<String>) {
        let row = memory_timeline(&Timeline::new(trace)).remove(0);
        let words = |owner: &MemoryOwner| {
            format!(
                "{} in {}, {:?}, {:?}, {:?}, {:?}, {}",
                owner.bytes,
                owner.block_count,
                owner.phase.map(MemoryPhase::as_str),
                owner.label.as_deref(),
                owner.line.as_deref(),
                owner.operation.as_deref(),
                owner.is_before_history
            )
        };
        (
            row.allocator.unwrap(),
            row.owners.iter().map(words).collect(),
        )
    }

    #[test]
    fn the_peak_is_held_by_phases_labels_and_lines() {
        let (peak, owners) = owners_of(&rows(""));
        // At 20 ms activations go before the optimizer's memory comes: 40 + 35 + 60.
        let expected = AllocatorPeak {
            bytes: 135,
            at_ns: Some(20_000_000),
            block_count: 3,
            reserved_bytes: Some(150),
            unused_bytes: Some(15),
        };
        assert_eq!(peak, expected);
        assert_eq!(
            owners,
            [
                r#"60 in 1, Some("optimizer"), Some("Optimizer.step#AdamW.step"), Some("train.py:60 main"), None, false"#,
                r#"40 in 1, None, None, None, None, true"#,
                r#"35 in 1, Some("backward"), None, None, Some("MmBackward0"), false"#,
            ]
        );
    }

    #[test]
    fn blocks_of_one_line_are_one_owner() {
        let more = "allocator_row process=1 device=1 kind=block bytes=70 allocated_ns=11ms freed_ns=12ms label=2 stack=2";
        let (peak, owners) = owners_of(&rows(more));
        assert_eq!(
            (peak.bytes, peak.at_ns, peak.block_count),
            (184, Some(11_000_000), 5)
        );
        // More than what was reserved: it is not known what was.
        assert_eq!((peak.reserved_bytes, peak.unused_bytes), (None, None));
        let forward = r#"109 in 3, Some("forward"), Some("step / blocks.0"), Some("model.py:13 forward"), None, false"#;
        assert_eq!(owners[0], forward);
        assert_eq!(owners.len(), 3);
    }

    #[test]
    fn without_a_history_there_are_no_owners() {
        let trace = Trace::from_text(
            "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms
            process id=1 pid=7 hook=cuda
            device id=1 process=1
            memory process=1 device=1 at_ns=0 event=allocate allocation=1 bytes=100 heap=0",
        );
        let trace = trace.unwrap();
        let rows = memory_timeline(&Timeline::new(&trace));
        assert!(
            rows.iter()
                .all(|row| row.allocator.is_none() && row.owners.is_empty())
        );
    }

    #[test]
    fn operations_of_the_backward_pass_have_the_name_of_their_node() {
        let of = |function| backward_operation(function);
        let apply = "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)";
        assert_eq!(of(apply), Some("AddmmBackward0"));
        assert_eq!(
            of("torch::autograd::AccumulateGrad::apply(std::vector&&)"),
            Some("AccumulateGrad")
        );
        assert_eq!(
            of("torch::autograd::Node::operator()(std::vector<at::Tensor>)"),
            None
        );
        assert_eq!(of("at::_ops::addmm::call(at::Tensor const&)"), None);
    }
}
