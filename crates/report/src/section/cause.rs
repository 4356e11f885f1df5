//! Describes a cause of idle time for report and page: the code that ran, and advice.

use crate::number;
use crate::section::code;
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::GapTotal;
use gapscope_analysis::thresholds::UNCERTAIN_SHARE;
use schemars::JsonSchema;
use serde::Serialize;

/// The code and the advice that a report shows for a cause of idle time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CauseNote {
    /// The code of the submitting threads, such as `train.py:41 load_batch > resize 71 %`; absent where no samples tell.
    pub code: Option<String>,
    /// What to do, without a capital and a full stop; absent where nothing is advised.
    pub advice: Option<String>,
}

impl CauseNote {
    /// Describes one of the causes in `findings`.
    pub fn new(findings: &Findings, total: &GapTotal) -> CauseNote {
        let advice = findings.advice(total.cause);
        let causes = findings.code.iter().flat_map(|code| &code.causes);
        let mut codes = causes.filter(|code| code.cause == total.cause);
        CauseNote {
            code: codes.next().and_then(code::in_short),
            advice: advice.map(|advice| note(total, advice)),
        }
    }
}

/// Returns advice on a cause, with the share of other threads and how much of the time is uncertain.
pub(crate) fn note(total: &GapTotal, advice: &str) -> String {
    let mut note = advice.to_owned();
    if total.by_other_threads_ns > 0 {
        let share = number::share_of(total.by_other_threads_ns, total.total_ns);
        note += &format!(
            "; {share} of it is of other threads, with the submitting one outside of calls"
        );
    }
    if let Some(ns) = (total.uncertain_ns).filter(|ns| matters(*ns, total.total_ns)) {
        note += &format!(
            "; up to {} of it could have another cause",
            number::duration(ns)
        );
    }
    note
}

/// Returns true where uncertain time is large enough, beside the whole, to be reported.
pub(crate) fn matters(uncertain_ns: i64, whole_ns: i64) -> bool {
    uncertain_ns as f64 >= UNCERTAIN_SHARE * whole_ns as f64
}
