//! Generates the traces of the ranks (processes of one program) of a fleet of machines: `cargo run -p gapscope-trace
//! --example fleet -- 256 20 OUT`, with the number of ranks, the number of steps that each runs, and the folder of
//! the new traces. Ranks of machine 8 are slow, rank 200 has a slow `softmax`, and the host of rank 17 is late.
#![forbid(unsafe_code)]

use gapscope_trace::synthetic::Fleet;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |at: usize| words.get(at)?.parse().ok();
    let (Some(ranks), Some(steps), Some(out)) = (numbers(0), numbers(1), words.get(2)) else {
        eprintln!("usage: fleet RANKS STEPS OUT");
        return ExitCode::from(2);
    };
    let fleet = Fleet {
        ranks,
        steps,
        slow_machine: Some(8),
        slow_kernel: Some(200),
        late_host: Some(17),
        ..Fleet::default()
    };
    match fleet.write(Path::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
