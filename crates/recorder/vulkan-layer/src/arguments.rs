//! Reads the arguments of Vulkan calls: arrays, texts and chains of structures (each points to the next by its field
//! `pNext`) that programs and drivers pass by pointer.

use ash::vk;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};

/// Returns a program's array, which may be null when it is empty.
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

/// Iterates over the structures of a pNext chain.
///
/// # Safety
/// `first` is a valid pNext chain, which outlives the iterator.
pub unsafe fn chain(
    first: *const c_void,
) -> impl Iterator<Item = *const vk::BaseInStructure<'static>> {
    let present = |node: *const vk::BaseInStructure<'static>| (!node.is_null()).then_some(node);
    std::iter::successors(present(first.cast()), move |node| {
        // SAFETY: as the caller promises, each structure starts with its type and the next one.
        present(unsafe { (**node).p_next })
    })
}

/// Returns the structure of a type in a pNext chain; `None` if the chain has none.
///
/// # Safety
/// `first` is a valid pNext chain, and `T` the structure of that type.
pub unsafe fn find<'a, T>(first: *const c_void, wanted: vk::StructureType) -> Option<&'a T> {
    // SAFETY: as the caller promises.
    unsafe {
        let structure = chain(first).find(|structure| (**structure).s_type == wanted)?;
        Some(&*structure.cast::<T>())
    }
}

/// Returns a C string that a program passes, which may be null.
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

/// Returns a C string in an array of fixed size, up to its NUL.
pub fn text_in(characters: &[c_char]) -> Cow<'_, str> {
    // SAFETY: c_char and u8 have one layout.
    let bytes =
        unsafe { std::slice::from_raw_parts(characters.as_ptr().cast::<u8>(), characters.len()) };
    match CStr::from_bytes_until_nul(bytes) {
        Ok(text) => text.to_string_lossy(),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Returns the words of a shader module.
///
/// # Safety
/// The create-info is valid; its code outlives the result.
pub unsafe fn shader_code<'a>(info: &vk::ShaderModuleCreateInfo<'_>) -> &'a [u32] {
    // SAFETY: as the caller promises.
    unsafe { slice(info.p_code, (info.code_size / 4) as u32) }
}

/// Returns the code that is in the chain of a pipeline's stage, as maintenance5 allows. It counts only without a
/// shader module.
///
/// # Safety
/// The create-info is valid; its code outlives the result.
pub unsafe fn inline_code<'a>(stage: &vk::PipelineShaderStageCreateInfo<'_>) -> Option<&'a [u32]> {
    let kind = vk::StructureType::SHADER_MODULE_CREATE_INFO;
    // SAFETY: as the caller promises.
    unsafe {
        let info = find::<vk::ShaderModuleCreateInfo<'_>>(stage.p_next, kind)?;
        Some(shader_code(info))
    }
}

/// Iterates over specialisation constants: the id and the bytes of each. Constants outside of the data are left out.
///
/// # Safety
/// A non-null pointer is a valid VkSpecializationInfo, which outlives the result.
pub unsafe fn specialisation<'a>(
    info: *const vk::SpecializationInfo<'_>,
) -> impl Iterator<Item = (u32, &'a [u8])> {
    // SAFETY: as the caller promises.
    let (entries, data) = unsafe {
        match info.as_ref() {
            Some(info) => (
                slice(info.p_map_entries, info.map_entry_count),
                slice(info.p_data.cast::<u8>(), info.data_size as u32),
            ),
            None => (&[][..], &[][..]),
        }
    };
    entries.iter().filter_map(move |entry| {
        let value = data.get(entry.offset as usize..)?.get(..entry.size)?;
        Some((entry.constant_id, value))
    })
}
