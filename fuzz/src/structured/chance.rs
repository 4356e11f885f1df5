//! Draws the values of generated files: most are those of a real file, and as many as the case wants are odd.

use crate::bytes::{NUMBERS, TEXTS, one_of};
use fastrand::Rng;
use std::fmt::Display;

/// What stands in a document in place of a number or a text, where a tool wrote something else.
const ODD_VALUES: [&str; 8] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"7\"",
    "[1,2]",
    "{\"x\":1}",
];

/// Names of work, functions and ranges.
const NAMES: [&str; 14] = [
    "void scale<float>(float*, int)",
    "sm90_xmma_gemm_f16f16_tn",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_ZN2at6native18elementwise_kernelEv.kd",
    "ProfilerStep#7",
    "train.py(41): load_batch",
    "<built-in method view of Tensor object at 0x7f31>",
    "aten::add",
    "Optimizer.step#SGD.step",
    "forward",
    "a/b/c",
    "Größe",
    "x",
    "Memcpy HtoD (Pinned -> Device)",
];

/// Draws values. The same seed gives the same values.
#[derive(Debug)]
pub struct Chance {
    pub rng: Rng,
    /// How many of 256 values are odd.
    odd: u8,
}

impl Chance {
    /// Begins a case. One case in four has no odd value, so that all its rows are known.
    pub fn new(seed: u64) -> Chance {
        let mut rng = Rng::with_seed(seed);
        let odd = match rng.u8(0..8) {
            0 | 1 => 0,
            2..5 => 3,
            5 | 6 => 24,
            _ => 96,
        };
        Chance { rng, odd }
    }

    /// Returns whether the case has no odd values.
    pub fn is_sound(&self) -> bool {
        self.odd == 0
    }

    /// Returns whether the next value is odd.
    pub fn is_odd(&mut self) -> bool {
        self.odd > 0 && self.rng.u8(..) < self.odd
    }

    /// Returns one of several values.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        one_of(&mut self.rng, values)
    }

    /// Returns whether something happens that happens once in `times`.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.rng.u32(0..times) == 0
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.rng.u64(0..end.max(1))
    }

    /// Returns a value of JSON: `usual`, or an odd one.
    pub fn json(&mut self, usual: impl Display) -> String {
        match self.is_odd() {
            false => usual.to_string(),
            true if self.rng.bool() => one_of(&mut self.rng, &NUMBERS).to_owned(),
            true => one_of(&mut self.rng, &ODD_VALUES).to_owned(),
        }
    }

    /// Returns a text: `usual`, or an odd one.
    pub fn text(&mut self, usual: &str) -> String {
        match self.is_odd() {
            false => usual.to_owned(),
            true => match self.rng.u8(0..4) {
                0 => one_of(&mut self.rng, &NUMBERS).to_owned(),
                1 => usual.repeat(self.rng.usize(0..40)),
                _ => one_of(&mut self.rng, &TEXTS).to_owned(),
            },
        }
    }

    /// Returns a text between quotes, or an odd value.
    pub fn quoted(&mut self, usual: &str) -> String {
        match self.is_odd() && self.rng.bool() {
            true => self.json(0),
            false => serde_json::Value::String(self.text(usual)).to_string(),
        }
    }

    /// Returns the name of something that ran, between quotes.
    pub fn name(&mut self) -> String {
        let name = self.one_of(&NAMES);
        self.quoted(name)
    }

    /// Returns a number that is written in binary: `usual`, or an odd one.
    pub fn number(&mut self, usual: u64) -> u64 {
        match self.is_odd() {
            false => usual,
            true => match self.rng.u8(0..4) {
                0 => self.rng.u64(..) >> self.rng.u32(0..64),
                1 => usual.wrapping_neg(),
                2 => usual.wrapping_add(self.rng.u64(0..3)).wrapping_sub(1),
                _ => one_of(
                    &mut self.rng,
                    &[0, 1, u64::MAX, 1 << 63, u32::MAX.into(), i64::MAX as u64],
                ),
            },
        }
    }

    /// Joins the members of an object, of which some are missing, are there twice or stand at another place.
    pub fn object(&mut self, mut members: Vec<String>) -> String {
        if self.is_odd() && !members.is_empty() {
            let at = self.rng.usize(0..members.len());
            match self.rng.u8(0..3) {
                0 => drop(members.remove(at)),
                1 => members.push(members[at].clone()),
                _ => self.rng.shuffle(&mut members),
            }
        }
        format!("{{{}}}", members.join(","))
    }
}

/// The time at which each piece of a generated file begins.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub now_ns: u64,
}

impl Clock {
    /// Begins at one of the moments at which clocks of tools begin.
    pub fn new(chance: &mut Chance) -> Clock {
        let starts = [
            1_000,
            5_000_000_000,
            1_751_410_836_000_000_000,
            3_600_000_000_000,
        ];
        Clock {
            now_ns: chance.one_of(&starts),
        }
    }

    /// Goes on by a chance time and returns the present one.
    pub fn next(&mut self, chance: &mut Chance) -> u64 {
        self.now_ns += 1 + chance.below(40_000);
        self.now_ns
    }
}
