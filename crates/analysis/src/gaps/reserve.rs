//! Puts a reserve before advice on a cause of which most may be another cause: within the clock's error, or because the times
//! of host and device contradict each other.

use super::{Cause, GapTotal, IdleTime};
use crate::bound::Bound;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{RESERVE_SHARE, UNCERTAIN_SHARE};

/// Returns the advice on the causes of `idle`, in their order, with a reserve where it needs one. `contradicted_ns` is the
/// idle time that may have another cause because times contradict each other.
pub(crate) fn reserved(
    advice: Vec<String>,
    idle: &IdleTime,
    verdict: Bound,
    contradicted_ns: i64,
) -> Vec<String> {
    let is_contradicted = ratio(contradicted_ns, idle.total_ns) >= RESERVE_SHARE;
    let reserve = |total: &GapTotal| match verdict {
        _ if total.cause == Cause::Unknown => None,
        _ if is_contradicted => Some("contradictory times leave"),
        Bound::Unknown if is_uncertain(total, UNCERTAIN_SHARE) => Some(WITHIN_ERROR),
        _ if is_uncertain(total, RESERVE_SHARE) => Some(WITHIN_ERROR),
        _ => None,
    };
    let causes = advice.into_iter().zip(&idle.causes);
    causes
        .map(|(text, total)| match reserve(total) {
            Some(why) if !text.is_empty() => {
                format!("if this is the cause, which {why} open: {text}")
            }
            _ => text,
        })
        .collect()
}

const WITHIN_ERROR: &str = "the clock's error leaves";

/// Returns true where `share` of a cause's time may have another cause within the clock's error.
fn is_uncertain(total: &GapTotal, share: f64) -> bool {
    let uncertain = total.uncertain_ns.map(|ns| ratio(ns, total.total_ns));
    uncertain.is_some_and(|uncertain| uncertain >= share)
}
