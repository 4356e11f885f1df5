//! Replays the kept inputs (the files of the corpus, and fixtures) and changes of them, for the tests.

use crate::{Target, bytes, run, seeds};
use fastrand::Rng;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum time for an input. It is ten times what any kept input takes in a build without optimisation.
const MAX_DURATION: Duration = Duration::from_secs(20);
/// The maximum length of a changed input.
const MAX_INPUT_BYTES: usize = 64 << 10;

/// Returns the kept inputs of a target in the order of their names.
pub fn corpus(target: &Target) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = seeds::files(&root.join(seeds::CORPUS).join(target.name));
    paths.extend(seeds::fixtures(&root, target.name));
    paths.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    assert!(!paths.is_empty(), "{} has no inputs", target.name);
    paths
}

/// Runs all kept inputs and `changed` changes of them, which are the same each time. An input that breaks a promise
/// is written to `kept`, and the panic names the file.
pub fn replay(target: &Target, changed: usize, kept: &Path) {
    let inputs: Vec<Vec<u8>> = corpus(target)
        .iter()
        .map(|path| std::fs::read(path).expect("a kept input can be read"))
        .collect();
    for input in &inputs {
        checked(target, input, kept);
    }
    let mut rng = Rng::with_seed(1);
    for _ in 0..changed {
        let mut input = inputs[rng.usize(0..inputs.len())].clone();
        for _ in 0..rng.usize(1..=4) {
            (target.mutate)(&mut input, &mut rng, &mut bytes::change);
        }
        input.truncate(MAX_INPUT_BYTES);
        checked(target, &input, kept);
    }
}

/// Runs an input, and panics where the target panics or takes too long. The input is left in `kept`.
fn checked(target: &Target, input: &[u8], kept: &Path) {
    // The input is written first, so that it is there even if it ends the program.
    let path = kept.join(format!("{}.input", target.name));
    std::fs::write(&path, input).expect("an input can be kept");
    let start = Instant::now();
    let ran = std::panic::catch_unwind(|| run(target, input));
    let took = start.elapsed();
    let path = path.display();
    assert!(ran.is_ok(), "{}: {path} breaks a promise", target.name);
    assert!(took < MAX_DURATION, "{}: {path} took {took:?}", target.name);
}
