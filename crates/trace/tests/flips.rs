//! Flips a bit of a trace after it was written: reading it gives the same, or reports damage.

use gapscope_trace::synthetic::Synthetic;
use gapscope_trace::{DispatchPieces, Selection, read};
use std::fs;
use std::path::{Path, PathBuf};

const FLIPS: u64 = 250;

/// Returns the files of a trace with their contents.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("readable");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("readable");
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Pseudorandom numbers, the same in each run.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn no_flipped_bit_changes_what_is_read_in_silence() {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("a.gapscope");
    let synthetic = Synthetic {
        dispatches: 500,
        ..Synthetic::default()
    };
    synthetic.write(&folder).expect("written");
    let whole = read(&folder, &Selection::all()).expect("it opens");
    assert_eq!(whole.1, []);
    let files = files(&folder);
    let all: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let (mut state, mut said) = (7, 0);
    for flip in 0..FLIPS {
        // Flips alternate between any position and any file.
        let place = match flip % 2 {
            0 => next(&mut state) % all,
            _ => {
                let file = (next(&mut state) % files.len() as u64) as usize;
                let before = files[..file].iter().map(|(_, bytes)| bytes.len() as u64);
                before.sum::<u64>() + next(&mut state) % files[file].1.len() as u64
            }
        };
        let mut at = place as usize;
        let (path, bytes) = files
            .iter()
            .find(|(_, bytes)| {
                let here = at < bytes.len();
                at -= if here { 0 } else { bytes.len() };
                here
            })
            .expect("a place in a file");
        let bit = next(&mut state) % 8;
        let mut changed = bytes.clone();
        changed[at] ^= 1 << bit;
        fs::write(path, changed).expect("writable");
        let found = read(&folder, &Selection::all());
        match &found {
            Ok(found) if found.1.is_empty() => {
                assert!(
                    *found == whole,
                    "bit {bit} of byte {at} of {}",
                    path.display()
                )
            }
            _ => said += 1,
        }
        // Where nothing is reported, reading piece by piece gives the same too, as from an unchanged file.
        if let (Ok((trace, _)), true) = (&found, path.ends_with("dispatches.parquet"))
            && let Some(pieces) = DispatchPieces::open(&folder, &Selection::all())
        {
            let mut rows = 0;
            let told = pieces.each(trace, &mut |piece| {
                let until = rows + piece.kernel.len();
                assert_eq!(piece.kernel, whole.0.tables.dispatches.kernel[rows..until]);
                assert_eq!(
                    piece.start_ns.iter().collect::<Vec<_>>(),
                    whole
                        .0
                        .tables
                        .dispatches
                        .start_ns
                        .range(rows..until)
                        .collect::<Vec<_>>()
                );
                rows = until;
            });
            assert!(told.is_none() || rows == whole.0.tables.dispatches.kernel.len());
        }
        fs::write(path, bytes).expect("writable");
    }
    assert!(said > FLIPS * 9 / 10, "nearly every byte counts: {said}");
}
