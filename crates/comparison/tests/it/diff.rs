//! Text traces of a loop -> comparisons of runs of it.

mod losses;
mod noise;

use gapscope_comparison::diff::{Diff, Gate, Options, RunDigest, Verdict};
use gapscope_timeline::Timeline;
use gapscope_trace::Trace;

/// A kernel of a loop: its name, its microseconds, and other columns.
#[derive(Clone, Copy)]
struct Kernel {
    name: &'static str,
    us: f64,
    /// Workgroups and the threads of each; 0 where they are not known.
    groups: u32,
    local: u32,
    /// The hash of the code; empty where it is not known.
    source: &'static str,
    /// True for a kernel that runs outside of the loop's label.
    outside: bool,
}

const fn kernel(name: &'static str, us: f64) -> Kernel {
    Kernel {
        name,
        us,
        groups: 0,
        local: 0,
        source: "",
        outside: false,
    }
}

impl Kernel {
    const fn sized(self, groups: u32, local: u32) -> Kernel {
        Kernel {
            groups,
            local,
            ..self
        }
    }

    const fn coded(self, source: &'static str) -> Kernel {
        Kernel { source, ..self }
    }
}

/// A loop that launches kernels one after the other in each step.
#[derive(Clone)]
struct Loop {
    kernels: Vec<Kernel>,
    steps: u32,
    /// The time between two steps in which nothing is submitted.
    pause_ns: i64,
    /// The bytes that each dispatch reads; 0 where they are not known.
    bound: u32,
    device: &'static str,
    /// The part of the time in which tasks waited for a processor, in per cent.
    waited: Option<u32>,
    /// The clock of the GPU in MHz; `None` where it was not recorded.
    clock: Option<u32>,
    /// By how much longer the kernels take at the start and at the end of the run, as a GPU that gets hot.
    heat: [f64; 2],
    /// The API that the device was used through.
    api: &'static str,
    /// Losses of the trace, as rows of its text.
    losses: &'static str,
    /// Another number gives other noise.
    seed: u32,
}

fn looped(kernels: &[Kernel]) -> Loop {
    Loop {
        kernels: kernels.to_vec(),
        steps: 50,
        pause_ns: 20_000,
        bound: 0,
        device: "NVIDIA H100",
        waited: None,
        clock: Some(1980),
        heat: [0.0; 2],
        api: "vulkan",
        losses: "",
        seed: 1,
    }
}

impl Loop {
    fn trace(&self) -> Trace {
        let mut text = format!(
            "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
             process id=1 pid=10
             {}
             device id=1 process=1 api={} name=\"{}\" uuid=aa clock.error_ns=0
             queue id=1 device=1
             label id=1 text=step
             buffer id=1 process=1 device=1 bytes={}
             binding id=1 buffer=1 bytes={} access=read\n",
            self.losses, self.api, self.device, self.bound, self.bound
        );
        for (at, kernel) in self.kernels.iter().enumerate() {
            let id = at + 1;
            text += &format!("kernel id={id} process=1 name={}", kernel.name);
            if kernel.local > 0 {
                text += &format!(" local_x={} local_y=1 local_z=1", kernel.local);
            }
            if !kernel.source.is_empty() {
                text += &format!(" source={} entry_point=main", kernel.source);
            }
            text.push('\n');
        }
        if let Some(waited) = self.waited {
            text += "counter id=1 name=\"machine stalled on cpu (some)\" unit=percent source=/proc/pressure/cpu\n";
            text += &format!("counter_value counter=1 start_ns=0 value={waited}\n");
        }
        let mut random = self.seed;
        let mut at_ns = 1_000_000;
        let mut id = 0;
        for step in 0..self.steps {
            let part = f64::from(step) / f64::from(self.steps);
            let hot = 1.0 + self.heat[0] + (self.heat[1] - self.heat[0]) * part;
            let begin_ns = at_ns;
            for (row, kernel) in self.kernels.iter().enumerate() {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = 1.0 + (f64::from(random >> 16) / 65_536.0 - 0.5) * 0.03;
                let ns = (kernel.us * 1e3 * noise * hot) as i64;
                id += 1;
                text += &format!(
                    "submission id={id} process=1 queue=1 kind=kernel thread=7 start_ns={} duration_ns=3us\n\
                     dispatch submission={id} queue=1 kernel={} start_ns={at_ns} duration_ns={ns}",
                    at_ns - 15_000,
                    row + 1
                );
                if kernel.groups > 0 {
                    text += &format!(" groups_x={} groups_y=1 groups_z=1", kernel.groups);
                }
                if !kernel.outside {
                    text += " label=1";
                }
                if self.bound > 0 {
                    text += " bindings=1";
                }
                text.push('\n');
                at_ns += ns + 2_000;
            }
            at_ns += self.pause_ns;
            text += &format!(
                "marker process=1 label=1 scope=thread thread=7 start_ns={} duration_ns={}\n",
                begin_ns - 20_000,
                at_ns - begin_ns
            );
        }
        if let Some(clock) = self.clock {
            text += "counter id=2 name=\"SM clock\" unit=hertz source=nvml device=1\n";
            for part in 0..20 {
                let start_ns = at_ns * part / 20;
                text +=
                    &format!("counter_value counter=2 start_ns={start_ns} value={clock}000000\n");
            }
        }
        Trace::from_text(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn digest(&self) -> RunDigest {
        let trace = self.trace();
        let timeline = Timeline::new(&trace);
        let mut digest = RunDigest::new(&timeline, "run", &[]);
        digest.note_surroundings(&timeline);
        digest
    }
}

fn diff(before: &Loop, after: &Loop, gates: &[&str]) -> Diff {
    let after = Loop {
        seed: after.seed + 1,
        ..after.clone()
    };
    let options = Options {
        gates: gates
            .iter()
            .map(|text| Gate::parse(text).unwrap())
            .collect(),
        ..Options::default()
    };
    Diff::new(&[before.digest()], &[after.digest()], &options)
}

/// Everything that a comparison says of verdict, work and matching.
fn said(diff: &Diff) -> String {
    let work = diff.equal_work.sentences.iter();
    let all = [&diff.sentence]
        .into_iter()
        .chain(work)
        .chain(&diff.matched);
    all.map(String::as_str).collect::<Vec<_>>().join("\n")
}

const GEMM: Kernel = kernel("gemm", 400.0);
const SOFTMAX: Kernel = kernel("softmax", 100.0);
const ADD: Kernel = kernel("add", 50.0);

/// The three kernels with sizes, and all times times a factor.
fn sized(groups: u32, local: u32, times: f64) -> Loop {
    let kernels = [GEMM, SOFTMAX, ADD].map(|kernel| Kernel {
        us: kernel.us * times,
        ..kernel.sized(groups, local)
    });
    looped(&kernels)
}

#[test]
fn workgroups_and_their_sizes_are_part_of_equal_work() {
    let base = sized(1000, 256, 1.0);
    let bound = |looped: Loop| Loop {
        bound: 4096,
        ..looped
    };
    let gemm_only =
        |kernel: Kernel| looped(&[kernel, SOFTMAX.sized(1000, 256), ADD.sized(1000, 256)]);
    for (what, before, after, equal, text) in [
        ("the same", base.clone(), base.clone(), Some(true), ""),
        (
            "half the batch",
            base.clone(),
            sized(500, 256, 0.5),
            Some(false),
            "All 3 kernels ran in fewer workgroups of the same size",
        ),
        (
            "half the batch in the same time",
            base.clone(),
            sized(500, 256, 1.0),
            Some(false),
            "workgroups 3,000 → 1,500, threads 768,000 → 384,000",
        ),
        (
            "twice the block and half the grid",
            base.clone(),
            sized(500, 512, 0.9),
            Some(true),
            "Launched in another shape, with as many threads: `gemm` as 500 workgroups of 512 threads instead of 1,000 of 256",
        ),
        (
            "one kernel does more in a thread",
            base.clone(),
            gemm_only(GEMM.sized(250, 256)),
            None,
            "`gemm` as 250 workgroups of 256 threads instead of 1,000. Whether that is other work, or the same work in other threads, is not known.",
        ),
        (
            "all kernels do more in a thread, in other workgroups",
            base.clone(),
            sized(250, 512, 0.9),
            None,
            "The work may not be equal",
        ),
        (
            "fewer threads with the same bytes bound",
            bound(base.clone()),
            bound(sized(500, 256, 0.5)),
            None,
            "The work may not be equal",
        ),
        (
            "the only kernel",
            looped(&[GEMM.sized(1000, 256)]),
            looped(&[GEMM.sized(500, 256)]),
            None,
            "The work may not be equal",
        ),
        (
            "another code that does more in a thread",
            looped(&[
                GEMM.sized(1000, 256).coded("aa"),
                ADD.sized(1000, 256).coded("bb"),
            ]),
            looped(&[
                GEMM.sized(500, 256).coded("cc"),
                ADD.sized(500, 256).coded("dd"),
            ]),
            None,
            "The work may not be equal",
        ),
        (
            "workgroups of unknown size",
            sized(1000, 0, 1.0),
            sized(500, 0, 1.0),
            None,
            "`gemm` as 500 workgroups instead of 1,000",
        ),
        (
            "nothing known of sizes",
            looped(&[GEMM, SOFTMAX]),
            looped(&[kernel("gemm", 200.0), kernel("softmax", 50.0)]),
            Some(true),
            "How much each dispatch did is not known: less work would look the same.",
        ),
        (
            "one kernel less",
            base.clone(),
            looped(&[GEMM.sized(1000, 256), SOFTMAX.sized(1000, 256)]),
            Some(false),
            "dispatches 3 → 2",
        ),
        (
            "fused",
            base.clone(),
            looped(&[
                GEMM.sized(1000, 256),
                kernel("fused_softmax_add", 110.0).sized(500, 256),
            ]),
            None,
            "became `fused_softmax_add`: whether the kernels after do the same work is not known",
        ),
    ] {
        let diff = diff(&before, &after, &[]);
        let said = said(&diff);
        assert_eq!(diff.equal_work.equal, equal, "{what}: {said}");
        assert!(said.contains(text), "{what}: {said}");
        let starts = match equal {
            Some(true) => "",
            Some(false) => "The work is not equal.",
            None => "The work may not be equal.",
        };
        assert!(diff.sentence.starts_with(starts), "{what}: {said}");
    }
}

#[test]
fn half_of_the_work_is_not_called_faster_without_a_word() {
    let diff = diff(&sized(1000, 256, 1.0), &sized(500, 256, 0.5), &[]);
    assert_eq!(diff.verdict, Verdict::Faster);
    assert!(
        diff.sentence.starts_with("The work is not equal. 1."),
        "{}",
        diff.sentence
    );
}

#[test]
fn a_kernel_that_got_another_name_is_compared() {
    let before = looped(&[GEMM, SOFTMAX.coded("5f5f")]);
    let renamed =
        |us: f64, source: &'static str| looped(&[GEMM, kernel("softmax_v2", us).coded(source)]);
    for (after, matched, text) in [
        (
            renamed(130.0, "5f5f"),
            "same-code",
            "`softmax_v2` (before: `softmax`) takes 30.",
        ),
        (
            renamed(130.0, "6a6a"),
            "replaced",
            "`softmax` became `softmax_v2`, takes 30.",
        ),
        (
            renamed(100.0, "5f5f"),
            "same-code",
            "`softmax` is compared with `softmax_v2`: their code is the same.",
        ),
    ] {
        let diff = diff(&before, &after, &[]);
        let said = said(&diff);
        let json = serde_json::to_value(&diff.changes).unwrap();
        let mut changes = json.as_array().unwrap().iter();
        let change = changes
            .find(|change| change["name"] == "softmax_v2")
            .unwrap();
        assert_eq!(change["matched"], matched);
        assert_eq!(change["before_names"], serde_json::json!(["softmax"]));
        assert!(said.contains(text), "{said}");
        assert!(!said.contains("new") && !said.contains("gone"), "{said}");
        assert_eq!(diff.equal_work.equal, Some(true));
    }
}

#[test]
fn one_kernel_under_two_labels_is_named_once() {
    let outside = |us: f64| Kernel {
        outside: true,
        ..kernel("gemm", us)
    };
    let before = looped(&[GEMM, SOFTMAX, outside(300.0)]);
    let after = looped(&[kernel("gemm", 200.0), SOFTMAX]);
    let first = diff(&before, &after, &[]);
    assert_eq!(
        first.sentence.matches("`gemm`").count(),
        1,
        "{}",
        first.sentence
    );
    let text = "`gemm` no longer runs outside of labels (15.";
    assert!(first.sentence.contains(text), "{}", first.sentence);
    assert!(
        first.sentence.contains("takes 0.50 × as long under `step`"),
        "{}",
        first.sentence
    );
    let second = diff(&after, &before, &[]);
    assert_eq!(
        second.sentence.matches("`gemm`").count(),
        1,
        "{}",
        second.sentence
    );
    assert!(
        second.sentence.contains("is new outside of labels"),
        "{}",
        second.sentence
    );
}

#[test]
fn what_noise_hides_could_not_be_told_apart() {
    let base = looped(&[GEMM, SOFTMAX]);
    let diff = diff(&base, &base, &[]);
    assert_eq!(diff.verdict, Verdict::NoDifference);
    let text = "the two sides could not be told apart (";
    assert!(diff.sentence.contains(text), "{}", diff.sentence);
    let text = "these runs could show only changes above 4";
    assert!(diff.sentence.contains(text), "{}", diff.sentence);
    assert!(!diff.sentence.contains("as before"), "{}", diff.sentence);
    let wall = diff
        .changes
        .iter()
        .find(|change| change.name == "wall_time");
    let least = wall.unwrap().least_ratio_told.unwrap();
    assert!((1.03..1.06).contains(&least), "{least}");
}

#[test]
fn no_figure_is_less_than_nothing() {
    let before = looped(&[GEMM, SOFTMAX, ADD]);
    let after = looped(&[GEMM, SOFTMAX]);
    for diff in [
        diff(&before, &after, &[]),
        diff(&after, &before, &["transfer_bytes > 1%"]),
    ] {
        let json = serde_json::to_string(&diff).unwrap();
        assert!(!json.contains("-0.0"), "{json}");
        assert!(!said(&diff).contains("-0"));
    }
}
