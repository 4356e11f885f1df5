//! Splits the bytes of an allocation into pieces, each with the access that last wrote it and the reads since.
//! Accesses go in, in the order of submission; the earlier accesses that each one depends on come out.

use std::collections::BTreeMap;
use std::ops::Range;

use super::EdgeKind;

/// An access of a node (a command), by the indices of the node and of the access in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccessRef {
    pub node: u32,
    pub access: u32,
}

/// The pieces of one allocation, by the offset of their first byte.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pieces: BTreeMap<u64, Piece>,
}

/// A range of bytes that the same accesses reached last.
#[derive(Debug, Clone, Default)]
struct Piece {
    /// Offset after the last byte.
    end: u64,
    /// The last write; `None` where nothing has been written so far.
    writer: Option<AccessRef>,
    /// The reads since the last write.
    readers: Vec<AccessRef>,
}

impl Segments {
    /// Adds an access `by` to a range, calls `depends` with the accesses that it depends on, and returns the number
    /// of pieces and reads that were examined. A write depends on the reads since the last write, or without such on
    /// that write, but not on accesses of its own node; a read depends on the last write.
    pub fn reach(
        &mut self,
        range: Range<u64>,
        by: AccessRef,
        writes: bool,
        depends: &mut dyn FnMut(AccessRef, Range<u64>, EdgeKind),
    ) -> u64 {
        let mut looks = 1;
        self.cut(range.start);
        self.cut(range.end);
        let inside: Vec<u64> = (self.pieces.range(range.clone()))
            .map(|(begin, _)| *begin)
            .collect();
        let mut at = range.start;
        for begin in &inside {
            let Some(piece) = self.pieces.get_mut(begin) else {
                continue;
            };
            let bytes = *begin..piece.end;
            looks += 1 + piece.readers.len() as u64;
            match writes {
                true => {
                    let mut nobody = true;
                    for reader in &piece.readers {
                        nobody = false;
                        if reader.node != by.node {
                            depends(*reader, bytes.clone(), EdgeKind::WriteAfterRead);
                        }
                    }
                    if let Some(writer) = piece.writer
                        && nobody
                        && writer.node != by.node
                    {
                        depends(writer, bytes.clone(), EdgeKind::WriteAfterWrite);
                    }
                }
                false => {
                    if let Some(writer) = piece.writer {
                        depends(writer, bytes.clone(), EdgeKind::ReadAfterWrite);
                    }
                    let known = (piece.readers.iter().rev())
                        .take_while(|reader| reader.node == by.node)
                        .any(|reader| *reader == by);
                    if !known {
                        piece.readers.push(by);
                    }
                }
            }
        }
        if writes {
            for begin in inside {
                self.pieces.remove(&begin);
            }
            let piece = Piece {
                end: range.end,
                writer: Some(by),
                readers: Vec::new(),
            };
            self.pieces.insert(range.start, piece);
            return looks;
        }
        // The gaps between the pieces, which no access reached before.
        let mut holes = Vec::new();
        for begin in inside {
            if at < begin {
                holes.push(at..begin);
            }
            at = self.pieces[&begin].end;
        }
        if at < range.end {
            holes.push(at..range.end);
        }
        for hole in holes {
            let piece = Piece {
                end: hole.end,
                writer: None,
                readers: vec![by],
            };
            self.pieces.insert(hole.start, piece);
        }
        looks
    }

    /// Splits the piece that contains a byte, so that a piece begins there.
    fn cut(&mut self, at: u64) {
        let Some((_, piece)) = self.pieces.range_mut(..at).next_back() else {
            return;
        };
        if piece.end > at {
            let rest = piece.clone();
            piece.end = at;
            self.pieces.insert(at, rest);
        }
    }
}
