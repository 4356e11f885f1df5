//! Feeds events of a hook (gapscope's library in a recorded program) in any order and with any values to the
//! assembler, which makes rows of them. Each section is an event: the lowest two bits of its tag are the group of
//! events, and the others are the thread. The tag of the first section gives the sampling mode.

use super::assembly::Assembly;
use crate::outcome::Choice;
use crate::{Target, sections};
use gapscope_spool::event::Event;
use gapscope_spool::ids::Thread;
use gapscope_trace::manifest::SamplingMode;

/// The target.
pub const TARGET: Target = Target {
    name: "events",
    read: |input| {
        assemble(input);
    },
    mutate: sections::change,
};

/// Reads an input and returns the number of its events and of those that could be decoded.
pub fn assemble(input: &[u8]) -> (usize, usize) {
    let sections = sections::read(input);
    let Some((first, events)) = sections.split_first() else {
        return (0, 0);
    };
    let mut decoded = 0;
    let mut assembly = Assembly::new(mode(first.tag));
    let process = assembly.assembler.add_process(1, 0);
    for section in events {
        let thread = Thread(u32::from(section.tag >> 2));
        if let Some(event) = Event::decode(u32::from(section.tag & 3), &section.bytes) {
            assembly.apply(process, thread, event);
            decoded += 1;
        }
    }
    assembly.end(process);
    assembly.show(Choice::from_input(input));
    (events.len(), decoded)
}

/// Returns the sampling mode with a number.
pub(super) fn mode(number: u8) -> SamplingMode {
    match number % 3 {
        0 => SamplingMode::Dispatch,
        1 => SamplingMode::CommandBuffer,
        _ => SamplingMode::DispatchSerialised,
    }
}
