//! Times the parts of a chain (dispatches that can be merged into one) on a device: each part is written as a small
//! capture that runs the part repeatedly. The functions of [`Probe`] prepare parts, or return `None` if the window
//! has no submission; [`Probe::run`] then times all of them.

mod copy;

use std::path::{Path, PathBuf};

use gapscope_capture::model::*;
use gapscope_capture::{Capture, Step};
use gapscope_replay::{DeviceChoice, Options, replay};
use rspirv::binary::Assemble;
use rspirv::dr::Builder;
use rspirv::spirv::{
    AddressingModel, Capability, ExecutionMode, ExecutionModel, FunctionControl, MemoryModel,
};

use crate::chain::Chain;
use crate::draft::{Draft, NewKernel};
use crate::error::FuseError;
use crate::merge::ENTRY;
use crate::rewrite::Merged;

/// Prepares and times small captures on one device.
pub struct Probe<'a> {
    /// The capture whose chains are measured.
    pub capture: &'a Capture,
    pub device: Option<&'a DeviceChoice>,
    /// The folder in which small captures are made.
    pub folder: &'a Path,
    /// Number of captures made so far.
    pub made: u32,
}

/// A small capture to time, in a folder of its own.
pub struct PreparedCapture {
    capture: Capture,
    folder: PathBuf,
    /// Number of commands that are timed together.
    count: u32,
    /// Nanoseconds of one command of the capture with the barrier after it, in the shortest run; `None` if the queue
    /// has no timestamps.
    pub least_ns: Option<f64>,
}

impl Drop for PreparedCapture {
    fn drop(&mut self) {
        // The folder may be as large as the original capture. If removing it fails here, it is removed with its
        // parent folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Number of runs of a prepared capture in a round.
const RUNS: u32 = 2;
/// Number of rounds in which all prepared captures run.
const ROUNDS: u32 = 4;
/// `VK_DESCRIPTOR_TYPE_STORAGE_BUFFER`
const STORAGE: u32 = 7;

impl Probe<'_> {
    /// Prepares `count` equal commands, each with a barrier after it. With `before`, memory has the contents from
    /// before the command with that index among [`Capture::executed`].
    fn prepare(
        &mut self,
        before: Option<usize>,
        count: u32,
        barrier: Dependency,
        command: impl FnOnce(&mut Draft<'_>) -> Result<Command, FuseError>,
    ) -> Result<Option<PreparedCapture>, FuseError> {
        self.made += 1;
        let folder = self.folder.join(format!("measured-{}", self.made));
        let mut draft = Draft::new(self.capture, &folder)?;
        let command = command(&mut draft)?;
        if let Some(before) = before {
            self.contents(&mut draft, before)?;
        }
        let barrier = Command::Barrier(Barrier::of_memory(barrier));
        let each = (0..count).flat_map(|_| [command.clone(), barrier.clone()]);
        let Some(submission) = self.capture.submissions().next() else {
            return Ok(None);
        };
        draft.submit(submission.queue, each.collect())?;
        Ok(Some(PreparedCapture {
            capture: draft.end(&folder)?,
            folder,
            count,
            least_ns: None,
        }))
    }

    /// Runs all prepared captures in turn, so that all meet the same conditions of the machine.
    pub fn run(&self, all: &mut [PreparedCapture]) -> Result<(), FuseError> {
        let options = Options {
            device: self.device.cloned(),
            repeat: RUNS,
            warm_up: 1,
            ..Options::default()
        };
        for _ in 0..ROUNDS {
            for of in &mut *all {
                if let Some(least) = replay(&of.capture, &options)?.least_ns {
                    let least = least as f64 / f64::from(of.count);
                    of.least_ns = Some(of.least_ns.map_or(least, |known| known.min(least)));
                }
            }
        }
        Ok(())
    }

    /// Returns the union of all barriers between a chain's first two dispatches, as a barrier of all memory. The cost
    /// of a barrier depends on its stages and accesses.
    fn between(&self, chain: &Chain<'_>) -> Dependency {
        let [first, second] = [0, 1].map(|at| chain.members[at].executed);
        let all = self.capture.executed().skip(first).take(second - first);
        let barriers = all.filter_map(|of| match of {
            Command::Barrier(barrier) => Some(barrier),
            _ => None,
        });
        barriers
            .flat_map(|of| {
                let buffers = of.buffers.iter().map(|(dependency, _)| dependency);
                of.memory.iter().chain(buffers)
            })
            .copied()
            .reduce(|a, b| Dependency {
                after_stages: a.after_stages | b.after_stages,
                after_access: a.after_access | b.after_access,
                before_stages: a.before_stages | b.before_stages,
                before_access: a.before_access | b.before_access,
            })
            .unwrap_or(COMPUTE)
    }

    /// Writes into a draft the contents of memory before a command, as far as the capture has them.
    fn contents(&self, draft: &mut Draft<'_>, executed: usize) -> Result<(), FuseError> {
        let mut at = 0;
        for step in &self.capture.steps {
            match step {
                Step::Content(content) => draft.content(content)?,
                Step::Submission(of) => {
                    let lists = of.batches.iter().flat_map(|of| &of.commands);
                    at += lists
                        .map(|id| self.capture.commands[id].len())
                        .sum::<usize>();
                    if at > executed {
                        break;
                    }
                }
                Step::Outcome(_) => {}
            }
        }
        Ok(())
    }

    /// Prepares copies between two buffers of `bytes` bytes.
    pub fn bandwidth(&mut self, bytes: u64) -> Result<Option<PreparedCapture>, FuseError> {
        self.prepare(None, count(bytes), AFTER_TRANSFER, |draft| {
            let (from, to) = (draft.buffer(bytes)?, draft.buffer(bytes)?);
            Ok(Command::Copy(Copy::from_start(from, to, bytes)))
        })
    }

    /// Prepares a kernel that does nothing, with the workgroups of a chain.
    pub fn launch(&mut self, chain: &Chain<'_>) -> Result<Option<PreparedCapture>, FuseError> {
        let first = &chain.members[0];
        let words = nothing(first.trail.local_size);
        self.prepare(None, 16, self.between(chain), |draft| {
            let pipeline = draft.kernel(&NewKernel {
                name: "nothing".to_owned(),
                words: &words,
                descriptors: &[],
                push_constants: 0,
                like: None,
            })?;
            Ok(Command::Dispatch(Dispatch {
                pipeline,
                bindings: Vec::new(),
                push_constants: Vec::new(),
                ..first.dispatch.clone()
            }))
        })
    }

    /// Prepares a kernel that copies `bytes` bytes with the workgroups of a chain, one word an invocation.
    pub fn copying(
        &mut self,
        chain: &Chain<'_>,
        bytes: u64,
    ) -> Result<Option<PreparedCapture>, FuseError> {
        let first = &chain.members[0];
        let barrier = self.between(chain);
        let words = copy::kernel(first.trail.local_size, (bytes / 4) as u32);
        self.prepare(None, count(2 * bytes), barrier, |draft| {
            let buffers = [draft.buffer(bytes)?, draft.buffer(bytes)?];
            let pipeline = draft.kernel(&NewKernel {
                name: "copy".to_owned(),
                words: &words,
                descriptors: &[STORAGE, STORAGE],
                push_constants: 0,
                like: None,
            })?;
            let bindings = (0..).zip(buffers).map(|(binding, buffer)| Binding {
                binding,
                descriptor_type: STORAGE,
                range: Some(BufferRange::from_start(buffer, bytes)),
                read_only: binding == 0,
                ..Binding::default()
            });
            Ok(Command::Dispatch(Dispatch {
                pipeline,
                groups: first.dispatch.groups,
                base: [0; 3],
                push_constants: Vec::new(),
                bindings: bindings.collect(),
            }))
        })
    }

    /// Prepares one dispatch of a chain.
    pub fn member(
        &mut self,
        chain: &Chain<'_>,
        number: usize,
    ) -> Result<Option<PreparedCapture>, FuseError> {
        let member = &chain.members[number];
        let count = count(bound(member.dispatch));
        let command = Command::Dispatch(member.dispatch.clone());
        let first = chain.members[0].executed;
        self.prepare(Some(first), count, self.between(chain), |_| Ok(command))
    }

    /// Prepares the merged kernel of a chain.
    pub fn merged(
        &mut self,
        chain: &Chain<'_>,
        merged: &Merged,
    ) -> Result<Option<PreparedCapture>, FuseError> {
        let like = &self.capture.pipelines[&chain.members[0].dispatch.pipeline];
        let kinds = merged.dispatch.bindings.iter().map(|of| of.descriptor_type);
        let kinds: Vec<u32> = kinds.collect();
        self.prepare(
            Some(chain.members[0].executed),
            count(bound(&merged.dispatch)),
            self.between(chain),
            |draft| {
                let pipeline = draft.kernel(&NewKernel {
                    name: "merged".to_owned(),
                    words: &merged.words,
                    descriptors: &kinds,
                    push_constants: merged.dispatch.push_constants.len() as u32,
                    like: Some(like),
                })?;
                Ok(Command::Dispatch(Dispatch {
                    pipeline,
                    ..merged.dispatch.clone()
                }))
            },
        )
    }
}

/// Returns the number of commands that are timed together, which is larger for short ones.
fn count(bytes: u64) -> u32 {
    match bytes {
        0..=4_194_304 => 16,
        _ => 4,
    }
}

/// Returns the number of bytes bound to a dispatch.
fn bound(dispatch: &Dispatch) -> u64 {
    dispatch
        .bindings
        .iter()
        .filter_map(|of| of.range)
        .map(|range| range.bytes)
        .sum()
}

/// The barrier for a chain without barriers: a kernel reads what an earlier one wrote.
const COMPUTE: Dependency = {
    /// `VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT`
    const COMPUTE_SHADER: u64 = 0x800;
    /// `VK_ACCESS_SHADER_WRITE_BIT`
    const WRITE: u64 = 0x40;
    /// `VK_ACCESS_SHADER_READ_BIT`
    const READ: u64 = 0x20;
    Dependency {
        after_stages: COMPUTE_SHADER,
        after_access: WRITE,
        before_stages: COMPUTE_SHADER,
        before_access: READ,
    }
};

/// The barrier from one copy to the next.
const AFTER_TRANSFER: Dependency = {
    /// `VK_PIPELINE_STAGE_TRANSFER_BIT`
    const TRANSFER: u64 = 0x1000;
    /// `VK_ACCESS_MEMORY_READ_BIT` and `VK_ACCESS_MEMORY_WRITE_BIT`
    const READ_AND_WRITE: u64 = 0x8000 | 0x1_0000;
    Dependency {
        after_stages: TRANSFER,
        after_access: READ_AND_WRITE,
        before_stages: TRANSFER,
        before_access: READ_AND_WRITE,
    }
};

/// Returns the SPIR-V of a kernel that does nothing.
fn nothing(local_size: [u32; 3]) -> Vec<u32> {
    let mut builder = Builder::new();
    builder.set_version(1, 3);
    builder.capability(Capability::Shader);
    builder.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
    let void = builder.type_void();
    let signature = builder.type_function(void, []);
    let began = builder.begin_function(void, None, FunctionControl::NONE, signature);
    let Ok(main) = began else { return Vec::new() };
    // The builder fails only outside of functions.
    let _ = builder.begin_block(None);
    let _ = builder.ret();
    let _ = builder.end_function();
    builder.entry_point(ExecutionModel::GLCompute, main, ENTRY, []);
    builder.execution_mode(main, ExecutionMode::LocalSize, local_size);
    builder.module().assemble()
}
