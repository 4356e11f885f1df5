//! Advice on idle time, with what it is of.

use crate::number;
use gapscope_analysis::gaps::GapTotal;
use gapscope_analysis::thresholds::UNCERTAIN_SHARE;

/// Advice on a cause, whose it is where that is not the submitting thread, and whether it is certain.
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

/// Whether so much uncertain time is a part of a whole that matters.
pub(crate) fn matters(uncertain_ns: i64, whole_ns: i64) -> bool {
    uncertain_ns as f64 >= UNCERTAIN_SHARE * whole_ns as f64
}
