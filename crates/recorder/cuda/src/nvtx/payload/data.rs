//! Payloads, as the program passes them.

/// nvtxPayloadData_t
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Data {
    pub(super) schema: u64,
    /// `usize::MAX`: as many as the schema says.
    pub(super) bytes: usize,
    pub(super) at: *const u8,
}

impl Data {
    /// An array of the program's.
    ///
    /// # Safety
    /// `first` is null or has `count` elements that live for `'a`.
    pub unsafe fn all<'a>(first: *const Data, count: usize) -> &'a [Data] {
        if first.is_null() || count > MOST_PAYLOADS {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(first, count) }
    }
}

/// The most payloads of an event; more are a mistake.
const MOST_PAYLOADS: usize = 1 << 10;
