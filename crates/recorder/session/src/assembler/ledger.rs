//! The loss ledger: what was not recorded, how often and why.

use gapscope_trace::manifest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts by what was lost and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    counts: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Ledger {
    /// Adds `count` losses. Phrases are stable: they are keys.
    pub fn add(&mut self, what: &str, count: u64, reason: &str) {
        if count == 0 {
            return;
        }
        if !self.counts.contains_key(what) {
            self.counts.insert(what.to_owned(), BTreeMap::new());
        }
        let Some(reasons) = self.counts.get_mut(what) else {
            return;
        };
        match reasons.get_mut(reason) {
            Some(total) => *total = total.saturating_add(count),
            None => {
                reasons.insert(reason.to_owned(), count);
            }
        }
    }

    /// All losses, ordered by what and why.
    pub fn losses(&self) -> Vec<manifest::Loss> {
        self.counts
            .iter()
            .flat_map(|(what, reasons)| {
                reasons.iter().map(move |(reason, count)| manifest::Loss {
                    what: what.clone(),
                    count: *count,
                    reason: reason.clone(),
                })
            })
            .collect()
    }
}
