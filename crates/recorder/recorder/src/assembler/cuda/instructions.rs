//! Adds up instruction samples: each says at which instruction of a kernel a warp (a group of threads) was, and why
//! it did not go on. At the end of the process, the sums become rows of `pc_samples`, with their source lines.

use super::{Assembler, Cuda};
use crate::assembler::hashes;
use crate::code::Lines;
use gapscope_model::LossKind;
use gapscope_model::instructions::{NoLine, stall_reason};
use gapscope_spool::event::FunctionSamples;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::{PcSample, Table, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The maximum number of pairs of instruction and reason that a process has; samples of further pairs are counted
/// as lost.
const MAX_COUNTS: usize = 1 << 20;
/// The maximum number of rows of all line tables of a process; samples in code beyond it have no lines.
const MAX_LINES: usize = 1 << 22;

/// The instruction samples of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Instructions {
    sampling: FxHashMap<hook::Device, Sampling>,
    /// The loaded code by CUPTI's checksum.
    cubins: FxHashMap<u64, Cubin>,
    /// The number of rows of the line tables.
    lines: usize,
    /// The index of each function's name.
    functions: FxHashMap<String, u32>,
    /// The number of samples by instruction and reason.
    counts: FxHashMap<Key, u64>,
}

/// The sampling of a device: its period, and the names of the reasons for which threads wait.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sampling {
    /// The cycles between two samples; 0 where they are unknown.
    period_cycles: u64,
    /// The reasons by number; `None` for a reason that counts a part of another reason's samples.
    reasons: FxHashMap<u32, Option<Arc<str>>>,
}

/// Code in NVIDIA's ELF format, which was loaded.
#[derive(Debug, Serialize, Deserialize)]
enum Cubin {
    /// The code came without bytes, or its line table was beyond [`MAX_LINES`].
    NotKept,
    Kept {
        /// The hash of the bytes, by which the trace names the code.
        source: [u8; 16],
        /// The line table; `None` where the code has none.
        lines: Option<Lines>,
    },
}

/// The key by which samples are counted: device, code, instruction and reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    device: hook::Device,
    cubin: u64,
    /// The index in [`Instructions::functions`].
    function: u32,
    /// The instruction's offset in the function, in bytes.
    offset: u64,
    /// CUPTI's number of the reason.
    reason: u32,
}

impl Assembler {
    /// Notes that a device is sampled from now on, with the numbers and names of the reasons.
    pub(in crate::assembler) fn instruction_sampling(
        &mut self,
        process: ProcessId,
        device: hook::Device,
        period_cycles: u64,
        reasons: Vec<(u32, Cow<'_, str>)>,
    ) {
        let named =
            |(number, name): (u32, Cow<'_, str>)| (number, stall_reason(&name).map(Into::into));
        let sampling = Sampling {
            period_cycles,
            reasons: reasons.into_iter().map(named).collect(),
        };
        let instructions = &mut self.processes[process].cuda.instructions;
        instructions.sampling.insert(device, sampling);
    }

    /// Keeps the line tables of loaded code, once for each checksum.
    pub(in crate::assembler) fn sampled_cubin(
        &mut self,
        process: ProcessId,
        crc: u64,
        bytes: &[u8],
    ) {
        let instructions = &mut self.processes[process].cuda.instructions;
        if instructions.cubins.contains_key(&crc) {
            return;
        }
        let lines = Lines::from_cubin(bytes).unwrap_or_default();
        let rows = instructions.lines.saturating_add(lines.len());
        if bytes.is_empty() || rows > MAX_LINES {
            instructions.cubins.insert(crc, Cubin::NotKept);
            return;
        }
        instructions.lines = rows;
        let source = hashes::hash(bytes);
        let lines = Some(lines).filter(|lines| lines.len() > 0);
        instructions
            .cubins
            .insert(crc, Cubin::Kept { source, lines });
        self.add_source(source, "cubin", bytes);
    }

    /// Adds samples of a function, and counts those that do not fit as lost.
    pub(in crate::assembler) fn instruction_samples(
        &mut self,
        process: ProcessId,
        samples: &FunctionSamples<'_>,
    ) {
        let cuda = &mut self.processes[process].cuda;
        cuda.is_used = true;
        let lost = cuda.instructions.add(samples);
        let reason = "there are too many different instructions";
        self.ledger.add(LossKind::InstructionSamples, lost, reason);
    }

    /// Writes the rows of a process after its last event.
    pub(super) fn finish_instructions(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        tables: &mut Tables,
    ) {
        let instructions = std::mem::take(&mut cuda.instructions);
        let mut names = vec![""; instructions.functions.len()];
        for (name, place) in &instructions.functions {
            names[*place as usize] = name;
        }
        let mut counts: Vec<_> = instructions.counts.iter().collect();
        counts.sort_unstable();
        let functions: Vec<_> = (names.iter())
            .map(|name| (!name.is_empty()).then(|| Arc::from(*name)))
            .collect();
        let of_functions: Vec<_> = (names.iter())
            .map(|name| self.kernels.find_called(process, name))
            .collect();
        for (key, samples) in counts {
            let place = key.function as usize;
            let sampling = instructions.sampling.get(&key.device);
            let reason = match sampling.and_then(|sampling| sampling.reasons.get(&key.reason)) {
                Some(Some(reason)) => Arc::clone(reason),
                Some(None) => continue,
                None => {
                    let reason = "CUPTI does not name their reason";
                    self.ledger
                        .add(LossKind::InstructionSamples, *samples, reason);
                    continue;
                }
            };
            let device = self.device(process, key.device);
            let line = instructions.line(key, names[place]);
            let source = match instructions.cubins.get(&key.cubin) {
                Some(Cubin::Kept { source, .. }) => Some(hashes::hex(*source).into()),
                _ => None,
            };
            tables.pc_samples.push(PcSample {
                process,
                device,
                kernel: of_functions[place],
                function: functions[place].clone(),
                offset_bytes: key.offset,
                stall_reason: reason,
                samples: *samples,
                period_cycles: sampling.map(|s| s.period_cycles).filter(|c| *c > 0),
                file: line.ok().map(|(file, _)| Arc::clone(file)),
                line: line.ok().map(|(_, line)| line),
                no_line: line.err(),
                cubin_crc: key.cubin,
                source,
            });
        }
    }
}

impl Instructions {
    /// Adds samples, and returns the number of those for which there was no room.
    fn add(&mut self, new: &FunctionSamples<'_>) -> u64 {
        let mut lost = 0u64;
        let next = self.functions.len() as u32;
        let function = match self.functions.get(&*new.function) {
            Some(place) => *place,
            None if self.functions.len() < MAX_COUNTS => {
                self.functions
                    .insert(new.function.clone().into_owned(), next);
                next
            }
            None => {
                return new
                    .samples
                    .iter()
                    .map(|(.., samples)| u64::from(*samples))
                    .sum();
            }
        };
        for &(offset, reason, samples) in &*new.samples {
            let key = Key {
                device: new.device,
                cubin: new.cubin,
                function,
                offset,
                reason,
            };
            let samples = u64::from(samples);
            let has_room = self.counts.len() < MAX_COUNTS;
            match self.counts.get_mut(&key) {
                Some(count) => *count = count.saturating_add(samples),
                None if samples == 0 => {}
                None if has_room => {
                    self.counts.insert(key, samples);
                }
                None => lost = lost.saturating_add(samples),
            }
        }
        lost
    }

    /// Returns the file and the line of a sampled instruction, or why it has none.
    fn line(&self, key: &Key, function: &str) -> Result<(&Arc<str>, u32), NoLine> {
        if function.is_empty() {
            return Err(NoLine::UnknownFunction);
        }
        match self.cubins.get(&key.cubin) {
            Some(Cubin::NotKept) => Err(NoLine::CodeNotKept),
            Some(Cubin::Kept {
                lines: Some(lines), ..
            }) => lines
                .at(function, key.offset)
                .ok_or(NoLine::NoneForInstruction),
            None | Some(Cubin::Kept { lines: None, .. }) => Err(NoLine::NotCompiledIn),
        }
    }
}
