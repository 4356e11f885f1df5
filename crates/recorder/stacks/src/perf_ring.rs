//! Reads native stacks of running threads: while a thread runs, the kernel copies its registers and the top of its stack from time to
//! time (`perf_event_open` with the task clock) into memory that it shares with us.

use libc::{CLOCK_MONOTONIC, SYS_perf_event_open, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Records a second of the thread's own time: a rate that does not beat with periods of whole milliseconds.
pub const RATE_HZ: u64 = 199;
pub const PERIOD_NS: i64 = 1_000_000_000 / RATE_HZ as i64;
/// How much of the stack is copied. The kernel's limit is 64 KiB.
const STACK_BYTES: u32 = 16 << 10;
/// The sizes of the ring, powers of two. The first holds the records of more than a second, in which nobody may read them on a busy
/// machine. The memory is locked, which is limited: where the limit is reached, a smaller ring does.
const RING_BYTES: [usize; 4] = [4 << 20, 2 << 20, 1 << 20, 512 << 10];
/// More than a record takes in the ring.
const MAX_RECORD_BYTES: u64 = STACK_BYTES as u64 + 256;
const PAGE_BYTES: usize = 4096;
/// The offsets in `struct perf_event_mmap_page` of how far the kernel has written and how far we have read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The numbers and flags of `perf_event_open` (linux/perf_event.h) that are used.
const TYPE_SOFTWARE: u64 = 1;
const TASK_CLOCK: u64 = 1;
const ATTRIBUTE_BYTES: u64 = 136;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_USER_REGISTERS: u64 = 1 << 12;
const SAMPLE_USER_STACK: u64 = 1 << 13;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const USE_CLOCK_ID: u64 = 1 << 25;
const CLOSE_ON_EXEC: u64 = 8;
const RECORD_SAMPLE: u32 = 9;
const HEADER_BYTES: usize = 8;

/// Frame pointer, stack pointer and instruction pointer, in the order in which the kernel numbers registers; on ARM the link register
/// follows the frame pointer.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
const REGISTER_COUNT: usize = REGISTERS.count_ones() as usize;

/// A record of the kernel: the registers and the stack of a running thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfRecord {
    pub time_ns: i64,
    pub registers: Registers,
    /// The stack, from its pointer upwards.
    pub stack: Vec<u8>,
}

/// The registers with which unwinding begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// The link register, on ARM only.
    pub link: u64,
}

/// The ring buffer in which the kernel records one thread.
#[derive(Debug)]
pub struct Ring {
    _event: OwnedFd,
    memory: NonNull<u8>,
    /// The size of the ring behind the first page.
    bytes: usize,
    /// A buffer for one record.
    record: Vec<u8>,
}

// SAFETY: the memory belongs to this value alone and is not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes the kernel record a thread, by its number in our PID namespace, from now on until the value is dropped.
    pub fn open(thread: u32) -> io::Result<Ring> {
        let mut attributes = [0_u64; ATTRIBUTE_BYTES as usize / 8];
        attributes[0] = TYPE_SOFTWARE | ATTRIBUTE_BYTES << 32;
        attributes[1] = TASK_CLOCK;
        attributes[2] = PERIOD_NS as u64;
        attributes[3] = SAMPLE_TIME | SAMPLE_USER_REGISTERS | SAMPLE_USER_STACK;
        attributes[5] = EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | USE_CLOCK_ID;
        attributes[10] = REGISTERS;
        attributes[11] = u64::from(STACK_BYTES) | (CLOCK_MONOTONIC as u64) << 32;
        let (any_processor, no_group): (c_int, c_int) = (-1, -1);
        let thread = c_int::try_from(thread).map_err(|_| io::ErrorKind::NotFound)?;
        // SAFETY: the kernel reads the attributes, which have the size that they state.
        let event = unsafe {
            libc::syscall(
                SYS_perf_event_open,
                attributes.as_ptr(),
                thread,
                any_processor,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        if event < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let event = unsafe { OwnedFd::from_raw_fd(event as c_int) };
        let mut mapped = Err(io::ErrorKind::OutOfMemory.into());
        for bytes in RING_BYTES {
            mapped = map(&event, bytes).map(|memory| (memory, bytes));
            if mapped.is_ok() {
                break;
            }
        }
        let (memory, bytes) = mapped?;
        Ok(Ring {
            _event: event,
            memory,
            bytes,
            record: Vec::new(),
        })
    }

    /// Calls `each` with the records since the last call, in order, and gives their space back to the kernel. Returns true where the ring
    /// had no room for another record, so that later ones may be missing.
    pub fn take(&mut self, mut each: impl FnMut(PerfRecord)) -> bool {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        let was_full = self.bytes as u64 - (head - tail) < MAX_RECORD_BYTES;
        while tail < head {
            let mut header = [0; HEADER_BYTES];
            self.copy(tail, &mut header);
            let [a, b, c, d, _, _, low, high] = header;
            let length = usize::from(u16::from_le_bytes([low, high]));
            // The kernel writes no such record.
            if length < HEADER_BYTES || length as u64 > head - tail {
                tail = head;
                break;
            }
            if u32::from_le_bytes([a, b, c, d]) == RECORD_SAMPLE {
                let mut record = std::mem::take(&mut self.record);
                record.resize(length, 0);
                self.copy(tail, &mut record);
                if let Some(moment) = moment(&record[HEADER_BYTES..]) {
                    each(moment);
                }
                self.record = record;
            }
            tail += length as u64;
        }
        self.position(TAIL).store(tail, Ordering::Release);
        was_full
    }

    /// Returns one of the two positions that the kernel and we share, [`HEAD`] or [`TAIL`].
    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are of aligned words in the first page, which is mapped as long as this value lives; the kernel, too,
        // accesses them atomically.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(offset).cast()) }
    }

    /// Copies bytes that the kernel has written; `position` is before its head.
    fn copy(&self, position: u64, into: &mut [u8]) {
        let start = (position % self.bytes as u64) as usize;
        let first = into.len().min(self.bytes - start);
        let (one, two) = into.split_at_mut(first);
        assert!(two.len() <= start, "a record is longer than the ring");
        // SAFETY: both parts are inside the ring, which is mapped after the first page, and the kernel does not write there before the
        // tail is moved past them.
        unsafe {
            let ring = self.memory.as_ptr().add(PAGE_BYTES);
            std::ptr::copy_nonoverlapping(ring.add(start), one.as_mut_ptr(), one.len());
            std::ptr::copy_nonoverlapping(ring, two.as_mut_ptr(), two.len());
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe {
            libc::munmap(
                self.memory.as_ptr().cast::<c_void>(),
                PAGE_BYTES + self.bytes,
            )
        };
    }
}

/// Maps the ring of an event with this size.
fn map(event: &OwnedFd, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE_BYTES + bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            event.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Decodes a record: time, register ABI, registers, length of the stack, stack, and how much of it is filled. `None`
/// if the record is torn or has no registers (ABI 0).
fn moment(record: &[u8]) -> Option<PerfRecord> {
    let mut rest = record;
    let mut word = || {
        let (word, after) = rest.split_first_chunk()?;
        rest = after;
        Some(u64::from_le_bytes(*word))
    };
    let time_ns = i64::try_from(word()?).ok()?;
    if word()? == 0 {
        return None;
    }
    let mut registers = [0; REGISTER_COUNT];
    for register in &mut registers {
        *register = word()?;
    }
    let length = usize::try_from(word()?).ok()?;
    let stack = rest.get(..length)?;
    let filled = match rest[length..].first_chunk() {
        Some(filled) => usize::try_from(u64::from_le_bytes(*filled)).ok()?,
        None => 0,
    };
    #[cfg(target_arch = "x86_64")]
    let [frame_pointer, stack_pointer, instruction] = registers;
    #[cfg(target_arch = "x86_64")]
    let link = 0;
    #[cfg(target_arch = "aarch64")]
    let [frame_pointer, link, stack_pointer, instruction] = registers;
    Some(PerfRecord {
        time_ns,
        registers: Registers {
            instruction,
            stack_pointer,
            frame_pointer,
            link,
        },
        stack: stack.get(..filled)?.to_vec(),
    })
}

/// Explains why the kernel refuses to record threads and what to do, as the end of a sentence.
pub fn why_refused(error: &io::Error) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let paranoid: Option<i32> = paranoid.ok().and_then(|text| text.trim().parse().ok());
    match (error.raw_os_error(), paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => {
            format!("kernel.perf_event_paranoid is {level}: set it to 2")
        }
        (Some(libc::EPERM), _) => {
            "the container forbids it, or memory for it is used up: allow perf_event_open, or raise kernel.perf_event_mlock_kb"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_records_are_no_moments() {
        // Time, ABI, registers, length of the stack, its two words, and how much of it is filled.
        let words: Vec<u64> = [5, 2]
            .into_iter()
            .chain(10..10 + REGISTER_COUNT as u64)
            .chain([16, 7, 8, 8])
            .collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let whole = moment(&bytes).unwrap();
        assert_eq!(whole.time_ns, 5);
        assert_eq!(whole.stack, 7_u64.to_le_bytes());
        assert_eq!(whole.registers.frame_pointer, 10);
        for length in 0..bytes.len() - 8 {
            assert_eq!(moment(&bytes[..length]), None, "{length}");
        }
        let mut hostile = bytes.clone();
        let at = hostile.len() - 32;
        hostile[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(moment(&hostile), None);
    }

    #[test]
    fn this_thread_is_recorded_while_it_runs() {
        let mut ring = match Ring::open(rustix::thread::gettid().as_raw_nonzero().get() as u32) {
            Ok(ring) => ring,
            Err(error) => return eprintln!("not tested: {}", why_refused(&error)),
        };
        let until = crate::procfs::worked_ns() + 200_000_000;
        while crate::procfs::worked_ns() < until {
            // Most of the time is outside of the system, which records nothing of its own.
            for number in 0..100_000_u64 {
                std::hint::black_box(number);
            }
        }
        let mut moments = Vec::new();
        ring.take(|moment| moments.push(moment));
        assert!((20..=60).contains(&moments.len()), "{}", moments.len());
        assert!(
            moments
                .iter()
                .all(|m| m.registers.instruction != 0 && !m.stack.is_empty())
        );
        let now = crate::procfs::now_ns();
        let is_recent = |m: &PerfRecord| (0..60_000_000_000).contains(&(now - m.time_ns));
        assert!(moments.iter().all(is_recent));
    }
}
