//! Defines why values and bytes are unknown: a [`Cause`] for a value of a kernel, a [`Reason`] for a set of bytes.
//! Both have a text for people.

use std::fmt;

/// Why a value of a kernel is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    LoadedData,
    SharedMemory,
    FloatingPoint,
    Subgroup,
    Image,
    LargeVariable,
    Pointer,
    DeviceAddress,
    NoDescriptor,
    Layout,
    Undefined,
    /// An instruction that is not followed, by its opcode.
    Instruction(u16),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::LoadedData => "data that the kernel loads",
            Cause::SharedMemory => "shared memory",
            Cause::FloatingPoint => "floating-point arithmetic",
            Cause::Subgroup => "how the device forms subgroups",
            Cause::Image => "an image",
            Cause::LargeVariable => "a variable that is too large to follow",
            Cause::Pointer => "a pointer that cannot be followed",
            Cause::DeviceAddress => "a device address",
            Cause::NoDescriptor => "a descriptor that the capture does not have",
            Cause::Layout => "a type whose layout cannot be followed",
            Cause::Undefined => "a value that is not defined",
            Cause::Instruction(op) => {
                return write!(f, "SPIR-V instruction {op}, which is not followed");
            }
        })
    }
}

/// Why a set of bytes is only an upper bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The address depends on something unknown.
    Place(String),
    /// Something unknown decides whether the bytes are reached.
    Condition(String),
    /// A pointer to the memory is used in a way that cannot be followed.
    Escape(String),
    /// The kernel reaches beyond the bytes that are bound.
    Outside,
    /// Scalars are reached at offsets that are no multiples of their size.
    Uneven,
    /// Following the kernel takes more than a limit.
    Limit(&'static str),
    /// Following the kernel takes more than this number of operations of invocations.
    Steps(u64),
    /// The kernel cannot be read.
    Kernel(&'static str),
    /// Only the bytes that are bound are known.
    Binding,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Place(cause) => write!(f, "where depends on {cause}"),
            Reason::Condition(cause) => write!(f, "whether depends on {cause}"),
            Reason::Escape(cause) => write!(f, "it is reached through {cause}"),
            Reason::Outside => f.write_str("the kernel reaches beyond what is bound"),
            Reason::Uneven => f.write_str("numbers in it overlap"),
            Reason::Steps(steps) => write!(f, "following it takes more than {steps} steps"),
            Reason::Limit(what) => write!(f, "following it takes more than {what}"),
            Reason::Kernel(what) => f.write_str(what),
            Reason::Binding => f.write_str("only what is bound is known"),
        }
    }
}
