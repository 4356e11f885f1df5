//! What was not recorded, how often and why.

use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Past so many different ones, reasons are counted together.
const MOST: usize = 256;

/// Something that was not recorded.
///
/// ```
/// use gapscope_sdk::kernel_profile::{Loss, Profile};
///
/// let profile = Profile::new();
/// profile.lose("dispatch times", 2, "the sample buffer was full");
/// let Loss { what, count, reason } = &profile.snapshot().losses[0];
/// assert_eq!(format!("{count} {what}: {reason}"), "2 dispatch times: the sample buffer was full");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What, in the plural: `dispatch times`.
    pub what: Cow<'static, str>,
    /// How many.
    pub count: u64,
    /// Why.
    pub reason: Cow<'static, str>,
}

/// Counts by what and why.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(BTreeMap<(Cow<'static, str>, Cow<'static, str>), u64>);

impl Ledger {
    pub fn add(
        &mut self,
        what: impl Into<Cow<'static, str>>,
        count: u64,
        reason: impl Into<Cow<'static, str>>,
    ) {
        if count == 0 {
            return;
        }
        let mut key = (what.into(), reason.into());
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            key = (
                "things".into(),
                "more different reasons than are kept".into(),
            );
        }
        let total = self.0.entry(key).or_default();
        *total = total.saturating_add(count);
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
