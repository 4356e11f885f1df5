//! NVTX's payload extension as its header does it: a table of functions for each module, which a tool may fill.

use super::cuda::Cuda;
use super::nvtx;
use super::nvtx_tables::function_of_tool;
use std::ffi::{CStr, c_char, c_int, c_void};

/// NVTX_EXT_PAYLOAD_SLOT_COUNT
const SLOTS: usize = 63;

/// nvtxExtModuleSegment_t
#[repr(C)]
struct Segment {
    id: usize,
    slot_count: usize,
    slots: *mut usize,
}

/// nvtxExtModuleInfo_t
#[repr(C)]
struct Module {
    nvtx: u16,
    size: u16,
    module: u16,
    version: u16,
    segment_count: usize,
    segments: *mut Segment,
    export: *const c_void,
    info: *const c_void,
}

/// Asks the tool for an extension; returns its functions, 0 where there is none, and whether the tool has it.
fn attach(module: u16, version: u16) -> ([usize; SLOTS], bool) {
    let mut slots = [0; SLOTS];
    let mut segment = Segment {
        id: 0,
        slot_count: SLOTS,
        slots: slots.as_mut_ptr(),
    };
    let mut module = Module {
        nvtx: 3,
        size: size_of::<Module>() as u16,
        module,
        version,
        segment_count: 1,
        segments: &mut segment,
        export: std::ptr::null(),
        info: std::ptr::null(),
    };
    type Attach = unsafe extern "C" fn(*mut Module) -> c_int;
    // SAFETY: as NVTX's header does.
    let taken = unsafe {
        let attach = function_of_tool::<Attach>(c"InitializeInjectionNvtxExtension");
        attach.expect("a tool")(&mut module) != 0
    };
    (slots, taken)
}

/// nvtxPayloadSchemaEntry_t
#[repr(C)]
struct Entry {
    flags: u64,
    kind: u64,
    name: *const c_char,
    description: *const c_char,
    length: u64,
    offset: u64,
    semantics: *const c_void,
    reserved: *const c_void,
}

fn entry(flags: u64, kind: u64, name: &'static CStr, length: u64) -> Entry {
    Entry {
        flags,
        kind,
        name: name.as_ptr(),
        description: std::ptr::null(),
        length,
        offset: 0,
        semantics: std::ptr::null(),
        reserved: std::ptr::null(),
    }
}

/// nvtxPayloadSchemaAttr_t
#[repr(C)]
struct Schema {
    present: u64,
    name: *const c_char,
    kind: u64,
    flags: u64,
    entries: *const Entry,
    count: usize,
    size: usize,
    pack: usize,
    id: u64,
    extension: *const c_void,
}

/// nvtxPayloadEnum_t, nvtxPayloadEnumAttr_t
#[repr(C)]
struct EnumEntry {
    name: *const c_char,
    value: u64,
    is_flag: i8,
}

#[repr(C)]
struct Enum {
    present: u64,
    name: *const c_char,
    entries: *const EnumEntry,
    count: usize,
    size: usize,
    id: u64,
    extension: *const c_void,
}

/// nvtxPayloadData_t
#[repr(C)]
struct Data {
    schema: u64,
    size: usize,
    at: *const c_void,
}

fn data<T>(schema: u64, value: &T) -> Data {
    Data {
        schema,
        size: size_of::<T>(),
        at: std::ptr::from_ref(value).cast(),
    }
}

/// The structure that the schemas describe, as C lays it out.
#[repr(C)]
struct Collective {
    root: i32,
    bytes: u64,
    loss: f32,
    operation: u8,
    tag: [u8; 4],
    group: usize,
    hidden: u16,
    delta: i16,
}

struct Functions([usize; SLOTS]);

impl Functions {
    fn register(&self, domain: usize, entries: &[Entry], id: u64) -> u64 {
        let schema = Schema {
            present: 1 << 2 | 1 << 4 | 1 << 5 | if id == 0 { 0 } else { 1 << 8 },
            name: c"a schema".as_ptr(),
            kind: 1,
            flags: 0,
            entries: entries.as_ptr(),
            count: entries.len(),
            size: 0,
            pack: 0,
            id,
            extension: std::ptr::null(),
        };
        // SAFETY: the function of this number has this type.
        unsafe {
            let register: unsafe extern "C" fn(usize, *const Schema) -> u64 =
                std::mem::transmute(self.0[0]);
            register(domain, &schema)
        }
    }

    fn register_enum(&self, domain: usize) -> u64 {
        let entries = [(c"sum", 0), (c"max", 2)].map(|(name, value)| EnumEntry {
            name: name.as_ptr(),
            value,
            is_flag: 0,
        });
        let known = Enum {
            present: 1 << 2 | 1 << 3 | 1 << 4,
            name: c"operation".as_ptr(),
            entries: entries.as_ptr(),
            count: entries.len(),
            size: 1,
            id: 0,
            extension: std::ptr::null(),
        };
        // SAFETY: as above.
        unsafe {
            let register: unsafe extern "C" fn(usize, *const Enum) -> u64 =
                std::mem::transmute(self.0[1]);
            register(domain, &known)
        }
    }

    fn mark(&self, domain: usize, data: &[Data]) {
        // SAFETY: as above.
        unsafe {
            let mark: unsafe extern "C" fn(usize, *const Data, usize) =
                std::mem::transmute(self.0[2]);
            mark(domain, data.as_ptr(), data.len());
        }
    }

    /// Sets a range of the process, with another payload at its end.
    fn range(&self, domain: usize, start_data: &[Data], end: &[Data]) {
        // SAFETY: as above.
        unsafe {
            let start: unsafe extern "C" fn(usize, *const Data, usize) -> u64 =
                std::mem::transmute(self.0[5]);
            let stop: unsafe extern "C" fn(usize, u64, *const Data, usize) =
                std::mem::transmute(self.0[6]);
            let range = start(domain, start_data.as_ptr(), start_data.len());
            stop(domain, range, end.as_ptr(), end.len());
        }
    }
}

/// Names things, and sets labels with values of each kind, understood or not.
pub fn everything(cuda: &Cuda) {
    let domain = nvtx::domain(c"library");
    let stream = cuda.stream(1);
    // SAFETY: gettid has no preconditions.
    let thread = unsafe { libc::gettid() } as u64;
    assert!(nvtx::resource(
        domain,
        4 << 16 | 3,
        stream as u64,
        c"copies"
    ));
    assert!(nvtx::resource(domain, 1 << 16 | 3, thread, c"worker"));
    assert!(nvtx::resource(domain, 1 << 16 | 1, 5, c"a lock"));
    cuda.launches("_Z3addPfS_i", 1, stream);

    let (_, counters) = attach(4, 0x0100);
    let (_, future) = attach(2, 0x0200);
    assert!(!counters && !future, "what is not known is not taken");
    let (slots, taken) = attach(2, 0x0104);
    assert!(taken && slots[7] != 0 && slots[62] == 0);
    let functions = Functions(slots);
    // SAFETY: as in `Functions`.
    let (enabled, now) = unsafe {
        let enabled: unsafe extern "C" fn(usize) -> u8 = std::mem::transmute(slots[7]);
        let now: unsafe extern "C" fn() -> i64 = std::mem::transmute(slots[8]);
        (enabled(domain), now())
    };
    assert!(enabled == 1 && now > 0);

    let operations = functions.register_enum(domain);
    assert!(operations >= 1 << 32, "an id of the tool's");
    let collective = functions.register(
        domain,
        &[
            entry(0, 15, c"root", 0),
            entry(0, 18, c"bytes", 0),
            entry(0, 43, c"loss", 0),
            entry(0, operations, c"op", 0),
            entry(0, 75, c"tag", 4),
            entry(0, 80, c"group", 0),
            entry(1 << 9, 4, c"hidden", 0),
            entry(0, 13, c"delta", 0),
        ],
        1 << 24,
    );
    assert_eq!(collective, 1 << 24, "the id that the program chose");
    let mut value = Collective {
        root: -3,
        bytes: 1 << 40,
        loss: 0.5,
        operation: 2,
        tag: *b"ab\0c",
        group: nvtx::register(domain, c"world"),
        hidden: 9,
        delta: -7,
    };
    let payload = [data(collective, &value)];
    nvtx::push_with(domain, c"all-reduce", payload.as_ptr().cast(), 1);
    nvtx::pop_from(domain);
    // The value has no name in the enumeration, and a second payload is one number.
    value.operation = 1;
    let payloads = [data(collective, &value), data(18, &77u64)];
    nvtx::push_with(domain, c"again", payloads.as_ptr().cast(), 2);
    nvtx::pop_from(domain);

    // The label's text is in the payload, as an address.
    let with_text = functions.register(
        domain,
        &[
            entry(1 << 10 | 1 << 8, 75, c"text", 0),
            entry(0, 68, c"category", 0),
            entry(0, 20, c"share", 0),
        ],
        0,
    );
    #[repr(C)]
    struct WithText(*const c_char, u32, f64);
    let value = WithText(c"from the payload".as_ptr(), 6, 0.25);
    functions.mark(domain, &[data(with_text, &value)]);
    functions.range(domain, &[data(with_text, &value)], &[data(18, &1u64)]);

    // Fields before an inner array are read, and those with an explicit offset.
    let with_array = functions.register(
        domain,
        &[
            entry(0, 16, c"rank", 0),
            entry(1 << 4, 16, c"sizes", 3),
            entry(0, 16, c"after", 0),
        ],
        0,
    );
    let payload = [data(with_array, &[1u32, 2, 3, 4, 5])];
    nvtx::push_with(domain, c"array", payload.as_ptr().cast(), 1);
    nvtx::pop_from(domain);
    // One schema was never registered, and one payload is shorter than its schema.
    for payload in [data(99 << 32, &1u64), data(collective, &5i32)] {
        nvtx::push_with(domain, c"odd", (&raw const payload).cast(), 1);
        nvtx::pop_from(domain);
    }
}
