//! Writes frames, the page's answers with many rows: a JSON header that names the columns, then their raw numbers, in
//! the layout of `PROTOCOL.md`.

use crate::protocol::{ColumnHeader, ColumnType, FrameHeader};
use serde::Serialize;

/// The first bytes of every frame.
pub const MAGIC: &[u8; 4] = b"GSC1";

impl ColumnType {
    /// Returns the type of a column of durations in nanoseconds: `U32`, unless one of them is too long.
    pub fn of_durations(mut durations: impl Iterator<Item = i64>) -> ColumnType {
        match durations.any(|ns| ns > i64::from(u32::MAX)) {
            true => ColumnType::F64,
            false => ColumnType::U32,
        }
    }

    /// Returns the number of bytes of one value.
    const fn bytes(self) -> usize {
        match self {
            ColumnType::F64 => 8,
            ColumnType::U32 => 4,
            ColumnType::U8 => 1,
        }
    }
}

/// The header of a frame with the keys of frames of one kind.
#[derive(Serialize)]
struct Header<T> {
    #[serde(flatten)]
    frame: FrameHeader,
    #[serde(flatten)]
    of_kind: T,
}

/// A frame that is being filled, column by column in the order in which the header announces them.
#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    rows: usize,
    /// The start of each column in `bytes`, and its type.
    columns: Vec<(usize, ColumnType)>,
    /// The index of the column that is filled next.
    next: usize,
}

impl Frame {
    /// Starts a frame of `rows` rows, whose header has the keys of `of_kind` besides the columns.
    pub fn new(
        of_kind: impl Serialize,
        rows: usize,
        columns: &[(&'static str, ColumnType)],
    ) -> Frame {
        let mut end = 0;
        let columns = columns.iter().map(|&(name, r#type)| {
            let offset = end;
            end = (offset + rows * r#type.bytes()).next_multiple_of(8);
            ColumnHeader {
                name,
                r#type,
                offset,
            }
        });
        let columns = columns.collect();
        let header = Header {
            frame: FrameHeader { rows, columns },
            of_kind,
        };
        let mut bytes = head(&header);
        let data = bytes.len();
        bytes.resize(data + end, 0);
        let columns = header.frame.columns.iter();
        Frame {
            bytes,
            rows,
            columns: columns
                .map(|column| (data + column.offset, column.r#type))
                .collect(),
            next: 0,
        }
    }

    /// Returns the bytes of the next column, which must have been announced with this type.
    fn next(&mut self, kind: ColumnType) -> &mut [u8] {
        let (at, announced) = self.columns[self.next];
        assert_eq!(announced, kind, "columns are filled as they were announced");
        self.next += 1;
        &mut self.bytes[at..at + self.rows * kind.bytes()]
    }

    /// Fills the next column.
    pub fn f64(&mut self, values: impl Iterator<Item = f64>) {
        let (places, _) = self.next(ColumnType::F64).as_chunks_mut();
        for (place, value) in places.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
    }

    /// Fills the next column.
    pub fn u32(&mut self, values: impl Iterator<Item = u32>) {
        let (places, _) = self.next(ColumnType::U32).as_chunks_mut();
        for (place, value) in places.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
    }

    /// Fills the next column.
    pub fn u8(&mut self, values: impl Iterator<Item = u8>) {
        for (place, value) in self.next(ColumnType::U8).iter_mut().zip(values) {
            *place = value;
        }
    }

    /// Fills the next column with durations in nanoseconds, in the type that the column was announced with.
    pub fn durations(&mut self, durations: impl Iterator<Item = i64>) {
        match self.columns[self.next].1 {
            ColumnType::F64 => self.f64(durations.map(|ns| ns as f64)),
            _ => self.u32(durations.map(|ns| ns as u32)),
        }
    }

    /// Returns the bytes of the filled frame.
    pub fn finish(self) -> Vec<u8> {
        assert_eq!(self.next, self.columns.len(), "every column is filled");
        self.bytes
    }
}

/// Returns the bytes of a frame up to the data of its columns: [`MAGIC`], the length of the header in four bytes, and
/// the header, filled up with spaces to a multiple of eight bytes.
pub fn head(header: &impl Serialize) -> Vec<u8> {
    // Types of the protocol can all be written as JSON.
    let header = serde_json::to_string(header).unwrap_or_default();
    let length = header.len().next_multiple_of(8);
    let mut bytes = Vec::with_capacity(8 + length);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(8 + length, b' ');
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::protocol::TrackHeader;
    use serde_json::Value;

    /// Reads a frame as the page does.
    pub(crate) fn parse(bytes: &[u8]) -> (Value, &[u8]) {
        assert_eq!(&bytes[..4], MAGIC);
        let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        assert_eq!(length % 8, 0);
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        (header, &bytes[8 + length..])
    }

    /// A column of a frame, as numbers.
    pub(crate) fn column(bytes: &[u8], name: &str) -> Vec<f64> {
        let (header, data) = parse(bytes);
        let rows = header["rows"].as_u64().unwrap() as usize;
        let columns = header["columns"].as_array().unwrap();
        let column = columns
            .iter()
            .find(|column| column["name"] == name)
            .unwrap();
        let at = column["offset"].as_u64().unwrap() as usize;
        assert_eq!(at % 8, 0);
        (0..rows)
            .map(|row| match column["type"].as_str().unwrap() {
                "f64" => f64::from_le_bytes(data[at + row * 8..][..8].try_into().unwrap()),
                "u32" => u32::from_le_bytes(data[at + row * 4..][..4].try_into().unwrap()).into(),
                "u8" => data[at + row].into(),
                other => panic!("{other}"),
            })
            .collect()
    }

    #[test]
    fn columns_lie_where_the_header_says() {
        let columns = [
            ("a", ColumnType::U8),
            ("b", ColumnType::U32),
            ("c", ColumnType::F64),
        ];
        let mut frame = Frame::new(TrackHeader::default(), 3, &columns);
        frame.u8([1, 2, 255].into_iter());
        frame.u32([7, 8, u32::MAX].into_iter());
        frame.f64([0.5, -1.0, 9007199254740991.0].into_iter());
        let bytes = frame.finish();
        assert_eq!(column(&bytes, "a"), [1.0, 2.0, 255.0]);
        assert_eq!(column(&bytes, "b"), [7.0, 8.0, 4294967295.0]);
        assert_eq!(column(&bytes, "c"), [0.5, -1.0, 9007199254740991.0]);
    }

    #[test]
    fn a_frame_without_rows_is_a_frame() {
        let mut frame = Frame::new(TrackHeader::default(), 0, &[("a", ColumnType::F64)]);
        frame.f64(std::iter::empty());
        assert!(column(&frame.finish(), "a").is_empty());
    }
}
