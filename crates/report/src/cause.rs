//! What to do about the idle time of a cause.

use crate::{fit, number};
use gapscope_analysis::gaps::{Cause, GapTotal, IdleTime};
use gapscope_analysis::thresholds::UNCERTAIN_SHARE;
use gapscope_analysis::vocabulary::Words;
use gapscope_trace::manifest::Api;

/// What to do about the idle time of a cause, whose it is where that is not the submitting thread, and whether it is
/// certain.
pub(crate) fn advice(total: &GapTotal, idle: &IdleTime, words: &Words) -> String {
    let mut advice = what_to_do(total, idle, words);
    if total.by_other_threads_ns > 0 {
        let share = number::share_of(total.by_other_threads_ns, total.total_ns);
        advice += &format!(
            "; {share} of it is of other threads, with the submitting one outside of calls"
        );
    }
    if let Some(ns) = (total.uncertain_ns).filter(|ns| matters(*ns, total.total_ns)) {
        advice += &format!(
            "; up to {} of it could have another cause",
            number::duration(ns)
        );
    }
    advice
}

/// Whether so much uncertain time is a part of a whole that matters.
pub(crate) fn matters(uncertain_ns: i64, whole_ns: i64) -> bool {
    uncertain_ns as f64 >= UNCERTAIN_SHARE * whole_ns as f64
}

fn what_to_do(total: &GapTotal, idle: &IdleTime, words: &Words) -> String {
    let advice = total.cause.facts(words.api).advice;
    if total.cause == Cause::HostCall
        && let Some(doing) = idle.host_was(total.cause)
    {
        return format!(
            "it was mostly {}: call it before the loop, or less often",
            fit::clean(&doing)
        );
    }
    if total.cause != Cause::HostLate || idle.unknown_host_ns == 0 {
        return advice.to_owned();
    }
    let submits = words.submits;
    let unknown = format!("it is not known which thread {submits}, or what it did");
    if idle.unknown_host_ns < total.total_ns {
        let share = number::share_of(idle.unknown_host_ns, total.total_ns);
        return format!("{advice}; in {share} of it {unknown}");
    }
    let what_to_do = match words.api {
        Api::Cuda => "launch ahead, or put many launches into a graph",
        Api::Vulkan | Api::Metal | Api::Unknown => "prepare work ahead, or submit more at once",
    };
    format!("{unknown}: {what_to_do}")
}
