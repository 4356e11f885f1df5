//! Compares the ranks of a distributed program (its processes, or the devices of one), each with a trace, for the
//! page. A digest is what the comparison needs of one rank.

use crate::Error;
use crate::protocol::{OrMissing, RanksAnswer, cut_texts};
use crate::store::Store;
use gapscope_comparison::ranks::{RankDigest, ranks};
use serde_json::Value;
use std::sync::Arc;

/// The most collectives (operations that several ranks take part in) whose arrivals are listed: those with the
/// greatest skews.
const MAX_LISTED_COLLECTIVES: usize = 1000;

/// A trace of one rank, with the rank's number.
pub struct RankTrace {
    /// Index among the served traces.
    pub trace: usize,
    /// Number of the rank.
    pub rank: u32,
    /// The trace.
    pub store: Arc<Store>,
}

/// Compares the ranks of these traces, or those inside of a single trace.
///
/// # Errors
/// A trace cannot be read.
pub fn compared(of: &[RankTrace]) -> Result<Value, Error> {
    let mut digests = Vec::new();
    let mut traces = Vec::new();
    for RankTrace { trace, rank, store } in of {
        let rank = *rank;
        let found = store.analyst().ask(move |analysed| {
            RankDigest::from_timeline(analysed.timeline, analysed.found(), rank)
        })?;
        traces.extend(found.iter().map(|_| *trace));
        digests.extend(found);
    }
    Ok(together(&digests, &traces))
}

/// Compares ranks, of which `traces` has, in the same order, the index of each one's trace. Fewer than two give a
/// sentence instead.
pub fn together(digests: &[RankDigest], traces: &[usize]) -> Value {
    if digests.len() < 2 {
        return cut_texts(&OrMissing::<()>::missing(
            "Collectives did not run on several devices here: there are no ranks to compare.",
        ));
    }
    cut_texts(&RanksAnswer {
        ranks: ranks(digests, MAX_LISTED_COLLECTIVES),
        traces,
    })
}
