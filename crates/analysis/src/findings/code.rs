//! What the findings say of sampled code: the keys of JSON, and what advice needs to know of the submitting threads.

use crate::code::{CauseCode, Code, CodeTime, line_of};
use crate::gaps::{Cause, SampledHost};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;

/// The keys of the code behind idle time.
#[derive(Serialize, JsonSchema)]
pub(super) struct CodeKeys<'a> {
    /// Stacks of submitting threads in idle time, the greatest first; absent where neither samples nor ranges tell it.
    code: Vec<&'a CodeTime>,
    /// What else is known of the code behind idle time; absent where neither samples nor ranges tell it.
    code_details: &'a Code,
}

/// Serializes the findings on code as the two keys of [`CodeKeys`].
pub(super) fn code_keys<S: Serializer>(
    code: &Option<Code>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let keys = code.as_ref().map(|details| {
        let mut code: Vec<&CodeTime> = details.causes.iter().flat_map(|c| &c.code).collect();
        code.sort_by_key(|time| Reverse((time.total_ns, time.samples)));
        CodeKeys {
            code,
            code_details: details,
        }
    });
    keys.serialize(serializer)
}

/// Returns what samples and ranges show of the submitting threads.
pub(super) fn sampled_host(code: Option<&Code>) -> SampledHost {
    let of_cause = |cause| code.and_then(|code| code.of_cause(cause));
    let (late, built) = (of_cause(Cause::HostLate), of_cause(Cause::HostCompile));
    let sleep = late.and_then(CauseCode::mostly_slept_for);
    SampledHost {
        ran: sleep.is_none() && late.is_some_and(|late| late.thread_was(0).is_some()),
        slept_for: sleep.map(|sleep| [sleep.words(), sleep.waited_for.advice().to_owned()]),
        loads_data: late.is_some_and(CauseCode::mostly_loads_data),
        build_line: built.and_then(|built| line_of(&built.code.first()?.frames)),
    }
}
