//! Inputs of several sections, each of which is a tag, its length (two bytes, the low one first) and its bytes. Any
//! bytes can be read as sections.

use crate::bytes::MutateBytes;
use fastrand::Rng;

/// A section of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The tag, whose meaning depends on the target.
    pub tag: u8,
    /// The content, at most 65,535 bytes.
    pub bytes: Vec<u8>,
}

/// Reads the sections of an input; the last one may be cut.
pub fn read(mut input: &[u8]) -> Vec<Section> {
    let mut sections = Vec::new();
    while let [tag, low, high, rest @ ..] = input {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (bytes, behind) = rest.split_at(length);
        sections.push(Section {
            tag: *tag,
            bytes: bytes.to_vec(),
        });
        input = behind;
    }
    sections
}

/// Writes sections as an input.
pub fn write(sections: &[Section]) -> Vec<u8> {
    let mut input = Vec::new();
    for Section { tag, bytes } in sections {
        let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
        input.push(*tag);
        input.extend((bytes.len() as u16).to_le_bytes());
        input.extend(bytes);
    }
    input
}

/// Changes one section, or doubles, moves or removes sections.
pub fn change(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    let mut sections = read(input);
    if sections.is_empty() {
        sections.push(Section {
            tag: rng.u8(..),
            bytes: Vec::new(),
        });
    }
    let at = rng.usize(0..sections.len());
    let to = rng.usize(0..sections.len());
    let end = (at + rng.usize(1..=8)).min(sections.len());
    match rng.u8(0..16) {
        0 => sections.swap(at, to),
        1 => drop(sections.drain(at..end)),
        2 => {
            let copy = sections[at..end].to_vec();
            sections.splice(to..to, copy).for_each(drop);
        }
        3 => sections[at].tag = sections[to].tag,
        4 => sections[at].tag ^= 1 << rng.u8(0..8),
        5 => {
            // The start of one section is joined with the end of another.
            let other = sections[to].bytes.clone();
            let from = rng.usize(0..=other.len());
            let keep = rng.usize(0..=sections[at].bytes.len());
            sections[at].bytes.truncate(keep);
            sections[at].bytes.extend(&other[from..]);
        }
        6 => {
            let mut order: Vec<Section> = sections.drain(at..end).collect();
            rng.shuffle(&mut order);
            sections.splice(at..at, order).for_each(drop);
        }
        _ => mutate_bytes(&mut sections[at].bytes, rng),
    }
    *input = write(&sections);
}
