//! Finds the Python interpreter of a process: `/proc/PID/maps` and its files go in, a reader comes out. Files named
//! like a library of Python are tried first, then the program, then files named like a program of Python.

use super::Reader;
use crate::elf::Interpreters;
use crate::memory::Memory;
use crate::procfs::{MappedFile, mapped_files, open_mapped};
use gapscope_model::python::{Layout, TABLE_BYTES, Unsupported, Version};
use std::fs;
use std::io;
use std::path::Path;

/// The outcome of a search.
#[derive(Debug)]
pub enum Attachment {
    /// An interpreter, and the file that holds it.
    Python { reader: Box<Reader>, file: String },
    /// There is none, or it has not started.
    NotYet,
    /// An interpreter that cannot be read, and why.
    Refused(String),
}

/// Searches the interpreter of a process, whose folder in `proc` is `folder`.
pub fn attach(folder: &Path, pid: u32, interpreters: &mut Interpreters) -> io::Result<Attachment> {
    let maps = fs::read(folder.join("maps"))?;
    let program = fs::read_link(folder.join("exe")).unwrap_or_default();
    let files = mapped_files(&maps);
    let name = |file: &MappedFile| file.path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut candidates: Vec<(u8, &MappedFile)> = files
        .iter()
        .filter_map(|file| {
            let name = name(file);
            let rank = if name.starts_with("libpython") {
                0
            } else if Path::new(&file.path) == program {
                1
            } else if name.starts_with("python") {
                2
            } else {
                return None;
            };
            Some((rank, file))
        })
        .collect();
    candidates.sort_by_key(|(rank, _)| *rank);
    for (_, file) in candidates {
        match attach_to(folder, pid, file, interpreters)? {
            Attachment::NotYet => {}
            found => return Ok(found),
        }
    }
    Ok(Attachment::NotYet)
}

/// Makes a reader of the interpreter in one mapped file.
fn attach_to(
    folder: &Path,
    pid: u32,
    mapped: &MappedFile,
    interpreters: &mut Interpreters,
) -> io::Result<Attachment> {
    let Some(file) = open_mapped(folder, &mapped.path) else {
        return Ok(Attachment::NotYet);
    };
    let Some(found) = interpreters.get(&file) else {
        return Ok(Attachment::NotYet);
    };
    let bias = mapped.base.wrapping_sub(found.first_address);
    let here = |address: u64| bias.wrapping_add(address);
    let (Some(runtime), Some(version)) = (found.runtime.map(here), found.version.map(here)) else {
        let reason = "the version of Python is before 3.11".to_owned();
        return Ok(Attachment::Refused(reason));
    };
    let code_type = found.code_type.map(here);
    Ok(
        match read_at(Memory::new(pid), runtime, version, code_type)? {
            Ok(Some(reader)) => Attachment::Python {
                reader: Box::new(reader),
                file: mapped.path.clone(),
            },
            Ok(None) => Attachment::NotYet,
            Err(refused) => Attachment::Refused(refused.to_string()),
        },
    )
}

/// Returns a reader of the interpreter whose `_PyRuntime` and `Py_Version` are at these addresses; `None` where it has not started.
pub fn read_at(
    memory: Memory,
    runtime: u64,
    version: u64,
    code_type: Option<u64>,
) -> io::Result<Result<Option<Reader>, Unsupported>> {
    let version = Version(memory.word(version)? as u32);
    let mut table = [0; TABLE_BYTES];
    memory.read(runtime, &mut table)?;
    let layout = match Layout::for_version(version, &table) {
        Ok(layout) => layout,
        Err(refused) => return Ok(Err(refused)),
    };
    let has_begun = memory
        .word(runtime.wrapping_add(layout.first_interpreter))
        .and_then(|interpreter| match interpreter {
            0 => Ok(0),
            interpreter => memory.word(interpreter.wrapping_add(layout.first_thread)),
        })
        .is_ok_and(|thread| thread != 0);
    Ok(Ok(
        has_begun.then(|| Reader::new(memory, layout, runtime, code_type))
    ))
}
