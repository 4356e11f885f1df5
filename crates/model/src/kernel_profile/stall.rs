//! Defines [`Stall`], the reasons for which a warp (32 threads of a CUDA kernel that run together) does not issue its
//! next instruction.

/// Declares the reasons. Each line is `Variant = "part of the metric's name": "meaning"`, where advice may follow.
macro_rules! stalls {
    ($($stall:ident = $key:literal: $meaning:literal $(, advice: $advice:literal)?;)+) => {
        /// A reason for which a warp does not issue its next instruction.
        ///
        /// Meanings and advice follow the Nsight Compute documentation, "Warp Stall Reasons".
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Stall {
            $(#[doc = $meaning] $stall,)+
        }

        impl Stall {
            /// All reasons.
            pub const ALL: &'static [Stall] = &[$(Stall::$stall,)+];

            /// Returns the reason's part of the metric's name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Stall::$stall => $key,)+ }
            }

            /// Returns the name of the metric: stalled warps per issued instruction.
            pub const fn metric(self) -> &'static str {
                match self {
                    $(Stall::$stall => concat!(
                        "smsp__average_warps_issue_stalled_", $key, "_per_issue_active.ratio"
                    ),)+
                }
            }

            /// Returns the meaning as a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Stall::$stall => $meaning,)+ }
            }

            /// Returns advice for a stall that takes much of the time; `None` where the stall is no fault.
            pub const fn advice(self) -> Option<&'static str> {
                match self { $(Stall::$stall => stalls!(@option $($advice)?),)+ }
            }
        }
    };
    (@option) => { None };
    (@option $value:literal) => { Some($value) };
}

stalls! {
    LongScoreboard = "long_scoreboard": "Waited for data from global, local or texture memory, through L1.",
        advice: "load earlier and more at once, keep data in shared memory or registers, or have more warps";
    ShortScoreboard = "short_scoreboard": "Waited for shared memory or a special function unit.",
        advice: "fewer accesses to shared memory, without bank conflicts, and fewer transcendental functions";
    Barrier = "barrier": "Waited at a barrier for the other warps of the workgroup.",
        advice: "fewer barriers, work divided evenly before them, or smaller workgroups";
    Membar = "membar": "Waited for a memory fence.",
        advice: "fewer fences, or ones of narrower scope";
    BranchResolving = "branch_resolving": "Waited for the target of a branch.",
        advice: "fewer jumps: unroll short loops";
    DispatchStall = "dispatch_stall": "The dispatcher held the instruction back.";
    Drain = "drain": "Waited, at its end, for its stores to memory.",
        advice: "coalesced stores, earlier in the kernel";
    Gmma = "gmma": "Waited for asynchronous matrix instructions.",
        advice: "this is the tensor cores' work itself; more of it in flight hides the rest";
    ImcMiss = "imc_miss": "Waited for constants that were in no cache.",
        advice: "constants that all threads read at the same address, or read as parameters";
    LgThrottle = "lg_throttle": "Too many accesses to global and local memory were queued.",
        advice: "fewer and wider accesses: several words in one load";
    MathPipeThrottle = "math_pipe_throttle": "Waited for a busy arithmetic unit.",
        advice: "the unit is the limit: fewer operations on it, or of another precision";
    MioThrottle = "mio_throttle": "The queue for shared memory, special functions and dynamic branches was full.",
        advice: "fewer and wider accesses to shared memory";
    Misc = "misc": "Other reasons of the hardware.";
    NoInstruction = "no_instruction": "Waited for its instructions to be fetched.",
        advice: "shorter code: less unrolling, or a launch large enough to warm the instruction cache";
    NotSelected = "not_selected": "Was ready; another warp was chosen. There are enough warps.";
    Selected = "selected": "Issued an instruction: no stall.";
    Sleeping = "sleeping": "Slept because the code said so.",
        advice: "shorter sleeps (__nanosleep)";
    TexThrottle = "tex_throttle": "The queue for texture memory was full.",
        advice: "fewer texture accesses, or ordinary loads in part";
    Wait = "wait": "Waited for the fixed latency of the instruction before.",
        advice: "more independent instructions of one thread, or more warps";
}
