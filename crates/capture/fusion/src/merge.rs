//! One module of several: functions stay as they are, and a new entry point calls one after the other.

mod builder;
mod memory;

use std::collections::BTreeMap;

use rspirv::binary::Assemble;
use rspirv::spirv::Word;

use crate::module::Kernel;
use crate::refusal::Refusal;
use builder::Builder;

/// The name of a merged module's entry point.
pub const ENTRY: &str = "main";

/// How kernels are merged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// Of each kernel, by set and binding: where it goes. All are in set 0.
    pub slots: Vec<BTreeMap<(u32, u32), Slot>>,
    /// Of each kernel: where its push constants begin.
    pub push_constants: Vec<u32>,
    /// Intermediates.
    pub intermediates: Vec<Intermediate>,
    /// Values go on in registers.
    pub forwarded: bool,
}

/// Where a binding goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The binding's number in the merged kernel.
    pub number: u32,
    /// Another variable reaches the same memory, and something is written there.
    pub aliased: bool,
    /// Which of the intermediates it is.
    pub intermediate: Option<usize>,
}

/// Memory that a kernel writes and a later one reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Intermediate {
    /// The first kernel that writes it.
    pub writer: usize,
    /// Of each kernel: whether what it stores there must be in memory.
    pub stored: Vec<bool>,
}

/// Merges kernels.
pub fn merge(kernels: &[Kernel], plan: &Plan) -> Result<Vec<Word>, Refusal> {
    let mut builder = Builder::new(kernels, plan)?;
    for (number, kernel) in kernels.iter().enumerate() {
        builder.add(number, kernel)?;
    }
    Ok(builder.finish().assemble())
}
