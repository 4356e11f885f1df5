//! Writes the spool like hooks and reads it like the session: order, loss, bounds, forks and damage.

use gapscope_spool::event::{CommonEvent, Event, VulkanEvent};
use gapscope_spool::reader::{Damage, DrainUntil, ProcessSpool};
use gapscope_spool::{Spool, SpoolReader, ids, pool};
use proptest::prelude::*;
use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const NO_LIMIT: u64 = u64::MAX;

fn hello() -> CommonEvent<'static> {
    CommonEvent::Process {
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

fn free(memory: u32) -> CommonEvent<'static> {
    CommonEvent::Free {
        memory: ids::Allocation(memory),
        at_ns: 0,
    }
}

fn processes(root: &Path) -> Vec<ProcessSpool> {
    SpoolReader::open(root).new_processes().expect("readable")
}

fn only_process(root: &Path) -> ProcessSpool {
    let mut processes = processes(root);
    assert_eq!(processes.len(), 1);
    processes.remove(0)
}

/// Returns the ids of the `Free` events, in the order of delivery.
fn frees(process: &mut ProcessSpool, until: DrainUntil) -> Vec<u32> {
    let mut ids = Vec::new();
    let note = |_, event: Event<'_>| {
        if let Event::Common(CommonEvent::Free { memory, .. }) = event {
            ids.push(memory.0);
        }
    };
    process.drain(until, note).expect("readable");
    ids
}

/// Runs each test in its own thread, which has its own log.
fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"))
}

#[test]
fn events_of_threads_come_in_the_order_in_which_they_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        for turn in 0..200 {
            // Each thread ends before the next begins, which orders their records.
            in_thread(|| spool.write(&free(turn)));
        }
    });
    let mut process = only_process(folder.path());
    assert_eq!(
        frees(&mut process, DrainUntil::Committed),
        (0..200).collect::<Vec<_>>()
    );
    assert_eq!(process.damage(), Damage::default());
}

/// Somebody may cut a file at any time, and touching a mapping of it would then end the session.
#[test]
fn no_file_of_the_spool_is_mapped_while_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        for turn in 0..100 {
            // This waits until the thread's log is unmapped, unlike the end of a scope.
            in_thread(|| spool.write(&free(turn)));
        }
    });
    let mut process = only_process(folder.path());
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
        let here = folder.path().to_str().expect("text");
        let files = maps.lines().filter(|line| line.contains(here));
        files.count()
    };
    // The writer's control page stays mapped.
    let before = mapped();
    let mut most = 0;
    let delivered = process
        .drain(DrainUntil::Committed, |_, _| most = mapped().max(most))
        .expect("readable");
    assert!(delivered >= 100);
    assert_eq!(most, before);
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
                seen.extend(frees(&mut process, DrainUntil::Committed));
                process.delete_consumed();
            }
            seen.extend(frees(&mut process, DrainUntil::End));
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
        let source = CommonEvent::Source {
            hash: [0; 16],
            format: gapscope_spool::event::SourceFormat::SpirV,
            bytes: &big,
        };
        (0..20).for_each(|_| spool.write(&source));
        let mut process = only_process(folder.path());
        let mut sources = 0;
        let mut drain = |process: &mut ProcessSpool| {
            let count = |_, event: Event<'_>| {
                sources += u32::from(matches!(event, Event::Common(CommonEvent::Source { .. })))
            };
            process
                .drain(DrainUntil::Committed, count)
                .expect("readable");
            process.delete_consumed();
        };
        drain(&mut process);
        spool.write(&source);
        drain(&mut process);
        let lost = process.damage().missing_records;
        assert!(lost > 0, "the limit holds");
        assert_eq!(u64::from(sources) + lost, 21);
        assert_eq!(process.control().page().dropped.load(Relaxed), lost);
    });
}

#[test]
fn a_record_larger_than_a_chunk_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let big = vec![9; 5 << 20];
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        spool.write(&VulkanEvent::Commands {
            recording: ids::CommandRecording(1),
            commands: &big,
        });
        spool.write(&free(1));
    });
    let mut lengths = Vec::new();
    let mut process = only_process(folder.path());
    let note = |_, event: Event<'_>| {
        if let Event::Vulkan(VulkanEvent::Commands { commands, .. }) = event {
            lengths.push(commands.len());
        }
    };
    process.drain(DrainUntil::End, note).expect("readable");
    assert_eq!(lengths, [5 << 20]);
}

#[test]
fn a_forked_child_has_a_folder_and_a_greeting_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        spool.write(&free(1));
        fork(|| spool.write(&free(2)));
        spool.write(&free(3));
    });
    let mut processes = processes(folder.path());
    assert_eq!(processes.len(), 2);
    let of = |process: &mut ProcessSpool| {
        let (mut greetings, mut ids) = (0, Vec::new());
        let note = |_, event: Event<'_>| match event {
            Event::Common(CommonEvent::Process { .. }) => greetings += 1,
            Event::Common(CommonEvent::Free { memory, .. }) => ids.push(memory.0),
            _ => {}
        };
        process.drain(DrainUntil::End, note).expect("readable");
        (greetings, ids)
    };
    let parent = processes
        .iter()
        .position(|p| p.pid() == std::process::id())
        .expect("the parent's");
    assert_eq!(of(&mut processes[parent]), (1, vec![1, 3]));
    assert_eq!(of(&mut processes[1 - parent]), (1, vec![2]));
}

/// Forks a child that does `work` and leaves, and waits for it.
fn fork(work: impl FnOnce()) {
    // SAFETY: the child only writes to its spool and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        work();
        // SAFETY: leaves without running handlers of the test.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: waits for our child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "the child's end");
}

#[test]
fn a_child_forked_while_other_threads_ask_is_recorded() {
    const CHILDREN: usize = 40;
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        std::hint::black_box(spool.recording());
                    }
                });
            }
            (0..CHILDREN).for_each(|_| fork(|| spool.write(&free(1))));
            over.store(true, Relaxed);
        });
    });
    let processes = processes(folder.path());
    assert_eq!(processes.len(), 1 + CHILDREN);
}

#[test]
fn a_child_that_cannot_make_its_spool_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("spool");
    std::fs::create_dir(&root).expect("a folder");
    in_thread(|| {
        let spool = spool(&root, NO_LIMIT);
        spool.write(&free(1));
        std::fs::rename(&root, folder.path().join("elsewhere")).expect("renamed");
        fork(|| {
            (0..3).for_each(|n| spool.write(&free(n)));
            assert!(!spool.recording());
            // The child's own child is counted, too.
            fork(|| spool.write(&free(1)));
        });
        let page = spool.control().unwrap().page();
        assert_eq!(page.unrecorded_children.load(Relaxed), 2);
    });
}

#[test]
fn many_threads_that_write_little_do_not_fill_the_spool() {
    const THREADS: u32 = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let spool = in_thread(|| spool(folder.path(), u64::from(THREADS + 1) << 16));
    for thread in 0..THREADS {
        in_thread(|| spool.write(&free(thread)));
    }
    let mut process = only_process(folder.path());
    assert_eq!(frees(&mut process, DrainUntil::Committed).len(), 100);
    assert_eq!(process.damage(), Damage::default());
}

/// Writes events after its thread's log has ended.
struct Late(RefCell<Option<&'static Spool>>);

impl Drop for Late {
    fn drop(&mut self) {
        if let Some(spool) = self.0.take() {
            (0..500).for_each(|n| spool.write(&free(n)));
        }
    }
}

#[test]
fn a_thread_whose_log_is_gone_writes_into_one_small_chunk() {
    thread_local! {
        static LATE: Late = const { Late(RefCell::new(None)) };
    }
    let folder = tempfile::tempdir().expect("a folder");
    let spool = in_thread(|| spool(folder.path(), NO_LIMIT));
    for _ in 0..2 {
        in_thread(|| {
            // A thread local that exists before the log is dropped after it.
            LATE.with(|late| *late.0.borrow_mut() = Some(spool));
            spool.write(&free(1000));
        });
    }
    let mut process = only_process(folder.path());
    let created = process.control().page().bytes_created.load(Relaxed);
    assert!(
        (3 << 16..(3 << 16) + (1 << 16)).contains(&created),
        "three threads have chunks of 64 KiB: {created}"
    );
    let ids = frees(&mut process, DrainUntil::Committed);
    let one: Vec<u32> = std::iter::once(1000).chain(0..500).collect();
    assert_eq!(ids, [one.clone(), one].concat());
    assert_eq!(process.damage(), Damage::default());
}

#[test]
fn a_number_that_its_thread_never_commits_does_not_stall_a_running_program() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        spool.write(&free(1));
        // Stands for a thread that is killed between taking a number and committing its record.
        spool
            .control()
            .unwrap()
            .page()
            .next_sequence
            .fetch_add(1, Relaxed);
        spool.write(&free(2));
        let mut process = only_process(folder.path());
        assert_eq!(frees(&mut process, DrainUntil::Committed), [1]);
        let begin = Instant::now();
        let mut more = Vec::new();
        while more.is_empty() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(50));
            more = frees(&mut process, DrainUntil::Committed);
        }
        assert_eq!(more, [2]);
        assert_eq!(process.damage().missing_records, 1);
        // The loss does not hide later drops.
        let page = spool.control().unwrap().page();
        page.next_sequence.fetch_add(1, Relaxed);
        page.dropped.fetch_add(1, Relaxed);
        spool.write(&free(3));
        assert_eq!(frees(&mut process, DrainUntil::Committed), [3]);
        assert_eq!(process.damage().missing_records, 2);
    });
}

#[test]
fn a_reader_that_resumes_at_a_position_delivers_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        (0..10).for_each(|n| spool.write(&free(n)));
        let mut first = only_process(folder.path());
        assert_eq!(frees(&mut first, DrainUntil::Committed).len(), 10);
        let position = first.position();
        (10..13).for_each(|n| spool.write(&free(n)));
        let mut second = only_process(folder.path());
        second.resume_at(position);
        assert_eq!(frees(&mut second, DrainUntil::End), [10, 11, 12]);
        assert_eq!(second.damage(), Damage::default());
    });
}

#[test]
fn of_records_with_one_number_in_two_logs_one_is_delivered() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        (0..10).for_each(|n| spool.write(&free(n)));
        let process = only_process(folder.path());
        for entry in std::fs::read_dir(process.folder()).expect("readable") {
            let path = entry.expect("readable").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if let Some((_, rest)) = name.split_once('-') {
                std::fs::copy(&path, path.with_file_name(format!("t1-{rest}"))).expect("a copy");
            }
        }
        for until in [DrainUntil::Committed, DrainUntil::End] {
            let mut process = only_process(folder.path());
            assert_eq!(frees(&mut process, until), Vec::from_iter(0..10));
            assert_eq!(frees(&mut process, DrainUntil::End), []);
            assert_eq!(process.damage(), Damage::default());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any crash or disk error nothing panics, and every record is delivered or counted.
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
        process.drain(DrainUntil::End, |_, _| delivered += 1).expect("readable");
        let damage = process.damage();
        // The first event and the thread's name are records, too.
        prop_assert!(delivered + damage.missing_records + damage.undecodable_records >= u64::from(records) + 2);
    }

    #[test]
    fn any_bytes_are_an_event_or_none(group in 0..5u32, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Event::decode(group, &bytes);
    }
}

/// Cuts every file of the spool to this length.
fn cut(folder: &Path, length: u64) {
    for entry in std::fs::read_dir(folder).expect("readable") {
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(entry.expect("readable").path());
        file.expect("writable").set_len(length).expect("cut");
    }
}

#[test]
fn what_is_left_of_cut_or_deleted_files_is_read() {
    for length in [Some(0), Some(500), None] {
        let folder = tempfile::tempdir().expect("a folder");
        in_thread(|| {
            let spool = spool(folder.path(), NO_LIMIT);
            (0..100).for_each(|n| spool.write(&free(n)));
        });
        let own = only_process(folder.path()).folder().to_owned();
        match length {
            Some(length) => cut(&own, length),
            None => std::fs::remove_file(own.join("control")).expect("deleted"),
        }
        // A folder that has just been made is taken to be incomplete.
        std::thread::sleep(Duration::from_millis(2100));
        let mut process = only_process(folder.path());
        assert_eq!(process.pid(), std::process::id());
        let read = frees(&mut process, DrainUntil::End);
        assert_eq!(read, Vec::from_iter(0..read.len() as u32), "{length:?}");
        match length {
            Some(0) => assert_eq!(read, []),
            Some(_) => assert!(!read.is_empty() && read.len() < 100, "{read:?}"),
            None => assert_eq!(read.len(), 100),
        }
    }
}

/// Puts a pool into the spool `root`, as the keeper of a session does.
fn ready_pool(root: &Path) -> std::fs::File {
    let file = pool::create("test").expect("memory");
    let target = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    for name in [
        pool::pool_name(1, 0),
        pool::spare_name(std::process::id() % pool::SPARES),
    ] {
        std::os::unix::fs::symlink(&target, root.join(name)).expect("a link");
    }
    file
}

#[test]
fn a_pool_holds_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let _memory = ready_pool(folder.path());
    let mut reader = SpoolReader::attach(folder.path());
    assert!(
        reader.new_processes().unwrap().is_empty(),
        "nobody has claimed it"
    );
    let mut seen = in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        let mut process = reader.new_processes().unwrap().remove(0);
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|part| {
                    scope.spawn(move || {
                        (0..20_000).for_each(|n| spool.write(&free(part * 20_000 + n)))
                    })
                })
                .collect();
            while writers.iter().any(|w| !w.is_finished()) {
                seen.extend(frees(&mut process, DrainUntil::Committed));
                // Somebody cuts and deletes whatever there is.
                let files = std::fs::read_dir(process.folder()).into_iter().flatten();
                for (number, file) in files.flatten().enumerate() {
                    let path = file.path();
                    drop(match number % 2 {
                        0 => std::fs::write(&path, ""),
                        _ => std::fs::remove_file(&path),
                    });
                }
                process.delete_consumed();
            }
        });
        seen.extend(frees(&mut process, DrainUntil::Committed));
        assert_eq!(process.damage(), Damage::default());
        seen
    });
    seen.sort_unstable();
    assert_eq!(seen.len(), 80_000);
    assert!((0..80_000).eq(seen));
}

#[test]
fn the_memory_of_a_pool_goes_back_to_the_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = ready_pool(folder.path());
    let used = || std::os::unix::fs::MetadataExt::blocks(&memory.metadata().unwrap()) * 512;
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        let mut process = SpoolReader::attach(folder.path())
            .new_processes()
            .unwrap()
            .remove(0);
        let write =
            |part: u32| move || (0..40_000).for_each(|n| spool.write(&free(part * 40_000 + n)));
        let writers: Vec<_> = (0..4).map(|part| std::thread::spawn(write(part))).collect();
        // A chunk is left where a thread ends, which `join` waits for.
        (writers.into_iter()).for_each(|writer| writer.join().expect("no panic"));
        assert!(used() > 3 << 20, "{} bytes", used());
        assert_eq!(frees(&mut process, DrainUntil::Committed).len(), 160_000);
    });
    // The threads of this test are gone, and so are their chunks.
    assert!(used() < 1 << 20, "{} bytes", used());
}

#[test]
fn what_a_pool_held_is_recovered_from_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let _memory = ready_pool(folder.path());
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        let mut session = SpoolReader::attach(folder.path())
            .new_processes()
            .unwrap()
            .remove(0);
        (0..20_000).for_each(|n| spool.write(&free(n)));
        assert_eq!(frees(&mut session, DrainUntil::Committed).len(), 20_000);
        (20_000..30_000).for_each(|n| spool.write(&free(n)));
        // The session is killed, and its keeper goes on.
        drop(session);
        let mut reader = SpoolReader::attach(folder.path());
        reader.new_processes().unwrap().remove(0).keep().unwrap();
    });
    let mut process = only_process(folder.path());
    assert!((0..30_000).eq(frees(&mut process, DrainUntil::End)));
    assert_eq!(process.damage(), Damage::default());
}

/// A record takes 24 bytes, so that the hole in place of the deleted ones ends at either half of 16 bytes.
#[test]
fn what_comes_after_a_deleted_file_is_recovered() {
    for deleted in [100, 101] {
        let folder = tempfile::tempdir().expect("a folder");
        let _memory = ready_pool(folder.path());
        in_thread(|| {
            let spool = spool(folder.path(), NO_LIMIT);
            let keep = || {
                let mut processes = SpoolReader::attach(folder.path()).new_processes().unwrap();
                let mut process = processes.remove(0);
                process.keep().unwrap();
                process.folder().to_owned()
            };
            (0..deleted).for_each(|n| spool.write(&free(n)));
            for file in std::fs::read_dir(keep()).unwrap().flatten() {
                if file.path().extension().is_some_and(|name| name == "chunk") {
                    std::fs::remove_file(file.path()).expect("deleted");
                }
            }
            (deleted..200).for_each(|n| spool.write(&free(n)));
            keep();
        });
        let read = frees(&mut only_process(folder.path()), DrainUntil::End);
        assert_eq!(read, Vec::from_iter(deleted..200));
    }
}

#[test]
fn a_full_pool_drops_and_counts_and_large_records_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let _memory = ready_pool(folder.path());
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        let big = vec![7; 8 << 20];
        let commands = || VulkanEvent::Commands {
            recording: ids::CommandRecording(1),
            commands: &big,
        };
        (0..20).for_each(|_| spool.write(&commands()));
        let mut process = SpoolReader::attach(folder.path())
            .new_processes()
            .unwrap()
            .remove(0);
        let mut kept = 0;
        let mut count = |_, event: Event<'_>| {
            kept += u64::from(matches!(event, Event::Vulkan(VulkanEvent::Commands { .. })));
        };
        process.drain(DrainUntil::Committed, &mut count).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        // There is room again.
        spool.write(&commands());
        process.drain(DrainUntil::Committed, &mut count).unwrap();
        let dropped = process.control().page().dropped.load(Relaxed);
        assert_eq!(
            (kept + dropped, process.damage().missing_records),
            (21, dropped)
        );
        assert!((10..=16).contains(&kept), "{kept}");
    });
}

/// A forked child in a sandbox would end where it opens a file, and one that records nothing opens none.
#[test]
fn a_child_that_filters_its_system_calls_is_counted_and_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let _memory = ready_pool(folder.path());
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        spool.write(&free(1));
        fork(|| assert!(!spool.has_begun()));
        spool
            .control()
            .unwrap()
            .page()
            .filters_system_calls
            .store(1, Relaxed);
        fork(|| spool.write(&free(2)));
        let page = spool.control().unwrap().page();
        assert_eq!(page.filtered_children.load(Relaxed), 1);
    });
}

#[test]
fn a_process_with_a_filter_of_its_own_gets_no_thread_of_a_hook() {
    let folder = tempfile::tempdir().expect("a folder");
    in_thread(|| {
        let spool = spool(folder.path(), NO_LIMIT);
        assert!(gapscope_spool::hook::spawn(|| ()).is_ok());
        fork(|| {
            let allow = libc::sock_filter {
                code: (libc::BPF_RET | libc::BPF_K) as u16,
                jt: 0,
                jf: 0,
                k: libc::SECCOMP_RET_ALLOW,
            };
            let program = libc::sock_fprog {
                len: 1,
                filter: (&raw const allow).cast_mut(),
            };
            // SAFETY: the child's own filter, which allows everything.
            let set = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                )
            };
            let begun = gapscope_spool::hook::spawn(|| ()).is_ok();
            spool.write(&free(1));
            let page = spool.control();
            // SAFETY: leaves without running handlers of the test.
            unsafe { libc::_exit(i32::from(set != 0 || begun || page.is_some())) }
        });
        let page = spool.control().unwrap().page();
        assert_eq!(page.filtered_children.load(Relaxed), 1);
    });
}

#[test]
fn after_a_chunk_could_not_be_made_the_next_try_waits_and_comes() {
    let root = tempfile::tempdir().unwrap();
    let spool = spool(root.path(), NO_LIMIT);
    in_thread(|| {
        spool.write(&free(1));
        let folder = only_process(root.path()).folder().to_owned();
        let moved = root.path().join("moved");
        std::fs::rename(&folder, &moved).unwrap();
        // More than fits into the first chunk.
        (0..10_000).for_each(|memory| spool.write(&free(memory)));
        let dropped = || spool.control().unwrap().page().dropped.load(Relaxed);
        assert!(dropped() > 0);
        std::fs::rename(&moved, &folder).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let before = dropped();
        spool.write(&free(1));
        assert_eq!(dropped(), before, "the chunk could be made again");
    });
}
