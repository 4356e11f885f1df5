//! Repeats a trace in time: `cargo run -p gapscope-trace --example repeat -- 516 IN.gapscope OUT.gapscope`.
#![forbid(unsafe_code)]

use gapscope_trace::synthetic::repeat;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [times, from, to] = arguments.as_slice() else {
        eprintln!("usage: repeat TIMES IN.gapscope OUT.gapscope");
        return ExitCode::from(2);
    };
    let Ok(times) = times.parse() else {
        eprintln!("repeat: {times} is not a number of repetitions");
        return ExitCode::from(2);
    };
    match repeat(Path::new(from), Path::new(to), times) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
