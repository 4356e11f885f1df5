//! Holds the data that callers pass to CUPTI (NVIDIA's profiling library) and get back.

use std::ffi::{CString, c_char};

/// Names of metrics in the form that CUPTI takes.
#[derive(Debug)]
pub struct Metrics {
    // The pointers are into these texts, which do not move with the vector.
    names: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are into memory that the value owns and that nobody writes.
unsafe impl Send for Metrics {}
// SAFETY: as above.
unsafe impl Sync for Metrics {}

impl Metrics {
    /// Creates a list of names. A name ends before a zero byte in it, and is then unknown to CUPTI.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Metrics {
        let text = |name: &str| {
            let until = name.split('\0').next().unwrap_or_default();
            CString::new(until).unwrap_or_default()
        };
        let names: Vec<CString> = names.into_iter().map(text).collect();
        let pointers = names.iter().map(|name| name.as_ptr()).collect();
        Metrics { names, pointers }
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the pointers to the names, which CUPTI does not write to.
    pub(crate) fn as_ptr(&self) -> *mut *const c_char {
        self.pointers.as_ptr().cast_mut()
    }
}

/// A counter data image: the counts in CUPTI's own format. Only CUPTI can initialise one.
#[derive(Debug, Clone)]
pub struct CounterData {
    bytes: Box<[u8]>,
}

impl CounterData {
    pub(crate) fn with_size(bytes: usize) -> CounterData {
        CounterData {
            bytes: vec![0; bytes].into(),
        }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets all counts by copying `fresh`, an image that CUPTI initialised and that was never used.
    ///
    /// Returns false and does nothing where the sizes differ; images of the same metrics and number of samples have one size.
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
