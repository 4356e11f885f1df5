//! Records with chosen fields: CUPTI's user-defined records, since CUDA 13.3 (in 13.2 they were a trial).
//!
//! The subscriber names the fields of each kind that he wants, and CUPTI writes no others: a kernel has 144 bytes
//! instead of 248. With each buffer CUPTI says where in a record each field is. All functions are those that name the
//! subscriber; the others refuse then.

use super::fields::{Choice, IDS, Places, choices};
use super::numbers;
use super::{Code, Cupti, Functions};
use crate::buffers;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// The API version of CUDA 13.3.
const SINCE: u32 = 130_300;

/// CUpti_BuffersCallbackRequestFunc_v2, CUpti_BuffersCallbackCompleteFunc_v2
pub type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *const c_void);
pub type Completed = unsafe extern "C" fn(*mut u8, usize, usize, *const Told);

/// CUpti_ActivityConfig, as CUDA 13.3 has it
#[derive(Debug)]
#[repr(C)]
pub struct Config {
    bytes: usize,
    selection: Selection,
}

/// CUpti_ActivityFieldSelection
#[derive(Debug)]
#[repr(C)]
struct Selection {
    bytes: usize,
    count: usize,
    ids: *const c_int,
}

/// CUpti_BufferCallbackCompleteInfo
#[derive(Debug)]
#[repr(C)]
pub struct Told {
    bytes: usize,
    thread: u64,
    /// By kind; null where a kind is not recorded.
    layouts: *const *const Layout,
    count: usize,
}

/// CUpti_ActivityRecordLayout
#[derive(Debug)]
#[repr(C)]
struct Layout {
    bytes: usize,
    fields: *const u8,
    count: usize,
    record_bytes: usize,
}

/// CUpti_ActivityFieldLayoutEntry. Later versions may append to it: `bytes` says how far the next one is.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Placed {
    bytes: usize,
    id: c_int,
    offset: usize,
    size: usize,
    alignment: usize,
}

/// The functions that name the subscriber.
#[derive(Debug)]
pub struct Chosen {
    subscriber: *mut c_void,
    enable: unsafe extern "C" fn(*mut c_void, u32, *const Config) -> Code,
    disable: unsafe extern "C" fn(*mut c_void, u32, *const Config) -> Code,
    next_record: unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut *mut u8) -> Code,
    dropped: unsafe extern "C" fn(*mut c_void, *mut c_void, u32, *mut usize) -> Code,
}

// SAFETY: the subscriber is a handle, which CUPTI takes from any thread.
unsafe impl Send for Chosen {}
// SAFETY: as above.
unsafe impl Sync for Chosen {}

/// Asks for records with chosen fields, before any kind is recorded. `None`: they are whole ones, because the user
/// wants them so, or because this CUPTI has no others.
///
/// # Safety
/// The subscriber is CUPTI's handle.
pub unsafe fn begin(
    cupti: &Cupti,
    subscriber: *mut c_void,
    clock: extern "C" fn() -> u64,
) -> Option<Chosen> {
    let wanted = std::env::var(gapscope_spool::env::CUDA_RECORDS).is_ok_and(|v| v == "chosen");
    if !wanted || cupti.version < SINCE {
        return None;
    }
    let functions: &Functions = &cupti.functions;
    let chosen = Chosen {
        subscriber,
        enable: functions.enable_of?,
        disable: functions.disable_of?,
        next_record: functions.next_record_of?,
        dropped: functions.dropped_of?,
    };
    let (set_attribute, register) = (
        functions.set_attribute_of?,
        functions.register_callbacks_of?,
    );
    // SAFETY: CUPTI's functions with its handle, attributes of the types that they have, and callbacks of ours.
    unsafe {
        let set = |attribute, mut value: usize, mut bytes: usize| {
            set_attribute(subscriber, attribute, &mut bytes, (&raw mut value).cast()) == 0
        };
        if !set(numbers::ATTRIBUTE_CHOSEN_FIELDS, 1, 1) {
            return None;
        }
        set(numbers::ATTRIBUTE_ZEROED_BUFFERS, 1, 1);
        let threads = numbers::THREAD_IDS_OF_SYSTEM as usize;
        let taken = set(numbers::ATTRIBUTE_THREAD_IDS, threads, 4)
            && set(numbers::ATTRIBUTE_CLOCK, clock as usize, size_of::<usize>())
            && register(subscriber, buffers::requested_of, buffers::completed_of) == 0;
        if !taken {
            set(numbers::ATTRIBUTE_CHOSEN_FIELDS, 0, 1);
            return None;
        }
    }
    Some(chosen)
}

impl Chosen {
    pub fn enable(&self, kind: u32) -> Code {
        self.with(kind, |config| {
            // SAFETY: CUPTI's function with its handle, one of its kinds, and fields of this kind.
            unsafe { (self.enable)(self.subscriber, kind, config) }
        })
    }

    pub fn disable(&self, kind: u32) {
        // SAFETY: CUPTI's function with its handle and one of its kinds.
        unsafe { (self.disable)(self.subscriber, kind, std::ptr::null()) };
    }

    /// # Safety
    /// As for [`Cupti::next_record`].
    #[inline]
    pub unsafe fn next_record(&self, buffer: *mut u8, bytes: usize, at: &mut *mut u8) -> Code {
        // SAFETY: as the caller promises.
        unsafe { (self.next_record)(self.subscriber, buffer, bytes, at) }
    }

    pub fn dropped(&self, count: &mut usize) -> Code {
        // SAFETY: CUPTI's function with its handle; context and stream are reserved.
        unsafe { (self.dropped)(self.subscriber, std::ptr::null_mut(), 0, count) }
    }

    fn with(&self, kind: u32, call: impl FnOnce(&Config) -> Code) -> Code {
        // The kind is always the first.
        let mut ids: Vec<c_int> = vec![0];
        for choice in choices(kind).unwrap_or_default() {
            let first = c_int::from(choice.id);
            ids.extend(first..first + c_int::from(choice.parts));
        }
        ids.sort_unstable();
        call(&Config {
            bytes: size_of::<Config>(),
            selection: Selection {
                bytes: size_of::<Selection>(),
                count: ids.len(),
                ids: ids.as_ptr(),
            },
        })
    }
}

/// What CUPTI said of each kind, with the first buffer that had it: the choice does not change.
static KNOWN: [OnceLock<Option<Places>>; 64] = [const { OnceLock::new() }; 64];

/// Where the fields of a kind of record are; `None` when CUPTI did not say of all of them.
#[inline]
pub fn places(told: &Told, kind: u32) -> Option<&'static Places> {
    let known = KNOWN.get(kind as usize)?;
    known.get_or_init(|| read_places(told, kind)).as_ref()
}

fn read_places(told: &Told, kind: u32) -> Option<Places> {
    if told.bytes < size_of::<Told>() || told.layouts.is_null() {
        return None;
    }
    let choices = choices(kind)?;
    // SAFETY: CUPTI's own array, which has a place for each kind that it records.
    let layout = unsafe { (*told.layouts.add(kind as usize)).as_ref() }?;
    let mut places = [Places::NOWHERE; IDS];
    let mut sizes = [0; IDS];
    let mut at = layout.fields;
    for _ in 0..layout.count {
        // SAFETY: CUPTI says that so many entries are there, and each how long it is.
        let placed = unsafe { at.cast::<Placed>().read_unaligned() };
        if placed.bytes < size_of::<Placed>() {
            return None;
        }
        // SAFETY: as above; past the last one it is not read.
        at = unsafe { at.add(placed.bytes) };
        let (Ok(id), Ok(offset)) = (usize::try_from(placed.id), u16::try_from(placed.offset))
        else {
            continue;
        };
        if id < IDS && placed.offset + placed.size <= layout.record_bytes {
            (places[id], sizes[id]) = (offset, placed.size);
        }
    }
    let is_there = |choice: &Choice| {
        let first = usize::from(choice.id);
        (0..usize::from(choice.parts)).all(|part| {
            let place = places[first + part];
            // Parts are read as one, so they must follow each other.
            place != Places::NOWHERE
                && sizes[first + part] >= choice.bytes
                && usize::from(place) == usize::from(places[first]) + part * choice.bytes
        })
    };
    choices.iter().all(is_there).then_some(Places(places))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(fields: &[Placed], record_bytes: usize) -> Option<Places> {
        let of_kind = Layout {
            bytes: size_of::<Layout>(),
            fields: fields.as_ptr().cast(),
            count: fields.len(),
            record_bytes,
        };
        let mut layouts = [std::ptr::null::<Layout>(); 64];
        layouts[numbers::kind::STREAM as usize] = &of_kind;
        let told = Told {
            bytes: size_of::<Told>(),
            thread: 0,
            layouts: layouts.as_ptr(),
            count: layouts.len(),
        };
        assert!(read_places(&told, numbers::kind::CONTEXT).is_none());
        read_places(&told, numbers::kind::STREAM)
    }

    #[test]
    fn fields_are_where_cupti_says_and_a_record_that_lacks_one_is_not_read() {
        let placed = |id, offset, size| Placed {
            bytes: size_of::<Placed>(),
            id,
            offset,
            size,
            alignment: size,
        };
        // Context and stream as 64-bit numbers, as CUPTI has some ids already.
        let whole = [
            placed(0, 0, 4),
            placed(1, 8, 8),
            placed(2, 16, 8),
            placed(3, 24, 4),
            placed(4, 28, 4),
        ];
        let places = layout(&whole, 32).expect("all are there");
        assert_eq!(places.0[1..5], [8, 16, 24, 28]);
        assert!(layout(&whole[..4], 32).is_none(), "one is missing");
        assert!(layout(&whole, 30).is_none(), "one is outside of the record");
        let mut short = whole;
        short[3].size = 2;
        assert!(layout(&short, 32).is_none(), "one is too short");
    }
}
