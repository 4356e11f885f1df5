//! The numbers of stacks.

use crate::heard::{Frame, Heard};
use rustc_hash::FxHashMap;

/// More are not kept: a program that makes its functions while it runs has no end of them.
const MOST_STACKS: usize = 1 << 17;

/// The stacks that were heard of, over all processes.
#[derive(Debug, Default)]
pub struct Numbers {
    known: FxHashMap<Vec<Frame>, u32>,
}

impl Numbers {
    /// The number of a stack; says the stack where it is new. `None`: there are too many, or it has no frame.
    pub fn of(&mut self, frames: Vec<Frame>, heard: &mut Vec<Heard>) -> Option<u32> {
        if let Some(id) = self.known.get(&frames) {
            return Some(*id);
        }
        if self.known.len() >= MOST_STACKS || frames.is_empty() {
            return None;
        }
        let id = self.known.len() as u32;
        heard.push(Heard::Stack {
            id,
            frames: frames.clone(),
        });
        self.known.insert(frames, id);
        Some(id)
    }
}
