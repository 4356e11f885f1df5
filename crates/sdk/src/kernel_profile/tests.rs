//! Tests that a profile returns what was recorded, and counts what is missing.

use super::*;

fn dispatch(
    profile: &Profile,
    id: CommandBufferId,
    index: u32,
    times: (u64, u64),
) -> DispatchEntry {
    let entry = DispatchEntry {
        cb_label: "cb".into(),
        command_buffer: Some(id),
        op_kind: "Sdpa".into(),
        kernel: "attention".into(),
        dispatch_index: index,
        groups: Some([8, 2, 1]),
        group_size: Some([64, 1, 1]),
        start_gpu_ns: Some(times.0),
        end_gpu_ns: Some(times.1),
        ..DispatchEntry::default()
    };
    profile.record_dispatch(entry.clone());
    entry
}

pub(super) fn command_buffer(profile: &Profile, times: (u64, u64), dispatches: &[(u64, u64)]) {
    let id = profile.command_buffer();
    profile.record_command_buffer(CommandBufferEntry {
        id: Some(id),
        label: "cb".into(),
        queue: "main".into(),
        start_ns: Some(times.0),
        end_ns: Some(times.1),
        dispatches: dispatches.len() as u32,
        ..CommandBufferEntry::default()
    });
    for (index, times) in dispatches.iter().enumerate() {
        dispatch(profile, id, index as u32, *times);
    }
}

#[test]
fn labels_come_longest_first_and_equal_ones_by_name() {
    let profile = Profile::new();
    for (label, ns) in [("b", 5), ("a", 5), ("c", 30), ("d", 1)] {
        profile.record(label, ns);
    }
    for _ in 0..5 {
        let labels: Vec<_> = profile.dump().into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, ["c", "a", "b", "d"]);
    }
    let (_, times) = &profile.dump()[0];
    assert_eq!(
        (times.count, times.total_ns, times.min_ns, times.max_ns),
        (1, 30, 30, 30)
    );
}

#[test]
fn percentiles_are_within_one_percent() {
    let profile = Profile::new();
    for ns in 1..=100_000_u64 {
        profile.record("x", ns * 17);
    }
    let (_, times) = profile.dump().remove(0);
    for (is, should) in [
        (times.p50_ns, 50_000),
        (times.p90_ns, 90_000),
        (times.p99_ns, 99_000),
    ] {
        let should = should * 17;
        assert!(
            is.abs_diff(should) * 100 <= should,
            "{is} instead of {should}"
        );
    }
    assert_eq!(times.total_ns, 17 * (100_000 * 100_001 / 2));
}

#[test]
fn extreme_times_are_added_up_without_overflow() {
    let profile = Profile::new();
    for ns in [0, u64::MAX, u64::MAX] {
        profile.record("x", ns);
    }
    let (_, times) = profile.dump().remove(0);
    assert_eq!(
        (times.count, times.total_ns, times.min_ns, times.max_ns),
        (3, u64::MAX, 0, u64::MAX)
    );
    assert!(times.p99_ns > u64::MAX / 100 * 99);
}

#[test]
fn threads_record_at_once_and_nothing_is_lost() {
    let profile = Profile::new();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let profile = &profile;
            scope.spawn(move || {
                for n in 0..10_000 {
                    profile.record(["x", "y"][(n % 2) as usize], thread + 1);
                }
            });
        }
    });
    let all: u64 = profile.dump().iter().map(|(_, times)| times.count).sum();
    let total: u64 = profile.dump().iter().map(|(_, times)| times.total_ns).sum();
    assert_eq!((all, total), (80_000, 10_000 * 36));
}

#[test]
fn instances_of_one_label_are_told_apart() {
    let profile = Profile::new();
    command_buffer(&profile, (0, 100), &[(10, 20), (20, 30)]);
    command_buffer(&profile, (200, 300), &[(210, 220)]);
    let dumped = profile.dump_dispatches();
    let [(label, entries)] = dumped.as_slice() else {
        panic!("{dumped:?}")
    };
    assert_eq!((label.as_str(), entries.len()), ("cb", 3));
    assert_eq!(entries[0].command_buffer, entries[1].command_buffer);
    assert_ne!(entries[0].command_buffer, entries[2].command_buffer);
    assert_eq!(entries[2].dispatch_index, 0);
    assert_eq!(entries[0].gpu_ns, Some(10));
    assert_eq!(entries[0].groups, Some([8, 2, 1]));
    assert_eq!(entries[0].kernel, "attention");
}

#[test]
fn times_that_cannot_be_true_are_unknown_and_counted() {
    let profile = Profile::new();
    let id = profile.command_buffer();
    for times in [(0, 0), (50, 20)] {
        dispatch(&profile, id, 0, times);
    }
    profile.record_dispatch(DispatchEntry::default());
    let entries = profile.dump_dispatches();
    let all = entries.iter().flat_map(|(_, entries)| entries);
    assert!(
        all.clone()
            .all(|e| e.gpu_ns.is_none() && e.start_gpu_ns.is_none())
    );
    let snapshot = profile.snapshot();
    let losses: u64 = snapshot.losses.iter().map(|loss| loss.count).sum();
    assert_eq!(
        (losses, snapshot.losses.len()),
        (3, 3),
        "each has its reason: {:?}",
        snapshot.losses
    );
    assert!(
        snapshot.kernels.is_empty(),
        "no time of 0 ns: {:?}",
        snapshot.kernels
    );
    // An interval without work between two timestamps may well have no length.
    dispatch(&profile, id, 0, (7, 7));
    assert_eq!(profile.snapshot().kernels[0].times.count, 1);
}

#[test]
fn given_times_are_kept_unless_they_contradict_each_other() {
    const CONTRADICTION: &str = "its duration contradicts its start and end";
    for (given, start, end, expected) in [
        (Some(12_000), None, None, Ok((Some(12_000), None))),
        (Some(12_000), Some(0), Some(0), Ok((Some(12_000), None))),
        (
            None,
            Some(1_000),
            Some(9_000),
            Ok((Some(8_000), Some(9_000))),
        ),
        (
            Some(8_000),
            Some(1_000),
            None,
            Ok((Some(8_000), Some(9_000))),
        ),
        (
            Some(8_000),
            None,
            Some(9_000),
            Ok((Some(8_000), Some(9_000))),
        ),
        // Rounding to ticks is no contradiction.
        (
            Some(8_042),
            Some(1_000),
            Some(9_000),
            Ok((Some(8_000), Some(9_000))),
        ),
        (Some(500), Some(1_000), Some(9_000), Err(CONTRADICTION)),
        (Some(0), Some(1_000), Some(9_000), Err(CONTRADICTION)),
        (Some(5), Some(9), Some(4), Err("it ends before it starts")),
        (None, Some(0), Some(0), Err("the device delivered zeros")),
        (None, None, None, Err("the device delivered none")),
    ] {
        let profile = Profile::new();
        profile.record_dispatch(DispatchEntry {
            kernel: "k".into(),
            gpu_ns: given,
            start_gpu_ns: start,
            end_gpu_ns: end,
            ..DispatchEntry::default()
        });
        profile.record_pass(PassEntry {
            gpu_ns: given,
            start_gpu_ns: start,
            end_gpu_ns: end,
            ..PassEntry::default()
        });
        let entry = profile.dump_dispatches().remove(0).1.remove(0);
        let losses = profile.snapshot().losses;
        match expected {
            Ok(expected) => {
                assert_eq!((entry.gpu_ns, entry.end_gpu_ns), expected);
                assert!(losses.is_empty(), "{losses:?}");
            }
            Err(reason) => {
                assert_eq!((entry.gpu_ns, entry.start_gpu_ns), (None, None));
                assert_eq!(losses.len(), 2, "a pass and a dispatch: {losses:?}");
                assert!(
                    losses.iter().all(|loss| loss.reason == reason),
                    "{losses:?}"
                );
            }
        }
    }
}

#[test]
fn text_of_a_program_does_not_steer_the_terminal() {
    let profile = Profile::new();
    profile.record("a\x1b[2Jb\nc", 5);
    profile.lose("x", 1, "bell\x07");
    profile.note("\x1b]0;title\x07");
    let text = profile.snapshot().to_string();
    assert!(
        text.contains("a·[2Jb·c") && text.contains("bell·"),
        "{text}"
    );
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
}

#[test]
fn memory_is_bounded_and_what_is_not_kept_is_counted() {
    let profile = Profile::with_limits(Limits {
        names: 3,
        dispatches: 3,
        command_buffers: 1,
        ..Limits::default()
    });
    for n in 0..10 {
        profile.record(&format!("label {n}"), 5);
    }
    command_buffer(
        &profile,
        (0, 100),
        &[(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)],
    );
    command_buffer(&profile, (100, 200), &[]);
    for n in 0..1000 {
        profile.lose("x", 1, format!("reason {n}"));
    }
    let snapshot = profile.snapshot();
    assert_eq!((snapshot.dispatches, snapshot.command_buffers), (3, 1));
    assert_eq!(
        snapshot.kernels[0].times.count, 5,
        "times are added up all the same"
    );
    let counted: u64 = snapshot.labels.iter().map(|(_, times)| times.count).sum();
    assert_eq!(counted, 12);
    let lost = |what: &str| {
        let losses = snapshot
            .losses
            .iter()
            .filter(|loss| loss.kind.as_str() == what);
        losses.map(|loss| loss.count).sum::<u64>()
    };
    assert_eq!(lost("rows of dispatches"), 2);
    assert_eq!(lost("rows of command buffers"), 1);
    assert!(lost("labels") >= 7);
    assert_eq!(lost("x") + lost("things"), 1000);
    assert!(snapshot.losses.len() < 300, "{}", snapshot.losses.len());
}

#[test]
fn a_reset_forgets_everything_at_once() {
    let profile = Profile::new();
    command_buffer(&profile, (0, 100), &[(1, 2)]);
    profile.lose("x", 1, "y");
    profile.record_clock_pair(1, 1);
    profile.reset();
    let snapshot = profile.snapshot();
    assert!(profile.dump().is_empty() && profile.dump_dispatches().is_empty());
    assert!(snapshot.losses.is_empty() && snapshot.clock_samples == 0);
}

#[test]
fn drift_has_a_direction_and_a_meaning() {
    let verdict = |dispatches: &[(u64, u64)], sampling: Sampling| {
        let profile = Profile::new();
        profile.set_sampling(sampling);
        command_buffer(&profile, (1_000, 2_000), dispatches);
        let drift = profile.snapshot().drift.remove(0);
        (drift.difference_ns, drift.dispatch_busy_ns, drift.verdict)
    };
    let within = [(1_000, 1_400), (1_400, 1_900)];
    assert_eq!(
        verdict(&within, Sampling::Dispatch),
        (-100, Some(900), Verdict::Consistent)
    );
    let overlap = [(1_000, 1_900), (1_050, 2_000)];
    assert_eq!(
        verdict(&overlap, Sampling::Dispatch),
        (850, Some(1_000), Verdict::Overlapping)
    );
    let outside = [(1_000, 2_500)];
    assert_eq!(
        verdict(&outside, Sampling::Dispatch),
        (500, Some(1_500), Verdict::Inconsistent)
    );
    // Time that is not covered is no fit.
    assert_eq!(
        verdict(&[(1_000, 1_140)], Sampling::Dispatch),
        (-860, Some(140), Verdict::Uncovered)
    );
    // With a barrier after each, dispatches cannot overlap.
    assert_eq!(
        verdict(&overlap, Sampling::DispatchSerialised).2,
        Verdict::Inconsistent
    );
}

#[test]
fn sums_alone_are_compared_by_label() {
    let profile = Profile::new();
    profile.record("cb", 1_000);
    let entry = |start: u64, end: u64| DispatchEntry {
        cb_label: "cb".into(),
        kernel: "k".into(),
        start_gpu_ns: Some(start),
        end_gpu_ns: Some(end),
        ..DispatchEntry::default()
    };
    profile.record_dispatch(entry(10, 710));
    profile.record_dispatch(entry(710, 1_410));
    let drift = profile.snapshot().drift.remove(0);
    assert_eq!(
        (drift.difference_ns, drift.verdict),
        (400, Verdict::Unexplained)
    );
    assert_eq!(drift.dispatch_busy_ns, None);
}

#[test]
fn a_command_buffer_with_a_dispatch_of_unknown_time_says_nothing_of_drift() {
    let profile = Profile::new();
    command_buffer(&profile, (1_000, 2_000), &[(1_000, 1_500), (0, 0)]);
    assert!(profile.snapshot().drift.is_empty());
}

#[test]
fn a_snapshot_prints_everything_with_units() {
    let profile = Profile::new();
    profile.set_sampling(Sampling::Dispatch);
    profile.set_device(DeviceInfo {
        name: "Some GPU".to_owned(),
        ..DeviceInfo::default()
    });
    command_buffer(&profile, (1_000_000, 3_500_000), &[(1_000_000, 3_000_000)]);
    profile.lose("dispatch times", 48, "the sample buffer was full");
    profile.note("A note.");
    let text = profile.snapshot().to_string();
    for wanted in [
        "sampling mode dispatch, Some GPU",
        "2.50 ms",
        "attention",
        "dispatches cover 80 % of the command buffers `cb`; the other 500.00 us are",
        "not recorded: 48 dispatch times: the sample buffer was full",
        "A note.",
    ] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&profile.snapshot().to_json()).unwrap();
    assert_eq!(json["sampling"], "dispatch");
    assert_eq!(json["labels"][0][1]["total_ns"], 2_500_000);
    assert_eq!(json["drift"][0]["verdict"], "uncovered");
}

#[test]
fn passes_have_a_table_of_their_own() {
    let profile = Profile::new();
    profile.record("forward", 3_000);
    profile.record_pass(PassEntry {
        label: "layer 0".into(),
        gpu_ns: Some(2_000),
        ..PassEntry::default()
    });
    profile.record_pass(PassEntry {
        label: "layer 1".into(),
        unknown_because: "no queries".into(),
        ..PassEntry::default()
    });
    let snapshot = profile.snapshot();
    assert_eq!(snapshot.labels.len(), 1);
    assert_eq!(
        (snapshot.passes.len(), snapshot.passes[0].1.total_ns),
        (1, 2_000)
    );
    assert_eq!(snapshot.losses[0].reason, "no queries");
    let text = snapshot.to_string();
    assert!(
        text.contains("  pass\n") && text.contains("layer 0"),
        "{text}"
    );
}
