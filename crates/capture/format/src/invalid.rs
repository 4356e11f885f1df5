//! Defines the reasons for which a record of a capture is invalid, with their texts. A capture is read up to the
//! first invalid record, so that there is one reason at most; `check.rs` and `files.rs` find it.

use crate::CONTENT;
use crate::content::Hash;
use crate::model::MemoryId;

/// Why a line of a capture is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidRecord(#[from] pub(crate) Fault);

/// A descriptor of a pipeline layout, as errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("set {set}, binding {binding}, element {element}")]
pub(crate) struct Slot {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
}

/// The fault of a record or of a file; the text continues a sentence about the line. Numbers and ids are those of the
/// record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    Unreadable(String),
    #[error("its first line does not describe one")]
    NoHeader,
    #[error("it is empty")]
    Empty,
    #[error("it has no end")]
    OpenLine,
    #[error("it is longer than {0} bytes")]
    LongLine(u64),
    #[error("{message} (column {column})")]
    Json { message: String, column: usize },
    #[error("what is before it is not as it was written")]
    Changed,
    #[error("it follows the end")]
    AfterEnd,
    #[error("the capture begins a second time")]
    SecondHeader,
    #[error("number {0} is taken")]
    TakenId(String),
    #[error("there is no {kind} {id}")]
    UnknownId { kind: &'static str, id: String },
    #[error("content {0} is missing")]
    NoContent(Hash),
    #[error("content {0} is here twice")]
    SecondContent(Hash),
    #[error("content {hash} claims {bytes} bytes, of {stored} stored ones")]
    Ratio { hash: Hash, bytes: u32, stored: u32 },
    #[error("content {hash} begins at byte {at}")]
    Start { hash: Hash, at: u64 },
    #[error("content {hash} begins at byte {at}, before the end of the last at byte {taken}")]
    Overlap { hash: Hash, at: u64, taken: u64 },
    #[error("content {hash} ends at byte {end}, and {CONTENT} has {bytes} bytes")]
    End { hash: Hash, end: u64, bytes: u64 },
    #[error("{0} bytes are no SPIR-V")]
    Spirv(u32),
    #[error("binding {0} is here twice")]
    SecondBinding(u32),
    #[error("constant {id} has {bytes} bytes")]
    ConstantBytes { id: u32, bytes: usize },
    #[error("constant {0} is here twice")]
    SecondConstant(u32),
    #[error("there are no pieces")]
    NoPieces,
    #[error("piece {index} has {bytes} bytes, and {room} are to the next")]
    PieceBytes { index: usize, bytes: u64, room: u64 },
    #[error("there are {found} hashes for {expected} pieces")]
    HashCount { found: usize, expected: u64 },
    #[error("{found} commands have run, more than {max}")]
    TooManyCommands { found: u64, max: u64 },
    #[error("command {index}: {fault}")]
    Command { index: usize, fault: Box<Fault> },
    #[error("an update has {bytes} bytes, more than {max}")]
    UpdateBytes { bytes: u64, max: u64 },
    #[error("{found} bytes of push constants, and the layout has {expected}")]
    PushConstants { found: usize, expected: u32 },
    #[error("an indirect dispatch reads {0} bytes, and not 12")]
    IndirectBytes(u64),
    #[error("descriptors are not in order: {0}")]
    DescriptorOrder(Slot),
    #[error("the layout has no such descriptor: {0}")]
    NoDescriptor(Slot),
    #[error("descriptor type {found} is no buffer: {slot}")]
    DescriptorType { found: u32, slot: Slot },
    #[error("{bytes} bytes from byte {offset} on are not inside of {of} bytes")]
    Outside { offset: u64, bytes: u64, of: u64 },
    #[error("{bytes} bytes from byte {offset} on are not whole words")]
    PartialWords { offset: u64, bytes: u64 },
    #[error("a text holds a zero byte")]
    ZeroByte,
    #[error("no launch is before the outcome")]
    NoLaunch,
    #[error("{0} bytes are no code")]
    Code(u64),
    #[error("memory {memory} has ended: memory {other} overlaps it")]
    MemoryReplaced { memory: MemoryId, other: MemoryId },
    #[error("a launch has {bytes} bytes of parameters, more than {max}")]
    Parameters { bytes: usize, max: usize },
    #[error("a launch has no blocks or no threads")]
    EmptyGrid,
    #[error("memory {0} is no global")]
    NoGlobal(MemoryId),
    #[error("a launch has {0} attributes")]
    Attributes(usize),
    #[error("an attribute has {0} bytes")]
    AttributeBytes(usize),
}
