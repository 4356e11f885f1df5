//! Events of a hook in any order and with any values, and what the session makes of them: sections, one an event. Of the tag the
//! lowest two bits are the group of events, the others the thread. The first section's tag says how the GPU was sampled.

use super::assembly::Assembly;
use crate::outcome::Choice;
use crate::{Target, sections};
use gapscope_spool::event::Event;
use gapscope_spool::ids::Thread;
use gapscope_trace::manifest::SamplingMode;

/// See the module.
pub const TARGET: Target = Target {
    name: "events",
    read: |input| {
        assemble(input);
    },
    mutate: sections::change,
};

/// Reads an input. Gives how many events it has, and how many of them could be decoded.
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

/// A sampling mode by its number.
pub(super) fn mode(number: u8) -> SamplingMode {
    match number % 3 {
        0 => SamplingMode::Dispatch,
        1 => SamplingMode::CommandBuffer,
        _ => SamplingMode::DispatchSerialised,
    }
}
