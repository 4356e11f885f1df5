//! Defines [`Refusal`], the reasons why dispatches (runs of a kernel) that follow each other are no chain, or why
//! their chain cannot become one dispatch. In reports the text of a reason follows the names of the dispatches.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a dispatch does not join a chain, or a chain is not merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Refusal {
    /// The module cannot be read completely.
    #[error("its SPIR-V cannot be read: {0}")]
    Spirv(String),
    /// A kernel has `OpControlBarrier`.
    #[error("a kernel has a control barrier")]
    ControlBarrier,
    /// A kernel has `OpMemoryBarrier`.
    #[error("a kernel has a memory barrier")]
    MemoryBarrier,
    /// A kernel has variables of the workgroup.
    #[error("a kernel uses shared memory")]
    SharedMemory,
    /// A kernel has atomic operations.
    #[error("a kernel uses atomic operations")]
    Atomics,
    /// A kernel has operations between the invocations of a subgroup.
    #[error("a kernel uses subgroup operations")]
    Subgroups,
    /// A kernel has images or samplers.
    #[error("a kernel uses images")]
    Images,
    /// A kernel reaches memory by its address.
    #[error("a kernel uses device addresses")]
    Addresses,
    /// A binding has several descriptors.
    #[error("a kernel has an array of descriptors")]
    DescriptorArray,
    /// The numbers of workgroups or the first workgroups differ.
    #[error("their workgroups are not the same: {0}")]
    Groups(String),
    /// The local sizes differ.
    #[error("their local sizes are not the same: {0}")]
    LocalSize(String),
    /// The device reads the number of workgroups.
    #[error("how many workgroups it has is read by the device")]
    Indirect,
    /// The pipelines were made with different options.
    #[error("their pipelines were made with different {0}")]
    Pipelines(&'static str),
    /// The modules do not fit together.
    #[error("their modules have different {0}")]
    Modules(&'static str),
    /// Another command stands between the dispatches.
    #[error("a {0} stands between them")]
    Between(&'static str),
    /// The memory that each invocation reaches is not known.
    #[error("which invocation reaches what is not known: {0}")]
    Unknown(String),
    /// Different invocations reach the same bytes.
    #[error(
        "another index map: byte {byte} of memory {memory} is reached by invocation {one} and by invocation {other}"
    )]
    IndexMap {
        /// The allocation.
        memory: u32,
        /// Offset of the byte in the allocation.
        byte: u64,
        /// The invocation that reached the byte first.
        one: u64,
        /// The other invocation.
        other: u64,
    },
    /// Following the kernels exceeds a limit.
    #[error("following it takes more than {0}")]
    Limit(&'static str),
    /// The push constants have too many bytes together.
    #[error("their push constants have {0} bytes together, and 128 are sure")]
    PushConstants(u32),
    /// Two variables of the same built-in value have different types.
    #[error("they have a built-in value in different types")]
    BuiltIns,
    /// A value is loaded as another type than it is stored.
    #[error("what is stored has another type than what is loaded")]
    Types,
    /// A pointer cannot be followed.
    #[error("the intermediate is reached through a pointer that is not followed")]
    Pointer,
    /// An invocation reaches several elements.
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
