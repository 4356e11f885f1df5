//! Gives each different stack a number and sends it once.

use crate::messages::{Frame, Update};
use rustc_hash::FxHashMap;

/// More stacks are not numbered: a program that makes functions at run time has no end of them.
const MAX_STACKS: usize = 1 << 17;

/// The numbers of all stacks and frames, over all processes.
#[derive(Debug, Default)]
pub struct StackIds {
    /// The frames by content, and the stacks by the numbers of their frames.
    frames: FxHashMap<Frame, u32>,
    stacks: FxHashMap<Box<[u32]>, u32>,
}

impl StackIds {
    /// Returns the number of a stack, and sends the stack if it is new. `None`: it has no frame, or there are too many stacks.
    pub fn number(&mut self, frames: Vec<Frame>, updates: &mut Vec<Update>) -> Option<u32> {
        if frames.is_empty() {
            return None;
        }
        let is_full = self.stacks.len() >= MAX_STACKS || self.frames.len() >= MAX_STACKS;
        let mut key = Vec::with_capacity(frames.len());
        for frame in &frames {
            let next = self.frames.len() as u32;
            key.push(match self.frames.get(frame) {
                Some(number) => *number,
                None if is_full => return None,
                None => *self.frames.entry(frame.clone()).or_insert(next),
            });
        }
        if let Some(id) = self.stacks.get(key.as_slice()) {
            return Some(*id);
        }
        if is_full {
            return None;
        }
        let id = self.stacks.len() as u32;
        updates.push(Update::Stack { id, frames });
        self.stacks.insert(key.into(), id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_model::FrameKind;

    /// Returns a frame that its function tells from others.
    fn frame(function: u32) -> Frame {
        Frame {
            kind: FrameKind::Python,
            function: Some(function.to_string().into()),
            file: None,
            line: None,
            library: None,
            address: None,
        }
    }

    #[test]
    fn a_stack_is_said_once() {
        let (mut numbers, mut updates) = (StackIds::default(), Vec::new());
        assert_eq!(numbers.number(Vec::new(), &mut updates), None);
        for _ in 0..2 {
            assert_eq!(
                numbers.number(vec![frame(0), frame(1)], &mut updates),
                Some(0)
            );
            assert_eq!(
                numbers.number(vec![frame(1), frame(0)], &mut updates),
                Some(1)
            );
        }
        assert_eq!(updates.len(), 2);
    }

    #[test]
    fn there_is_an_end_of_stacks() {
        let (mut numbers, mut updates) = (StackIds::default(), Vec::new());
        for function in 0..MAX_STACKS as u32 {
            assert_eq!(
                numbers.number(vec![frame(function)], &mut updates),
                Some(function)
            );
        }
        assert_eq!(numbers.number(vec![frame(0), frame(1)], &mut updates), None);
        assert_eq!(numbers.number(vec![frame(u32::MAX)], &mut updates), None);
        assert_eq!(numbers.number(vec![frame(7)], &mut updates), Some(7));
        assert_eq!(updates.len(), MAX_STACKS);
    }
}
