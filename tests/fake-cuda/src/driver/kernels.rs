//! The kernels that the stub runs, in Rust. Each reads and writes only memory that is mapped; another address is a fault.

use super::address_space::AddressSpace;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What a kernel does, and how long it takes where its code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    pub kind: Kind,
    pub ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `(out, x, a: f32, n: u32)`: `out[i] = a * x[i]`
    Scale,
    /// `(out, x, a: f32, n: u32)`: `out[i] = a + x[i]`
    Shift,
    /// `(y, x, a: f32, n: u32)`: `y[i] = a * x[i] + y[i]`
    Saxpy,
    /// `(first, out)`: writes the sum of a list of nodes (next: u64, value: u32), each of whose values it raises by one.
    WalkList,
    /// One structure (eight pointers, eight counts: u32, number: u32, a: f32): multiplies the numbers at each pointer by `a`.
    Table,
    /// `(out)`: raises the global `counter` (u32) by the number of threads, and writes its value.
    Count,
    /// `(out, n: u32)`: writes other bytes at each run.
    Noise,
    /// `(out, x, n: u32)`: copies, but for a NaN in the middle.
    Nan,
    /// `(flag)`: ends when the word at this address is not 0.
    Spin,
    /// `(a: f32, n: u32)`: multiplies the numbers at the address that the global `target` holds.
    ThroughGlobal,
    /// `(from)`: reads far behind an address.
    Fault,
    /// `(out)`: writes what the launch asked for: cluster x, y, z, cooperative, bytes of shared memory, blocks, threads.
    Attributes,
}

/// The offset and size of each parameter.
type Layout = &'static [(usize, usize)];

/// The names of the kinds, with the layouts of their parameters.
const KINDS: &[(&str, Kind, Layout)] = &[
    ("scale", Kind::Scale, FOUR),
    ("shift", Kind::Shift, FOUR),
    ("saxpy", Kind::Saxpy, FOUR),
    ("walk_list", Kind::WalkList, &[(0, 8), (8, 8)]),
    ("table", Kind::Table, &[(0, 104)]),
    ("count", Kind::Count, &[(0, 8)]),
    ("noise", Kind::Noise, &[(0, 8), (8, 4)]),
    ("nan", Kind::Nan, &[(0, 8), (8, 8), (16, 4)]),
    ("spin", Kind::Spin, &[(0, 8)]),
    ("through_global", Kind::ThroughGlobal, &[(0, 4), (4, 4)]),
    ("fault", Kind::Fault, &[(0, 8)]),
    ("attributes", Kind::Attributes, &[(0, 8)]),
];
const FOUR: Layout = &[(0, 8), (8, 8), (16, 4), (20, 4)];
const MAX_NODES: u32 = 1 << 20;
const FAR: u64 = 1 << 45;

/// The attributes of a launch that a kernel can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    pub cluster: [u32; 3],
    pub cooperative: bool,
}

impl Default for Attributes {
    fn default() -> Attributes {
        Attributes {
            cluster: [1; 3],
            cooperative: false,
        }
    }
}

/// A launch with its parameters.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The handle that was launched: a function's, or that of a library's kernel.
    pub handle: usize,
    pub function: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub parameters: Vec<u8>,
    pub attributes: Attributes,
}

/// A kernel used memory that is not there.
#[derive(Debug)]
pub struct Fault;

/// The memory of a run, and where the globals of its module lie.
pub struct Run<'a> {
    pub space: &'a AddressSpace,
    pub launch: &'a Launch,
    pub global: &'a dyn Fn(&str) -> Option<u64>,
}

impl Program {
    /// Returns the program that the code of a cubin names.
    pub fn of_code(code: &str) -> Option<Program> {
        let (name, ns) = code.split_once(' ').unwrap_or((code, ""));
        let (_, kind, _) = KINDS.iter().find(|(known, ..)| *known == name)?;
        let ns = ns.parse().ok();
        Some(Program { kind: *kind, ns })
    }

    /// Returns the program of a kernel of PTX, whose name begins with that of the program.
    pub fn of_name(name: &str) -> Option<Program> {
        Program::of_code(Program::name_of(name)?)
    }

    /// Returns the name of the program with which the name of a kernel begins.
    pub fn name_of(name: &str) -> Option<&'static str> {
        let found = KINDS.iter().find(|(known, ..)| name.starts_with(known));
        found.map(|(known, ..)| *known)
    }

    /// Returns the offset and size of each parameter.
    pub fn parameters(self) -> Layout {
        let found = KINDS.iter().find(|(_, kind, _)| *kind == self.kind);
        found.map_or(&[], |(_, _, parameters)| parameters)
    }

    /// Returns the bytes of all parameters.
    pub fn parameter_bytes(self) -> usize {
        let ends = self.parameters().iter().map(|(at, size)| at + size);
        ends.max().unwrap_or(0)
    }
}

impl Run<'_> {
    fn parameter<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut value = [0; N];
        value.copy_from_slice(&self.launch.parameters[at..at + N]);
        value
    }

    fn address(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.parameter(at))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.parameter(at))
    }

    fn float(&self, at: usize) -> f32 {
        f32::from_le_bytes(self.parameter(at))
    }

    fn threads(&self) -> u64 {
        let product = |of: [u32; 3]| of.map(u64::from).iter().product::<u64>();
        product(self.launch.grid) * product(self.launch.block)
    }

    /// Returns the elements of which there is a thread each.
    fn elements(&self, count: u32) -> std::ops::Range<u64> {
        0..u64::from(count).min(self.threads())
    }

    fn read<const N: usize>(&self, address: u64) -> Result<[u8; N], Fault> {
        self.space.read(address).ok_or(Fault)
    }

    fn write<const N: usize>(&self, address: u64, bytes: [u8; N]) -> Result<(), Fault> {
        self.space.write(address, bytes).ok_or(Fault)
    }

    fn number(&self, address: u64) -> Result<f32, Fault> {
        self.read(address).map(f32::from_le_bytes)
    }

    /// Writes each of `count` numbers at `out`.
    fn each(
        &self,
        out: u64,
        count: u32,
        value: impl Fn(u64) -> Result<f32, Fault>,
    ) -> Result<(), Fault> {
        for index in self.elements(count) {
            self.write(out + 4 * index, value(index)?.to_le_bytes())?;
        }
        Ok(())
    }

    /// Runs a program, and returns the address of the word that it waits for.
    pub fn run(&self, program: Program) -> Result<Option<u64>, Fault> {
        static NOISE: AtomicU32 = AtomicU32::new(1);
        if self.launch.parameters.len() < program.parameter_bytes() {
            return Err(Fault);
        }
        match program.kind {
            Kind::Scale | Kind::Shift | Kind::Saxpy => {
                let (out, x) = (self.address(0), self.address(8));
                let (a, count) = (self.float(16), self.word(20));
                self.each(out, count, |i| {
                    let x = self.number(x + 4 * i)?;
                    Ok(match program.kind {
                        Kind::Scale => a * x,
                        Kind::Shift => a + x,
                        _ => a * x + self.number(out + 4 * i)?,
                    })
                })?;
            }
            Kind::WalkList => {
                let (mut node, out, mut sum) = (self.address(0), self.address(8), 0u32);
                for _ in 0..MAX_NODES {
                    if node == 0 {
                        break;
                    }
                    let value = u32::from_le_bytes(self.read(node + 8)?);
                    sum = sum.wrapping_add(value);
                    self.write(node + 8, value.wrapping_add(1).to_le_bytes())?;
                    node = u64::from_le_bytes(self.read(node)?);
                }
                self.write(out, sum.to_le_bytes())?;
            }
            Kind::Table => {
                let (number, a) = (self.word(96), self.float(100));
                for index in 0..number.min(8) as usize {
                    let (at, count) = (self.address(8 * index), self.word(64 + 4 * index));
                    self.each(at, count, |i| Ok(a * self.number(at + 4 * i)?))?;
                }
            }
            Kind::Count => {
                let counter = (self.global)("counter").ok_or(Fault)?;
                let before = u32::from_le_bytes(self.read(counter)?);
                let after = before.wrapping_add(self.threads() as u32).to_le_bytes();
                self.write(counter, after)?;
                self.write(self.address(0), after)?;
            }
            Kind::Noise => {
                let seed = std::process::id() ^ (crate::cupti::now() as u32);
                self.each(self.address(0), self.word(8), |_| {
                    Ok((NOISE.fetch_add(1, Relaxed) ^ (seed >> 9)) as f32)
                })?;
            }
            Kind::Nan => {
                let (x, count) = (self.address(8), self.word(16));
                self.each(self.address(0), count, |i| {
                    match i == u64::from(count / 2) {
                        true => Ok(f32::NAN),
                        false => self.number(x + 4 * i),
                    }
                })?;
            }
            Kind::Spin => {
                self.read::<4>(self.address(0))?;
                return Ok(Some(self.address(0)));
            }
            Kind::ThroughGlobal => {
                let target = (self.global)("target").ok_or(Fault)?;
                let target = u64::from_le_bytes(self.read(target)?);
                let a = self.float(0);
                self.each(target, self.word(4), |i| {
                    Ok(a * self.number(target + 4 * i)?)
                })?;
            }
            Kind::Fault => {
                self.read::<4>(self.address(0).wrapping_add(FAR))?;
            }
            Kind::Attributes => {
                let Launch {
                    grid,
                    block,
                    shared,
                    attributes,
                    ..
                } = self.launch;
                let [x, y, z] = attributes.cluster;
                let cooperative = u32::from(attributes.cooperative);
                let blocks = grid.iter().product();
                let words = [
                    x,
                    y,
                    z,
                    cooperative,
                    *shared,
                    blocks,
                    block.iter().product(),
                ];
                for (index, word) in words.into_iter().enumerate() {
                    self.write(self.address(0) + 4 * index as u64, u32::to_le_bytes(word))?;
                }
            }
        }
        Ok(None)
    }
}
