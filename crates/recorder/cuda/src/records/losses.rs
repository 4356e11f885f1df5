//! Counts losses (records that are missing or unusable) by kind and reason, until the next batch is written.

use crate::recorder::Recorder;
use gapscope_spool::event::LossKind;

/// The reason for times that are missing.
pub const NO_TIMES: &str = "CUPTI delivered none";

/// Counts by kind and reason.
#[derive(Debug, Default)]
pub struct Losses(Vec<Loss>);

/// A number of losses of one kind, for one reason.
#[derive(Debug)]
struct Loss {
    kind: LossKind,
    reason: &'static str,
    count: u64,
}

impl Losses {
    /// Counts one loss.
    pub fn add(&mut self, kind: LossKind, reason: &'static str) {
        self.add_many(kind, 1, reason);
    }

    /// Counts several losses, if any.
    pub fn add_many(&mut self, kind: LossKind, more: u64, reason: &'static str) {
        let known = (self.0.iter_mut()).find(|loss| loss.kind == kind && loss.reason == reason);
        match known {
            Some(loss) => loss.count += more,
            None if more > 0 => self.0.push(Loss {
                kind,
                reason,
                count: more,
            }),
            None => {}
        }
    }

    /// Writes the losses and empties the list.
    pub fn write(&mut self, recorder: &Recorder) {
        for loss in self.0.drain(..) {
            recorder.loss(loss.kind, loss.count, loss.reason);
        }
    }
}
