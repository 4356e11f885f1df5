//! Counts how many modules of real programs can be evaluated.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::program::{Bound, Program, dispatch};
use gapscope_dependencies::{Dependencies, Limits};

/// Looks at each module of the folder GAPSCOPE_MODULES, with the default constants, small push constants and large buffers, and
/// prints for how many all bytes are exact, and why not.
#[test]
#[ignore = "needs modules: GAPSCOPE_MODULES=FOLDER, with files NAME.spv"]
fn modules_of_a_folder() {
    let folder = std::env::var("GAPSCOPE_MODULES").expect("GAPSCOPE_MODULES names a folder");
    let mut files: Vec<_> = (std::fs::read_dir(Path::new(&folder)).expect("the folder"))
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    let (mut exact, mut followed, mut slowest) = (0, 0, (0.0, String::new()));
    for file in &files {
        let spirv = std::fs::read(file).expect("a module");
        let begin = Instant::now();
        let reasons = reasons(&spirv);
        println!(
            "{} {} B: {:.2?} {reasons:?}",
            file.display(),
            spirv.len(),
            begin.elapsed()
        );
        let seconds = begin.elapsed().as_secs_f64();
        if seconds > slowest.0 {
            slowest = (seconds, file.display().to_string());
        }
        exact += usize::from(reasons.is_empty());
        followed += usize::from(reasons.iter().all(|reason| {
            reason.contains("beyond what is bound") || reason.contains("takes more")
        }));
        for reason in reasons {
            *causes.entry(reason).or_default() += 1;
        }
    }
    println!(
        "{} modules: {exact} exact, {followed} followed; slowest {slowest:?}",
        files.len()
    );
    for (cause, count) in causes {
        println!("{count:6} {cause}");
    }
}

/// Returns the reasons why bytes of a module are not exact.
fn reasons(spirv: &[u8]) -> Vec<String> {
    const BYTES: u64 = 1 << 30;
    let uniform = uniform_bindings(spirv);
    let mut program = Program::new(&[BYTES; 16]);
    let bound: Vec<Bound> = (0..16)
        .map(|buffer| Bound {
            uniform: uniform.contains(&buffer),
            bytes: if uniform.contains(&buffer) {
                1024
            } else {
                BYTES
            },
            ..program.whole(buffer)
        })
        .collect();
    for buffer in &uniform {
        let words: Vec<u8> = (0..256).flat_map(|_| 4_u32.to_le_bytes()).collect();
        program.content(*buffer, &words);
    }
    let kernel = program.kernel(spirv, &bound, &[], 256);
    let push = [64; 64];
    program.submit(0, vec![dispatch(kernel, [2, 2, 1], &push, &bound)]);
    let (capture, _folder) = program.finish();
    let limits = Limits {
        steps: 2_000_000,
        ..Limits::default()
    };
    let found = Dependencies::from_capture(&capture, limits, &mut |_| {});
    let node = &found.graph.nodes[0];
    let mut reasons: Vec<String> = (node.accesses.iter())
        .filter_map(|access| access.bound.clone())
        .chain(node.beyond.clone())
        .collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

/// Returns the bindings of variables in the storage class of uniform buffers.
fn uniform_bindings(spirv: &[u8]) -> Vec<u32> {
    let words: Vec<u32> = (spirv.as_chunks::<4>().0.iter())
        .map(|w| u32::from_le_bytes(*w))
        .collect();
    let (mut bindings, mut uniform) = (BTreeMap::new(), Vec::new());
    let mut at = 5;
    while at < words.len() {
        let length = (words[at] >> 16) as usize;
        match (words[at] & 0xffff, &words[at + 1..at + length.max(1)]) {
            (71, [id, 33, binding]) => drop(bindings.insert(*id, *binding)),
            (59, [_, id, 2, ..]) => uniform.push(*id),
            _ => {}
        }
        at += length.max(1);
    }
    (uniform.iter())
        .filter_map(|id| bindings.get(id).copied())
        .filter(|b| *b < 16)
        .collect()
}
