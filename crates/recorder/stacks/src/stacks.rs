//! The numbers of stacks.

use crate::heard::{Frame, Heard};
use rustc_hash::FxHashMap;

/// More are not kept: a program that makes its functions while it runs has no end of them.
const MOST_STACKS: usize = 1 << 17;

/// The stacks that were heard of, over all processes.
#[derive(Debug, Default)]
pub struct Numbers {
    frames: FxHashMap<Frame, u32>,
    stacks: FxHashMap<Box<[u32]>, u32>,
}

impl Numbers {
    /// The number of a stack; says the stack where it is new. `None`: it has no frame, or there are too many.
    pub fn of(&mut self, frames: Vec<Frame>, heard: &mut Vec<Heard>) -> Option<u32> {
        if frames.is_empty() {
            return None;
        }
        let is_full = self.stacks.len() >= MOST_STACKS || self.frames.len() >= MOST_STACKS;
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
        heard.push(Heard::Stack { id, frames });
        self.stacks.insert(key.into(), id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_model::FrameKind;

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
        let (mut numbers, mut heard) = (Numbers::default(), Vec::new());
        assert_eq!(numbers.of(Vec::new(), &mut heard), None);
        for _ in 0..2 {
            assert_eq!(numbers.of(vec![frame(0), frame(1)], &mut heard), Some(0));
            assert_eq!(numbers.of(vec![frame(1), frame(0)], &mut heard), Some(1));
        }
        assert_eq!(heard.len(), 2);
    }

    #[test]
    fn there_is_an_end_of_stacks() {
        let (mut numbers, mut heard) = (Numbers::default(), Vec::new());
        for function in 0..MOST_STACKS as u32 {
            assert_eq!(
                numbers.of(vec![frame(function)], &mut heard),
                Some(function)
            );
        }
        assert_eq!(numbers.of(vec![frame(0), frame(1)], &mut heard), None);
        assert_eq!(numbers.of(vec![frame(u32::MAX)], &mut heard), None);
        assert_eq!(numbers.of(vec![frame(7)], &mut heard), Some(7));
        assert_eq!(heard.len(), MOST_STACKS);
    }
}
