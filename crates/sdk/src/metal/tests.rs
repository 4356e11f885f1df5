//! Tests the logic of the Metal backend with fakes of Metal's objects.

use super::fake::{FakeCommands, FakeCounters};
use super::*;
use crate::kernel_profile::{Profile, Sampling, host_now_ns};
use std::sync::{Arc, Mutex};

fn batch(counters: FakeCounters, ladder: Ladder) -> (Batch<FakeCounters>, Arc<Profile>) {
    let profile = Arc::new(Profile::new());
    ladder.say(&profile);
    (
        Batch::new(Arc::new(counters), profile.clone(), ladder, "Stream 0"),
        profile,
    )
}

fn kernel(name: &'static str) -> Dispatch {
    Dispatch {
        kernel: name.into(),
        groups: Some([4, 1, 1]),
        ..Dispatch::default()
    }
}

/// Returns samples that start a millisecond after now and are `us` microseconds apart.
fn steps(us: u64) -> FakeCounters {
    let now = host_now_ns() / 1000;
    FakeCounters::new(move |n| now + 1000 + u64::from(n) * us)
}

/// Commits a command buffer that ran, and waits for it. Samples are mapped to the host's clock only once it has
/// advanced by a few of its microseconds.
fn wait(batch: Batch<FakeCounters>) -> Submitted {
    std::thread::sleep(std::time::Duration::from_millis(2));
    let commands = FakeCommands::ran(1.0, 2.0);
    batch.commit_and_wait(&commands, "step").unwrap()
}

fn loss(profile: &Profile, what: &str) -> Option<(u64, String)> {
    let losses = profile.snapshot().losses;
    let loss = losses.iter().find(|loss| loss.kind.as_str() == what)?;
    Some((loss.count, loss.reason.to_string()))
}

#[test]
fn a_labelled_command_buffer_is_waited_for_and_recorded() {
    let (batch, profile) = batch(steps(1), Ladder::CommandBuffers { because: None });
    let commands = FakeCommands::ran(10.0, 10.000_25);
    let submitted = batch.commit_and_wait(&commands, "layer.attention").unwrap();
    assert_eq!(submitted.time.unwrap().duration_ns(), 250_000);
    assert_eq!(
        *commands.log.lock().unwrap(),
        ["label layer.attention", "commit", "wait"]
    );
    let dump = profile.dump();
    assert_eq!(
        (dump[0].0.as_str(), dump[0].1.total_ns),
        ("layer.attention", 250_000)
    );
}

#[test]
fn an_asynchronous_commit_never_waits_and_is_recorded_at_its_end() {
    let (batch, profile) = batch(steps(1), Ladder::CommandBuffers { because: None });
    let commands = FakeCommands::ran(10.0, 10.001);
    let told = Arc::new(Mutex::new(None));
    let told_here = told.clone();
    batch.commit(&commands, "step", move |outcome| {
        *told_here.lock().unwrap() = Some(outcome)
    });
    assert_eq!(
        *commands.log.lock().unwrap(),
        ["label step", "handler", "commit"]
    );
    assert!(profile.dump().is_empty());
    commands.end();
    assert_eq!(profile.dump()[0].1.total_ns, 1_000_000);
    assert!(told.lock().unwrap().take().unwrap().is_ok());
}

#[test]
fn a_command_buffer_that_failed_is_an_error_and_no_time() {
    let (batch, profile) = batch(steps(1), Ladder::CommandBuffers { because: None });
    let mut commands = FakeCommands::ran(10.0, 10.001);
    commands.completion.error = Some("Caused GPU Timeout Error".to_owned());
    let error = batch.commit_and_wait(&commands, "step").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the command buffer `step` failed: Caused GPU Timeout Error"
    );
    assert!(profile.dump().is_empty());
    assert_eq!(loss(&profile, "command buffers").unwrap().0, 1);
}

#[test]
fn times_that_metal_does_not_give_are_unknown() {
    for (start, end, why) in [
        (0.0, 0.0, UnknownTime::Absent),
        (f64::NAN, 1.0, UnknownTime::Impossible),
        (2.0, 1.0, UnknownTime::Impossible),
        (-1.0, 1.0, UnknownTime::Impossible),
        (1.0, f64::INFINITY, UnknownTime::Impossible),
    ] {
        let (batch, profile) = batch(steps(1), Ladder::CommandBuffers { because: None });
        let submitted = batch
            .commit_and_wait(&FakeCommands::ran(start, end), "x")
            .unwrap();
        assert_eq!(submitted.time, Err(why), "{start} {end}");
        assert!(profile.dump().is_empty());
        assert_eq!(loss(&profile, "command-buffer times").unwrap().0, 1);
    }
    let mut running = FakeCommands::ran(1.0, 2.0).completion;
    running.finished = false;
    assert_eq!(
        GpuTime::from_completion(&running),
        Err(UnknownTime::NotFinished)
    );
}

#[test]
fn dispatches_have_the_times_of_their_samples() {
    let (mut batch, profile) = batch(steps(7), Ladder::DispatchBoundary);
    let first = batch.dispatch(kernel("gemm")).unwrap().pair;
    let second = batch.dispatch(kernel("softmax")).unwrap().pair;
    assert_eq!((first.start(), first.end(), second.start()), (0, 1, 2));
    let submitted = wait(batch);
    assert_eq!((submitted.timed, submitted.untimed), (2, 0));
    let dispatches = &profile.dump_dispatches()[0];
    assert_eq!(dispatches.0, "step");
    assert_eq!(dispatches.1[0].kernel, "gemm");
    assert_eq!(dispatches.1[0].groups, Some([4, 1, 1]));
    assert_eq!(dispatches.1[1].dispatch_index, 1);
    for dispatch in &dispatches.1 {
        let ns = dispatch.end_gpu_ns.unwrap() - dispatch.start_gpu_ns.unwrap();
        // The ticks are microseconds, and the clock has two samples a few milliseconds apart.
        assert!((6_900..7_100).contains(&ns), "{ns}");
    }
    assert_eq!(profile.snapshot().sampling, Sampling::DispatchSerialised);
}

#[test]
fn a_pass_that_is_timed_as_a_whole_is_no_dispatch() {
    let (mut batch, profile) = batch(steps(7), Ladder::Passes);
    assert!(batch.begin_pass("attention").is_some());
    for _ in 0..3 {
        assert_eq!(batch.dispatch(kernel("gemm")), None);
    }
    assert!(batch.begin_pass("mlp").is_some());
    batch.dispatch(kernel("gemm"));
    let submitted = wait(batch);
    assert_eq!((submitted.timed, submitted.untimed), (1, 3));
    let snapshot = profile.snapshot();
    assert_eq!(snapshot.passes.len(), 2);
    assert_eq!(snapshot.kernels[0].times.count, 1, "the one that is alone");
    assert_eq!(loss(&profile, "dispatch times").unwrap().0, 3);
    assert_eq!(profile.dump_dispatches()[0].1.len(), 4);
}

#[test]
fn a_pass_of_timed_dispatches_is_from_the_first_to_the_last() {
    let (mut batch, profile) = batch(steps(7), Ladder::PassPerDispatch);
    assert_eq!(batch.begin_pass("attention"), None);
    batch.dispatch(kernel("gemm"));
    batch.dispatch(kernel("softmax"));
    wait(batch);
    let (label, times) = &profile.snapshot().passes[0];
    // There are four samples, 7 us from one to the next.
    assert_eq!(label, "attention");
    assert!((20_700..21_300).contains(&times.total_ns), "{times:?}");
    assert!(profile.snapshot().losses.is_empty());
}

#[test]
fn dispatches_that_nobody_wanted_to_time_are_counted() {
    for (because, reason) in [
        (None, "wanted times of command buffers only"),
        (Some("no counters"), "no counters"),
    ] {
        let (mut batch, profile) = batch(steps(1), Ladder::CommandBuffers { because });
        batch.begin_pass("p");
        batch.dispatch(kernel("k"));
        let submitted = wait(batch);
        assert_eq!((submitted.timed, submitted.untimed), (0, 1));
        let (count, given) = loss(&profile, "dispatch times").unwrap();
        assert!(count == 1 && given.contains(reason), "{given}");
    }
}

#[test]
fn a_host_clock_of_another_unit_is_replaced() {
    struct OtherUnit;
    impl Counters for OtherUnit {
        type Buffer = ();
        fn allocate(&self) -> Result<(), CounterError> {
            Err(CounterError::NoTimestamps)
        }
        fn resolve(&self, (): &(), _: u32) -> Result<Vec<u64>, CounterError> {
            Ok(Vec::new())
        }
        fn clocks(&self) -> Clocks {
            Clocks {
                cpu_ns: host_now_ns() * 3 / 125,
                gpu_ticks: 7,
            }
        }
    }
    let before = host_now_ns();
    let pair = OtherUnit.clock_pair();
    let after = host_now_ns();
    assert!((before..=after).contains(&pair.cpu_ns));
    assert!(pair.error_ns.unwrap() <= after - before);
}

#[test]
fn more_dispatches_than_a_buffer_holds_take_another_buffer() {
    let (mut batch, _) = batch(steps(1), Ladder::DispatchBoundary);
    let per_buffer = SAMPLES_PER_BUFFER / 2;
    let buffers: Vec<u64> = (0..=per_buffer)
        .map(|_| batch.dispatch(kernel("k")).unwrap().buffer)
        .collect();
    assert_eq!(buffers[per_buffer as usize - 1], 0);
    assert_eq!(buffers[per_buffer as usize], 1);
    let submitted = wait(batch);
    assert_eq!(
        (submitted.timed, submitted.untimed),
        (u64::from(per_buffer) + 1, 0)
    );
}

#[test]
fn dispatches_without_a_buffer_are_counted_with_the_reason() {
    let counters = steps(1);
    counters
        .buffers
        .store(0, std::sync::atomic::Ordering::Relaxed);
    let (mut batch, profile) = batch(counters, Ladder::PassPerDispatch);
    assert!(batch.dispatch(kernel("k")).is_none());
    assert!(batch.dispatch(kernel("k")).is_none());
    let submitted = wait(batch);
    assert_eq!((submitted.timed, submitted.untimed), (0, 2));
    let (count, reason) = loss(&profile, "dispatch times").unwrap();
    assert_eq!(count, 2);
    assert!(reason.contains("Cannot allocate sample buffer"), "{reason}");
    assert_eq!(
        profile.dump()[0].1.count,
        1,
        "the command buffer itself is timed"
    );
}

#[test]
fn samples_that_say_nothing_are_unknown_and_never_zero() {
    type Value = fn(u32) -> u64;
    let cases: [(Value, &str); 4] = [
        (|_| 0, "delivered zero"),
        (|_| u64::MAX, "MTLCounterErrorValue"),
        (|n| 1_000_000 - u64::from(n), "backwards"),
        (|n| u64::from(n % 2), "delivered zero"),
    ];
    for (value, why) in cases {
        let (mut batch, profile) = batch(FakeCounters::new(value), Ladder::Passes);
        batch.begin_pass("p");
        batch.dispatch(kernel("k"));
        let submitted = wait(batch);
        assert_eq!((submitted.timed, submitted.untimed), (0, 1), "{why}");
        let (count, reason) = loss(&profile, "dispatch times").unwrap();
        assert!(count == 1 && reason.contains(why), "{reason}");
        let dispatches = &profile.dump_dispatches()[0].1;
        assert_eq!(
            (dispatches[0].start_gpu_ns, dispatches[0].gpu_ns),
            (None, None)
        );
    }
}

#[test]
fn samples_that_cannot_be_read_are_unknown() {
    let mut counters = steps(1);
    counters.resolves = false;
    let (mut batch, profile) = batch(counters, Ladder::Passes);
    batch.begin_pass("p");
    batch.dispatch(kernel("k"));
    wait(batch);
    let (_, reason) = loss(&profile, "dispatch times").unwrap();
    assert!(reason.contains("could not be read (no data)"), "{reason}");
}

#[test]
fn the_ladder_takes_the_finest_that_is_wanted_and_possible() {
    let points = |timestamps, dispatch, stage| Points {
        timestamps,
        dispatch,
        stage,
        ..Points::default()
    };
    use Wanted::*;
    let choose = Ladder::choose;
    let all = points(true, true, true);
    assert_eq!(choose(Dispatches, all), Ladder::DispatchBoundary);
    let stages = points(true, false, true);
    assert_eq!(choose(Dispatches, stages), Ladder::PassPerDispatch);
    assert_eq!(choose(Passes, all), Ladder::Passes);
    let coarse = choose(CommandBuffers, all);
    assert_eq!(coarse.sampling(), Sampling::CommandBuffer);
    assert_eq!(coarse.note(), None);
    for lacking in [points(false, true, true), points(true, false, false)] {
        let ladder = choose(Dispatches, lacking);
        assert_eq!(ladder.sampling(), Sampling::CommandBuffer);
        let note = ladder.note().unwrap();
        assert!(note.contains("Only command buffers have times"), "{note}");
    }
    let (_, profile) = batch(steps(1), Ladder::PassPerDispatch);
    assert_eq!(profile.snapshot().sampling, Sampling::Dispatch);
    assert!(profile.snapshot().notes[0].contains("a pass of its own"));
}

#[test]
fn sources_are_written_once_under_names_that_files_can_have() {
    let folder = tempfile::tempdir().unwrap();
    let sources = Sources::default();
    sources.keep("a/b c", "kernel void a() {}");
    sources.keep("a/b c", "kernel void a() {}");
    sources.keep("a/b c", "kernel void b() {}");
    let paths = sources.write(&folder.path().join("sources")).unwrap();
    assert_eq!(paths.len(), 2);
    for path in &paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            name.starts_with("a_b_c-") && name.ends_with(".metal"),
            "{name}"
        );
    }
    assert_eq!(
        sources.write(&folder.path().join("sources")).unwrap(),
        paths
    );
}
