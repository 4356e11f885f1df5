//! What was not recorded, how often and why.

use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Something that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What, in the plural: `dispatch times`.
    pub what: Cow<'static, str>,
    /// How many.
    pub count: u64,
    /// Why.
    pub reason: Cow<'static, str>,
}

/// Counts by what and why. There are few different ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(BTreeMap<(Cow<'static, str>, Cow<'static, str>), u64>);

impl Ledger {
    pub fn add(
        &mut self,
        what: impl Into<Cow<'static, str>>,
        count: u64,
        reason: impl Into<Cow<'static, str>>,
    ) {
        if count > 0 {
            let total = self.0.entry((what.into(), reason.into())).or_default();
            *total = total.saturating_add(count);
        }
    }

    pub fn merge(&mut self, other: &Ledger) {
        for ((what, reason), count) in &other.0 {
            self.add(what.clone(), *count, reason.clone());
        }
    }

    pub fn losses(&self) -> Vec<Loss> {
        let loss =
            |((what, reason), count): (&(Cow<'static, str>, Cow<'static, str>), &u64)| Loss {
                what: what.clone(),
                count: *count,
                reason: reason.clone(),
            };
        self.0.iter().map(loss).collect()
    }
}
