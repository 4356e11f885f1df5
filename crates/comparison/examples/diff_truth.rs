//! How often a comparison of runs tells of a change that is not there, and how often it finds one that is:
//! `cargo run --release -p gapscope-comparison --example diff_truth -- [TRIALS]`, as JSON.
#![forbid(unsafe_code)]

use gapscope_comparison::diff::{ChangeKind, Diff, Gate, GateStatus, Options, RunDigest};
use gapscope_timeline::Timeline;
use gapscope_trace::synthetic::{Repeated, Spread};
use serde_json::{Value, json};

/// A setting of the simulation. A/A means that both sides run the same.
struct Setting {
    name: &'static str,
    /// The number of runs on each side.
    runs: u32,
    /// Whether the sides take turns; else all runs before come first.
    in_turns: bool,
    kernels: u32,
    /// The kernel that is slower on the side after, and by which factor; `None` for A/A.
    slower: Option<(u32, f64)>,
    /// How much times vary.
    spread: Spread,
}

fn main() {
    let trials = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(400);
    let usual = Setting {
        name: "A/A, 5 runs a side, in turns",
        runs: 5,
        in_turns: true,
        kernels: 10,
        slower: None,
        spread: Spread::default(),
    };
    let slow = Some((1, 1.02));
    let settings = [
        Setting {
            name: "A/A, 5 runs a side, one side after the other, no drift",
            in_turns: false,
            spread: Spread {
                drift: 0.0,
                ..Spread::default()
            },
            ..usual
        },
        Setting {
            name: "A/A, 2 runs a side",
            runs: 2,
            ..usual
        },
        Setting {
            name: "A/A, 1 run a side",
            runs: 1,
            ..usual
        },
        Setting {
            name: "A/A, 5 runs a side, noisy machine (3 % from run to run)",
            spread: Spread {
                run: 0.03,
                kernel: 0.01,
                drift: 0.002,
                neighbours: 0.05,
                dispatch: 0.1,
            },
            ..usual
        },
        Setting {
            name: "A/A, 5 runs a side, 40 kernels",
            kernels: 40,
            ..usual
        },
        Setting {
            name: "one kernel 2 % slower, 5 runs a side, in turns",
            slower: slow,
            ..usual
        },
        Setting {
            name: "one kernel 2 % slower, 5 runs a side, 40 kernels",
            slower: slow,
            kernels: 40,
            ..usual
        },
        Setting {
            name: "one kernel 2 % slower, 3 runs a side",
            slower: slow,
            runs: 3,
            ..usual
        },
        Setting {
            name: "one kernel 20 % slower, 1 run a side",
            slower: Some((1, 1.2)),
            runs: 1,
            ..usual
        },
    ];
    let rows: Vec<Value> = std::iter::once(&usual)
        .chain(&settings)
        .map(|setting| measure(setting, trials))
        .collect();
    println!("{}", Value::Array(rows));
}

/// Does a number of trials in two threads, and returns how many of them told what.
fn measure(setting: &Setting, trials: u64) -> Value {
    let halves = std::thread::scope(|scope| {
        let half = |first: u64| {
            scope.spawn(move || {
                (first..trials)
                    .step_by(2)
                    .map(|trial| Trial::new(setting, trial))
                    .collect::<Vec<_>>()
            })
        };
        let (one, other) = (half(0), half(1));
        [one, other].map(|half| half.join().expect("a trial does not fail"))
    });
    let all: Vec<Trial> = halves.into_iter().flatten().collect();
    let count = |of: fn(&Trial) -> bool| all.iter().filter(|trial| of(trial)).count();
    json!({
        "setting": setting.name,
        "planted": setting.slower.is_some(),
        "trials": trials,
        "alarms": count(|trial| trial.alarm),
        "found": count(|trial| trial.found),
        "false_beside": count(|trial| trial.beside),
        "gates_broken": count(|trial| trial.gate),
        "intervals_that_hold": count(|trial| trial.holds),
        "tested": all.iter().map(|trial| trial.tested).max(),
    })
}

/// What one comparison told.
struct Trial {
    /// It told of any change.
    alarm: bool,
    /// It told of the change of the kernel that was planted.
    found: bool,
    /// It told of a change of a kernel that has none.
    beside: bool,
    /// The gate (a limit that a user sets) was broken: the planted kernel takes over 1 % longer.
    gate: bool,
    /// The interval of the planted kernel's time holds the true ratio.
    holds: bool,
    /// The number of differences that were tested.
    tested: u64,
}

impl Trial {
    /// Makes both sides' runs of a trial, whose number seeds the noise, and compares them.
    fn new(setting: &Setting, trial: u64) -> Trial {
        let run = |place: u32, slower| {
            let of = Repeated {
                kernels: setting.kernels,
                evaluations: 100,
                program: trial,
                run: trial * 1_000 + u64::from(place) + 1,
                place,
                slower,
                spread: setting.spread,
            };
            let trace = of.trace();
            RunDigest::new(&Timeline::new(&trace), &format!("run {place}"), &[])
        };
        let place = |side: u32, run: u32| match setting.in_turns {
            true => 2 * run + side,
            false => side * setting.runs + run,
        };
        let side = |side: u32, slower: Option<(u32, f64)>| -> Vec<RunDigest> {
            (0..setting.runs)
                .map(|number| run(place(side, number), slower))
                .collect()
        };
        let (before, after) = (side(0, None), side(1, setting.slower));
        let planted = Repeated::kernel_name(setting.slower.map_or(1, |(kernel, _)| kernel));
        let options = Options {
            gates: vec![Gate::parse(&format!("kernel({planted}) > 1%")).expect("it is a gate")],
            ..Options::default()
        };
        let diff = Diff::new(&before, &after, &options);
        let mut told = Trial {
            alarm: false,
            found: false,
            beside: false,
            gate: diff.gates[0].status == GateStatus::Broken,
            holds: false,
            tested: diff.method.comparisons,
        };
        let truth = setting.slower.map_or(1.0, |(_, factor)| factor);
        for change in &diff.changes {
            let significant = change.significant
                || change
                    .typical
                    .as_ref()
                    .is_some_and(|typical| typical.significant);
            told.alarm |= significant;
            if change.kind == ChangeKind::Kernel {
                let is_planted = change.name == planted;
                told.found |= significant && is_planted;
                told.beside |= significant && !is_planted;
                if is_planted {
                    let (low, high) = (
                        change.low.unwrap_or(0.0),
                        change.high.unwrap_or(f64::INFINITY),
                    );
                    told.holds = low <= truth && truth <= high;
                }
            }
        }
        told
    }
}
