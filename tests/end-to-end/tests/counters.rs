//! Tests hardware counters beside a recorded program. The sampler is a process of gapscope's own, and CUPTI is a
//! stub with planted values and with the faults of the real library.

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gapscope_trace::tables::HardwareCounter;
use gapscope_trace::{LossKind, Trace};

use crate::cuda::Stub;
use crate::driver::Driver;
use crate::product;
use crate::recording::{Program, Recording, assert_contains, open};

const MS: i64 = 1_000_000;
/// The program works for about a second.
const STEPS: &str = "launch:20 sync sleep:900 launch:20 sync";

/// A sample of a counter: its start, duration and value.
type Sample = (i64, i64, f64);

/// Returns the samples of a counter, and the counter's source.
fn samples(trace: &Trace, counter: HardwareCounter) -> (Vec<Sample>, String) {
    let t = &trace.tables;
    let name = counter.as_str();
    let Some(row) = t.counters.name.iter().position(|n| **n == *name) else {
        return (Vec::new(), String::new());
    };
    assert_eq!(t.counters.unit[row], counter.unit());
    assert_eq!(
        t.counters.device.at(row),
        Some(trace.manifest.devices[0].id),
        "{name}"
    );
    let values = &t.counter_values;
    let of_it = (0..values.counter.len()).filter(|v| values.counter[*v] == t.counters.id[row]);
    let mut found: Vec<Sample> = of_it
        .map(|at| {
            let duration_ns = values.duration_ns.at(at).expect("a mean over its sample");
            (values.start_ns[at], duration_ns, values.value[at])
        })
        .collect();
    found.sort_by_key(|(start_ns, ..)| *start_ns);
    (found, t.counters.source[row].to_string())
}

fn lost(trace: &Trace) -> Vec<(u64, String)> {
    let of_counters = (trace.manifest.losses.iter()).filter(|l| l.kind == LossKind::CounterSamples);
    of_counters
        .map(|l| (l.count, l.reason.to_string()))
        .collect()
}

fn record(steps: &str, wrong: &str, options: &[&str]) -> Recording {
    let stub = Stub::new(&[("PM", wrong)]);
    let options = if options.is_empty() {
        &["--counters"][..]
    } else {
        options
    };
    stub.program(steps).options(options).recorded()
}

/// Checks that samples have the planted values, except for the stub's first sample, which is about an earlier time.
fn check(found: &[Sample], interval_ns: i64, is_share: bool) {
    for (start_ns, duration_ns, value) in found {
        assert_eq!(*duration_ns, interval_ns, "from {start_ns}");
        assert_eq!(start_ns % interval_ns, 0);
        let is_even = (start_ns / (10 * MS)) % 2 == 0;
        if is_share {
            assert_eq!(*value, if is_even { 80.0 } else { 20.0 }, "from {start_ns}");
        }
    }
}

/// Returns the number of samples that are missing between the first and the last.
fn missing(found: &[Sample], interval_ns: i64) -> i64 {
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return 0;
    };
    (last.0 - first.0) / interval_ns + 1 - found.len() as i64
}

#[test]
fn the_usual_counters_are_sampled_while_the_gpu_is_used() {
    let recording = record(STEPS, "", &[]);
    let trace = recording.trace();
    assert_eq!(lost(&trace), []);
    assert_eq!(trace.tables.dispatches.kernel.len(), 40);
    let (active, source) = samples(&trace, HardwareCounter::SmActive);
    assert_eq!(
        source,
        "CUPTI PM sampling, TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed, every 100 us"
    );
    check(&active, MS / 10, true);
    assert_eq!(missing(&active, MS / 10), 0);
    assert!(active.len() > 6000, "{} of 9000 in 0.9 s", active.len());
    assert!(active[0].0 > trace.manifest.start_ns, "not seconds early");
    let (read, _) = samples(&trace, HardwareCounter::DramRead);
    let (written, _) = samples(&trace, HardwareCounter::DramWritten);
    assert!(read.iter().all(|(.., value)| *value == 2e9), "2 B in a ns");
    assert!(written.iter().all(|(.., value)| *value == 1e9));
    let (tensor, _) = samples(&trace, HardwareCounter::TensorActive);
    assert_eq!([read.len(), written.len(), tensor.len()], [active.len(); 3]);
    let said = format!("{:?} {:?}", trace.manifest.notes, trace.manifest.unmeasured);
    assert!(!said.contains("hardware counters"), "{said}");
}

#[test]
fn the_wide_set_has_what_the_gpu_has_and_says_what_it_has_not() {
    let recording = record(STEPS, "lacks=nvl two=pcie", &["--counters=wide"]);
    let trace = recording.trace();
    let names: HashSet<&str> = trace.tables.counters.name.iter().map(|n| &**n).collect();
    for counter in HardwareCounter::ALL {
        use HardwareCounter::*;
        let is_out = [NvlinkReceived, NvlinkSent, PcieRead, PcieWritten].contains(counter);
        assert_eq!(names.contains(counter.as_str()), !is_out, "{counter}");
    }
    let (active, source) = samples(&trace, HardwareCounter::SmActive);
    assert!(source.ends_with("every 1 ms"), "{source}");
    check(&active, MS, true);
    let (hits, _) = samples(&trace, HardwareCounter::L2HitRate);
    assert!(
        hits.len() < active.len() && !hits.is_empty(),
        "unknown where nothing was asked"
    );
    assert!(hits.iter().all(|(.., value)| *value == 80.0));
    assert_eq!(lost(&trace), [], "what is unknown is not lost");
    let text = recording.text();
    assert_contains(&text, "NVLink received, NVLink sent");
    assert_contains(&text, "one pass");
}

#[test]
fn links_that_give_no_sample_keep_nothing_from_the_others() {
    let steps = "launch:20 sync sleep:2500 launch:20 sync";
    let recording = record(steps, "mute=nvl", &["--counters=wide"]);
    let trace = recording.trace();
    let names: HashSet<&str> = trace.tables.counters.name.iter().map(|n| &**n).collect();
    for counter in HardwareCounter::ALL {
        let is_of_links = counter.as_str().starts_with("NVLink");
        assert_eq!(names.contains(counter.as_str()), !is_of_links, "{counter}");
    }
    let (active, source) = samples(&trace, HardwareCounter::SmActive);
    assert!(source.starts_with("CUPTI PM sampling"), "{source}");
    check(&active, MS, true);
    assert!(active.len() > 500, "{}", active.len());
    let unmeasured = &trace.manifest.unmeasured;
    let of_counters: Vec<_> = unmeasured
        .iter()
        .filter(|u| u.what.starts_with("hardware"))
        .collect();
    assert_eq!(of_counters.len(), 1, "{of_counters:?}");
    let what = &of_counters[0].what;
    assert!(what.ends_with("(NVLink received, NVLink sent)"), "{what}");
    let reason = &of_counters[0].reason;
    assert_contains(reason, "accepted them and then delivered no sample");
    // The time without samples is counted as missing.
    let lost = lost(&trace);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(
        lost[0].1.contains("could not decode them: 1 gap"),
        "{lost:?}"
    );
}

#[test]
fn bytes_of_links_are_the_users_where_the_gpu_tells_them_apart() {
    for (wrong, metric) in [
        ("", "nvlrx__bytes_data_user.sum"),
        ("lacks=data_user", "nvlrx__bytes.sum"),
    ] {
        let trace = record(
            "launch:20 sync sleep:400",
            wrong,
            &["--counters=NVLink received"],
        )
        .trace();
        let (_, source) = samples(&trace, HardwareCounter::NvlinkReceived);
        assert!(source.contains(&format!(", {metric}, ")), "{source}");
    }
}

#[test]
fn counters_are_chosen_by_name_and_at_an_interval() {
    let recording = record(
        STEPS,
        "",
        &[
            "--counters=SM clock, sampled,SMs active",
            "--counter-interval",
            "500us",
        ],
    );
    let trace = recording.trace();
    let (active, source) = samples(&trace, HardwareCounter::SmActive);
    assert!(source.ends_with("every 500 us"), "{source}");
    check(&active, MS / 2, true);
    let (clock, _) = samples(&trace, HardwareCounter::SmClock);
    assert!(clock.iter().all(|(.., value)| *value == 1.5e9));
    assert_eq!(
        trace
            .tables
            .counters
            .name
            .iter()
            .filter(|n| n.contains("DRAM"))
            .count(),
        0
    );
}

#[test]
fn what_a_full_image_loses_is_counted_with_its_time() {
    let trace = record(STEPS, "full=300", &[]).trace();
    let (active, _) = samples(&trace, HardwareCounter::SmActive);
    check(&active, MS / 10, true);
    let lost = lost(&trace);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(
        lost[0]
            .1
            .starts_with("there was no room for more decoded ones: "),
        "{lost:?}"
    );
    assert!(
        lost[0].1.contains(" gaps, ") && lost[0].1.contains(" s in all, the longest "),
        "{lost:?}"
    );
    // The last interval may be open at the end.
    let open = lost[0].0 as i64 - missing(&active, MS / 10);
    assert!((0..=201).contains(&open), "{open}");
}

#[test]
fn what_is_lost_of_a_gpu_is_in_the_trace_of_each_rank_that_uses_it() {
    let stub = Stub::new(&[("PM", "full=300"), ("DEVICES", "2")]);
    let program = product::built("fake-cuda-program").display().to_string();
    // Two processes use the first GPU, and one uses the second.
    let script = "RANK=0 WORLD_SIZE=3 \"$0\" launch:20 sync sleep:900 launch:1 sync & \
                  RANK=1 WORLD_SIZE=3 \"$0\" launch:20 sync sleep:900 launch:1 sync & \
                  RANK=2 WORLD_SIZE=3 \"$0\" device:1 launch:20 sync sleep:900 launch:1 sync & wait";
    let recording = Program::new(["sh", "-c", script, program.as_str()], &stub)
        .options(&["--counters"])
        .recorded();
    let of_rank = |rank| open(&recording.path().join(format!("rank={rank}")));
    let [first, second, other] = [0, 1, 2].map(of_rank);
    let of_first = lost(&first);
    assert_eq!(of_first.len(), 1, "{of_first:?}");
    let (active, _) = samples(&first, HardwareCounter::SmActive);
    assert!(of_first[0].0 as i64 >= missing(&active, MS / 10));
    assert_eq!(lost(&second), of_first);
    let of_other = lost(&other);
    assert_eq!(of_other.len(), 1, "{of_other:?}");
    assert_ne!(of_other, of_first, "its own");
    let launcher = recording.trace();
    assert_eq!(lost(&launcher), [], "it uses no GPU");
}

#[test]
fn an_overflow_is_counted_and_sampling_goes_on() {
    let trace = record(STEPS, "overflow=4", &[]).trace();
    let (active, _) = samples(&trace, HardwareCounter::SmActive);
    check(&active, MS / 10, true);
    let missing = missing(&active, MS / 10);
    assert!(missing >= 300, "30 ms: {missing}");
    let lost = lost(&trace);
    let [(count, reason)] = &lost[..] else {
        panic!("no other reason: {lost:?}");
    };
    assert_eq!(*count as i64, missing);
    assert!(
        reason.starts_with("the hardware buffer was full: 2 gaps, "),
        "{reason}"
    );
    let after = active
        .iter()
        .filter(|s| s.0 > active[0].0 + 400 * MS)
        .count();
    assert!(after > 2000, "{after}");
}

#[test]
fn samples_out_of_step_are_left_out_and_sampling_starts_anew() {
    let trace = record(STEPS, "zero=5", &[]).trace();
    let (active, _) = samples(&trace, HardwareCounter::SmActive);
    check(&active, MS / 10, true);
    let lost = lost(&trace);
    assert!(
        lost.iter()
            .any(|(_, r)| r.starts_with("CUPTI lost step with the GPU")),
        "{lost:?}"
    );
    let all: u64 = lost.iter().map(|(count, _)| *count).sum();
    assert_eq!(all as i64, missing(&active, MS / 10));
    let after = active
        .iter()
        .filter(|s| s.0 > active[0].0 + 500 * MS)
        .count();
    assert!(after > 1500, "{after}");
}

#[test]
fn a_sample_that_is_late_is_not_lost() {
    let trace = record(STEPS, "late", &[]).trace();
    let (active, _) = samples(&trace, HardwareCounter::SmActive);
    check(&active, MS / 10, true);
    // A half-full image of samples is given up with one sample each time, whether it is complete or not.
    let missing = missing(&active, MS / 10);
    let counted: u64 = lost(&trace).iter().map(|(count, _)| *count).sum();
    assert_eq!(counted as i64, missing);
    assert!(missing <= 12, "{missing}");
}

#[test]
fn a_sampler_that_is_killed_is_said_and_harms_nothing() {
    let recording = record(STEPS, "kill=6", &[]);
    let trace = recording.trace();
    assert_eq!(trace.tables.dispatches.kernel.len(), 40);
    let (active, _) = samples(&trace, HardwareCounter::SmActive);
    check(&active, MS / 10, true);
    assert!((1000..4000).contains(&active.len()), "{}", active.len());
    let lost = lost(&trace);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].1.contains("ended before the program"), "{lost:?}");
    assert!(lost[0].0 > 3000, "{lost:?}");
}

#[test]
fn what_is_refused_is_one_sentence_with_its_mend() {
    let cases = [
        ("busy", "dcgmi profile --pause"),
        ("privileges", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("part", "nvidia-smi -mig 0"),
        ("chip", "install a newer one"),
        ("host", "libnvperf_host.so is not beside libcupti"),
        ("lacks=_", "knows none of these counters"),
    ];
    for (wrong, words) in cases {
        let recording = record("launch:20 sync sleep:300", wrong, &[]);
        let trace = recording.trace();
        assert_eq!(trace.tables.dispatches.kernel.len(), 20, "{wrong}");
        assert_eq!(samples(&trace, HardwareCounter::SmActive).0, [], "{wrong}");
        let unmeasured = &trace.manifest.unmeasured;
        let of_counters: Vec<_> = unmeasured
            .iter()
            .filter(|u| u.what.starts_with("hardware"))
            .collect();
        assert_eq!(of_counters.len(), 1, "{wrong}: {unmeasured:?}");
        assert!(
            of_counters[0].reason.contains(words),
            "{wrong}: {of_counters:?}"
        );
        assert!(
            of_counters[0].what.contains("SMs active, DRAM read"),
            "{of_counters:?}"
        );
        assert_contains(&recording.run.stderr, "Not sampled");
    }
}

#[test]
fn a_gap_that_is_open_at_the_end_is_counted() {
    let trace = record(STEPS, "silent=6", &[]).trace();
    let (active, _) = samples(&trace, HardwareCounter::SmActive);
    check(&active, MS / 10, true);
    let lost = lost(&trace);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(
        lost[0].1.starts_with("the GPU gave none: 1 gap, "),
        "{lost:?}"
    );
    // Each of five decodings covers a quarter of a second, and the program works for 0.9 s.
    assert!((3000..9000).contains(&lost[0].0), "{lost:?}");
}

#[test]
fn a_gpu_that_gives_no_sample_until_the_end_is_said() {
    let recording = record("launch:20 sync sleep:300", "silent=1", &[]);
    let trace = recording.trace();
    assert_eq!(samples(&trace, HardwareCounter::SmActive).0, []);
    assert_eq!(lost(&trace), []);
    let said = &recording.run.stderr;
    assert_contains(
        said,
        "(SMs active, DRAM read, DRAM written, tensor pipe active)",
    );
    assert_contains(said, "the program ended before the first sample");
}

#[test]
fn nvml_stands_in_where_cupti_may_not() {
    let script = "0 gpm=1 gpm2=91 gpm5=40 gpm21=3";
    let stub = Stub::new(&[("PM", "busy"), ("NVML", script)]).with_nvml();
    let recording = stub
        .program(STEPS)
        .options(&["--counters=SMs active,DRAM read,tensor pipe active,PCIe read"])
        .recorded();
    let trace = recording.trace();
    let (active, source) = samples(&trace, HardwareCounter::SmActive);
    assert_eq!(source, "NVML GPM");
    assert!((4..12).contains(&active.len()), "{active:?}");
    assert!(
        active
            .iter()
            .all(|(_, ns, value)| *value == 91.0 && *ns > 50 * MS),
        "{active:?}"
    );
    let (pcie, _) = samples(&trace, HardwareCounter::PcieRead);
    assert!(
        pcie.iter().all(|(.., value)| *value == 3.0 * 1048576.0),
        "{pcie:?}"
    );
    assert_eq!(samples(&trace, HardwareCounter::DramRead).0, []);
    let said = format!("{:?}", trace.manifest.unmeasured);
    assert_contains(&said, "means of 100 ms, and has no DRAM read");
}

/// Returns the processes whose command line contains a word, each with its parent.
fn processes_with(word: &str) -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found = pids.filter_map(|pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        if !words.contains(&word.as_bytes()) {
            return None;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = status.rsplit(')').next()?.split_whitespace().collect();
        Some((pid, fields[1].parse().ok()?))
    });
    found.collect()
}

fn sampler_of(recorder: u32) -> Option<u32> {
    let all = processes_with("sample-counters");
    let of_it = all.iter().find(|(_, parent)| *parent == recorder);
    of_it.map(|(pid, _)| *pid)
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed().as_secs() < 10, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_sampler_is_a_process_of_gapscopes_own_and_ends_with_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("t.gapscope");
    let stub = Stub::new(&[]);
    let mut command = Command::new(product::built("gapscope"));
    command
        .args(["record", "-q", "--counters", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(product::built("fake-cuda-program"))
        .args(["launch:20", "sync", "sleep:3000"])
        .envs(stub.variables())
        .env("CUDA_VISIBLE_DEVICES", "0")
        .stderr(Stdio::null());
    let mut recorder = command.spawn().expect("gapscope");
    let sampler = until("no sampler", || sampler_of(recorder.id()));
    let file = |name: &str| fs::read(format!("/proc/{sampler}/{name}")).expect("the sampler's");
    let environment = String::from_utf8_lossy(&file("environ")).into_owned();
    for variable in [
        "CUDA_INJECTION64_PATH",
        "GAPSCOPE_SPOOL",
        "CUDA_VISIBLE_DEVICES",
    ] {
        assert!(!environment.contains(&format!("{variable}=")), "{variable}");
    }
    let stat = String::from_utf8_lossy(&file("stat")).into_owned();
    let group = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(2));
    assert_eq!(
        group,
        Some(sampler.to_string().as_str()),
        "not the terminal's group"
    );
    let program = until("no program", || {
        let all = processes_with("sleep:3000").into_iter();
        // The recorder's own processes have its command line, which holds the program's.
        let runs = |pid: &u32| {
            let file = fs::read_link(format!("/proc/{pid}/exe")).ok();
            file.is_some_and(|file| file.ends_with("fake-cuda-program"))
        };
        let of_it = all.filter(|(_, parent)| *parent == recorder.id());
        of_it.map(|(pid, _)| pid).find(runs)
    });
    recorder.kill().expect("it runs");
    recorder.wait().expect("it runs");
    let is_gone = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().next());
        state.is_none_or(|state| state == "Z")
    };
    until("the sampler runs on", || is_gone(sampler).then_some(()));
    assert!(!is_gone(program), "and the program goes on");
    let killed = Command::new("kill").arg(program.to_string()).status();
    assert!(killed.is_ok_and(|status| status.success()));
    // Samples up to the last checkpoint are in the recovered trace.
    let recovered = Command::new(product::built("gapscope"))
        .arg("recover")
        .arg(&trace)
        .output();
    assert!(recovered.is_ok_and(|done| done.status.success()));
}

#[test]
fn without_the_option_nothing_is_sampled() {
    let stub = Stub::new(&[]);
    let trace = stub.program("launch:20 sync").recorded().trace();
    assert_eq!(samples(&trace, HardwareCounter::SmActive).0, []);
    assert_eq!(lost(&trace), []);
}

#[test]
fn what_is_no_set_or_interval_is_refused_before_the_program_starts() {
    let stub = Stub::new(&[]);
    for (options, words) in [
        (&["--counters=moon"][..], "there is no counter `moon`"),
        (&["--counters", "--counter-interval=1us"], "10us to 1s"),
    ] {
        let words_of_it: Vec<&str> = ["record"]
            .into_iter()
            .chain(options.iter().copied())
            .collect();
        let run = stub.program("launch:1").run_by(&words_of_it);
        run.assert_status(2);
        assert_contains(&run.stderr, words);
    }
}
