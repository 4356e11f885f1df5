//! Runs the [`Executable`] part of a kernel for all invocations of a dispatch, 64 at a time, and marks the bytes of
//! each buffer that they reach.
//!
//! Invocations that branch differently run one after the other: of the blocks in which invocations wait, the first is
//! always next. A lane is one of the invocations that run together, and sets of lanes are words with a bit for each.
//! A site is an instruction that accesses memory.

mod executable;
mod marks;
mod trail;

use std::sync::atomic::{AtomicU64, Ordering};

use super::code::{Operands, operate, word};
use super::program::Input;
use super::reason::Reason;
pub(crate) use executable::{Block, Edge, End, Executable, Instruction};
pub(crate) use marks::{Marks, ReachedScalars};
pub use trail::Run;
pub(crate) use trail::Sites;

/// Number of invocations that run together.
const LANES: usize = 64;
/// The values of one register in all lanes, the invocations that run together.
type Lanes = [u64; LANES];

/// The workgroups and invocations of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Number of the first workgroup by axis.
    pub base: [u32; 3],
    /// Number of workgroups by axis.
    pub groups: [u32; 3],
    /// Number of invocations of a workgroup by axis.
    pub local: [u32; 3],
}

impl Grid {
    /// Returns the number of all invocations; `None` if 64 bits cannot hold it.
    fn invocations(self) -> Option<u64> {
        let sizes = self.groups.into_iter().chain(self.local);
        sizes.map(u64::from).try_fold(1, u64::checked_mul)
    }

    /// Returns the value of a built-in input for the invocation with a number. Invocations are counted workgroup
    /// after workgroup, the first axis fastest.
    fn input(self, input: Input, number: u64) -> u64 {
        let local = self.local.map(u64::from);
        let in_group = local[0] * local[1] * local[2];
        let (group, at) = (number / in_group, number % in_group);
        let group_at = |axis: usize| {
            let groups = self.groups.map(u64::from);
            let at = match axis {
                0 => group % groups[0],
                1 => group / groups[0] % groups[1],
                _ => group / groups[0] / groups[1],
            };
            at + u64::from(self.base[axis])
        };
        let local_at = |axis: usize| match axis {
            0 => at % local[0],
            1 => at / local[0] % local[1],
            _ => at / local[0] / local[1],
        };
        let value = match input {
            Input::Group(axis) => group_at(axis.into()),
            Input::Local(axis) => local_at(axis.into()),
            Input::Global(axis) => {
                let axis = usize::from(axis);
                group_at(axis) * local[axis] + local_at(axis)
            }
            Input::LocalIndex => at,
        };
        value & u64::from(u32::MAX)
    }
}

/// The limits of a run; a run that exceeds one fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLimits {
    /// The most operations of single invocations.
    pub steps: u64,
    /// The most bytes that marks may take.
    pub mark_bytes: u64,
    pub threads: usize,
}

/// Runs a kernel for all invocations, and returns the marks of each buffer and the number of steps. `buffers` has for
/// each buffer its size and the number of bytes that one mark stands for. A run that exceeds a limit is an error.
pub(crate) fn run(
    executable: &Executable,
    grid: Grid,
    buffers: &[(u64, u32)],
    allowance: RunLimits,
) -> (Result<Vec<Marks>, Reason>, u64) {
    let marks = || empty_marks(buffers);
    let too_long = Err(Reason::Steps(allowance.steps));
    let Some(invocations) = grid.invocations() else {
        return (too_long, 0);
    };
    if invocations == 0 || executable.blocks.is_empty() {
        return (Ok(marks()), 0);
    }
    if invocations > allowance.steps {
        return (too_long, 0);
    }
    let shared = Shared::new(executable, grid, invocations, allowance);
    let threads = allowance.threads.clamp(1, 64) as u64;
    let threads = threads.min(invocations.div_ceil(SHARE));
    let results: Vec<Result<Vec<Marks>, Reason>> = match threads {
        1 => vec![shared.work(marks())],
        _ => std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| scope.spawn(|| shared.work(marks())))
                .collect();
            let failed = || Err(Reason::Kernel("its evaluation failed"));
            (workers.into_iter())
                .map(|worker| worker.join().unwrap_or_else(|_| failed()))
                .collect()
        }),
    };
    let joined = results.into_iter().reduce(|all, more| {
        let (mut all, more) = (all?, more?);
        for (marks, more) in all.iter_mut().zip(more) {
            marks.join(more);
        }
        Ok(all)
    });
    let steps = shared.steps.load(Ordering::Relaxed);
    (joined.unwrap_or_else(|| Ok(marks())), steps)
}

/// Returns marks of each buffer by which nothing is marked yet.
fn empty_marks(buffers: &[(u64, u32)]) -> Vec<Marks> {
    let buffers = buffers.iter();
    buffers
        .map(|(bytes, mark)| Marks::new(*bytes, *mark))
        .collect()
}

/// Number of invocations that a thread takes at once.
const SHARE: u64 = 64 * LANES as u64;

/// Runs a kernel as [`run`] does, but on this thread alone, and also returns the bytes that single invocations reach.
pub(crate) fn follow(
    executable: &Executable,
    grid: Grid,
    buffers: &[(u64, u32)],
    allowance: RunLimits,
) -> Result<(Vec<Marks>, Sites), Reason> {
    let invocations = grid.invocations().filter(|count| *count <= allowance.steps);
    let invocations = invocations.ok_or(Reason::Steps(allowance.steps))?;
    let marks = empty_marks(buffers);
    if invocations == 0 || executable.blocks.is_empty() {
        return Ok((marks, Sites::default()));
    }
    let shared = Shared::new(executable, grid, invocations, allowance);
    let mut machine = Machine::new(&shared, marks);
    machine.sites = Some(Sites::default());
    for first in (0..invocations).step_by(LANES) {
        machine.run(first, invocations)?;
        machine.account()?;
    }
    let sites = machine.sites.take().unwrap_or_default();
    match sites.overflow {
        true => Err(Reason::Limit(trail::RUNS)),
        false => Ok((machine.marks, sites)),
    }
}

/// The state of a run that its threads share: the next invocation to take, and the steps so far.
struct Shared<'a> {
    executable: &'a Executable,
    grid: Grid,
    invocations: u64,
    next: AtomicU64,
    /// The operations so far that threads have accounted for.
    steps: AtomicU64,
    allowance: RunLimits,
}

impl<'a> Shared<'a> {
    fn new(
        executable: &'a Executable,
        grid: Grid,
        invocations: u64,
        allowance: RunLimits,
    ) -> Shared<'a> {
        Shared {
            executable,
            grid,
            invocations,
            next: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            allowance,
        }
    }

    /// Runs shares of the invocations on this thread until none is left, and returns the marks.
    fn work(&self, marks: Vec<Marks>) -> Result<Vec<Marks>, Reason> {
        let mut machine = Machine::new(self, marks);
        loop {
            let from = self.next.fetch_add(SHARE, Ordering::Relaxed);
            if from >= self.invocations {
                return Ok(machine.marks);
            }
            let end = (from + SHARE).min(self.invocations);
            for first in (from..end).step_by(LANES) {
                machine.run(first, end)?;
            }
            machine.account()?;
        }
    }
}

/// The state of one thread of a run: the registers and marks of the invocations that it runs together.
struct Machine<'a> {
    shared: &'a Shared<'a>,
    registers: Vec<Lanes>,
    /// For each block the lanes that wait in it, a bit for each.
    waiting: Vec<u64>,
    /// The blocks in which lanes wait, a bit for each.
    occupied: Vec<u64>,
    marks: Vec<Marks>,
    /// The number of the invocation in lane 0.
    first: u64,
    /// The operations since they were last accounted for.
    steps: u64,
    /// The values that a tangled jump copies, all read before the first is written.
    tangle: Vec<Lanes>,
    /// The bytes that single invocations reach; `None` if they are not asked for.
    sites: Option<Sites>,
}

impl<'a> Machine<'a> {
    fn new(shared: &'a Shared<'a>, marks: Vec<Marks>) -> Machine<'a> {
        let executable = shared.executable;
        let mut registers = vec![[0; LANES]; executable.registers];
        for (value, register) in &executable.known {
            registers[*register as usize] = [*value; LANES];
        }
        Machine {
            shared,
            registers,
            waiting: vec![0; executable.blocks.len()],
            occupied: vec![0; executable.blocks.len().div_ceil(64)],
            marks,
            first: 0,
            steps: 0,
            tangle: Vec::new(),
            sites: None,
        }
    }

    /// Adds the steps of this thread to those of all threads, and fails where these, or the thread's marks, exceed a
    /// limit.
    fn account(&mut self) -> Result<(), Reason> {
        let steps = std::mem::take(&mut self.steps);
        let before = self.shared.steps.fetch_add(steps, Ordering::Relaxed);
        let bytes: u64 = self.marks.iter().map(Marks::memory_bytes).sum();
        let allowance = &self.shared.allowance;
        if before.saturating_add(steps) > allowance.steps {
            return Err(Reason::Steps(allowance.steps));
        }
        match bytes > allowance.mark_bytes / allowance.threads.max(1) as u64 {
            true => Err(Reason::Limit("256 MiB of memory")),
            false => Ok(()),
        }
    }

    /// Runs the invocations from `first` on: as many as there are lanes, but none from `end` on.
    fn run(&mut self, first: u64, end: u64) -> Result<(), Reason> {
        let count = (end - first).min(LANES as u64);
        let shared = self.shared;
        let executable = shared.executable;
        self.first = first;
        for register in &executable.variables {
            self.registers[*register as usize] = [0; LANES];
        }
        for (input, register) in &executable.inputs {
            let lanes = &mut self.registers[*register as usize];
            for (lane, number) in lanes.iter_mut().zip(first..first + count) {
                *lane = shared.grid.input(*input, number);
            }
        }
        self.enter(0, u64::MAX >> (LANES as u64 - count));
        while let Some(block) = self.next_block() {
            let active = std::mem::take(&mut self.waiting[block]);
            self.occupied[block / 64] &= !(1 << (block % 64));
            let block = &executable.blocks[block];
            for site in block.instructions.clone() {
                let instruction = &executable.instructions[site];
                self.step(instruction, active);
                self.observe(site, instruction, active);
            }
            let steps = block.instructions.len() as u64 + 1;
            self.steps += steps * u64::from(active.count_ones());
            self.leave(&block.end, active);
            if self.steps > CHECKED_EVERY {
                self.account()?;
            }
        }
        Ok(())
    }

    /// Returns the first block in which lanes wait; `None` if none waits.
    fn next_block(&self) -> Option<usize> {
        let word = self.occupied.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    /// Lets lanes wait in a block.
    fn enter(&mut self, block: usize, lanes: u64) {
        self.waiting[block] |= lanes;
        self.occupied[block / 64] |= 1 << (block % 64);
    }

    /// Sends the active lanes of a block to the blocks that follow it.
    fn leave(&mut self, end: &End, active: u64) {
        match end {
            End::Stop => {}
            End::Jump(edge) => self.go(edge, active),
            End::Branch {
                condition,
                then,
                otherwise,
            } => {
                let taken = lanes_where(&self.registers[*condition as usize], |value| value != 0);
                self.go(then, active & taken);
                self.go(otherwise, active & !taken);
            }
            End::Switch {
                selector,
                default,
                cases,
            } => {
                let selector = self.registers[*selector as usize];
                let mut left = active;
                for (value, edge) in cases {
                    let taken = lanes_where(&selector, |selected| selected == *value);
                    self.go(edge, left & taken);
                    left &= !taken;
                }
                self.go(default, left);
            }
        }
    }

    /// Takes lanes along an edge: makes its copies, and lets them wait in its block.
    fn go(&mut self, edge: &Edge, lanes: u64) {
        if lanes == 0 {
            return;
        }
        if edge.tangled {
            self.tangle.clear();
            let sources = edge
                .copies
                .iter()
                .map(|(_, from)| self.registers[*from as usize]);
            self.tangle.extend(sources);
            for ((to, _), from) in edge.copies.iter().zip(&self.tangle) {
                blend(&mut self.registers[*to as usize], from, lanes);
            }
        } else {
            for (to, from) in &edge.copies {
                let from = self.registers[*from as usize];
                blend(&mut self.registers[*to as usize], &from, lanes);
            }
        }
        self.enter(edge.to as usize, lanes);
    }

    /// Notes the bytes that each active lane reaches at a site, where these are asked for.
    fn observe(&mut self, site: usize, instruction: &Instruction, active: u64) {
        let Some(sites) = &mut self.sites else { return };
        let Instruction::Access {
            buffer,
            offset,
            bytes,
            direction,
            rows,
        } = instruction
        else {
            return;
        };
        if rows.is_some() {
            // All invocations of a subgroup reach the matrix together, so that no bytes belong to a single one.
            sites.overflow = true;
            return;
        }
        let offsets = &self.registers[*offset as usize];
        for lane in lanes(active) {
            let of = (*buffer, *bytes, *direction);
            sites.add(site, of, self.first + lane as u64, offsets[lane]);
        }
    }

    fn step(&mut self, instruction: &Instruction, active: u64) {
        match instruction {
            Instruction::Compute {
                code,
                bits,
                operands: [a, b, c],
                result,
            } => {
                let [a, b, c] = [*a, *b, *c].map(|register| &self.registers[register as usize]);
                let result_lanes = operate(*code, *bits, Columns { a, b, c });
                blend(&mut self.registers[*result as usize], &result_lanes, active);
            }
            Instruction::Pick {
                first,
                count,
                index,
                result,
            } => {
                for lane in lanes(active) {
                    let at = self.registers[*index as usize][lane];
                    let value = match at < u64::from(*count) {
                        true => self.registers[*first as usize + at as usize][lane],
                        false => 0,
                    };
                    self.registers[*result as usize][lane] = value;
                }
            }
            Instruction::Put {
                first,
                count,
                index,
                value,
            } => {
                for lane in lanes(active) {
                    let at = self.registers[*index as usize][lane];
                    if at < u64::from(*count) {
                        let value = self.registers[*value as usize][lane];
                        self.registers[*first as usize + at as usize][lane] = value;
                    }
                }
            }
            Instruction::Look {
                content,
                offset,
                bytes,
                result,
            } => {
                let content = &self.shared.executable.contents[*content];
                for lane in lanes(active) {
                    let at = self.registers[*offset as usize][lane];
                    self.registers[*result as usize][lane] = word(content, at, *bytes);
                }
            }
            Instruction::Access {
                buffer,
                offset,
                bytes,
                direction,
                rows,
            } => {
                let offsets = &self.registers[*offset as usize];
                let marks = &mut self.marks[*buffer as usize];
                match rows {
                    None => marks.mark(offsets, self.first, active, *bytes, *direction),
                    Some((rows, stride)) => {
                        let strides = &self.registers[*stride as usize];
                        // All invocations of a subgroup give the same address, which is marked once.
                        let mut last = None;
                        for lane in lanes(active) {
                            let place = (offsets[lane], strides[lane]);
                            if last.replace(place) == Some(place) {
                                continue;
                            }
                            self.steps += u64::from(*rows);
                            for row in 0..u64::from(*rows) {
                                let at = place.0.wrapping_add(place.1.wrapping_mul(row));
                                marks.mark(&[at], self.first + lane as u64, 1, *bytes, *direction);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Number of steps after which a thread checks whether all threads together took too many.
const CHECKED_EVERY: u64 = 1 << 22;

/// Returns the numbers of the bits that are set, which are the active lanes.
fn lanes(mut active: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = active.trailing_zeros() as usize;
        active &= active.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// Returns a bit for each lane whose value fits.
fn lanes_where(values: &Lanes, fits: impl Fn(u64) -> bool) -> u64 {
    let bits = (0..)
        .zip(values)
        .map(|(lane, value)| u64::from(fits(*value)) << lane);
    bits.fold(0, |all, bit| all | bit)
}

/// Copies the values of active lanes.
fn blend(to: &mut Lanes, from: &Lanes, active: u64) {
    if active == u64::MAX {
        *to = *from;
        return;
    }
    for (lane, (to, from)) in to.iter_mut().zip(from).enumerate() {
        let chosen = (active >> lane & 1).wrapping_neg();
        *to = (*from & chosen) | (*to & !chosen);
    }
}

/// The operands of an operation on all lanes, in order.
struct Columns<'a> {
    a: &'a Lanes,
    b: &'a Lanes,
    c: &'a Lanes,
}

impl Operands for Columns<'_> {
    type Result = Lanes;
    #[inline(always)]
    fn each(self, function: impl Fn(u64, u64, u64) -> u64) -> Lanes {
        let mut result = [0; LANES];
        for (lane, result) in result.iter_mut().enumerate() {
            *result = function(self.a[lane], self.b[lane], self.c[lane]);
        }
        result
    }
}
