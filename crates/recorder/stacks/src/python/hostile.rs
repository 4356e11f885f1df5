//! Memory in which nothing is what it should be: of this process, read as if it were an interpreter's.

use super::{MOST_FRAMES, NoStack, Reader};
use crate::memory::Memory;
use gapscope_model::python::{Layout, Version};
use std::time::{Duration, Instant};

const THREAD: u32 = 7;
const WORDS: usize = 8192;

/// Words of which most are addresses of others, and many the number of the thread.
fn filled(random: &mut fastrand::Rng, memory: &mut [u64]) {
    let base = memory.as_ptr() as u64;
    for word in memory {
        *word = match random.u32(0..10) {
            0..6 => base + 8 * random.u64(0..WORDS as u64),
            6 => u64::from(THREAD),
            7 => 0,
            8 => base.wrapping_add(random.u64(..) % (64 * WORDS as u64)),
            _ => random.u64(..),
        };
    }
}

#[test]
fn what_is_read_has_an_end_and_never_panics() {
    let mut memory = vec![0_u64; WORDS];
    let (mut walked, mut found) = (0, Vec::new());
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        filled(&mut random, &mut memory);
        let minor = random.u32(11..13);
        let layout = Layout::of(Version(0x0300_00f0 | minor << 16), &[]).unwrap();
        let runtime = memory.as_ptr() as u64 + 8 * random.u64(0..WORDS as u64 / 2);
        let mut reader = Reader::new(Memory::of(std::process::id()), layout, runtime, None);
        let began = Instant::now();
        match reader.stack(THREAD, 0, &mut found) {
            Ok(()) => {
                assert!(found.len() <= MOST_FRAMES);
                for place in &found {
                    reader.place(*place);
                }
            }
            Err(NoStack::Memory(error)) => {
                assert_eq!(error.raw_os_error(), Some(libc::EFAULT), "{error}");
            }
            Err(_) => {}
        }
        walked += u32::from(reader.threads.contains_key(&THREAD));
        reader.lock_holder(THREAD, runtime);
        // A ring of threads and interpreters is the longest way, once for each thread that is not known.
        assert!(began.elapsed() < Duration::from_secs(60), "seed {seed}");
    }
    assert!(walked > 40, "the thread was found in {walked} of 400");
}
