//! Programs that wait by asking again and again.

use crate::recorded::{Polls, Recorded};
use crate::stub::{Outcome, Stub, Truth};
use gapscope_spool::event::BETWEEN_POLLS_NS;
use std::collections::BTreeMap;

/// The thread and function of a poll.
type Asker = (u32, String);

/// Returns the program's polls by asker, in the order of time.
fn polled(outcome: &Outcome) -> BTreeMap<Asker, Vec<&Truth>> {
    let mut askers: BTreeMap<Asker, Vec<&Truth>> = BTreeMap::new();
    for truth in outcome.truth_of("call").into_iter().filter(|t| t.asks()) {
        let asker = (truth.number("thread"), truth.recorded_name().to_owned());
        askers.entry(asker).or_default().push(truth);
    }
    for polls in askers.values_mut() {
        polls.sort_by_key(|t| t.start_ns);
    }
    askers
}

/// Returns the recorded polls by asker, in the order of time.
fn recorded(process: &Recorded) -> BTreeMap<Asker, Vec<&Polls>> {
    let mut askers: BTreeMap<Asker, Vec<&Polls>> = BTreeMap::new();
    for polls in &process.polls {
        let asker = (polls.thread, polls.name.clone());
        askers.entry(asker).or_default().push(polls);
    }
    for polls in askers.values_mut() {
        polls.sort_by_key(|p| p.span.start_ns);
    }
    askers
}

/// Returns the polls of a thread that were made between two times.
fn between<'a, 'b>(polls: &'a [&'b Truth], begin_ns: i64, end_ns: i64) -> &'a [&'b Truth] {
    let first = polls.partition_point(|t| t.end_ns < begin_ns);
    let behind = polls.partition_point(|t| t.start_ns <= end_ns);
    &polls[first..behind]
}

/// Checks that each entry stands for the polls made in its time and has the last one's result, that no polls of a thread are missing
/// between its first and its last entry, and that no other call of the thread lies inside an entry.
fn entries_are_true(outcome: &Outcome, process: &Recorded) {
    let truth = polled(outcome);
    for (asker, entries) in recorded(process) {
        let truth = truth.get(&asker).expect("it asked");
        for polls in &entries {
            let meant = between(truth, polls.span.start_ns, polls.span.end_ns());
            assert_eq!(polls.count as usize, meant.len(), "{polls:?}");
            let last = meant.last().expect("at least one");
            assert_eq!(polls.result, last.number("result"), "{polls:?}");
            assert!((0..=polls.span.duration_ns).contains(&polls.busy_ns));
        }
        for pair in entries.windows(2) {
            assert!(pair[0].span.end_ns() <= pair[1].span.start_ns, "{pair:?}");
        }
        for call in process.calls.iter().filter(|c| c.thread == asker.0) {
            let behind = entries.partition_point(|p| p.span.end_ns() <= call.span.start_ns);
            let next = entries.get(behind);
            assert!(
                next.is_none_or(|polls| call.span.end_ns() <= polls.span.start_ns),
                "{call:?} in {next:?}"
            );
        }
    }
}

/// Returns the counts of all entries, by asker.
fn counts(process: &Recorded) -> BTreeMap<Asker, usize> {
    let entries = recorded(process).into_iter();
    entries
        .map(|(asker, polls)| (asker, polls.iter().map(|p| p.count as usize).sum()))
        .collect()
}

/// Checks that every poll is in an entry.
fn all_are_there(outcome: &Outcome, process: &Recorded) {
    process.assert_undamaged();
    entries_are_true(outcome, process);
    let truth = polled(outcome).into_iter();
    let truth: BTreeMap<Asker, usize> = truth.map(|(asker, p)| (asker, p.len())).collect();
    assert_eq!(counts(process), truth);
    let single = process.calls.iter().find(|c| c.name.ends_with("Query"));
    assert!(single.is_none(), "no other entries: {single:?}");
}

fn slow_kernels() -> Stub {
    Stub::new().with("FAKE_CUDA_KERNEL_NS", "3000000")
}

#[test]
fn polls_are_counted_and_folded_into_few_entries() {
    for (step, name) in [
        ("polls:5", "cuEventQuery"),
        ("runtime-polls:5", "cudaEventQuery"),
    ] {
        let outcome = Stub::new()
            .with("FAKE_CUDA_KERNEL_NS", "30000000")
            .run(&format!("{step} sync"));
        let process = outcome.whole();
        all_are_there(&outcome, process);
        let words = outcome.output.split_whitespace();
        let asked: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let [events, streams] = asked[..] else {
            panic!("{}", outcome.output)
        };
        for (name, asked, waits) in [(name, events, 5), ("cuStreamQuery", streams, 1)] {
            let asker = (process.pid, name.to_owned());
            let entries = &recorded(process)[&asker];
            let count: u64 = entries.iter().map(|p| u64::from(p.count)).sum();
            assert_eq!(count, asked, "{name}");
            let most = most_entries(&outcome, &polled(&outcome)[&asker]);
            assert!(
                (waits..=most).contains(&entries.len()),
                "{name}: {} of at most {most} for {asked} polls",
                entries.len()
            );
        }
    }
}

/// Returns the most entries that polls may be in by the stub's clock, in which each call of the program lasts at least as long as in the
/// hook's.
fn most_entries(outcome: &Outcome, polls: &[&Truth]) -> usize {
    let may_part = |pair: &&[&Truth]| {
        pair[1].end_ns - pair[0].start_ns > BETWEEN_POLLS_NS
            || pair[0].number("result") != pair[1].number("result")
    };
    let parted = polls.windows(2).filter(may_part).count();
    // A flush writes the polls so far, and the one during which it does so is by itself.
    1 + parted + 2 * outcome.truth_of("flush").len()
}

#[test]
fn polls_of_threads_that_ask_at_the_same_time_and_end_are_their_own() {
    // 300 threads are more than there are slots, so that some threads share one.
    for (threads, each) in [(2, 5), (300, 1)] {
        let outcome = slow_kernels().run(&format!("poll-threads:{threads}:{each} sync"));
        all_are_there(&outcome, outcome.whole());
        let askers = counts(outcome.only());
        assert_eq!(askers.len(), 2 * threads, "two functions of each");
    }
}

#[test]
fn polls_of_a_thread_that_has_ended_survive_a_sudden_end() {
    let outcome = slow_kernels().run("poll-threads:2:2 flushes:2 kill");
    all_are_there(&outcome, outcome.only());
}

#[test]
fn of_a_sudden_end_polls_lack_less_than_what_is_written_every_tick() {
    // A thread asks through ten ticks and does nothing else that would write its polls.
    let outcome = Stub::new()
        .with("FAKE_CUDA_KERNEL_NS", "200000000")
        .run("poll-while:flushes:10 kill");
    let process = outcome.only();
    process.assert_undamaged();
    entries_are_true(&outcome, process);
    let (truth, entries) = (polled(&outcome), recorded(process));
    let [(asker, entries)] = &entries.iter().collect::<Vec<_>>()[..] else {
        panic!("{entries:?}")
    };
    let (truth, last) = (&truth[*asker], entries.last().expect("some"));
    let written: usize = entries.iter().map(|p| p.count as usize).sum();
    let older = between(truth, 0, last.span.end_ns()).len();
    assert_eq!(written, older, "none of the older ones is missing");
    // A flush is complete before the next one begins.
    let flushes = outcome.truth_of("flush");
    let complete = flushes[flushes.len() - 2];
    let flushed = truth.partition_point(|t| t.end_ns < complete.start_ns);
    assert!(written >= flushed, "{written} of {flushed} polls are there");
}

#[test]
fn polls_that_go_on_across_a_window_are_recorded_in_it_alone() {
    let outcome = Stub::new()
        .with("GAPSCOPE_RECORDING", "0")
        .with("FAKE_CUDA_KERNEL_NS", "100000000")
        .run("poll-while:capture:flushes:2 poll-while:capture:calls:100 sync");
    let process = outcome.only();
    process.assert_undamaged();
    entries_are_true(&outcome, process);
    let (truth, entries) = (polled(&outcome), recorded(process));
    assert_eq!(truth.len(), 2, "each time another thread asked");
    assert!(entries.keys().eq(truth.keys()), "{entries:?}");
    for (asker, entries) in &entries {
        let (first, last) = (entries[0], entries[entries.len() - 1]);
        let meant = between(&truth[asker], first.span.start_ns, last.span.end_ns());
        let written: usize = entries.iter().map(|p| p.count as usize).sum();
        assert_eq!(written, meant.len(), "no hole inside the window");
        assert!(written < truth[asker].len(), "it began to ask before");
    }
}

#[test]
fn a_forked_child_writes_no_polls_of_its_parent_and_does_not_wait_for_its_threads() {
    // The last polls are not written yet when the program forks.
    let outcome = Stub::new().run("polls:2 fork-exit:nothing polls:2 sync");
    all_are_there(&outcome, outcome.whole());
    let outcome = Stub::new().run("poll-while:fork-exit:labels sync");
    assert!(outcome.status.success());
    let [parent, child] = &outcome.processes[..] else {
        panic!("{} processes", outcome.processes.len())
    };
    all_are_there(&outcome, parent);
    assert_eq!((child.labels.len(), child.polls.len()), (10, 0));
    child.assert_undamaged();
}
