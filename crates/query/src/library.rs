//! Holds the traces of a session (the traces that were opened together), and collects remarks on problems with
//! reading them.

use crate::source::{Source, Traces};
use gapscope_trace::panics::guarded;
use gapscope_trace::{Diagnostic, Selection, Trace, read};
use std::sync::{Mutex, PoisonError};

/// The state that the tables of a session share.
#[derive(Debug)]
pub(crate) struct Library {
    pub traces: Traces,
    /// Sentences about missing data that the user has not seen yet, without duplicates.
    remarks: Mutex<Vec<String>>,
}

impl Library {
    /// Keeps the traces; problems of their manifests are the first remarks.
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

    /// Reads the tables of a trace and computes something from them. A problem is reported as a remark that names
    /// what is missing, `rows`; where the trace cannot be read or `compute` panics, the default is returned.
    pub fn compute<T: Default>(
        &self,
        source: &Source,
        selection: &Selection,
        rows: &str,
        compute: impl FnOnce(&Trace) -> T,
    ) -> T {
        let (trace, diagnostics) = match read(&source.folder, selection) {
            Ok(read) => read,
            Err(error) => {
                self.remark(format!("{error}: its {rows} are missing"));
                return T::default();
            }
        };
        for diagnostic in diagnostics {
            self.remark(format!("{}: {diagnostic}", source.name));
        }
        guarded(|| compute(&trace)).unwrap_or_else(|_| {
            let name = &source.name;
            self.remark(format!("{name} cannot be analysed: its {rows} are missing"));
            T::default()
        })
    }

    /// Returns the remarks since the last call.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
