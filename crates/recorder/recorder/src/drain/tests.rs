//! Tests that a session that dies at any point of a checkpoint loses nothing and writes nothing twice.

use super::checkpoint::STATE_FILE;
use super::*;
use crate::{Recovered, made_up, recover};
use gapscope_spool::event::{Api, Command, CommonEvent, NO_QUERY, Op};
use gapscope_spool::ids as hook;
use gapscope_spool::{Spool, monotonic_ns};
use gapscope_trace::ids::CommandBufferId;
use gapscope_trace::tables::Table;
use std::borrow::Cow;
use std::fs;
use std::sync::atomic::Ordering::SeqCst;

/// A recorded program: this process, which writes to the spool as a hook does.
struct Program {
    spool: Spool,
    submitted: u32,
}

impl Program {
    fn start(folder: &Path) -> Program {
        let spool = Spool::create(spool_folder(folder), 1 << 30, true, || {
            made_up::process("vulkan")
        })
        .unwrap();
        spool.write(&made_up::device(1, Api::Vulkan, 1.0));
        spool.write(&made_up::queue(1, 1));
        Program {
            spool,
            submitted: 0,
        }
    }

    fn sample(&self) {
        self.spool.write(&made_up::clock_sample(monotonic_ns()));
    }

    /// Submits command buffers of three dispatches each, and sees them finished.
    fn run(&mut self, command_buffers: u32) {
        self.sample();
        for _ in 0..command_buffers {
            self.submitted += 1;
            let commands = [
                Command::new(Op::Begin, 0, [0; 4]),
                Command::new(Op::Dispatch, 1, [1, 1, 1, 0]),
                Command::new(Op::Dispatch, 3, [1, 1, 1, 0]),
                Command::new(Op::Dispatch, NO_QUERY, [1, 1, 1, 0]),
                Command::new(Op::End, 5, [0; 4]),
            ];
            let begin_ns = monotonic_ns();
            let ticks = [1, 2, 3, 4, 5, 6].map(|tick| begin_ns as u64 + tick);
            let times = (begin_ns, begin_ns + 1000);
            made_up::run_command_buffer(&self.spool, self.submitted, &commands, times, &ticks);
        }
    }
}

/// Returns the path of a trace that does not exist yet, in a folder of its own.
fn new_trace() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.gapscope");
    (folder, trace)
}

fn header() -> RecordingHeader {
    RecordingHeader {
        command: vec!["program".to_owned()],
        keeps_arguments: true,
        mode: SamplingMode::Dispatch,
        names: Names::default(),
        stack_rate_hz: None,
        start_ns: monotonic_ns(),
        start_unix_ns: 0,
        session_pid: std::process::id(),
    }
}

/// The point at which the session dies.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Death {
    BeforeParts,
    BeforeState,
    BeforeDeletion,
    AfterDeletion,
}

#[test]
fn a_session_that_dies_in_a_checkpoint_is_recovered_exactly() {
    use Death::*;
    for death in [BeforeParts, BeforeState, BeforeDeletion, AfterDeletion] {
        // A log belongs to the thread that writes it and to one spool.
        let thread = std::thread::spawn(move || dies(death));
        thread.join().unwrap();
    }
}

fn dies(death: Death) {
    let (_folder, trace) = new_trace();
    let mut drain = Drain::create(&trace, header()).unwrap();
    let mut program = Program::start(&trace);
    // This is enough for several chunks, so that some are deleted.
    for _ in 0..3 {
        program.run(5_000);
        drain.drain().unwrap();
        drain.checkpoint().unwrap();
    }
    program.run(7_000);
    drain.drain().unwrap();
    if death != Death::BeforeParts {
        let parts = drain.close_parts().unwrap();
        if death != Death::BeforeState {
            drain.write_state(&parts, &[]).unwrap();
            if death != Death::BeforeDeletion {
                drain.delete_consumed();
            }
        }
    }
    std::mem::forget(drain);
    program.run(100);
    program.sample();
    let expected = u64::from(program.submitted);
    let recovered = recover(&trace, true).unwrap();
    let Recovered::Completed {
        dispatches, losses, ..
    } = recovered
    else {
        panic!("{death:?}: {recovered:?}");
    };
    assert_eq!(dispatches, expected * 3, "{death:?}");
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert_eq!(losses[0].kind, LossKind::DispatchTimes);
    assert_eq!(losses[0].count, expected, "those without queries");
    let (found, diagnostics) =
        gapscope_trace::read(&trace, &gapscope_trace::Selection::all()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert!(found.manifest.complete);
    let ids: Vec<CommandBufferId> = (0..expected).map(CommandBufferId).collect();
    assert_eq!(found.tables.command_buffers.id, ids, "{death:?}");
    assert_eq!(found.tables.submissions.len() as u64, expected);
    let timed = found.tables.dispatches.start_ns.iter().flatten().count() as u64;
    assert_eq!(timed, expected * 2);
    assert!(!spool_folder(&trace).exists());
    assert_eq!(recover(&trace, false).unwrap(), Recovered::AlreadyComplete);
}

#[test]
fn records_that_never_became_whole_are_counted_exactly() {
    std::thread::spawn(|| {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t.gapscope");
        let mut drain = Drain::create(&trace, header()).unwrap();
        let mut program = Program::start(&trace);
        program.run(10);
        drain.drain().unwrap();
        drain.checkpoint().unwrap();
        std::mem::forget(drain);
        // Three records were begun and not completed, two of them dropped at the limit.
        let page = program.spool.control().unwrap().page();
        page.next_sequence.fetch_add(3, SeqCst);
        page.dropped.fetch_add(2, SeqCst);
        program.run(10);
        let refused = recover(&trace, false).unwrap_err();
        let expected = format!("the recorded program (process {}) runs", std::process::id());
        assert!(refused.to_string().contains(&expected), "{refused}");
        let Recovered::Completed {
            dispatches, losses, ..
        } = recover(&trace, true).unwrap()
        else {
            panic!("it was not complete");
        };
        assert_eq!(dispatches, 60);
        let records: Vec<_> = losses
            .iter()
            .filter(|l| l.kind == LossKind::Records)
            .collect();
        assert_eq!(records.len(), 2, "{losses:?}");
        let count = |part: &str| {
            records
                .iter()
                .find(|l| l.reason.contains(part))
                .map(|l| l.count)
        };
        assert_eq!(count("limit"), Some(2));
        assert_eq!(count("killed"), Some(1));
    })
    .join()
    .unwrap();
}

#[test]
fn a_folder_without_a_checkpoint_is_refused_in_a_sentence() {
    let (_folder, trace) = new_trace();
    let drain = Drain::create(&trace, header()).unwrap();
    std::mem::forget(drain);
    let state = trace.join(STATE_FILE);
    let bytes = fs::read(&state).unwrap();
    for (content, expected) in [
        (Some(&b"\xff\xff\xff\xff\xff\xff"[..]), "damaged"),
        (Some(&b"\x63"[..]), "another version of gapscope"),
        (Some(&bytes[..bytes.len() / 2]), "damaged"),
        (None, "no checkpoint"),
    ] {
        match content {
            Some(content) => fs::write(&state, content).unwrap(),
            None => fs::remove_file(&state).unwrap(),
        }
        let error = recover(&trace, false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("t.gapscope"), "{error}");
    }
}

/// Reports of the sampler and of the hook become rows of the right process, each frame and each stack once.
#[test]
fn samples_of_threads_workers_and_hooks_become_rows() {
    use gapscope_spool::event::SampleSource;
    use gapscope_stacks::{Frame, Update as Heard};
    use gapscope_trace::tables::{FrameKind, ThreadState};

    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("t.gapscope");
    let mut drain = Drain::create(&folder, header()).unwrap();
    let mut program = Program::start(&folder);
    program.run(1);
    let (line, other) = (hook::Frame(1), hook::Frame(2));
    for (frame, line) in [(line, 7), (other, 9)] {
        program.spool.write(&CommonEvent::Frame {
            frame,
            function: Cow::Borrowed("step"),
            file: Cow::Borrowed("train.py"),
            line,
        });
    }
    let stack = |frames: &'static [hook::Frame]| CommonEvent::Stack {
        at_ns: 5,
        source: SampleSource::AfterWait,
        frames: Cow::Borrowed(frames),
    };
    program
        .spool
        .write(&stack(&[hook::Frame(1), hook::Frame(2)]));
    // This frame was never written.
    program.spool.write(&stack(&[hook::Frame(3)]));
    drain.drain().unwrap();
    let pid = std::process::id();
    let callers = drain.take_callers();
    assert_eq!(callers.len(), 1, "the thread that submitted");
    assert_eq!(callers[0].0, pid);
    let thread = callers[0].1;
    assert_eq!(drain.take_callers(), [], "it is told once");

    let frame = |line| Frame {
        kind: FrameKind::Python,
        function: Some("step".into()),
        file: Some("train.py".into()),
        line: Some(line),
        library: None,
        address: None,
    };
    let sample = |pid, stack| Heard::Sample {
        time_ns: 6,
        pid,
        thread,
        stack,
        state: ThreadState::Blocked,
        period_ns: 2_000_000,
        system_call: Some("futex".into()),
        gil_holder: None,
    };
    drain.take_stack_samples(vec![
        // These are the same lines as the hook's.
        Heard::Stack {
            id: 0,
            frames: vec![frame(9), frame(7)],
        },
        sample(pid, Some(0)),
        sample(pid, None),
        Heard::Worker {
            pid: 99,
            parent_pid: pid,
            executable: "python".to_owned(),
            arguments: vec![],
            start_ns: 1,
        },
        sample(99, Some(0)),
        // Nobody has recorded this process.
        sample(98, Some(0)),
        Heard::Loss {
            kind: LossKind::Stacks,
            pid: Some(pid),
            count: 1,
            reason: Cow::Borrowed("it may not be read"),
        },
    ]);
    drop(program);
    let mut losses = Vec::new();
    drain
        .finish(|manifest| losses.clone_from(&manifest.losses))
        .unwrap();
    let (trace, diagnostics) = gapscope_trace::read(&folder, &Selection::all()).unwrap();
    assert_eq!(diagnostics, []);
    let tables = &trace.tables;
    assert_eq!(tables.frames.line, [Some(9), Some(7)]);
    assert_eq!(tables.stacks.len(), 2);
    let stacks: Vec<_> = tables
        .samples
        .stack
        .iter()
        .map(|id| id.map(|id| id.0))
        .collect();
    assert_eq!(stacks, [Some(1), Some(1), None, Some(1)]);
    let sources = [SampleSource::AfterWait, SampleSource::Sampled];
    assert_eq!(tables.samples.source[..2], sources);
    let worker = trace
        .manifest
        .processes
        .iter()
        .find(|p| p.is_only_sampled());
    assert_eq!(
        worker.map(|worker| worker.id),
        Some(tables.samples.process[3])
    );
    let lost = |kind| {
        losses
            .iter()
            .find(|loss| loss.kind == kind)
            .map(|loss| loss.count)
    };
    assert_eq!(lost(LossKind::StackSamples), Some(1));
    assert_eq!(lost(LossKind::Stacks), Some(1));
}
