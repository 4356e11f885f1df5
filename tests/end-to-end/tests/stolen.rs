//! Measures how much of its processors' time the host of a virtual machine gave to other machines: a sample of a stack then costs ten times
//! as much, which no test can tell from a sampler that is slow.

use std::fs;

/// The share from which on tests of samplers do not judge. Elsewhere it is below 0.01.
const MUCH: f64 = 0.05;

/// The ticks at which a measurement began.
pub struct Stolen([f64; 2]);

impl Stolen {
    /// Begins a measurement.
    pub fn since_now() -> Stolen {
        Stolen(ticks())
    }

    /// Returns true where much was taken away since the measurement began, and says so.
    pub fn is_much(&self) -> bool {
        let now = ticks();
        let [ran, stolen] = [0, 1].map(|at| now[at] - self.0[at]);
        let is_much = stolen > 0.0 && stolen >= MUCH * (ran + stolen);
        if is_much {
            eprintln!(
                "not judged: other machines had {stolen} of {} ticks",
                ran + stolen
            );
        }
        is_much
    }
}

/// Returns for how many ticks the processors ran something, and for how many the host ran something else while they had something to run
/// (proc(5), `/proc/stat`: user, nice, system; steal).
fn ticks() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = stat.lines().next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = all.skip(1).map_while(|tick| tick.parse().ok()).collect();
    let sum = |places: &[usize]| places.iter().filter_map(|at| ticks.get(*at)).sum();
    [sum(&[0, 1, 2]), sum(&[7])]
}
