//! Arrays, texts and chains of structures that programs and drivers pass.

use ash::vk;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};

/// A program's array, which may be null when it is empty.
///
/// # Safety
/// `first` points to `count` values that outlive the result, or `count` is 0.
pub unsafe fn slice<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

/// The structure of one kind in a pNext chain.
///
/// # Safety
/// `chain` is a valid pNext chain, and `T` the structure of that type.
pub unsafe fn find<'a, T>(chain: *const c_void, wanted: vk::StructureType) -> Option<&'a T> {
    let mut node = chain.cast::<vk::BaseInStructure<'_>>();
    while !node.is_null() {
        // SAFETY: as the caller promises.
        unsafe {
            if (*node).s_type == wanted {
                return Some(&*node.cast::<T>());
            }
            node = (*node).p_next;
        }
    }
    None
}

/// A C string that a program passes, which may be null.
///
/// # Safety
/// A non-null pointer is a NUL-terminated string that outlives the result.
pub unsafe fn text_at<'a>(text: *const c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// A C string in an array of fixed size, up to its NUL.
pub fn text_in(characters: &[c_char]) -> Cow<'_, str> {
    // SAFETY: c_char and u8 have one layout.
    let bytes =
        unsafe { std::slice::from_raw_parts(characters.as_ptr().cast::<u8>(), characters.len()) };
    match CStr::from_bytes_until_nul(bytes) {
        Ok(text) => text.to_string_lossy(),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
