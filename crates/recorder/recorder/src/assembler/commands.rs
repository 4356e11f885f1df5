//! Appends commands of events to command recordings (the contents of command buffers), and replaces the ids of the
//! hook (gapscope's library in the program) by those of the trace.

use super::Assembler;
use super::recording::Step;
use gapscope_spool::event::{Command, LossKind, Op, OpaqueWorkKind, TransferKind};
use gapscope_spool::ids as hook;
use gapscope_trace::Tables;
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::ProcessId;

impl Assembler {
    /// Appends commands to a recording in their order. Bindings are resolved at each dispatch, which may write rows.
    /// Commands and sets that are not known are counted as lost.
    pub(super) fn commands(
        &mut self,
        process: ProcessId,
        recording: hook::CommandRecording,
        bytes: &[u8],
        tables: &mut Tables,
    ) {
        let state = &mut self.processes[process];
        let mut target = state.recordings.remove(&recording).unwrap_or_default();
        target.steps.reserve(bytes.len() / size_of::<Command>());
        let (mut not_understood, mut unknown_sets, mut not_followed) = (0, 0, 0);
        for command in Command::all(bytes) {
            let Command {
                query, a, b, c, d, ..
            } = command;
            let Some(op) = command.op() else {
                not_understood += 1;
                continue;
            };
            let step = match op {
                Op::Begin => {
                    target.start_query = query;
                    Step::Begin { query }
                }
                Op::End => {
                    target.end_query = query;
                    Step::End { query }
                }
                Op::Dispatch | Op::DispatchBase | Op::DispatchIndirect => {
                    let kernel = match state.kernels.get(&hook::Kernel(d)) {
                        Some(kernel) => *kernel,
                        None => self.kernels.unknown(process),
                    };
                    let accesses = self.kernels.accesses(kernel);
                    let bound = &mut target.bound;
                    Step::Dispatch {
                        query,
                        kernel,
                        bindings: self.binding_sets.reached(
                            process,
                            kernel,
                            accesses,
                            bound,
                            &mut state.contents,
                            tables,
                        ),
                        groups: (op != Op::DispatchIndirect).then_some([a, b, c]),
                    }
                }
                Op::BindSet => {
                    let content = hook::BindingContent(b);
                    target.bound.bind(a, content);
                    let known = content.some().is_none_or(|c| state.contents.knows(c));
                    unknown_sets += u64::from(!known);
                    not_followed += u64::from(c == 1);
                    continue;
                }
                Op::DynamicOffset => {
                    target.bound.dynamic_offset(a, b, c);
                    continue;
                }
                Op::CopyBuffer | Op::FillBuffer | Op::UpdateBuffer | Op::CopyImage => {
                    Step::Transfer {
                        query,
                        kind: match op {
                            Op::CopyBuffer => TransferKind::Copy,
                            Op::FillBuffer => TransferKind::Fill,
                            Op::UpdateBuffer => TransferKind::Update,
                            _ => TransferKind::CopyImage,
                        },
                        bytes: Some(command.ab()).filter(|bytes| *bytes != u64::MAX),
                        source: state.buffers.get(&hook::Buffer(c)).copied(),
                        destination: state.buffers.get(&hook::Buffer(d)).copied(),
                    }
                }
                Op::Barrier => Step::Barrier {
                    source_stages: command.ab(),
                    destination_stages: command.cd(),
                },
                Op::LabelBegin => {
                    let text = text(&state.texts, &mut self.labels, hook::Text(a));
                    target.open_labels.push(text);
                    Step::LabelBegin { text }
                }
                Op::LabelEnd => {
                    if target.open_labels.pop().is_none() {
                        target.label_ends += 1;
                    }
                    Step::LabelEnd
                }
                Op::LabelInstant => Step::LabelInstant {
                    text: text(&state.texts, &mut self.labels, hook::Text(a)),
                },
                Op::Execute => {
                    target.bound.clear();
                    let recording = hook::CommandRecording(a);
                    let executions = target.secondaries.entry(recording).or_insert(0);
                    *executions += 1;
                    if *executions == 1
                        && let Some(secondary) = state.recordings.get_mut(&recording)
                    {
                        secondary.users += 1;
                    }
                    Step::Execute { query, recording }
                }
                Op::OpaqueBegin => Step::OpaqueBegin {
                    query,
                    kind: opaque_work(a),
                },
                Op::OpaqueEnd => Step::OpaqueEnd { query },
            };
            target.queries = target.queries.max(step.queries());
            target.steps.push(step);
        }
        target.queries = target.queries.min(most_queries(target.steps.len()));
        state.recordings.insert(recording, target);
        let reason = "this version does not know their kind";
        self.ledger.add(LossKind::Commands, not_understood, reason);
        let reason = "the record of what they hold is missing, or long ago";
        self.ledger
            .add(LossKind::BoundDescriptorSets, unknown_sets, reason);
        let reason = "what descriptor buffers and heaps hold is not recorded";
        self.ledger
            .add(LossKind::BoundDescriptorSets, not_followed, reason);
    }
}

/// Returns the kind of opaque work for a number of the spool.
fn opaque_work(number: u32) -> OpaqueWorkKind {
    match u8::try_from(number).map(OpaqueWorkKind::from_number) {
        Ok(OpaqueWorkKind::Unknown) | Err(_) => OpaqueWorkKind::Other,
        Ok(kind) => kind,
    }
}

/// Returns an upper bound of the queries of a recording with this many commands, including the hook's gaps between
/// pools. A damaged record must not ask for unbounded memory.
fn most_queries(commands: usize) -> u32 {
    u32::try_from(commands).map_or(u32::MAX, |commands| {
        commands.saturating_mul(4).saturating_add(1024)
    })
}

/// Returns the trace's id of a process's text; that of `unknown label` for a text whose record is missing.
pub(super) fn text(
    texts: &rustc_hash::FxHashMap<hook::Text, TextId>,
    labels: &mut Labels,
    text: hook::Text,
) -> TextId {
    match texts.get(&text) {
        Some(id) => *id,
        None => labels.text("unknown label"),
    }
}
