//! The spool as hooks write it and the session reads it: order, loss, bounds, forks and damage.

use gapscope_spool::event::Event;
use gapscope_spool::reader::{Damage, ProcessSpool, Until};
use gapscope_spool::{Spool, SpoolReader};
use proptest::prelude::*;
use std::borrow::Cow;
use std::path::Path;

const NO_LIMIT: u64 = u64::MAX;

fn hello() -> Event<'static> {
    Event::Process {
        pid: std::process::id(),
        parent: 0,
        executable: Cow::Borrowed("test"),
        arguments: Vec::new(),
        hook: Cow::Borrowed("test"),
    }
}

fn spool(root: &Path, limit: u64) -> &'static Spool {
    let spool = Spool::create(root.to_owned(), limit, true, hello).expect("the folder is writable");
    Box::leak(Box::new(spool))
}

fn free(memory: u32) -> Event<'static> {
    Event::Free { memory, at_ns: 0 }
}

fn only_process(root: &Path) -> ProcessSpool {
    let mut processes = SpoolReader::open(root).new_processes().expect("readable");
    assert_eq!(processes.len(), 1);
    processes.remove(0)
}

/// The ids of the `Free` events, in the order of delivery.
fn frees(process: &mut ProcessSpool, until: Until) -> Vec<u32> {
    let mut ids = Vec::new();
    let note = |_, event: Event<'_>| {
        if let Event::Free { memory, .. } = event {
            ids.push(memory);
        }
    };
    process.drain(until, note).expect("readable");
    ids
}

/// Each test has a thread of its own, so that its log is its own.
fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"))
}

#[test]
fn events_of_threads_come_in_the_order_in_which_they_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        for turn in 0..200 {
            // Each thread ends before the next begins: that is an order.
            std::thread::scope(|scope| {
                scope.spawn(|| spool.write(&free(turn)));
            });
        }
    });
    let mut process = only_process(folder.path());
    assert_eq!(
        frees(&mut process, Until::Committed),
        (0..200).collect::<Vec<_>>()
    );
    assert_eq!(process.damage(), Damage::default());
}

#[test]
fn a_drain_while_threads_write_delivers_everything_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seen = in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        let mut process = only_process(folder.path());
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|part| {
                    scope.spawn(move || {
                        (0..20_000).for_each(|n| spool.write(&free(part * 20_000 + n)))
                    })
                })
                .collect();
            let mut seen = Vec::new();
            while writers.iter().any(|w| !w.is_finished()) {
                seen.extend(frees(&mut process, Until::Committed));
                process.delete_consumed();
            }
            seen.extend(frees(&mut process, Until::End));
            seen
        })
    });
    seen.sort_unstable();
    assert_eq!(seen, (0..80_000).collect::<Vec<_>>());
}

#[test]
fn records_past_the_limit_are_dropped_and_counted_and_draining_makes_room() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), 2 << 20);
        let big = vec![7; 300_000];
        let source = Event::Source {
            hash: [0; 16],
            format: gapscope_spool::event::SourceFormat::SpirV,
            bytes: &big,
        };
        (0..20).for_each(|_| spool.write(&source));
        let mut process = only_process(folder.path());
        let mut sources = 0;
        let mut drain = |process: &mut ProcessSpool| {
            let count =
                |_, event: Event<'_>| sources += u32::from(matches!(event, Event::Source { .. }));
            process.drain(Until::Committed, count).expect("readable");
            process.delete_consumed();
        };
        drain(&mut process);
        spool.write(&source);
        drain(&mut process);
        let lost = process.damage().missing_records;
        assert!(lost > 0, "the limit holds");
        assert_eq!(u64::from(sources) + lost, 21);
        assert_eq!(
            process
                .control()
                .page()
                .dropped
                .load(std::sync::atomic::Ordering::Relaxed),
            lost
        );
    });
}

#[test]
fn a_record_larger_than_a_chunk_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let big = vec![9; 5 << 20];
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        spool.write(&Event::Commands {
            recording: 1,
            commands: &big,
        });
        spool.write(&free(1));
    });
    let mut lengths = Vec::new();
    let mut process = only_process(folder.path());
    let note = |_, event: Event<'_>| {
        if let Event::Commands { commands, .. } = event {
            lengths.push(commands.len());
        }
    };
    process.drain(Until::End, note).expect("readable");
    assert_eq!(lengths, [5 << 20]);
}

#[test]
fn a_forked_child_has_a_folder_and_a_greeting_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        spool.write(&free(1));
        // SAFETY: the child only writes to its spool and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            spool.write(&free(2));
            // SAFETY: leaves without running handlers of the test.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: waits for our child.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        spool.write(&free(3));
    });
    let mut processes = SpoolReader::open(folder.path())
        .new_processes()
        .expect("readable");
    assert_eq!(processes.len(), 2);
    let of = |process: &mut ProcessSpool| {
        let (mut greetings, mut ids) = (0, Vec::new());
        let note = |_, event: Event<'_>| match event {
            Event::Process { .. } => greetings += 1,
            Event::Free { memory, .. } => ids.push(memory),
            _ => {}
        };
        process.drain(Until::End, note).expect("readable");
        (greetings, ids)
    };
    let parent = processes
        .iter()
        .position(|p| p.pid() == std::process::id())
        .expect("the parent's");
    assert_eq!(of(&mut processes[parent]), (1, vec![1, 3]));
    assert_eq!(of(&mut processes[1 - parent]), (1, vec![2]));
}

#[test]
fn a_reader_that_resumes_at_a_position_delivers_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        (0..10).for_each(|n| spool.write(&free(n)));
        let mut first = only_process(folder.path());
        assert_eq!(frees(&mut first, Until::Committed).len(), 10);
        let position = first.position();
        (10..13).for_each(|n| spool.write(&free(n)));
        let mut second = only_process(folder.path());
        second.resume_at(position);
        assert_eq!(frees(&mut second, Until::End), [10, 11, 12]);
        assert_eq!(second.damage(), Damage::default());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a crash or a bad disk leaves: no panic, and every record is delivered or counted.
    #[test]
    fn damaged_files_never_panic_and_every_record_is_accounted_for(
        records in 1u32..400,
        cut in 0.0f64..1.0,
        flips in prop::collection::vec((64usize..8192, any::<u8>()), 0..20),
        truncate in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        in_thread(|| {
            let spool = spool(folder.path(), NO_LIMIT);
            (0..records).for_each(|n| spool.write(&free(n)));
        });
        let mut process = only_process(folder.path());
        let chunk = std::fs::read_dir(process.folder()).expect("readable")
            .filter_map(|e| e.ok().map(|e| e.path()))
            .find(|p| p.extension().is_some_and(|e| e == "chunk")).expect("one chunk");
        let mut bytes = std::fs::read(&chunk).expect("readable");
        for (at, value) in flips {
            bytes[at] = value;
        }
        if truncate {
            let length = 64 + ((bytes.len() - 64) as f64 * cut / 64.0) as usize;
            bytes.truncate(length);
        }
        std::fs::write(&chunk, bytes).expect("writable");
        let mut delivered = 0;
        process.drain(Until::End, |_, _| delivered += 1).expect("readable");
        let damage = process.damage();
        // The greeting and the thread's name are records too.
        prop_assert!(delivered + damage.missing_records + damage.undecodable_records >= u64::from(records) + 2);
    }

    #[test]
    fn any_bytes_are_an_event_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Event::decode(&bytes);
    }
}
