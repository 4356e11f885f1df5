//! Tests made-up pairs of files of Nsight Systems and PyTorch's profiler: other launches, older schemas, and damage.

use crate::database::database;
use crate::joined::{Files, imported, joined, markers, trace};
use gapscope_import::Options;
use gapscope_trace::tables::Table;
use std::fmt::Write as _;

/// A made-up pair: an operator for each of many irregular launches.
struct Planted {
    seed: u64,
    /// The wall-clock time at which the session began; `None` leaves it out.
    session_ns: Option<i64>,
    /// Members of the document before its events.
    members: String,
    /// What is added to the times of the document's events, in microseconds.
    later_us: i64,
    /// By how much the document's clock goes too fast, in millionths.
    fast_ppm: i64,
    /// The number of launches.
    launches: i64,
    /// Leaves every n-th launch out of the export.
    left_out: Option<i64>,
    /// The process and the function of the document's own launches; `None` where it has none.
    own: Option<&'static str>,
    pid: &'static str,
    /// The longest pause between two launches, in nanoseconds.
    pause_ns: i64,
    /// Leaves every n-th operator out of the document, and those behind so many.
    without_operator: Option<i64>,
    operators: i64,
    /// How often the export has the launches again, each time so much later.
    repeats: i64,
    repeated_ns: i64,
    /// Whether the launches are of collectives, which operators of PyTorch describe.
    collectives: bool,
}

const SESSION_NS: i64 = 1_790_000_000_000_000_000;

impl Default for Planted {
    fn default() -> Planted {
        Planted {
            seed: 1,
            session_ns: Some(SESSION_NS),
            members: format!("\"baseTimeNanoseconds\":{SESSION_NS},"),
            later_us: 0,
            fast_ppm: 0,
            launches: 200,
            left_out: None,
            own: None,
            pid: "7",
            pause_ns: 40_000,
            without_operator: None,
            operators: i64::MAX,
            repeats: 0,
            repeated_ns: 0,
            collectives: false,
        }
    }
}

impl Planted {
    fn files(&self) -> Files {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut events = String::new();
        let mut calls = String::new();
        let mut kernels = String::new();
        let mut at = 1_000_000;
        let pid = self.pid;
        let global = (7_i64 << 24) + 7;
        for number in 1..=self.launches {
            at += random.i64(3_000..self.pause_ns);
            let start = at + random.i64(2_000..9_000);
            let end = start + random.i64(3_000..9_000);
            let (begin, stop) = (at, end + random.i64(2_000..9_000));
            let us = |ns: i64| {
                let ns = ns + ns * self.fast_ppm / 1_000_000;
                format!("{}.{:03}", self.later_us + ns / 1000, ns % 1000)
            };
            let length = |ns: i64| format!("{}.{:03}", ns / 1000, ns % 1000);
            if self.collectives {
                let _ = write!(
                    events,
                    "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":{pid},\"tid\":7,\"ts\":{},\"dur\":{},\"args\":{{\"Collective name\":\"allreduce\",\"In msg nelems\":256,\"dtype\":\"Float\",\"Process Group Name\":\"0\",\"Seq\":{number}}}}},",
                    us(begin + 200),
                    length(stop - begin - 400),
                );
            }
            let has_operator = self.without_operator.is_none_or(|nth| number % nth != 0);
            if has_operator && number <= self.operators {
                let _ = write!(
                    events,
                    "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":{pid},\"tid\":7,\"ts\":{},\"dur\":{}}},",
                    us(begin),
                    length(stop - begin),
                );
            }
            if let Some(function) = self.own {
                let _ = write!(
                    events,
                    "{{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"{function}\",\"pid\":{pid},\"tid\":7,\"ts\":{},\"dur\":{},\"args\":{{\"correlation\":{number}}}}},\
                     {{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":{},\"dur\":1,\"args\":{{\"correlation\":{number},\"stream\":7,\"device\":0}}}},",
                    us(start + 300),
                    length(end - start - 600),
                    us(end),
                );
            }
            at = stop;
            if self.left_out.is_some_and(|nth| number % nth == 0) {
                continue;
            }
            for again in 0..=self.repeats {
                let later = again * self.repeated_ns;
                let id = number + again * 1_000_000;
                let _ = writeln!(
                    calls,
                    "[{}, {}, {global}, {id}, 2, 0]",
                    start + later,
                    end + later
                );
                let _ = writeln!(
                    kernels,
                    "[{}, {}, 0, 1, 7, {id}, {}, 1]",
                    end + 100 + later,
                    end + 900 + later,
                    7_i64 << 24
                );
            }
        }
        let kernel = match self.collectives {
            true => "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            false => "scale",
        };
        let events = events.trim_end_matches(',');
        let json = format!(
            "{{\"schemaVersion\":1,{}\"traceEvents\":[{events}]}}",
            self.members
        );
        let mut text = format!(
            "StringIds id value\n[1, \"{kernel}\"]\n[2, \"cudaLaunchKernel_v7000\"]\n\
             CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue\n{calls}\
             CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n{kernels}"
        );
        if let Some(session_ns) = self.session_ns {
            let _ = writeln!(
                text,
                "TARGET_INFO_SESSION_START_TIME utcEpochNs\n[{session_ns}]"
            );
        }
        Files::new(&[("a.json", json.as_bytes()), ("a.sqlite", &database(&text))])
    }
}

#[test]
fn the_files_own_launches_are_a_second_witness_and_are_left_out() {
    let own = Planted {
        own: Some("cudaLaunchKernel"),
        ..Planted::default()
    };
    let trace = own.files().trace();
    let file = joined(&trace);
    assert_eq!((file.own_launches, file.own_launches_matched), (200, 200));
    assert!(file.to_string().contains("200 of its own 200 launches"));
    assert_eq!(trace.tables.dispatches.len(), 200);
    assert_eq!(trace.tables.submissions.len(), 200);
    let mut notes = trace.manifest.notes.iter();
    assert!(notes.any(|note| note.contains("calls (200) and GPU work (200) of its own")));
    let other = Planted {
        own: Some("cudaGraphLaunch"),
        ..Planted::default()
    };
    let text = other.files().refusal();
    assert!(
        text.contains("only 0 of the 200 launches that a.json has itself"),
        "{text}"
    );
}

#[test]
fn clocks_that_drift_apart_are_followed() {
    for (fast_ppm, later_us) in [(200, 0), (-300, 0), (250, 700), (0, 0)] {
        let drifting = Planted {
            fast_ppm,
            later_us,
            launches: 3_000,
            ..Planted::default()
        };
        let trace = drifting.files().trace();
        let file = joined(&trace);
        assert!(file.launches_inside >= 2_998, "{fast_ppm}: {file}");
        assert!(
            (file.drift_ns_per_s + fast_ppm * 1_000).abs() <= 3_000,
            "{fast_ppm}: {file}"
        );
        let says_so = file.to_string().contains("µs more each second");
        assert_eq!(says_so, fast_ppm != 0, "{file}");
        // Each kernel's call lies inside of the operator that launched it.
        let markers = &trace.tables.markers;
        let submissions = &trace.tables.submissions;
        let inside = submissions.start_ns.iter().filter(|start_ns| {
            (0..markers.start_ns.len()).any(|row| {
                let start = markers.start_ns.at(row).unwrap();
                (start..start + markers.duration_ns.at(row).unwrap()).contains(start_ns)
            })
        });
        assert!(inside.count() >= 2_998, "{fast_ppm}");
    }
}

#[test]
fn launches_that_the_export_lost_are_told() {
    let lost = Planted {
        own: Some("cudaLaunchKernel"),
        left_out: Some(3),
        ..Planted::default()
    };
    let trace = lost.files().trace();
    let file = joined(&trace);
    assert!(
        file.own_launches - file.own_launches_matched >= 60,
        "{file}"
    );
    assert_eq!(file.launches_inside, file.launches);
    let missing = Planted {
        left_out: Some(1),
        ..lost
    };
    assert!(missing.files().refusal().contains("no launches"));
}

#[test]
fn older_files_are_joined_by_the_epoch_or_refused_with_a_reason() {
    // Files from before 2024 have no base, and times since 1970.
    let since_1970 = Planted {
        members: String::new(),
        later_us: SESSION_NS / 1000,
        ..Planted::default()
    };
    assert_eq!(joined(&since_1970.files().trace()).launches_inside, 200);
    let since_boot = Planted {
        members: String::new(),
        ..Planted::default()
    };
    let text = since_boot.files().refusal();
    assert!(
        text.contains("a.json does not say from when its times count"),
        "{text}"
    );
    let without_session = Planted {
        session_ns: None,
        ..Planted::default()
    };
    let text = without_session.files().refusal();
    assert!(
        text.contains("a.sqlite does not say when its session began"),
        "{text}"
    );
    for session_ns in [i64::MIN, i64::MAX, 0] {
        let odd = Planted {
            session_ns: Some(session_ns),
            ..Planted::default()
        };
        let text = odd.files().refusal();
        assert!(text.contains("are not joined"), "{text}");
    }
}

#[test]
fn the_processes_of_merged_ranks_are_known_without_their_prefix() {
    let merged = Planted {
        pid: "\"[TP00] 7\"",
        ..Planted::default()
    };
    let trace = merged.files().trace();
    assert_eq!(joined(&trace).launches_inside, 200);
    assert_eq!(markers(&trace, "operator", 7), 200);
}

#[test]
fn files_without_operators_are_refused_or_left_out() {
    let planted = Planted::default().files();
    let front_end = planted.folder.path().join("front.json");
    let text = "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"serve\",\"pid\":9,\"tid\":9,\"ts\":1,\"dur\":5}]}";
    std::fs::write(&front_end, text).unwrap();
    let export = planted.paths[1].clone();
    let folder = tempfile::tempdir().unwrap();
    let alone = [front_end.clone(), export];
    let error = imported(&alone, &Options::default(), folder.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no operators") || error.contains("does not say from when"),
        "{error}"
    );
    let all = [&planted.paths[..], &[front_end]].concat();
    let trace = trace(&all);
    assert_eq!(joined(&trace).launches_inside, 200);
    let mut notes = trace.manifest.notes.iter();
    assert!(notes.any(|note| note.contains("front.json was left out")));
}

#[test]
fn another_process_of_the_export_is_not_taken() {
    let options = Options {
        pid: Some(8),
        ..Options::default()
    };
    let error = Planted::default().files().import(&options).unwrap_err();
    assert!(
        error.to_string().contains("a.sqlite has no launches"),
        "{error}"
    );
}

#[test]
fn cut_and_damaged_pairs_are_survived() {
    let planted = Planted {
        own: Some("cudaLaunchKernel"),
        ..Planted::default()
    };
    let files = planted.files();
    let [json, export] = [0, 1].map(|index| std::fs::read(&files.paths[index]).unwrap());
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..60 {
        let (mut json, mut export) = (json.clone(), export.clone());
        let damaged = if round % 2 == 0 {
            &mut json
        } else {
            &mut export
        };
        match round % 3 {
            0 => damaged.truncate(random.usize(1..damaged.len())),
            _ => {
                for _ in 0..20 {
                    let at = random.usize(..damaged.len());
                    damaged[at] = random.u8(..);
                }
            }
        }
        let files = Files::new(&[("a.json", &json), ("a.sqlite", &export)]);
        // Whatever is left is imported or refused with a sentence.
        if let Err(error) = files.import(&Options::default()) {
            assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn strong_drifts_and_launches_outside_of_operators_are_followed() {
    for (fast_ppm, without_operator) in [(450, None), (-420, None), (120, Some(15))] {
        let drifting = Planted {
            fast_ppm,
            without_operator,
            launches: 3_000,
            pause_ns: 400_000,
            ..Planted::default()
        };
        let trace = drifting.files().trace();
        let file = joined(&trace);
        assert!(file.launches_inside >= 2_750, "{fast_ppm}: {file}");
        let error = file.drift_ns_per_s + fast_ppm * 1_000;
        assert!(error.abs() <= 3_000, "{fast_ppm}: {file}");
    }
}

#[test]
fn a_file_with_few_launches_is_refused_for_that() {
    let short = Planted {
        operators: 11,
        launches: 400,
        ..Planted::default()
    };
    let text = short.files().refusal();
    assert!(text.contains("only 11 launches are in the time"), "{text}");
}

#[test]
fn launches_that_repeat_themselves_are_never_told_as_sure() {
    // The whole program runs three times, and the file is of one of them.
    let repeated = Planted {
        repeats: 2,
        repeated_ns: 60_000_000,
        ..Planted::default()
    };
    let note = "That the file is of this repetition rests on the clocks of both files alone";
    let trace = repeated.files().trace();
    assert!(trace.manifest.notes.iter().any(|text| text.contains(note)));
    let file = joined(&trace);
    assert!(
        file.next_best_share.is_some_and(|share| share > 0.95),
        "{file}"
    );
    // A clock that is wrong by one repetition cannot be told from one that is right.
    let wrong = Planted {
        later_us: 60_000,
        ..repeated
    };
    let trace = wrong.files().trace();
    assert!(trace.manifest.notes.iter().any(|text| text.contains(note)));
    // Clocks that do not agree decide nothing.
    let apart = Planted {
        later_us: 700,
        ..wrong
    };
    let text = apart.files().refusal();
    assert!(
        text.contains("which repetition the file is of cannot be told"),
        "{text}"
    );
    let once = Planted::default().files().trace();
    assert!(!once.manifest.notes.iter().any(|text| text.contains(note)));
}

#[test]
fn collectives_of_the_file_are_placed_around_the_launches_of_the_export() {
    let planted = Planted {
        collectives: true,
        ..Planted::default()
    };
    let trace = planted.files().trace();
    let tables = &trace.tables;
    let mut collectives = 0;
    for row in 0..tables.markers.len() {
        let start_ns = tables.markers.start_ns.at(row);
        let payload = tables.markers.payload[row].as_deref().unwrap_or_default();
        if payload.starts_with("NCCL communicator ID=") {
            assert!(payload.contains("Message size [bytes]=1024"), "{payload}");
            let mut starts = tables.submissions.start_ns.iter();
            assert!(starts.any(|ns| Some(*ns) == start_ns));
            collectives += 1;
        }
    }
    assert_eq!(collectives, 200);
}
