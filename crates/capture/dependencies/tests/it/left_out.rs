//! Leaves out all needless barriers together, and checks by an independent set of rules that all commands that were
//! ordered still are.

use proptest::prelude::*;

use gapscope_capture::model::{
    Barrier, BufferId, BufferRange, Command, Copy, CopyRegion, Dependency, Fill,
};
use gapscope_dependencies::{Need, Order};

use crate::program::Program;

const BUFFERS: u32 = 3;
const HALF: u64 = 64;
const COPY: u64 = 0x1000;
const COMPUTE: u64 = 0x800;
const READ: u64 = 0x800;
const WRITE: u64 = 0x1000;

/// A half of a buffer.
type BufferHalf = (u32, u64);

#[derive(Debug, Clone)]
enum Step {
    Copy(BufferHalf, BufferHalf),
    Fill(u32),
    Barrier {
        after: u64,
        available: bool,
        before: u64,
        visible: bool,
        only: Option<u32>,
    },
    Submit,
}

fn place() -> impl Strategy<Value = BufferHalf> {
    (0..BUFFERS, 0..2_u64)
}

fn step() -> impl Strategy<Value = Step> {
    let stages = || prop_oneof![4 => Just(COPY), 1 => Just(COMPUTE), 1 => Just(COPY | COMPUTE)];
    let scopes = (
        stages(),
        prop::bool::weighted(0.8),
        stages(),
        prop::bool::weighted(0.8),
    );
    let only = prop::option::weighted(0.3, 0..BUFFERS);
    prop_oneof![
        4 => (place(), place())
            .prop_filter("a copy inside of a buffer", |(from, to)| from.0 != to.0)
            .prop_map(|(from, to)| Step::Copy(from, to)),
        1 => (0..BUFFERS).prop_map(Step::Fill),
        5 => (scopes, only).prop_map(|((after, available, before, visible), only)| Step::Barrier {
            after, available, before, visible, only,
        }),
        1 => Just(Step::Submit),
    ]
}

fn command(step: &Step) -> Option<Command> {
    Some(match step {
        Step::Copy(from, to) => Command::Copy(Copy {
            from: BufferId(from.0),
            to: BufferId(to.0),
            regions: vec![CopyRegion {
                from: from.1 * HALF,
                to: to.1 * HALF,
                bytes: HALF,
            }],
        }),
        Step::Fill(buffer) => Command::Fill(Fill {
            range: whole(*buffer),
            value: 0,
        }),
        Step::Barrier {
            after,
            available,
            before,
            visible,
            only,
        } => {
            let dependency = Dependency {
                after_stages: *after,
                after_access: if *available { WRITE } else { 0 },
                before_stages: *before,
                before_access: if *visible { READ | WRITE } else { 0 },
            };
            Command::Barrier(Barrier {
                memory: Vec::from_iter(only.is_none().then_some(dependency)),
                buffers: only.iter().map(|one| (dependency, whole(*one))).collect(),
                ..Barrier::default()
            })
        }
        Step::Submit => return None,
    })
}

fn whole(buffer: u32) -> BufferRange {
    BufferRange::from_start(BufferId(buffer), 2 * HALF)
}

fn dependencies(steps: &[Step]) -> gapscope_dependencies::Dependencies {
    let mut program = Program::new(&[2 * HALF; BUFFERS as usize]);
    for commands in steps.split(|step| matches!(step, Step::Submit)) {
        program.submit(0, commands.iter().filter_map(command).collect());
    }
    program.dependencies()
}

/// Returns the places that a step reads and those that it writes.
fn reach(step: &Step) -> (Vec<BufferHalf>, Vec<BufferHalf>) {
    match step {
        Step::Copy(from, to) => (vec![*from], vec![*to]),
        Step::Fill(buffer) => (Vec::new(), vec![(*buffer, 0), (*buffer, 1)]),
        _ => (Vec::new(), Vec::new()),
    }
}

/// Returns whether the barriers between two steps order the later one's use of a place after the earlier one's.
fn follows(between: &[Step], place: BufferHalf, first_wrote: bool) -> bool {
    // Both steps run in the copy stage. The state is the stages that wait for the first step, and whether its writes
    // are available, and visible.
    let (mut waiting, mut available, mut visible) = (0, !first_wrote, !first_wrote);
    for step in between {
        let Step::Barrier {
            after,
            available: a,
            before,
            visible: v,
            only,
        } = step
        else {
            continue;
        };
        let is_after = after & COPY != 0;
        if !is_after && after & waiting == 0 {
            continue;
        }
        if only.is_none_or(|only| only == place.0) {
            let was = available;
            available |= is_after && *a;
            visible |= (was || is_after && *a) && before & COPY != 0 && *v;
        }
        waiting |= before;
    }
    waiting & COPY != 0 && visible
}

/// Returns the pairs of steps that reach a place that one of them writes, and which steps barriers order, also
/// through others. The pairs of `waited` are ordered as well.
fn ordered(steps: &[Step], waited: &[(usize, usize)]) -> (Vec<(usize, usize)>, Vec<Vec<bool>>) {
    let count = steps.len();
    let mut pairs = Vec::new();
    let mut order = vec![vec![false; count]; count];
    for to in 0..count {
        for from in 0..to {
            let ((read, written), (reads, writes)) = (reach(&steps[from]), reach(&steps[to]));
            let after_write = written
                .iter()
                .filter(|of| reads.contains(of) || writes.contains(of));
            let after_read = read.iter().filter(|of| writes.contains(of));
            let uses: Vec<(BufferHalf, bool)> = (after_write.map(|of| (*of, true)))
                .chain(after_read.map(|of| (*of, false)))
                .collect();
            if !uses.is_empty() {
                pairs.push((from, to));
                let between = &steps[from + 1..to];
                order[from][to] = uses.iter().all(|(of, wrote)| follows(between, *of, *wrote));
            }
        }
    }
    for (from, to) in waited {
        order[*from][*to] = true;
    }
    for middle in 0..count {
        for from in 0..middle {
            for to in middle + 1..count {
                order[from][to] |= order[from][middle] && order[middle][to];
            }
        }
    }
    (pairs, order)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_was_ordered_still_is(steps in prop::collection::vec(step(), 2..24)) {
        let found = dependencies(&steps);
        // The indices of needless barriers among the steps.
        let mut executed = 0;
        let mut needless = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            if matches!(step, Step::Submit) {
                continue;
            }
            let barrier = found.barriers.iter().find(|one| one.executed == executed);
            if barrier.is_some_and(|one| one.need == Need::Needless) {
                needless.push(number);
            }
            executed += 1;
        }
        let mut left = steps.clone();
        for number in &needless {
            // A barrier that orders nothing keeps the indices.
            left[*number] = Step::Barrier { after: 0, available: false, before: 0, visible: false, only: None };
        }
        // The host must order what barriers do not between submissions, if the program is correct.
        let (pairs, barriers_alone) = ordered(&steps, &[]);
        let submission = |at: usize| steps[..at].iter().filter(|of| matches!(of, Step::Submit)).count();
        let is_by_host = |(from, to): &(usize, usize)| {
            !barriers_alone[*from][*to] && submission(*from) < submission(*to)
        };
        let waited: Vec<_> = pairs.iter().copied().filter(is_by_host).collect();
        let ((pairs, before), (_, after)) = (ordered(&steps, &waited), ordered(&left, &waited));
        for (from, to) in pairs {
            prop_assert!(
                !before[from][to] || after[from][to],
                "{from} and {to} of {steps:?} without {needless:?}"
            );
        }
        let again = dependencies(&left);
        let covered = |of: &gapscope_dependencies::Dependencies| {
            of.orders.iter().filter(|order| **order == Order::Barrier).count()
        };
        prop_assert_eq!(covered(&found), covered(&again));
        prop_assert_eq!(&found.hazards, &again.hazards);
    }
}
