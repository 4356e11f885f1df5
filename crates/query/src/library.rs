//! The traces of a session, and what was met while reading them.

use crate::source::Traces;
use gapscope_trace::Diagnostic;
use std::sync::{Mutex, PoisonError};

/// Shared by the tables of a session.
#[derive(Debug)]
pub(crate) struct Library {
    pub traces: Traces,
    remarks: Mutex<Vec<String>>,
}

impl Library {
    pub fn new(traces: Traces) -> Library {
        let sources = traces.sources.iter();
        let remarks = sources
            .filter_map(|source| Diagnostic::of_manifest(&source.folder, &source.manifest))
            .map(|diagnostic| diagnostic.to_string());
        Library {
            remarks: Mutex::new(remarks.collect()),
            traces,
        }
    }

    /// Notes a sentence about what is missing, once.
    pub fn remark(&self, sentence: String) {
        let mut remarks = self.lock();
        if !remarks.contains(&sentence) {
            remarks.push(sentence);
        }
    }

    /// The sentences since the last call.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
