//! Defines [`ReadError`], the reasons why bytes are not a valid SPIR-V module.

/// The reason why words are not a SPIR-V module, or not a valid one. The text completes "its SPIR-V is not right: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The length in bytes is not a multiple of four.
    #[error("its {0} bytes are not whole words")]
    PartialWord(usize),
    /// The header is incomplete.
    #[error("it is shorter than a header")]
    NoHeader,
    /// The first word is not SPIR-V's magic number.
    #[error("it does not begin as SPIR-V does")]
    NotSpirv,
    /// The version is none of 1.0 to 1.6.
    #[error("it is SPIR-V {major}.{minor}, and not 1.0 to 1.6")]
    Version {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// The header's bound of ids or its schema is invalid.
    #[error("its header is not right")]
    Header,
    /// An instruction has no length, or is longer than the rest of the module.
    #[error("the instruction at word {at} is cut off")]
    TornInstruction {
        /// The index of the instruction's first word.
        at: usize,
    },
    /// The operands of an instruction are invalid.
    #[error("the instruction at word {at} ({op}) is not right")]
    Instruction {
        /// The index of the instruction's first word.
        at: usize,
        /// The opcode: the number of the kind of instruction.
        op: u16,
    },
    /// There are more instructions than any compiler emits.
    #[error("it has more than {0} instructions")]
    TooLong(usize),
    /// The last function is not closed.
    #[error("its last function has no end")]
    OpenFunction,
    /// No compute entry point has this name.
    #[error("it has no entry point `{0}` for compute")]
    NoEntryPoint(String),
    /// The entry point of this name names a function that is not defined.
    #[error("the function of entry point `{0}` is missing")]
    NoFunction(String),
}
