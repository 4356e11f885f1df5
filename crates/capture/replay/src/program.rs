//! Selects the steps of a capture that a replay runs (contents of memory, submissions, and outcomes to compare with),
//! all or those up to a dispatch: a capture and an [`Extent`] go in, a [`Program`] comes out.

use gapscope_capture::model::{Command, Content, Dispatch, Outcome, Submission};
use gapscope_capture::{Capture, Step};

/// The part of a capture to run. Dispatches are numbered from 0, in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// The whole capture.
    #[default]
    Whole,
    /// The capture up to and with this dispatch.
    Until(u64),
    /// The capture up to, but without, this dispatch.
    Before(u64),
}

/// The steps of a capture that run.
#[derive(Debug)]
pub struct Program<'a> {
    pub steps: Vec<ProgramStep<'a>>,
    /// Number of dispatches that run.
    pub dispatches: u64,
    /// Number of commands in the command buffers that run, with those behind the end of the extent.
    pub commands: usize,
}

/// A step of a program: bytes that memory has from here on, work, or the hashes of memory after the work.
#[derive(Debug)]
pub enum ProgramStep<'a> {
    Content(&'a Content),
    Submission(ProgramSubmission<'a>),
    Outcome(&'a Outcome),
}

/// A submission of a program: a captured submission, or its first part.
#[derive(Debug)]
pub struct ProgramSubmission<'a> {
    /// Number of the submission in the capture, from 0.
    pub index: usize,
    pub submission: &'a Submission,
    /// The command buffers that run, batch after batch.
    pub buffers: Vec<ProgramBuffer<'a>>,
}

/// A command buffer of a submission.
#[derive(Debug)]
pub struct ProgramBuffer<'a> {
    /// Whether the command buffer is the first of its batch, and the batch waits for a semaphore.
    pub waits: bool,
    /// The commands that run.
    pub commands: &'a [Command],
    /// Number of the first dispatch in the command buffer.
    pub first_dispatch: u64,
    /// Index of the command buffer's first command among [`Capture::executed`].
    pub first_command: usize,
}

impl<'a> Program<'a> {
    /// Selects a part of a capture.
    pub fn new(capture: &'a Capture, extent: Extent) -> Program<'a> {
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

    /// Returns the submissions.
    pub fn submissions(&self) -> impl Iterator<Item = &ProgramSubmission<'a>> {
        self.steps.iter().filter_map(|step| match step {
            ProgramStep::Submission(submitted) => Some(submitted),
            _ => None,
        })
    }

    /// Returns pairs of a dispatch's number and the dispatch.
    pub fn dispatched(&self) -> impl Iterator<Item = (u64, &'a Dispatch)> {
        self.submissions()
            .flat_map(|submitted| submitted.dispatches())
    }

    /// Adds a submission, and returns whether all of it is in the extent.
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
                buffers.push(ProgramBuffer {
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
        self.steps.push(ProgramStep::Submission(ProgramSubmission {
            index,
            submission,
            buffers,
        }));
        is_whole
    }

    /// Counts the dispatches of a command buffer, and returns the number of its commands that run; `None` if all run.
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

impl<'a> ProgramSubmission<'a> {
    /// Returns the dispatches of the submission as pairs of number and dispatch.
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
