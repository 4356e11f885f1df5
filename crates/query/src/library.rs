//! The traces of a session, and what was met while reading them.

use crate::schema::Origin;
use crate::source::Traces;
use datafusion::common::ScalarValue;
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

    /// The value of a column that all rows of a trace share.
    ///
    /// # Panics
    /// The column is of a file.
    pub fn constant(&self, origin: Origin, source: usize) -> ScalarValue {
        let source = &self.traces.sources[source];
        match origin {
            Origin::Trace => ScalarValue::Utf8View(Some(source.name.clone())),
            Origin::Partition(index) => {
                let value = source.partitions[index].clone();
                match self.traces.partitions[index].is_integer {
                    true => ScalarValue::Int64(value.and_then(|value| value.parse().ok())),
                    false => ScalarValue::Utf8View(value),
                }
            }
            Origin::File | Origin::Name(_) => unreachable!("rows differ in it"),
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
