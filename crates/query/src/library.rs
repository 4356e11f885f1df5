//! The traces of a session, and what was met while reading them.

use crate::source::Traces;
use std::sync::{Mutex, PoisonError};

/// Shared by the tables of a session.
#[derive(Debug)]
pub(crate) struct Library {
    pub traces: Traces,
    remarks: Mutex<Vec<String>>,
}

impl Library {
    pub fn new(traces: Traces) -> Library {
        Library {
            traces,
            remarks: Mutex::default(),
        }
    }

    /// Notes a sentence about rows that are missing.
    pub fn remark(&self, sentence: String) {
        self.lock().push(sentence);
    }

    /// The sentences since the last call.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
