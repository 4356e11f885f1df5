//! What to do about the idle time of a cause.

use crate::number;
use gapscope_analysis::gaps::{Cause, GapTotal, IdleTime};
use gapscope_analysis::vocabulary::Words;
use gapscope_trace::manifest::Api;

/// What to do about the idle time of a cause.
pub(crate) fn advice(total: &GapTotal, idle: &IdleTime, words: &Words) -> String {
    let advice = total.cause.facts(words.api).advice;
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
