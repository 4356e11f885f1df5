//! Tests submissions that wait for each other by semaphores.

use super::Program;
use super::program::Commands;
use gapscope_spool::event::*;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{ProcessId, SubmissionId};
use gapscope_trace::tables::Table;

#[test]
fn waits_find_the_submission_that_signals() {
    let of = |semaphore, value| SemaphoreValue {
        semaphore: hook::Semaphore(semaphore),
        value,
    };
    let mut program = Program::new();
    program.record(5, &Commands::begun().end());
    // Submission 0 signals binary semaphore 1. Submission 1 waits for it and for a value of semaphore 2 that
    // submission 2 signals later.
    program.submit_to(1, &[], &[], &[of(1, 0)]);
    program.submit_to(2, &[], &[of(1, 0), of(2, 7)], &[]);
    program.submit_to(1, &[], &[], &[of(2, 10)]);
    // Submission 3 waits for the first signal that reaches its value, and for the host.
    program.submit_to(1, &[], &[], &[of(2, 20)]);
    program.event(VulkanEvent::HostSignal {
        semaphore: of(3, 5),
        at_ns: 777,
    });
    program.submit_to(2, &[], &[of(2, 9), of(3, 4)], &[]);
    // Nothing signals these semaphores.
    program.submit_to(2, &[], &[of(1, 0), of(4, 1)], &[]);
    let (_, tables) = program.finish();
    let rows: Vec<_> = (0..tables.dependencies.len())
        .map(|row| tables.dependencies.row(row))
        .map(|d| (d.submission.0, d.waits_for.map(|id| id.0), d.host_signal_ns))
        .collect();
    assert_eq!(
        rows,
        [
            (1, Some(0), None),
            (1, Some(2), None),
            (4, Some(2), None),
            (4, None, Some(777)),
            (5, None, None),
            (5, None, None),
        ]
    );
}

#[test]
fn a_call_names_the_submission_that_it_waited_for() {
    let mut program = Program::new();
    program.submit_to(1, &[], &[], &[]);
    let second = hook::Submission(program.now_ns as u64);
    program.submit_to(2, &[], &[], &[]);
    let wait = |program: &mut Program, waits_for| {
        program.event(VulkanEvent::HostCall {
            call: HostCallKind::WaitFences,
            function: None,
            span: Span::between(program.now_ns, program.now_ns + 10),
            count: 1,
            busy_ns: 10,
            queue: Some(hook::Queue(2)),
            bytes: None,
            result: 0,
            waits_for,
        });
        program.now_ns += 10;
    };
    wait(&mut program, Some(second));
    wait(&mut program, None);
    // The event of this submission was lost.
    wait(&mut program, Some(hook::Submission(1 << 40)));
    let (_, tables) = program.finish();
    assert_eq!(
        tables.host_calls.waits_for,
        [Some(SubmissionId(1)), None, None]
    );
}

#[test]
fn a_submission_does_not_wait_for_its_own_signal() {
    let at = |value| SemaphoreValue {
        semaphore: hook::Semaphore(1),
        value,
    };
    let mut program = Program::new();
    // Submission 0 waits for the value that submission 1 signals, and then signals a greater one.
    program.submit_to(1, &[], &[at(5)], &[at(6)]);
    program.submit_to(2, &[], &[], &[at(5)]);
    let (_, tables) = program.finish();
    assert_eq!(tables.dependencies.waits_for, [Some(SubmissionId(1))]);
}

#[test]
fn a_signal_that_a_presentation_waited_for_is_not_taken_for_a_later_one() {
    let semaphore = hook::Semaphore(1);
    let of = SemaphoreValue {
        semaphore,
        value: 0,
    };
    let mut program = Program::new();
    program.submit_to(1, &[], &[], &[of]);
    program.event(VulkanEvent::SemaphoreEnd { semaphore });
    // The presentation engine has signalled the semaphore since, for an acquired image.
    program.submit_to(1, &[], &[of], &[]);
    let (_, tables) = program.finish();
    assert_eq!(tables.dependencies.waits_for, [None]);
}

#[test]
fn nothing_is_kept_of_a_semaphore_that_is_gone() {
    let mut program = Program::new();
    let state = |program: &mut Program| {
        // Of submissions, a bounded number is kept.
        program.assembler.processes[ProcessId(0)]
            .submissions
            .clear();
        postcard::to_allocvec(&program.assembler).expect("a state")
    };
    // The ids start large, because the serialised state writes numbers in as many bytes as they need.
    let mut semaphore = 1 << 20;
    let mut use_some = |program: &mut Program| {
        for value in [0, 1, 0, 9] {
            semaphore += 1;
            let of = SemaphoreValue {
                semaphore: hook::Semaphore(semaphore),
                value,
            };
            program.submit_to(1, &[], &[], &[of]);
            if value == 9 {
                let later = SemaphoreValue { value: 10, ..of };
                program.submit_to(1, &[], &[later], &[]);
            }
            program.event(VulkanEvent::SemaphoreEnd {
                semaphore: of.semaphore,
            });
        }
    };
    (0..100).for_each(|_| use_some(&mut program));
    let before = state(&mut program).len();
    (0..1000).for_each(|_| use_some(&mut program));
    let grown = state(&mut program).len() - before;
    assert!(grown < 16, "{grown} bytes more");
    let (_, tables) = program.finish();
    assert_eq!(tables.dependencies.len(), 1100, "waits that nobody met");
    assert!(
        tables
            .dependencies
            .waits_for
            .iter()
            .all(|value| value.is_none())
    );
}
