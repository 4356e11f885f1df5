//! Turns the findings on one cause of idle time into text: the code that ran, and advice. Report and page show this
//! text.

use crate::findings::Findings;
use crate::gaps::{Cause, GapTotal};
use gapscope_timeline::quantity::{duration, share_of};
use gapscope_timeline::thresholds::UNCERTAIN_SHARE;
use schemars::JsonSchema;
use serde::Serialize;

/// The explanation of a cause's idle time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CauseNote {
    /// The code of the submitting threads, such as `train.py:41 load_batch > resize 71 %`. Absent where no samples show it.
    pub code: Option<String>,
    /// Advice without a capital and a full stop; of the cause `unknown`, what it may have been. Absent where there is none.
    pub advice: Option<String>,
}

impl CauseNote {
    /// Returns the note on a cause, whose idle time is `total`.
    pub fn new(findings: &Findings, total: &GapTotal) -> CauseNote {
        let advice = match total.cause {
            Cause::Unknown => findings.unknown_because(),
            cause => findings.advice_on(cause),
        };
        let causes = findings.code.iter().flat_map(|code| &code.causes);
        let mut codes = causes.filter(|code| code.cause == total.cause);
        CauseNote {
            code: codes.next().and_then(|code| code.in_short(total.total_ns)),
            advice: advice.map(|advice| note(total, advice)),
        }
    }
}

/// Returns `advice`, followed by the part of the cause's time that other threads explain and the part that is
/// uncertain.
fn note(total: &GapTotal, advice: &str) -> String {
    let mut note = advice.to_owned();
    if total.by_other_threads_ns > 0 {
        let share = share_of(total.by_other_threads_ns, total.total_ns);
        note += &format!(
            "; {share} of it is of other threads, with the submitting one outside of calls"
        );
    }
    if let Some(ns) = (total.uncertain_ns).filter(|ns| is_worth_a_note(*ns, total.total_ns)) {
        note += &format!("; up to {} of it could have another cause", duration(ns));
    }
    note
}

/// Returns true if the uncertain part of a time is large enough for a report to mention. The limit is
/// `UNCERTAIN_SHARE` of the whole time.
pub fn is_worth_a_note(uncertain_ns: i64, whole_ns: i64) -> bool {
    uncertain_ns as f64 >= UNCERTAIN_SHARE * whole_ns as f64
}
