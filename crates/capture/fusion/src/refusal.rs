//! Why dispatches cannot be merged.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a dispatch does not join a chain, or a chain is not merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Refusal {
    /// Its module is one that is not read whole.
    #[error("its SPIR-V cannot be read: {0}")]
    Spirv(String),
    /// `OpControlBarrier`
    #[error("a kernel has a control barrier")]
    ControlBarrier,
    /// `OpMemoryBarrier`
    #[error("a kernel has a memory barrier")]
    MemoryBarrier,
    /// Variables of a workgroup.
    #[error("a kernel uses shared memory")]
    SharedMemory,
    /// Atomic operations.
    #[error("a kernel uses atomic operations")]
    Atomics,
    /// Operations between the invocations of a subgroup.
    #[error("a kernel uses subgroup operations")]
    Subgroups,
    /// Images or samplers.
    #[error("a kernel uses images")]
    Images,
    /// Memory that is reached by its address.
    #[error("a kernel uses device addresses")]
    Addresses,
    /// Several descriptors in a binding.
    #[error("a kernel has an array of descriptors")]
    DescriptorArray,
    /// Other numbers of workgroups, or another first one.
    #[error("their workgroups are not the same: {0}")]
    Groups(String),
    /// Other local sizes.
    #[error("their local sizes are not the same: {0}")]
    LocalSize(String),
    /// The device reads how many workgroups there are.
    #[error("how many workgroups it has is read by the device")]
    Indirect,
    /// Pipelines were made in different ways.
    #[error("their pipelines were made with different {0}")]
    Pipelines(&'static str),
    /// Modules that do not fit together.
    #[error("their modules have different {0}")]
    Modules(&'static str),
    /// Something else stands between.
    #[error("a {0} stands between them")]
    Between(&'static str),
    /// What is reached is not known for each invocation.
    #[error("which invocation reaches what is not known: {0}")]
    Unknown(String),
    /// An invocation reaches what another one has written, or the like.
    #[error(
        "another index map: byte {byte} of memory {memory} is reached by invocation {one} and by invocation {other}"
    )]
    IndexMap {
        /// The allocation.
        memory: u32,
        /// Where, from its beginning.
        byte: u64,
        /// The one that reached it first.
        one: u64,
        /// The one that reaches it, too.
        other: u64,
    },
    /// There is more to follow than the limit.
    #[error("following it takes more than {0}")]
    Limit(&'static str),
    /// Push constants together.
    #[error("their push constants have {0} bytes together, and 128 are sure")]
    PushConstants(u32),
    /// Two variables of the same built-in value, of different types.
    #[error("they have a built-in value in different types")]
    BuiltIns,
    /// What is stored and loaded is not of one type.
    #[error("what is stored has another type than what is loaded")]
    Types,
    /// A pointer that is not followed.
    #[error("the intermediate is reached through a pointer that is not followed")]
    Pointer,
    /// An invocation reaches several places.
    #[error("an invocation reaches several places of the intermediate")]
    SeveralPlaces,
    /// An invocation loads what it did not store.
    #[error("an invocation loads from the intermediate what it has not stored")]
    NotStored,
}

impl From<gapscope_spirv::ReadError> for Refusal {
    fn from(error: gapscope_spirv::ReadError) -> Refusal {
        Refusal::Spirv(error.to_string())
    }
}
