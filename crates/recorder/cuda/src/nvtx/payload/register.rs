//! The functions by which the program registers layouts of payloads and enumerations (names of numbers). Each reads
//! the program's description and returns an id.

use super::schemas::{add, find, id_or_new};
use super::shape::{Encoding, Enum, Field, Layout, Role, Shape, TEXT, UTF8, predefined};
use crate::nvtx::domains::Domain;
use gapscope_spool::hook::guard;
use std::ffi::{CStr, c_char, c_void};

/// The most entries of a schema that are read.
const MAX_ENTRIES: usize = 1 << 10;

/// The result of functions that register something: its id; 0 means failure.
type Registered = u64;

/// NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32, the last type of texts.
const UTF32: u64 = 78;
/// The type of an entry that is the label's category.
const CATEGORY: u64 = 68;

/// NVTX_PAYLOAD_ENTRY_FLAG_…: bits that say where an entry's value is and how it is used.
mod flag {
    /// The value is not in the payload but at an address or a distance.
    pub const ELSEWHERE: u64 = 1 << 1 | 1 << 2 | 1 << 3;
    /// The value's address is in the payload.
    pub const POINTER: u64 = 1 << 1;
    /// The bits with the kind of array; 0 for a single value.
    pub const ARRAY: u64 = 7 << 4;
    pub const FIXED_SIZE: u64 = 1 << 4;
    pub const ZERO_TERMINATED: u64 = 2 << 4;
    /// A tool may read and copy what the address points to.
    pub const DEEP_COPY: u64 = 1 << 8;
    pub const HIDE: u64 = 1 << 9;
    /// The bits with the role, of which [`MESSAGE`] is one.
    pub const ROLE: u64 = 3 << 10;
    pub const MESSAGE: u64 = 1 << 10;
}

/// nvtxPayloadSchemaEntry_t
#[repr(C)]
struct Entry {
    flags: u64,
    /// The type of the value: one of NVTX, or the id of a schema.
    kind: u64,
    name: *const c_char,
    description: *const c_char,
    /// The length of an array or a text.
    length: u64,
    /// The offset in the payload; 0 in all but the first entry means behind the entry before.
    offset: u64,
    semantics: *const c_void,
    reserved: *const c_void,
}

/// nvtxPayloadSchemaAttr_t
#[repr(C)]
pub struct SchemaAttributes {
    /// A bit for each field that the program has set.
    present: u64,
    name: *const c_char,
    kind: u64,
    flags: u64,
    entries: *const Entry,
    entry_count: usize,
    bytes: usize,
    alignment: usize,
    id: u64,
}

/// nvtxPayloadEnum_t
#[repr(C)]
struct EnumEntry {
    name: *const c_char,
    value: u64,
    is_flag: i8,
}

/// nvtxPayloadEnumAttr_t
#[repr(C)]
pub struct EnumAttributes {
    present: u64,
    name: *const c_char,
    entries: *const EnumEntry,
    entry_count: usize,
    /// The size of a value in bytes.
    bytes: usize,
    id: u64,
}

/// Returns a copy of a text.
///
/// # Safety
/// `text` is null or NUL-terminated.
unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_…
const HAS_ENTRIES: u64 = 1 << 2 | 1 << 4 | 1 << 5;
const HAS_ALIGNMENT: u64 = 1 << 7;
const HAS_ID: u64 = 1 << 8;
/// NVTX_PAYLOAD_SCHEMA_TYPE_…: a structure with or without a fixed size; the others are unions.
const STRUCTURES: std::ops::RangeInclusive<u64> = 1..=2;

/// Registers a layout. One of a union is kept without fields.
pub unsafe extern "C" fn register(
    domain: *const Domain,
    attributes: *const SchemaAttributes,
) -> Registered {
    let registered = guard(|| {
        // SAFETY: the program's own attributes, with as many entries as they say.
        unsafe {
            let attributes = attributes.as_ref()?;
            if attributes.present & HAS_ENTRIES != HAS_ENTRIES || attributes.entries.is_null() {
                return None;
            }
            let has_id = attributes.present & HAS_ID != 0;
            let id = id_or_new(if has_id { attributes.id } else { 0 });
            let count = attributes.entry_count.min(MAX_ENTRIES);
            let entries = std::slice::from_raw_parts(attributes.entries, count);
            let alignment = match attributes.present & HAS_ALIGNMENT != 0 {
                true if attributes.alignment > 0 => attributes.alignment,
                _ => usize::MAX,
            };
            let layout = if STRUCTURES.contains(&attributes.kind) {
                layout(domain, entries, alignment, count == attributes.entry_count)
            } else {
                Layout::default()
            };
            add(domain, id, Shape::Layout(layout));
            Some(id)
        }
    });
    registered.flatten().unwrap_or(0)
}

/// NVTX_PAYLOAD_ENUM_ATTR_FIELD_…
const ENUM_HAS_ENTRIES: u64 = 1 << 2 | 1 << 3 | 1 << 4;
const ENUM_HAS_ID: u64 = 1 << 5;

/// Registers an enumeration.
pub unsafe extern "C" fn register_enum(
    domain: *const Domain,
    attributes: *const EnumAttributes,
) -> Registered {
    let registered = guard(|| {
        // SAFETY: the program's own attributes, with as many entries as they say.
        unsafe {
            let attributes = attributes.as_ref()?;
            let whole = attributes.present & ENUM_HAS_ENTRIES == ENUM_HAS_ENTRIES;
            if !whole || attributes.entries.is_null() || ![1, 2, 4, 8].contains(&attributes.bytes) {
                return None;
            }
            let has_id = attributes.present & ENUM_HAS_ID != 0;
            let id = id_or_new(if has_id { attributes.id } else { 0 });
            let count = attributes.entry_count.min(MAX_ENTRIES);
            let entries = std::slice::from_raw_parts(attributes.entries, count);
            let names = entries.iter().map(|e| (e.value, owned(e.name))).collect();
            let bytes = attributes.bytes;
            add(domain, id, Shape::Enum(Enum { bytes, names }));
            Some(id)
        }
    });
    registered.flatten().unwrap_or(0)
}

/// Returns the fields that can be read. After an entry of unknown size, only entries with an explicit offset are
/// known. `pack` is the greatest alignment; `whole` says that `entries` are all entries.
///
/// # Safety
/// The names are null or NUL-terminated.
unsafe fn layout(domain: *const Domain, entries: &[Entry], pack: usize, mut whole: bool) -> Layout {
    let mut fields = Vec::new();
    // The start of the next entry before alignment; `None` after one of unknown size.
    let mut next = Some(0usize);
    for (index, entry) in entries.iter().enumerate() {
        let (encoding, size, align) = describe(domain, entry);
        let explicit = (entry.offset > 0 || index == 0).then_some(entry.offset as usize);
        let align = align.min(pack).max(1);
        let offset = explicit.or(next.map(|next| next.next_multiple_of(align)));
        next = offset
            .zip(size)
            .and_then(|(offset, size)| offset.checked_add(size));
        let (Some(encoding), Some(offset)) = (encoding, offset) else {
            whole = false;
            continue;
        };
        let is_text = matches!(
            encoding,
            Encoding::Text(_) | Encoding::OpenText | Encoding::TextAddress | Encoding::Registered
        );
        let role = match entry.flags & flag::ROLE {
            flag::MESSAGE if is_text => Role::Message,
            _ if entry.kind == CATEGORY => Role::Category,
            _ if entry.flags & flag::HIDE != 0 => Role::Hidden,
            _ => Role::Value,
        };
        fields.push(Field {
            // SAFETY: as the caller promises.
            name: unsafe { owned(entry.name) },
            offset,
            encoding,
            role,
        });
    }
    Layout { fields, whole }
}

/// Returns the encoding of an entry, its size and its alignment in bytes; `None` for an encoding that is not read,
/// and for a size that is not known.
fn describe(domain: *const Domain, entry: &Entry) -> (Option<Encoding>, Option<usize>, usize) {
    let array = entry.flags & flag::ARRAY;
    if (TEXT..=UTF32).contains(&entry.kind) {
        return describe_text(entry, array);
    }
    if entry.flags & flag::ELSEWHERE != 0 {
        // The entry is an address, or a distance of the type's own size; arrays that lie elsewhere have an address
        // here.
        let size = (entry.flags & flag::POINTER != 0).then_some(8);
        return (None, size, 8);
    }
    let (encoding, size, align) = match predefined(entry.kind) {
        Some(Ok(encoding)) => (Some(encoding), encoding.bytes(), encoding.bytes()),
        Some(Err(size)) => (None, size, size),
        None => match find(domain, entry.kind).map(|schema| &schema.shape) {
            Some(Shape::Enum(known)) => (Some(Encoding::Enum(known)), known.bytes, known.bytes),
            // Only the program knows whether the inner structure is padded at its end.
            _ => return (None, None, 8),
        },
    };
    match array {
        0 => (encoding, Some(size), align),
        flag::FIXED_SIZE => (None, size.checked_mul(entry.length as usize), align),
        _ => (None, None, align),
    }
}

/// Does the same as [`describe`] for a text; `array` is the kind of array that holds the characters.
fn describe_text(entry: &Entry, array: u64) -> (Option<Encoding>, Option<usize>, usize) {
    let unit = match entry.kind {
        TEXT | UTF8 => 1,
        UTF32 => 4,
        _ => 2,
    };
    let is_narrow = unit == 1;
    let is_address = entry.flags & flag::POINTER != 0 || (array == 0 && entry.length == 0);
    if is_address {
        // Others point into payloads of the same event, whose extent only the program knows.
        let may_be_read =
            entry.flags & flag::DEEP_COPY != 0 || entry.flags & flag::ROLE == flag::MESSAGE;
        let is_terminated = array == 0 && entry.length == 0 || array == flag::ZERO_TERMINATED;
        let encoding = (is_narrow && may_be_read && is_terminated).then_some(Encoding::TextAddress);
        return (encoding, Some(8), 8);
    }
    if entry.flags & flag::ELSEWHERE != 0 {
        return (None, None, unit);
    }
    match array {
        0 | flag::FIXED_SIZE => {
            let size = unit.checked_mul(entry.length as usize);
            let encoding = size.filter(|_| is_narrow).map(Encoding::Text);
            (encoding, size, unit)
        }
        flag::ZERO_TERMINATED => (is_narrow.then_some(Encoding::OpenText), None, unit),
        _ => (None, None, unit),
    }
}
