//! The ranks of a program, compared.

use crate::Error;
use crate::answers::{cut_texts, missing};
use crate::store::Store;
use gapscope_comparison::ranks::{RankDigest, ranks};
use serde_json::{Value, json};
use std::sync::Arc;

/// Collectives whose arrivals are given: those with the greatest skews.
const LONGEST: usize = 1000;

/// A trace and the number of the rank that it is of.
pub struct OfRank {
    /// Its index among the traces that are served.
    pub trace: usize,
    /// The rank.
    pub rank: u32,
    /// The trace.
    pub store: Arc<Store>,
}

/// What the comparison of ranks shows: those of these traces, or those that one trace has inside.
///
/// # Errors
/// A trace cannot be read.
pub fn compared(of: &[OfRank]) -> Result<Value, Error> {
    let mut digests = Vec::new();
    let mut traces = Vec::new();
    for OfRank { trace, rank, store } in of {
        let rank = *rank;
        let found = store.analyst().ask(move |analysed| {
            RankDigest::from_timeline(analysed.timeline, analysed.found(), rank)
        })?;
        traces.extend(found.iter().map(|_| *trace));
        digests.extend(found);
    }
    Ok(together(&digests, &traces))
}

/// The comparison of these, each of the trace at an index.
pub fn together(digests: &[RankDigest], traces: &[usize]) -> Value {
    if digests.len() < 2 {
        return missing(
            "Collectives did not run on several devices here: there are no ranks to compare.",
        );
    }
    let mut answer = json!(ranks(digests, LONGEST));
    cut_texts(&mut answer);
    if let Value::Object(answer) = &mut answer {
        answer.insert("traces".to_owned(), json!(traces));
    }
    answer
}
