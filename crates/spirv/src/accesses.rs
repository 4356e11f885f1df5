//! Finds the elements of bound buffers that each invocation of a kernel certainly reads or writes: a module, an entry
//! point and specialisation constants go in, and accesses come out, whose addresses are sums over the numbers of the
//! invocation's workgroup and of the invocation in it.
//!
//! An access is certain where every invocation makes it, or every one whose index is below the length of an array.
//! Only the entry point's own function is followed, and no loop: what is not understood is left out.

mod sums;
mod values;
mod walk;

pub use sums::{Sum, Symbol};

use crate::constants::{Constants, Specialisation};
use crate::module::{EntryPoint, LocalSize, Module};
use walk::Walk;

/// The most instructions that are followed; a longer function has no known accesses.
const MAX_INSTRUCTIONS: usize = 100_000;

/// The length of the array at the end of a bound buffer: the elements of `stride` bytes from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrayLength {
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// The first byte of the array.
    pub offset: u32,
    /// Bytes from one element to the next.
    pub stride: u32,
}

/// An access that each invocation certainly makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertainAccess {
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// Whether the access writes, and not reads.
    pub writes: bool,
    /// The number of bytes.
    pub bytes: u32,
    /// The first byte in the buffer.
    pub address: Sum,
    /// Only invocations in which each of these sums is below the length of the array make the access.
    pub below: Vec<(Sum, ArrayLength)>,
}

/// The most bytes that an invocation reads or writes of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MostBytes {
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// Whether these are bytes written, and not read.
    pub writes: bool,
    /// The number of bytes.
    pub bytes: u32,
}

/// What a kernel's code says of the bytes that it touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelAccesses {
    /// The threads of a workgroup.
    pub local_size: [u32; 3],
    /// Accesses that are certain.
    pub certain: Vec<CertainAccess>,
    /// Bindings of which it is known how much an invocation touches at most.
    pub most: Vec<MostBytes>,
}

impl KernelAccesses {
    /// Finds the accesses of an entry point. `None` where the module has no such entry point, or the size of its
    /// workgroups is not known.
    pub fn read(
        module: &Module,
        entry: &str,
        specialisation: &Specialisation,
    ) -> Option<KernelAccesses> {
        let entry = module.entry_point(entry).ok()?;
        let function = module.functions.get(&entry.function)?;
        let constants = Constants::new(module, specialisation);
        let local_size = local_size(module, entry, &constants)?;
        let mut walk = Walk::new(module, constants, local_size);
        let others = module.reached_functions(entry.function);
        for (id, other) in &module.functions {
            if *id != entry.function && others.contains(id) {
                walk.give_up_on(other);
            }
        }
        match function.body.len() <= MAX_INSTRUCTIONS {
            true => walk.follow(function),
            false => walk.give_up_on(function),
        }
        let most = walk
            .most
            .into_iter()
            .filter_map(|((set, binding, writes), bytes)| {
                Some(MostBytes {
                    set,
                    binding,
                    writes,
                    bytes: bytes?,
                })
            });
        Some(KernelAccesses {
            local_size,
            most: most.collect(),
            certain: walk.certain,
        })
    }
}

/// Returns the size of workgroups.
fn local_size(module: &Module, entry: &EntryPoint, constants: &Constants) -> Option<[u32; 3]> {
    match (module.workgroup_size, entry.local_size()) {
        (Some(id), _) => constants.vector(id),
        (None, Some(LocalSize::Literal(size))) => Some(size),
        (None, Some(LocalSize::Ids(ids))) => constants.words(ids),
        (None, None) => None,
    }
}
