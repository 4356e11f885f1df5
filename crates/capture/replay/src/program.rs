//! What a replay runs: the steps of a capture, whole or up to a dispatch.

use gapscope_capture::model::{Command, Content, Dispatch, Outcome, Submission};
use gapscope_capture::{Capture, Step};

/// How much of a capture runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// Up to this dispatch, which is the last that runs.
    Until(u64),
    /// What comes before this dispatch.
    Before(u64),
}

/// The steps that run.
#[derive(Debug)]
pub struct Program<'a> {
    pub steps: Vec<ProgramStep<'a>>,
    /// Dispatches that run.
    pub dispatches: u64,
    /// Commands that run.
    pub commands: usize,
}

/// A step.
#[derive(Debug)]
pub enum ProgramStep<'a> {
    Content(&'a Content),
    Submission(Submitted<'a>),
    Outcome(&'a Outcome),
}

/// A submission, or the beginning of one.
#[derive(Debug)]
pub struct Submitted<'a> {
    /// Which of the capture's, from 0.
    pub index: usize,
    pub submission: &'a Submission,
    pub buffers: Vec<Buffered<'a>>,
}

/// A command buffer of a submission.
#[derive(Debug)]
pub struct Buffered<'a> {
    /// Its batch waits for a semaphore, and it is the batch's first.
    pub waits: bool,
    pub commands: &'a [Command],
    /// The number of its first dispatch.
    pub first_dispatch: u64,
    /// The place of its first command among [`Capture::executed`].
    pub first_command: usize,
}

impl<'a> Program<'a> {
    /// The part of a capture that is asked for.
    pub fn of(capture: &'a Capture, extent: Extent) -> Program<'a> {
        let mut program = Program {
            steps: Vec::new(),
            dispatches: 0,
            commands: 0,
        };
        let mut index = 0;
        for step in &capture.steps {
            match step {
                Step::Content(content) => program.steps.push(ProgramStep::Content(content)),
                Step::Outcome(outcome) => program.steps.push(ProgramStep::Outcome(outcome)),
                Step::Submission(submission) => {
                    let is_whole = program.submit(capture, index, submission, extent);
                    index += 1;
                    if !is_whole {
                        break;
                    }
                }
            }
        }
        program
    }

    /// Its submissions.
    pub fn submissions(&self) -> impl Iterator<Item = &Submitted<'a>> {
        self.steps.iter().filter_map(|step| match step {
            ProgramStep::Submission(submitted) => Some(submitted),
            _ => None,
        })
    }

    /// Its dispatches, with their numbers.
    pub fn dispatched(&self) -> impl Iterator<Item = (u64, &'a Dispatch)> {
        self.submissions()
            .flat_map(|submitted| submitted.dispatches())
    }

    /// Adds a submission; false: it is not there to its end.
    fn submit(
        &mut self,
        capture: &'a Capture,
        index: usize,
        submission: &'a Submission,
        extent: Extent,
    ) -> bool {
        let mut buffers = Vec::new();
        let mut is_whole = true;
        'all: for batch in &submission.batches {
            let mut waits = !batch.waits.is_empty();
            for id in &batch.commands {
                let all = capture.commands[id].as_slice();
                let first_dispatch = self.dispatches;
                let first_command = self.commands;
                self.commands += all.len();
                let end = self.end(all, extent);
                buffers.push(Buffered {
                    waits,
                    commands: &all[..end.unwrap_or(all.len())],
                    first_dispatch,
                    first_command,
                });
                waits = false;
                if end.is_some() {
                    is_whole = false;
                    break 'all;
                }
            }
        }
        self.steps.push(ProgramStep::Submission(Submitted {
            index,
            submission,
            buffers,
        }));
        is_whole
    }

    /// Counts the dispatches of a command buffer; how many of its commands run, if not all.
    fn end(&mut self, commands: &[Command], extent: Extent) -> Option<usize> {
        for (index, command) in commands.iter().enumerate() {
            if !matches!(command, Command::Dispatch(_)) {
                continue;
            }
            if extent == Extent::Before(self.dispatches) {
                return Some(index);
            }
            self.dispatches += 1;
            if extent == Extent::Until(self.dispatches - 1) {
                return Some(index + 1);
            }
        }
        None
    }
}

impl<'a> Submitted<'a> {
    /// Its dispatches, with their numbers.
    pub fn dispatches(&self) -> impl Iterator<Item = (u64, &'a Dispatch)> + use<'a> {
        let buffers: Vec<_> = self
            .buffers
            .iter()
            .map(|b| (b.first_dispatch, b.commands))
            .collect();
        buffers.into_iter().flat_map(|(first, commands)| {
            let dispatches = commands.iter().filter_map(|command| match command {
                Command::Dispatch(dispatch) => Some(dispatch),
                _ => None,
            });
            (first..).zip(dispatches)
        })
    }
}
