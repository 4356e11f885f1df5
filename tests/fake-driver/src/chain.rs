//! Reads and writes C idioms of Vulkan: counted arrays, `pNext` chains, the call-twice enumeration, fixed strings.

use std::ffi::{CStr, c_char, c_void};

use ash::vk;

/// Returns the elements of a counted array, which may be null when empty.
pub unsafe fn slice<'a, T>(elements: *const T, count: u32) -> &'a [T] {
    if elements.is_null() || count == 0 {
        return &[];
    }
    std::slice::from_raw_parts(elements, count as usize)
}

/// Iterates over the structures of a chain.
pub unsafe fn structures(
    first: *const c_void,
) -> impl Iterator<Item = *mut vk::BaseOutStructure<'static>> {
    let mut next = first as *mut vk::BaseOutStructure<'static>;
    std::iter::from_fn(move || {
        let current = next;
        if current.is_null() {
            return None;
        }
        // SAFETY: the caller gave a valid chain.
        next = unsafe { (*current).p_next };
        Some(current)
    })
}

/// Returns the structure of type `T` in a chain.
pub unsafe fn find<'a, T: vk::TaggedStructure>(first: *const c_void) -> Option<&'a T> {
    structures(first)
        .find(|&item| (*item).s_type == T::STRUCTURE_TYPE)
        .map(|item| &*(item as *const T))
}

/// Fills a structure of a chain, which stays in its place there.
pub unsafe fn fill<T>(item: *mut vk::BaseOutStructure<'_>, content: T) {
    let (kind, next) = ((*item).s_type, (*item).p_next);
    item.cast::<T>().write(content);
    ((*item).s_type, (*item).p_next) = (kind, next);
}

/// Answers an enumeration: with the count alone, or with as many items as there is room for.
pub unsafe fn enumerate<T: Clone>(items: &[T], count: *mut u32, out: *mut T) -> vk::Result {
    enumerate_into(items, count, out, |item, slot| slot.write(item.clone()))
}

/// Answers as [`enumerate`] does, for structures whose `pNext` the caller has set.
pub unsafe fn enumerate_into<T, U>(
    items: &[T],
    count: *mut u32,
    out: *mut U,
    write: impl Fn(&T, *mut U),
) -> vk::Result {
    if out.is_null() {
        *count = items.len() as u32;
        return vk::Result::SUCCESS;
    }
    let room = (*count as usize).min(items.len());
    for (index, item) in items[..room].iter().enumerate() {
        write(item, out.add(index));
    }
    *count = room as u32;
    if room < items.len() {
        vk::Result::INCOMPLETE
    } else {
        vk::Result::SUCCESS
    }
}

/// Returns a string in a fixed array, cut to fit.
pub fn fixed<const N: usize>(text: &CStr) -> [c_char; N] {
    let mut array = [0; N];
    for (slot, &byte) in array[..N - 1].iter_mut().zip(text.to_bytes()) {
        *slot = byte as c_char;
    }
    array
}

/// Returns the names in an array of C strings.
pub unsafe fn names<'a>(names: *const *const c_char, count: u32) -> impl Iterator<Item = &'a CStr> {
    // SAFETY: the caller gave `count` valid strings.
    slice(names, count)
        .iter()
        .map(|&name| unsafe { CStr::from_ptr(name) })
}

pub fn extension_properties(names: &[&CStr]) -> Vec<vk::ExtensionProperties> {
    names
        .iter()
        .map(|name| vk::ExtensionProperties {
            extension_name: fixed(name),
            spec_version: 1,
        })
        .collect()
}
