//! The structure in which the program passes a payload (data with an NVTX label): its address, size and layout's id.

/// nvtxPayloadData_t: a payload of the program, with the id of its schema.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PayloadData {
    pub(super) schema: u64,
    /// The size; `usize::MAX` means as many bytes as the schema says.
    pub(super) bytes: usize,
    /// Address of the payload's bytes.
    pub(super) at: *const u8,
}

impl PayloadData {
    /// Returns an array of the program; an empty one if it is null or too long.
    ///
    /// # Safety
    /// `first` is null or has `count` elements that live for `'a`.
    pub unsafe fn all<'a>(first: *const PayloadData, count: usize) -> &'a [PayloadData] {
        if first.is_null() || count > MAX_PAYLOADS {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(first, count) }
    }
}

/// The most payloads of an event; more are a mistake of the program.
const MAX_PAYLOADS: usize = 1 << 10;
