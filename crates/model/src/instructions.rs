//! Samples of instructions: what the GPU's samplers say of the warps of CUDA kernels.

use crate::kernel_profile::Stall;
use crate::kind::kind;

kind! {
    /// Why an instruction has no line of source.
    NoLine {
        /// Its code was compiled without lines of its source.
        NotCompiledIn = "not-compiled-in",
        /// Its code is not kept.
        CodeNotKept = "code-not-kept",
        /// Its code has lines, and none of this instruction.
        NoneForInstruction = "none-for-instruction",
        /// What function it is of is not known.
        UnknownFunction = "unknown-function",
    }
}

impl NoLine {
    /// Why, with what to do about it.
    pub const fn sentence(self) -> &'static str {
        match self {
            NoLine::NotCompiledIn => "no line information: compile with -lineinfo",
            NoLine::CodeNotKept => "no line: the code is too large to be kept",
            NoLine::NoneForInstruction => "no line: the compiler made it of none",
            NoLine::UnknownFunction => "no line: CUPTI does not name its function",
            NoLine::Unknown => "no line",
        }
    }
}

/// What CUPTI's names of reasons begin with: of GPUs since Turing, and of some before.
const PREFIXES: [&str; 2] = [
    "smsp__pcsamp_warps_issue_stalled_",
    "smsp__pcsamp_warp_stall_",
];
/// Reasons of this ending count what others count too: the part in whose cycle no warp issued anything.
const NOT_ISSUED: &str = "_not_issued";

/// The reason that a name of CUPTI is of, such as `long_scoreboard`; `None` of one that is none, or a part of another one.
///
/// ```
/// use gapscope_model::instructions::stall_reason;
/// assert_eq!(stall_reason("smsp__pcsamp_warps_issue_stalled_wait"), Some("wait"));
/// assert_eq!(stall_reason("smsp__pcsamp_warps_issue_stalled_wait_not_issued"), None);
/// assert_eq!(stall_reason("smsp__pcsamp_sample_count"), None);
/// ```
pub fn stall_reason(name: &str) -> Option<&str> {
    let reason = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    reason.filter(|reason| !reason.is_empty() && !reason.ends_with(NOT_ISSUED))
}

/// The stall of a reason, where it is a known one.
///
/// ```
/// use gapscope_model::instructions::stall;
/// use gapscope_model::kernel_profile::Stall;
/// assert_eq!(stall("long_scoreboard"), Some(Stall::LongScoreboard));
/// assert_eq!(stall("no_instructions"), Some(Stall::NoInstruction));
/// assert_eq!(stall("warpgroup_arrive"), Some(Stall::Gmma));
/// assert_eq!(stall("new_one"), None);
/// ```
pub fn stall(reason: &str) -> Option<Stall> {
    // Samplers call some of them otherwise than metrics do.
    let reason = match reason {
        "no_instructions" => Stall::NoInstruction.as_str(),
        "warpgroup_arrive" => Stall::Gmma.as_str(),
        _ => reason,
    };
    let all = Stall::ALL.iter().copied();
    all.into_iter().find(|stall| stall.as_str() == reason)
}
