//! Holds the traces of a session, and collects remarks on problems with reading them.

use crate::source::Traces;
use gapscope_trace::Diagnostic;
use std::sync::{Mutex, PoisonError};

/// The state that the tables of a session share.
#[derive(Debug)]
pub(crate) struct Library {
    pub traces: Traces,
    remarks: Mutex<Vec<String>>,
}

impl Library {
    pub fn new(traces: Traces) -> Library {
        let sources = traces.sources.iter();
        let remarks = sources
            .filter_map(|source| Diagnostic::for_manifest(&source.folder, &source.manifest))
            .map(|diagnostic| diagnostic.to_string());
        Library {
            remarks: Mutex::new(remarks.collect()),
            traces,
        }
    }

    /// Adds a remark about missing data, unless it was added before.
    pub fn remark(&self, sentence: String) {
        let mut remarks = self.lock();
        if !remarks.contains(&sentence) {
            remarks.push(sentence);
        }
    }

    /// Returns the remarks since the last call.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
