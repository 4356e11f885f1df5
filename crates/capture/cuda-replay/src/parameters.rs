//! Names memory by the parameters that lead to it: `p0` is the first parameter of a kernel, `p1+16` the word at byte 16 of
//! the second.

use gapscope_capture::cuda::MemoryPlace;
use gapscope_capture::model::MemoryId;

use crate::error::Error;
use crate::session::Session;

/// The most parameters that are named for one memory.
const MAX_NAMES: usize = 3;
/// The size of a pointer.
const WORD: usize = 8;

/// A pointer among the parameters of a launch.
struct Pointer {
    /// Such as `p0`.
    name: String,
    memory: MemoryId,
    /// The byte of the memory that it points to.
    offset: u64,
}

/// Returns the names of the parameters that lead to a byte of a memory, with the offset of the byte from there, and the name
/// of a global.
pub fn leading_to(
    session: &Session<'_>,
    stage: usize,
    memory: MemoryId,
    offset: u64,
) -> Vec<(String, u64)> {
    let place = session
        .capture
        .memories
        .get(&memory)
        .map(|memory| &memory.place);
    if let Some(MemoryPlace::Global { name, .. }) = place {
        return vec![(name.clone(), offset)];
    }
    let mut leading: Vec<_> = (pointers(session, stage).into_iter())
        .filter(|pointer| pointer.memory == memory && pointer.offset <= offset)
        .map(|pointer| (pointer.name, offset - pointer.offset))
        .collect();
    // Of several tensors in one allocation, the last one before the byte is the likeliest.
    leading.sort_by_key(|(_, distance)| *distance);
    leading.truncate(MAX_NAMES);
    leading
}

/// Returns the memory and the byte that a text names: `p0`, `p1+16`, the name of a global, or the number of a memory.
pub fn find(session: &Session<'_>, stage: usize, text: &str) -> Result<(MemoryId, u64), Error> {
    if let Some(pointer) = pointers(session, stage)
        .into_iter()
        .find(|one| one.name == text)
    {
        return Ok((pointer.memory, pointer.offset));
    }
    let memories = &session.capture.memories;
    let module = session.stage(stage).launch.module;
    let mut globals = session.capture.globals(module);
    if let Some((memory, _)) = globals.find(|(_, name)| *name == text) {
        return Ok((memory.id, 0));
    }
    let by_number = text.parse().ok().map(MemoryId);
    if let Some(memory) = by_number.filter(|id| memories.contains_key(id)) {
        return Ok((memory, 0));
    }
    let mut names: Vec<_> = pointers(session, stage)
        .into_iter()
        .map(|one| one.name)
        .collect();
    names.extend(
        session
            .capture
            .globals(module)
            .map(|(_, name)| name.to_owned()),
    );
    let there = match names.is_empty() {
        true => "its parameters have no pointer".to_owned(),
        false => format!("it has {}", names.join(", ")),
    };
    let launch = session.stage(stage).number;
    Err(Error::Unsupported(format!(
        "launch {launch} has no memory `{text}`: {there}"
    )))
}

/// Returns the pointers among the parameters of a launch. Without the layout from the driver the parameters are one.
fn pointers(session: &Session<'_>, stage: usize) -> Vec<Pointer> {
    let launch = session.stage(stage).launch;
    let bytes = &launch.parameters;
    let layout = session.modules.kernel(launch).ok();
    let layout = layout.and_then(|kernel| kernel.parameters.clone());
    let layout = layout.unwrap_or_else(|| vec![(0, bytes.len() as u64)]);
    let mut all = Vec::new();
    for (index, (start, size)) in layout.into_iter().enumerate() {
        let (start, size) = (start as usize, size as usize);
        for at in (start..start.saturating_add(size)).step_by(WORD) {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<WORD>());
            let Some(word) = word else { break };
            let address = u64::from_le_bytes(*word);
            let relocation = launch.relocations.iter().find(|one| one.at as usize == at);
            let found = match relocation {
                Some(relocation) => {
                    let global = session.capture.memories.get(&relocation.memory);
                    global.map(|global| (global.id, address.wrapping_sub(global.address)))
                }
                None => session.capture.allocation_at(address),
            };
            let Some((memory, offset)) = found else {
                continue;
            };
            let name = match at - start {
                0 => format!("p{index}"),
                offset => format!("p{index}+{offset}"),
            };
            all.push(Pointer {
                name,
                memory,
                offset,
            });
        }
    }
    all
}
