//! The kept inputs, and changes of them: what the tests run.

use crate::{Target, bytes, run};
use fastrand::Rng;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than this, an input may not take. Ten times what any kept one does in a build without optimisation.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than this, an input does not become.
const LONGEST: usize = 64 << 10;

/// The kept inputs of a target, in order.
pub fn corpus(target: &Target) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folder = folder.join(target.name);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths
}

/// Runs all kept inputs and `changed` changes of them, the same ones each time. An input that breaks a promise is written
/// to `kept`, and named in what it panics with.
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
        input.truncate(LONGEST);
        checked(target, &input, kept);
    }
}

fn checked(target: &Target, input: &[u8], kept: &Path) {
    // Written first: what ends the program is there afterwards.
    let path = kept.join(format!("{}.input", target.name));
    std::fs::write(&path, input).expect("an input can be kept");
    let start = Instant::now();
    let ran = std::panic::catch_unwind(|| run(target, input));
    let took = start.elapsed();
    let path = path.display();
    assert!(ran.is_ok(), "{}: {path} breaks a promise", target.name);
    assert!(took < PATIENCE, "{}: {path} took {took:?}", target.name);
}
