//! Time of `Findings::new` at 10^5, 10^6 and 10^7 dispatches. `cargo bench -p gapscope-analysis -- 1000000` for one size.
//!
//! The processor time beside it is of all threads, and tells what a machine that does other work meanwhile would take.

use gapscope_analysis::{Findings, Options};
use gapscope_trace::synthetic::Synthetic;
use std::time::Instant;

fn main() {
    // The sizes given as arguments; others, such as cargo's flags, are skipped.
    let given: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let sizes = match given.is_empty() {
        true => vec![100_000, 1_000_000, 10_000_000],
        false => given,
    };
    for size in sizes {
        let trace = Synthetic {
            dispatches: size,
            ..Synthetic::default()
        };
        let trace = trace.trace();
        let mut times: Vec<(f64, Option<f64>)> = (0..5)
            .map(|_| {
                let (begin, cpu) = (Instant::now(), processor_seconds());
                let findings = Findings::new(&trace, &Options::default());
                assert_eq!(findings.dispatch_count, size);
                let used = processor_seconds().zip(cpu).map(|(end, begin)| end - begin);
                (begin.elapsed().as_secs_f64(), used)
            })
            .collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (wall, [first, .., last]) = (times[2].0, times.as_slice()) else {
            unreachable!()
        };
        let cpu: Option<f64> = times.iter().map(|(_, cpu)| *cpu).sum();
        let cpu = cpu.map_or("unknown".to_owned(), |cpu| format!("{:.3} s", cpu / 5.0));
        println!(
            "{size:>9} dispatches: {wall:.3} s (median of 5, {:.3}..{:.3}), processor time {cpu} (mean)",
            first.0, last.0
        );
    }
}

/// Processor time of this process in seconds, to a hundredth. These are user and system time, counted in ticks of
/// 1/100 s. `None` where `/proc/self/stat` cannot be read.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}
