//! How often a comparison of one run a side calls equal programs changed where something disturbs the runs, and how often it finds a
//! planted change: `cargo run --release -p gapscope-comparison --example diff_disturbed -- PAIRS SEED TRACE.gapscope…`
//!
//! The dispatches of the traces go in, in their order. Each run of a pair takes them with noise of each kernel, drawn from the trace in
//! blocks of neighbours, and is then disturbed by itself. A table comes out, with a row for each kind of disturbance.
#![forbid(unsafe_code)]

use gapscope_comparison::diff::{Change, ChangeKind, Diff, Options, RunDigest, Verdict};
use gapscope_timeline::Timeline;
use gapscope_trace::tables::{Dispatches, Kernels};
use gapscope_trace::{Selection, Trace, read};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;

/// The number of dispatches of a run.
const DISPATCHES: usize = 1200;
/// The number of neighbouring dispatches whose noise is drawn together.
const BLOCK: usize = 20;

/// A dispatch of a run.
#[derive(Clone)]
struct Launch {
    kernel: usize,
    us: f64,
    /// The idle time before it.
    pause_us: f64,
}

/// The dispatches of a trace in order of time, with the noise of each kernel.
struct Series {
    kernels: Vec<String>,
    launches: Vec<(usize, f64)>,
    /// By how much the logarithms of the times of successive dispatches of about one size differ, for each kernel.
    noise: Vec<Vec<f64>>,
}

impl Series {
    fn new(path: &str) -> Series {
        let selection = Selection::default()
            .columns::<Dispatches>(&["kernel", "start_ns", "duration_ns"])
            .columns::<Kernels>(&["id", "name"]);
        let (trace, _) = read(Path::new(path), &selection).expect("it is a trace");
        let (rows, named) = (&trace.tables.dispatches, &trace.tables.kernels);
        let names: HashMap<u32, String> = (named.id.iter().zip(&named.name))
            .map(|(id, name)| (id.0, name.to_string()))
            .collect();
        let mut timed: Vec<(i64, u32, i64)> = (rows.start_ns.iter().zip(&rows.kernel))
            .zip(&rows.duration_ns)
            .filter_map(|((start, kernel), took)| {
                Some((start?, kernel.0, took.filter(|ns| *ns > 0)?))
            })
            .collect();
        timed.sort_unstable();
        let mut series = Series {
            kernels: Vec::new(),
            launches: Vec::new(),
            noise: Vec::new(),
        };
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut last: Vec<Option<f64>> = Vec::new();
        for (_, kernel, ns) in timed {
            let name = names.get(&kernel).map_or("unknown", String::as_str);
            let kernel = *numbers.entry(name).or_insert_with(|| {
                series.kernels.push(name.to_owned());
                series.noise.push(Vec::new());
                last.push(None);
                last.len() - 1
            });
            let us = ns as f64 / 1e3;
            if let Some(last) = last[kernel] {
                let apart = f64::ln(us / last);
                if apart.abs() < std::f64::consts::LN_2 {
                    series.noise[kernel].push(apart / std::f64::consts::SQRT_2);
                }
            }
            last[kernel] = Some(us);
            series.launches.push((kernel, us));
        }
        series
    }

    /// Returns the dispatches in their order, each with noise of its kernel: neighbours keep their neighbours' noise.
    fn drawn(&self, random: &mut Random) -> Vec<Launch> {
        let mut left: Vec<(usize, usize)> = vec![(0, 0); self.kernels.len()];
        let launches = (0..DISPATCHES).map(|at| self.launches[at % self.launches.len()]);
        launches
            .map(|(kernel, us)| {
                let noise = &self.noise[kernel];
                let (place, rest) = &mut left[kernel];
                if *rest == 0 {
                    (*place, *rest) = (random.below(noise.len().max(1)), BLOCK);
                }
                let by = noise
                    .get(*place % noise.len().max(1))
                    .copied()
                    .unwrap_or(0.0);
                (*place, *rest) = (*place + 1, *rest - 1);
                Launch {
                    kernel,
                    us: us * by.exp(),
                    pause_us: 2.0,
                }
            })
            .collect()
    }

    /// Returns the kernel that takes most of the time of a run, and the one that takes the least of those that run in it at least
    /// 12 times and take a hundredth of it.
    fn planted(&self) -> [usize; 2] {
        let mut sums = vec![(0.0, 0); self.kernels.len()];
        for at in 0..DISPATCHES {
            let (kernel, us) = self.launches[at % self.launches.len()];
            sums[kernel].0 += us;
            sums[kernel].1 += 1;
        }
        let whole: f64 = sums.iter().map(|(us, _)| us).sum();
        let mut often: Vec<usize> = (0..sums.len())
            .filter(|kernel| sums[*kernel].1 >= 12 && sums[*kernel].0 >= whole / 100.0)
            .collect();
        often.sort_by(|a, b| sums[*a].0.total_cmp(&sums[*b].0));
        [often[often.len() - 1], often[0]]
    }
}

/// Pseudorandom numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns a number of Pareto's distribution, whose mean is ten times its least value of 1 and whose variance is infinite.
    fn pareto(&mut self) -> f64 {
        self.unit().powf(-0.9)
    }
}

/// The record of the machine in a run.
#[derive(Default)]
struct MachineRecord {
    /// The share of the time in which tasks waited for a processor.
    waited: Option<f64>,
    /// The clocks of the GPU at the start and at the end in MHz.
    clocks: Option<[f64; 2]>,
}

/// The disturbance of a pair of runs.
#[derive(Clone, Copy)]
enum Disturbance {
    /// Runs differ by 1 %, as those of a quiet GPU do.
    Quiet,
    /// Times rise or fall by up to 4 % from the start of a run to its end, too.
    Drift,
    /// Up to three bursts of other work a run make 20 to 100 dispatches take 1.5 to 4 times as long.
    Bursts,
    /// A software GPU, whose processors other programs use for stretches of a tenth of the run.
    Pressure,
    /// A GPU that gets hot slows down by up to 8 % in each run, and goes on to do so between the runs.
    Throttling,
    /// The same, and the clocks were recorded.
    ThrottlingWithClocks,
    /// Each run has a clock of its own, up to a tenth below the greatest, which was not recorded.
    OtherClocks,
    /// Every fiftieth dispatch waits for 20 µs at least, and every fiftieth is interrupted; the time has no variance.
    Pauses,
}

const DISTURBANCES: [(&str, Disturbance); 8] = [
    ("quiet", Disturbance::Quiet),
    ("drift", Disturbance::Drift),
    ("bursts", Disturbance::Bursts),
    ("pressure", Disturbance::Pressure),
    ("throttling", Disturbance::Throttling),
    (
        "throttling, clocks recorded",
        Disturbance::ThrottlingWithClocks,
    ),
    ("other clocks", Disturbance::OtherClocks),
    ("pauses", Disturbance::Pauses),
];

impl Disturbance {
    /// Disturbs both runs, and returns what is recorded of the machine in each.
    fn disturb(self, pair: [&mut Vec<Launch>; 2], random: &mut Random) -> [MachineRecord; 2] {
        let slope = random.between(0.0, 0.08);
        let rest = random.between(0.0, 1.0);
        let mut side = 0.0;
        pair.map(|run| {
            let all = (0.01 * random.normal()).exp();
            run.iter_mut().for_each(|launch| launch.us *= all);
            let waited = self.disturb_run(run, random);
            if matches!(
                self,
                Disturbance::Throttling | Disturbance::ThrottlingWithClocks
            ) {
                let length = run.len() as f64;
                for (at, launch) in run.iter_mut().enumerate() {
                    launch.us *= 1.0 + slope * (at as f64 / length + side * (1.0 + rest));
                }
            }
            let slower = |at: f64| 1.0 + slope * (at + side * (1.0 + rest));
            let clocks = [0.0, 1.0].map(|at| 1980.0 / slower(at));
            side += 1.0;
            MachineRecord {
                waited,
                clocks: Some(clocks).filter(|_| matches!(self, Disturbance::ThrottlingWithClocks)),
            }
        })
    }

    fn disturb_run(self, run: &mut [Launch], random: &mut Random) -> Option<f64> {
        let length = run.len();
        match self {
            Disturbance::Quiet | Disturbance::Throttling | Disturbance::ThrottlingWithClocks => {
                None
            }
            Disturbance::OtherClocks => {
                let slower = random.between(1.0, 1.1);
                run.iter_mut().for_each(|launch| launch.us *= slower);
                None
            }
            Disturbance::Drift => {
                let slope = random.between(-0.02, 0.02);
                for (at, launch) in run.iter_mut().enumerate() {
                    launch.us *= 1.0 + slope * (2.0 * at as f64 / length as f64 - 1.0);
                }
                None
            }
            Disturbance::Bursts => {
                for _ in 0..random.below(4) {
                    let (start, times) = (random.below(length), random.between(1.5, 4.0));
                    let end = (start + 20 + random.below(81)).min(length);
                    run[start..end]
                        .iter_mut()
                        .for_each(|launch| launch.us *= times);
                }
                None
            }
            Disturbance::Pressure => {
                let busy = random.unit();
                let (mut taken, mut waited, mut total) = (0.0, 0.0, 0.0);
                for (at, launch) in run.iter_mut().enumerate() {
                    if at % (length / 10) == 0 {
                        taken = match random.unit() < busy {
                            true => random.between(0.1, 0.67),
                            false => 0.0,
                        };
                    }
                    let longer = launch.us / (1.0 - taken);
                    waited += longer - launch.us;
                    total += longer;
                    launch.us = longer;
                }
                // What the kernel counts as waiting is less exact than the time that was lost.
                Some(f64::min(1.0, waited / total * random.between(0.8, 2.0)))
            }
            Disturbance::Pauses => {
                for launch in run {
                    if random.below(50) == 0 {
                        launch.pause_us += (20.0 * random.pareto()).min(1e5);
                    }
                    if random.below(50) == 0 {
                        launch.us += (20.0 * random.pareto()).min(1e5);
                    }
                }
                None
            }
        }
    }
}

/// The change that is planted in the run after.
#[derive(Clone, Copy)]
enum Planted {
    Nothing,
    /// All dispatches take longer.
    All(f64),
    /// The kernel that takes most of the time takes longer.
    Greatest(f64),
    /// A small kernel takes longer.
    Small(f64),
}

const PLANTED: [(&str, Planted); 10] = [
    ("equal", Planted::Nothing),
    ("all × 1.03", Planted::All(1.03)),
    ("all × 1.1", Planted::All(1.1)),
    ("all × 1.2", Planted::All(1.2)),
    ("all × 1.3", Planted::All(1.3)),
    ("all × 1.5", Planted::All(1.5)),
    ("all × 2", Planted::All(2.0)),
    ("greatest × 1.3", Planted::Greatest(1.3)),
    ("greatest × 1.5", Planted::Greatest(1.5)),
    ("small × 1.3", Planted::Small(1.3)),
];

/// The answer of a comparison.
struct ComparisonAnswer {
    /// The figures that were told as changed, of equal programs, or whether the planted change was told.
    changed: Vec<String>,
    is_told: bool,
    is_beside: bool,
}

fn trial(
    series: &Series,
    disturbance: Disturbance,
    planted: Planted,
    seed: u64,
) -> ComparisonAnswer {
    let mut random = Random(seed);
    let [mut before, mut after] = [series.drawn(&mut random), series.drawn(&mut random)];
    let [first, second] = disturbance.disturb([&mut before, &mut after], &mut random);
    let [greatest, small] = series.planted();
    let (kernel, factor) = match planted {
        Planted::Nothing => (None, 1.0),
        Planted::All(factor) => (None, factor),
        Planted::Greatest(factor) => (Some(greatest), factor),
        Planted::Small(factor) => (Some(small), factor),
    };
    for launch in &mut after {
        if kernel.is_none_or(|kernel| kernel == launch.kernel) {
            launch.us *= factor;
        }
    }
    let digest = |run: &[Launch], surroundings: &MachineRecord| {
        let trace = trace(series, run, surroundings);
        let timeline = Timeline::new(&trace);
        let mut digest = RunDigest::new(&timeline, "run", &[]);
        digest.note_surroundings(&timeline);
        digest
    };
    let (before, after) = (digest(&before, &first), digest(&after, &second));
    let diff = Diff::new(&[before], &[after], &Options::default());
    let is_changed = |change: &&Change| change.significant || change.has_typical_change();
    let changed: Vec<&Change> = diff.changes.iter().filter(is_changed).collect();
    let name = kernel.map(|kernel| &series.kernels[kernel]);
    let is_planted =
        |change: &&&Change| change.kind == ChangeKind::Kernel && Some(&change.name) == name;
    ComparisonAnswer {
        is_told: match kernel {
            None => diff.verdict == Verdict::Slower,
            Some(_) => changed.iter().any(|change| is_planted(&change)),
        },
        is_beside: (changed.iter())
            .any(|change| change.kind == ChangeKind::Kernel && !is_planted(&change)),
        changed: changed.iter().map(|change| change.what.clone()).collect(),
    }
}

/// Makes the trace of a run.
fn trace(series: &Series, run: &[Launch], surroundings: &MachineRecord) -> Trace {
    let device = match surroundings.waited {
        Some(_) => "llvmpipe (LLVM 15.0.6, 256 bits)",
        None => "NVIDIA H100",
    };
    let mut text = format!(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=1000s
         process id=1 pid=10
         device id=1 process=1 name=\"{device}\" uuid=aa clock.error_ns=0
         queue id=1 device=1\n"
    );
    if let Some(waited) = surroundings.waited {
        text += "counter id=1 name=\"machine stalled on cpu (some)\" unit=percent source=/proc/pressure/cpu\n";
        let _ = writeln!(
            text,
            "counter_value counter=1 start_ns=0 value={}",
            100.0 * waited
        );
    }
    for kernel in 0..series.kernels.len() {
        let _ = writeln!(text, "kernel id={} process=1 name=k{kernel}", kernel + 1);
    }
    let mut at_us = 1000.0;
    for (id, launch) in run.iter().enumerate() {
        at_us += launch.pause_us;
        let (start, took) = ((at_us * 1e3) as i64, ((launch.us * 1e3) as i64).max(1));
        let _ = write!(
            text,
            "submission id={0} process=1 queue=1 kind=kernel thread=7 start_ns={1} duration_ns=3us
             dispatch submission={0} queue=1 kernel={2} start_ns={start} duration_ns={took}\n",
            id + 1,
            start - 8000,
            launch.kernel + 1
        );
        at_us += launch.us;
    }
    if let Some(clocks) = surroundings.clocks {
        text += "counter id=2 name=\"SM clock\" unit=hertz source=nvml device=1\n";
        for at in 0..=20 {
            let part = f64::from(at) / 20.0;
            let hertz = 1e6 * (clocks[0] + (clocks[1] - clocks[0]) * part);
            let _ = writeln!(
                text,
                "counter_value counter=2 start_ns={} value={hertz:.0}",
                (at_us * part * 1e3) as i64
            );
        }
    }
    Trace::from_text(&text).expect("it is a trace")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pairs, seed, traces @ ..] = arguments.as_slice() else {
        panic!("PAIRS SEED TRACE…");
    };
    let [pairs, first_seed] = [pairs, seed].map(|number| {
        number
            .parse::<u64>()
            .expect("a number of pairs, and a seed")
    });
    let mut all: Vec<Series> = traces.iter().map(|trace| Series::new(trace)).collect();
    // Kernels go by numbers in the traces that are made.
    for series in &mut all {
        let names = 0..series.kernels.len();
        series.kernels = names.map(|kernel| format!("k{kernel}")).collect();
    }
    let heads = PLANTED.map(|(name, _)| name);
    println!("| disturbance | {} | beside |", heads.join(" | "));
    println!("|---|{}---|", "---|".repeat(heads.len()));
    for (name, disturbance) in DISTURBANCES {
        let mut cells = Vec::new();
        let mut beside = 0;
        for (_, planted) in PLANTED {
            let is_equal = matches!(planted, Planted::Nothing);
            let pairs = if is_equal { pairs } else { (pairs / 4).max(1) };
            let all = &all;
            let told: Vec<ComparisonAnswer> = std::thread::scope(|scope| {
                let half = |first: u64| {
                    scope.spawn(move || {
                        let seeds = (first..pairs).step_by(2);
                        let one = |seed: u64| {
                            trial(
                                &all[seed as usize % all.len()],
                                disturbance,
                                planted,
                                1000 * seed + first_seed,
                            )
                        };
                        seeds.map(one).collect::<Vec<ComparisonAnswer>>()
                    })
                };
                let halves = [half(0), half(1)];
                halves
                    .into_iter()
                    .flat_map(|half| half.join().expect("a trial does not fail"))
                    .collect()
            });
            let right = match is_equal {
                true => told.iter().filter(|told| !told.changed.is_empty()).count(),
                false => told.iter().filter(|told| told.is_told).count(),
            };
            if matches!(planted, Planted::Greatest(_) | Planted::Small(_)) {
                beside += told.iter().filter(|told| told.is_beside).count();
            }
            cells.push(format!("{right} of {pairs}"));
        }
        println!("| {name} | {} | {beside} |", cells.join(" | "));
    }
}
