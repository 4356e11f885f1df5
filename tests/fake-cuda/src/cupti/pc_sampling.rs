//! PC sampling: each launch in a sampled context leaves the same samples of its kernel's instructions ([`OF_A_LAUNCH`]).
//!
//! `FAKE_CUDA_PC` lists what is wrong, separated by commas. `busy`, `privileges`: sampling is refused; `page`: one instruction is handed
//! over at a time; `full`: the second time the hardware's buffer was full; `dropped`, `other`: 7 samples, or 5; `unnamed`: functions have
//! no names; `broken`: the second time fails; `undying`: sampling does not end; `left`: nothing is handed over before the end; `old`:
//! CUPTI does not tell the period.

use super::results::*;
use super::state;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};

/// CUpti_PCSamplingConfigurationAttributeType
const PERIOD: c_int = 1;
const STALL_REASON: c_int = 2;
const HARDWARE_BUFFER: c_int = 4;
const MODE: c_int = 5;
const DATA_BUFFER: c_int = 8;
const CONTINUOUS: u64 = 1;

const REASONS: [(u32, &str); 4] = [
    (10, "smsp__pcsamp_warps_issue_stalled_selected"),
    (11, "smsp__pcsamp_warps_issue_stalled_long_scoreboard"),
    (
        12,
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    ),
    (13, "smsp__pcsamp_warps_issue_stalled_wait"),
];

/// The offset, reason and number of the samples of a launch.
const OF_A_LAUNCH: [(u64, u32, u32); 4] =
    [(0x20, 11, 6), (0x20, 12, 4), (0x20, 10, 1), (0x40, 13, 3)];

/// The sampled contexts.
#[derive(Default)]
pub struct PcSampling(HashMap<u32, Context>);

#[derive(Default)]
struct Context {
    reasons: Vec<u32>,
    /// The exponent of the period.
    period: u64,
    buffer: usize,
    waiting: Vec<Instruction>,
    asked: u32,
}

/// The samples of an instruction.
struct Instruction {
    crc: u64,
    name: usize,
    offset: u64,
    /// Reasons with their numbers of samples.
    samples: Vec<(u32, u32)>,
}

fn says(what: &str) -> bool {
    let config = std::env::var("FAKE_CUDA_PC").unwrap_or_default();
    config.split(',').any(|word| word == what)
}

impl PcSampling {
    /// Adds the samples of a kernel that is launched in a context.
    pub fn launched(&mut self, context: u32, name: usize, crc: u64) {
        let Some(context) = self.0.get_mut(&context) else {
            return;
        };
        for offset in [0x20, 0x40] {
            let of_it = OF_A_LAUNCH.iter().filter(|(at, ..)| *at == offset);
            let counted = of_it.filter(|(_, reason, _)| context.reasons.contains(reason));
            let samples = counted.map(|(_, reason, samples)| (*reason, *samples));
            context.waiting.push(Instruction {
                crc,
                name,
                offset,
                samples: samples.collect(),
            });
        }
    }
}

/// Returns a checksum.
pub fn crc(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[repr(C)]
pub struct Of {
    size: usize,
    private: *mut c_void,
    context: *mut c_void,
    /// The number of functions that have it.
    number: usize,
    at: *mut c_void,
    more: *mut c_void,
}

#[repr(C)]
struct Attribute {
    kind: c_int,
    status: c_int,
    data: [u64; 3],
}

#[repr(C)]
struct ReasonSamples {
    reason: u32,
    samples: u32,
}

#[repr(C)]
struct Pc {
    size: usize,
    crc: u64,
    offset: u64,
    index: u32,
    padding: u32,
    name: *const c_char,
    reasons: usize,
    samples: *mut ReasonSamples,
    correlation: u32,
}

#[repr(C)]
struct Data {
    size: usize,
    room: usize,
    total: u64,
    dropped: u64,
    pcs: usize,
    remaining: usize,
    range: u64,
    data: *mut Pc,
    other: u64,
    is_full: u8,
}

#[repr(C)]
pub struct Crc {
    size: usize,
    bytes: usize,
    cubin: *const u8,
    crc: u64,
}

// Every pointer is the caller's structure of parameters, as in CUPTI.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCubinCrc(of: *mut Crc) -> c_int {
    // SAFETY: see above.
    unsafe { (*of).crc = crc(std::slice::from_raw_parts((*of).cubin, (*of).bytes)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiGetSassToSourceCorrelation(_: *mut c_void) -> c_int {
    INVALID_OPERATION
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingEnable(of: *const Of) -> c_int {
    if says("busy") {
        return HARDWARE_BUSY;
    }
    if says("privileges") {
        return INSUFFICIENT_PRIVILEGES;
    }
    // SAFETY: see above.
    let (size, context) = unsafe { ((*of).size, (*of).context as usize as u32) };
    let mut state = state();
    let known = &mut state.pc_sampling.0;
    if size != 24 || known.insert(context, Context::default()).is_some() {
        return INVALID_PARAMETER;
    }
    SUCCESS
}

/// Runs `act` for the sampled context of a call; a client that names a context that is not sampled is wrong.
///
/// # Safety
/// See above.
unsafe fn with(of: *const Of, size: usize, act: impl FnOnce(&mut Context) -> c_int) -> c_int {
    // SAFETY: as the caller promises.
    let (said, context) = unsafe { ((*of).size, (*of).context as usize as u32) };
    let mut state = state();
    match state.pc_sampling.0.get_mut(&context) {
        Some(context) if said == size => act(context),
        _ => std::process::abort(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetNumStallReasons(of: *const Of) -> c_int {
    // SAFETY: see above; the number's place has a pointer.
    unsafe {
        with(of, 32, |_| {
            *((*of).number as *mut usize) = REASONS.len();
            SUCCESS
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetStallReasons(of: *const Of) -> c_int {
    // SAFETY: see above; each name has room for 128 bytes.
    unsafe {
        with(of, 48, |_| {
            let (numbers, names) = ((*of).at.cast::<u32>(), (*of).more.cast::<*mut u8>());
            for (at, (number, name)) in REASONS.iter().enumerate().take((*of).number) {
                *numbers.add(at) = *number;
                let text = [name.as_bytes(), b"\0"].concat();
                std::ptr::copy_nonoverlapping(text.as_ptr(), *names.add(at), text.len());
            }
            SUCCESS
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingSetConfigurationAttribute(of: *const Of) -> c_int {
    // SAFETY: see above.
    unsafe {
        with(of, 40, |context| {
            let attributes = std::slice::from_raw_parts((*of).at.cast::<Attribute>(), (*of).number);
            for Attribute { kind, data, .. } in attributes {
                match *kind {
                    MODE if data[0] == CONTINUOUS => {}
                    PERIOD if (5..=31).contains(&data[0]) => context.period = data[0],
                    HARDWARE_BUFFER if data[0] >= 1 << 20 => {}
                    STALL_REASON => {
                        let numbers = data[1] as *const u32;
                        context.reasons =
                            std::slice::from_raw_parts(numbers, data[0] as usize).to_vec();
                    }
                    DATA_BUFFER => context.buffer = data[0] as usize,
                    _ => return INVALID_PARAMETER,
                }
            }
            SUCCESS
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetConfigurationAttribute(of: *const Of) -> c_int {
    // SAFETY: see above.
    unsafe {
        with(of, 40, |context| {
            let attribute = &mut *(*of).at.cast::<Attribute>();
            if says("old") || attribute.kind != PERIOD {
                return INVALID_PARAMETER;
            }
            attribute.data[0] = context.period;
            SUCCESS
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetData(of: *const Of) -> c_int {
    // SAFETY: see above; the number's place has a pointer to data with the room that it says.
    unsafe {
        with(of, 32, |context| {
            let data = &mut *((*of).number as *mut Data);
            context.asked += 1;
            if says("full") && context.asked == 2 {
                data.is_full = 1;
                return OUT_OF_MEMORY;
            }
            if says("broken") && context.asked >= 2 {
                return UNKNOWN;
            }
            if context.asked == 1 {
                data.dropped = if says("dropped") { 7 } else { 0 };
                data.other = if says("other") { 5 } else { 0 };
            }
            let most = match (says("left"), says("page")) {
                (true, _) => 0,
                (_, true) => 1,
                _ => data.room,
            };
            context.fill(data, most);
            SUCCESS
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingDisable(of: *const Of) -> c_int {
    if says("undying") {
        return UNKNOWN;
    }
    // SAFETY: see above; the buffer is the client's, who keeps it.
    unsafe {
        with(of, 24, |context| {
            if let Some(data) = (context.buffer as *mut Data).as_mut() {
                context.fill(data, data.room);
            }
            SUCCESS
        });
        state()
            .pc_sampling
            .0
            .remove(&((*of).context as usize as u32));
    }
    SUCCESS
}

impl Context {
    /// # Safety
    /// The data has the room that it says.
    unsafe fn fill(&mut self, data: &mut Data, most: usize) {
        let count = most.min(data.room).min(self.waiting.len());
        for (at, instruction) in self.waiting.drain(..count).enumerate() {
            let Instruction {
                crc,
                name,
                offset,
                samples,
            } = instruction;
            // SAFETY: as the caller promises: there is room for all reasons that are counted.
            unsafe {
                let pc = &mut *data.data.add(at);
                (pc.crc, pc.offset) = (crc, offset);
                pc.name = match says("unnamed") {
                    true => std::ptr::null(),
                    false => name as *const c_char,
                };
                pc.reasons = samples.len();
                for (at, (reason, samples)) in samples.into_iter().enumerate() {
                    *pc.samples.add(at) = ReasonSamples { reason, samples };
                }
            }
        }
        (data.pcs, data.remaining) = (count, self.waiting.len());
        if most == 0 {
            data.remaining = 0;
        }
    }
}
