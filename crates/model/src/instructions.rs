//! Names of the stall reasons that the GPU's samplers report for warps of CUDA kernels (groups of threads that
//! execute together; a stall is why one cannot go on), and the reasons why an instruction has no source line.

use crate::kernel_profile::Stall;
use crate::kind::kind;

kind! {
    /// Why an instruction has no source line.
    NoLine {
        /// The code was compiled without line information.
        NotCompiledIn = "not-compiled-in",
        /// The code was not kept.
        CodeNotKept = "code-not-kept",
        /// The code has line information, but none for this instruction.
        NoneForInstruction = "none-for-instruction",
        /// The function of the instruction is unknown.
        UnknownFunction = "unknown-function",
    }
}

impl NoLine {
    /// Returns the reason as a phrase, with advice.
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

/// Prefixes of CUPTI's names of reasons: on GPUs since Turing, and on earlier ones.
const PREFIXES: [&str; 2] = [
    "smsp__pcsamp_warps_issue_stalled_",
    "smsp__pcsamp_warp_stall_",
];
/// Suffix of reasons that count a part of other reasons again: cycles in which no warp issued.
const NOT_ISSUED: &str = "_not_issued";

/// Returns the stall reason in a CUPTI name, such as `long_scoreboard`; `None` for a name of something else, or of a
/// part of another reason.
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

/// Returns the stall of a reason that [`stall_reason`] returned; `None` for an unknown one.
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
    // Samplers and metrics use different names for some stalls.
    let reason = match reason {
        "no_instructions" => Stall::NoInstruction.as_str(),
        "warpgroup_arrive" => Stall::Gmma.as_str(),
        _ => reason,
    };
    let all = Stall::ALL.iter().copied();
    all.into_iter().find(|stall| stall.as_str() == reason)
}
