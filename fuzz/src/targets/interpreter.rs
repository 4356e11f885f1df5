//! Lets the sampler, which reads the stacks of Python programs from outside, read any bytes as the memory of a Python
//! process, at a fixed address.
//!
//! The first bytes of an input are a header, which is part of that memory; from it on, addresses are those of the
//! memory itself.

use crate::Target;
use crate::bytes::{self, MutateBytes};
use crate::memory;
use fastrand::Rng;
use gapscope_stacks::fuzzing::{self, Frame, Interpreter};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

/// The target.
pub const TARGET: Target = Target {
    name: "interpreter",
    read: |input| {
        stacks(input);
    },
    mutate,
};

/// The start of the memory, which is so low that nothing else is there.
pub const BASE: u64 = 0x10_0000_0000;
/// The size of the memory. It is zero behind the input, so that lengths may be large.
const BYTES: usize = 8 << 20;
/// The words of the header: version, thread, `_PyRuntime`, type of code or 0, and the address at which the thread
/// waits.
pub const HEADER_WORDS: usize = 5;
/// The maximum number of frames of a stack.
const MAX_FRAMES: usize = 4096;
/// The times of the samples: the second follows at once, and the third is late enough that cached facts are checked
/// again.
const MOMENTS_NS: [i64; 3] = [0, 1, 200_000_000];
/// The most memory that reading may take: at each moment less than 1 MiB of new line tables and one more of 4 MiB,
/// and in all 5 MiB for a snapshot and the rest.
const MAX_BYTES: usize = (MOMENTS_NS.len() * 5 + 5) << 20;

/// Memory of this process at [`BASE`].
struct Mapped(NonNull<u8>);

impl Mapped {
    fn new(input: &[u8]) -> Mapped {
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let at = ptr::without_provenance_mut(BASE as usize);
        // SAFETY: the memory is new, and is mapped only where nothing else is.
        let at = unsafe { libc::mmap(at, BYTES, protection, flags, -1, 0) };
        assert!(at.addr() == BASE as usize, "nothing else is at {BASE:#x}");
        let at = NonNull::new(at.cast::<u8>()).expect("it is not at 0");
        let length = input.len().min(BYTES);
        // SAFETY: the memory has `BYTES` bytes that only this function uses, and the input has `length`.
        unsafe { ptr::copy_nonoverlapping(input.as_ptr(), at.as_ptr(), length) };
        Mapped(at)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}

/// Returns the stack of an input at each of `MOMENTS_NS`; `None` where it cannot be read. It panics where reading
/// takes more memory or frames than promised. One input at a time is read, because the address is fixed.
pub fn stacks(input: &[u8]) -> Vec<Option<Vec<Frame>>> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let word = |at: usize| {
        let bytes = input.get(at * 8..).and_then(<[u8]>::first_chunk).copied();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let _mapped = Mapped::new(input);
    let interpreter = Interpreter {
        version: BASE,
        runtime: word(2),
        code_type: Some(word(3)).filter(|address| *address != 0),
    };
    let read = || {
        let pid = std::process::id();
        fuzzing::stacks(pid, interpreter, word(1) as u32, word(4), &MOMENTS_NS)
    };
    let (stacks, most) = memory::with_peak(read);
    assert!(most <= MAX_BYTES, "{most} bytes were taken");
    for stack in stacks.iter().flatten() {
        assert!(stack.len() <= MAX_FRAMES, "{} frames", stack.len());
    }
    stacks
}

/// Exchanges addresses, redirects them or makes them circular. Words stay at their places.
fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    let words = input.len() / 8;
    if words == 0 || rng.u8(0..8) == 0 {
        return mutate_bytes(input, rng);
    }
    let at = rng.usize(0..words) * 8;
    let other = rng.usize(0..words) * 8;
    let word: [u8; 8] = match rng.u8(0..6) {
        0 => *input[other..].first_chunk().unwrap_or(&[0; 8]),
        1 => (BASE + other as u64).to_le_bytes(),
        // The address is near the end of the memory.
        2 => (BASE + BYTES as u64 - rng.u64(0..64)).to_le_bytes(),
        3 => u64::from(rng.u8(..)).to_le_bytes(),
        4 => {
            bytes::one_of(rng, &[0, u64::MAX, 1 << 22, (1 << 22) + 1, 1 << 63, 4095]).to_le_bytes()
        }
        _ => {
            let bit = at + rng.usize(0..8);
            input[bit] ^= 1 << rng.u8(0..8);
            return;
        }
    };
    input[at..at + 8].copy_from_slice(&word);
}
