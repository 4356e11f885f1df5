//! What is handed to CUPTI and back.

use std::ffi::{CString, c_char};

/// Names of metrics, as CUPTI takes them.
#[derive(Debug)]
pub struct Metrics {
    // The pointers are into these, whose text does not move with them.
    names: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are into memory that the value owns and nobody writes.
unsafe impl Send for Metrics {}
// SAFETY: as above.
unsafe impl Sync for Metrics {}

impl Metrics {
    /// A name with a zero byte in it ends there, and is then none that CUPTI knows.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Metrics {
        let text = |name: &str| {
            let until = name.split('\0').next().unwrap_or_default();
            CString::new(until).unwrap_or_default()
        };
        let names: Vec<CString> = names.into_iter().map(text).collect();
        let pointers = names.iter().map(|name| name.as_ptr()).collect();
        Metrics { names, pointers }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// CUPTI does not write to them.
    pub(crate) fn as_ptr(&self) -> *mut *const c_char {
        self.pointers.as_ptr().cast_mut()
    }
}

/// A counter data image: what was counted, in a form of CUPTI's own. Only what CUPTI has initialised is one.
#[derive(Debug, Clone)]
pub struct CounterData {
    bytes: Box<[u8]>,
}

impl CounterData {
    pub(crate) fn of_size(bytes: usize) -> CounterData {
        CounterData {
            bytes: vec![0; bytes].into(),
        }
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Makes it as `fresh` is, which CUPTI initialised and nobody has used: all that is in it is forgotten.
    ///
    /// True where both are of one size, as two of the same metrics and number of samples are; else nothing happens.
    pub fn reset(&mut self, fresh: &CounterData) -> bool {
        let fits = self.bytes.len() == fresh.bytes.len();
        if fits {
            self.bytes.copy_from_slice(&fresh.bytes);
        }
        fits
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }
}
