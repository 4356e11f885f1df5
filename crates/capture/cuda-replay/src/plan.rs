//! Orders the steps of a capture for a replay: the content that goes before everything, and the launches, each with the
//! content before it and the outcomes after it.

use std::collections::BTreeSet;

use gapscope_capture::cuda::{CudaCapture, CudaStep, Launch};
use gapscope_capture::model::{Content, Outcome};

use crate::error::Error;

/// A launch with what goes with it.
pub struct Stage<'a> {
    /// Number of the launch in the capture, from 0.
    pub number: u64,
    /// Content that replaces bytes which an earlier launch of the window could reach, or which an allocation had that has
    /// ended.
    pub contents: Vec<&'a Content>,
    pub launch: &'a Launch,
    pub outcomes: Vec<&'a Outcome>,
}

/// The steps of a capture.
pub struct Plan<'a> {
    /// Content of memory that no launch before it can reach, so that all of it can be there at the begin.
    pub first: Vec<&'a Content>,
    pub stages: Vec<Stage<'a>>,
}

impl<'a> Plan<'a> {
    pub fn new(capture: &'a CudaCapture) -> Result<Plan<'a>, Error> {
        let mut plan = Plan {
            first: Vec::new(),
            stages: Vec::new(),
        };
        // The bytes of an allocation that has replaced another one are put there when the program did so.
        let mut reached: BTreeSet<_> = capture.replaced().map(|(_, new)| new).collect();
        let mut contents = Vec::new();
        for step in &capture.steps {
            match step {
                CudaStep::Content(content) if reached.contains(&content.memory) => {
                    contents.push(content);
                }
                CudaStep::Content(content) => plan.first.push(content),
                CudaStep::Launch(launch) => {
                    reached.extend(launch.reached.iter().copied());
                    plan.stages.push(Stage {
                        number: plan.stages.len() as u64,
                        contents: std::mem::take(&mut contents),
                        launch,
                        outcomes: Vec::new(),
                    });
                }
                CudaStep::Outcome(outcome) => {
                    if let Some(stage) = plan.stages.last_mut() {
                        reached.insert(outcome.memory);
                        stage.outcomes.push(outcome);
                    }
                }
            }
        }
        match plan.stages.is_empty() {
            true => Err(Error::Empty),
            false => Ok(plan),
        }
    }

    /// Returns the place of a launch in the stages.
    pub fn index(&self, launch: u64) -> Result<usize, Error> {
        let count = self.stages.len() as u64;
        match launch < count {
            true => Ok(launch as usize),
            false => Err(Error::NoSuchLaunch {
                asked: launch,
                count,
            }),
        }
    }
}
