//! The files of a spool, through which a hook hands events over: sections, of which the first is the control page of
//! a process and each other one a chunk (a file of records) of the thread in its tag.

use super::assembly::Assembly;
use super::events;
use crate::outcome::Choice;
use crate::{Target, scratch, sections};
use gapscope_spool::SpoolReader;
use gapscope_spool::reader::DrainUntil;

/// The target.
pub const TARGET: Target = Target {
    name: "spool",
    read: |input| {
        drain(input);
    },
    mutate: sections::change,
};

/// The size of a control page.
const PAGE_BYTES: usize = 4096;

/// Reads an input as the recorder does, first what is committed and then the rest, and returns the number of
/// delivered records.
pub fn drain(input: &[u8]) -> u64 {
    let sections = sections::read(input);
    let Some((control, chunks)) = sections.split_first() else {
        return 0;
    };
    let root = scratch::folder();
    let folder = root.path().join("p1-1");
    std::fs::create_dir(&folder).expect("a folder can be made");
    let mut page = control.bytes.clone();
    page.resize(PAGE_BYTES, 0);
    scratch::file(&folder, "control", &page);
    for (number, chunk) in chunks.iter().enumerate() {
        let from = first_number(&chunk.bytes);
        let name = format!("t{}-{number:08}-{from}.chunk", chunk.tag);
        scratch::file(&folder, &name, &chunk.bytes);
    }
    let Ok(processes) = SpoolReader::open(root.path()).new_processes() else {
        return 0;
    };
    let mut delivered = 0;
    let mut assembly = Assembly::new(events::mode(control.tag));
    for mut spool in processes {
        let process = (assembly.assembler).add_process(spool.pid(), spool.start_ns());
        let _ = spool.control().rank();
        for until in [DrainUntil::Committed, DrainUntil::End] {
            let drained = spool.drain(until, |thread, event| {
                assembly.apply(process, thread, event);
            });
            delivered += drained.expect("the folder can be read");
        }
        assert!(
            delivered <= input.len() as u64 / 16,
            "{delivered} records of {} bytes",
            input.len()
        );
        assert!(spool.damage().missing_records <= spool.position());
        spool.delete_consumed();
        assembly.end(process);
    }
    assembly.show(Choice::from_input(input));
    delivered
}

/// Returns the number in the name of a chunk file: that of its first record, plus a part of the header that is always
/// zero.
fn first_number(chunk: &[u8]) -> u64 {
    let at = |from: usize| {
        let bytes = chunk.get(from..from + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    at(72).unwrap_or(0).wrapping_add(at(40).unwrap_or(0))
}
