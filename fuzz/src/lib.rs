//! Fuzz targets: everything that gapscope reads and a stranger may have written.
//!
//! A [`Target`] takes bytes, reads them as gapscope would, and goes on to all that a user would see of them. It panics
//! where that breaks a promise: no panic, no more memory than [`memory::LIMIT_BYTES`], no row that the input does not hold,
//! idle time that is the sum of its causes, JSON that parses, no text that steers a terminal.
//!
//! The targets run in two ways: `cargo xtask fuzz` builds them with libFuzzer and finds new inputs by coverage, and the tests
//! of this crate run the inputs that [`seeds`] finds and a fixed number of changes of them. [`structured`] makes whole files by
//! the grammar of each format that is imported.
#![warn(missing_docs)]

pub mod bytes;
pub mod json;
pub mod memory;
pub mod outcome;
pub mod replay;
pub mod run;
pub mod scratch;
pub mod sections;
pub mod seeds;
pub mod structured;
pub mod targets;

pub use run::{Target, run};

#[global_allocator]
static MEMORY: memory::Limited = memory::Limited;

/// Makes the program of a target for libFuzzer. The program runs the target on each input, and changes inputs as the
/// target asks for.
#[macro_export]
macro_rules! libfuzzer {
    ($target:expr) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::run(&$target, data));
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            let mut changed = data[..size].to_vec();
            let mut rng = fastrand::Rng::with_seed(seed.into());
            // libFuzzer knows which values the code compares with.
            let mut mutate_bytes = |part: &mut Vec<u8>, _: &mut fastrand::Rng| {
                let length = part.len();
                part.resize(length + 64, 0);
                let length = libfuzzer_sys::fuzzer_mutate(part, length, length + 64);
                part.truncate(length);
            };
            ($target.mutate)(&mut changed, &mut rng, &mut mutate_bytes);
            changed.truncate(max_size);
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        });
    };
}
