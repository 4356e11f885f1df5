//! Parses footers and page headers ahead of the Parquet library, which allocates what they claim before it reads
//! further. Both are in Thrift's compact protocol: a structure is a list of fields, each with its type and number.

/// Types of the compact protocol, <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCTURE: u8 = 12;
const I32: u8 = 5;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
/// The deepest nesting of structures; those of Parquet's footer are six deep.
const MAX_DEPTH: u32 = 32;

/// Returns true where a structure begins at the start of `bytes`, and none of its lists claims more elements than
/// bytes follow.
pub(crate) fn is_plausible(bytes: &[u8]) -> bool {
    Reader(bytes).value(STRUCTURE, MAX_DEPTH).is_some()
}

/// What the header of a page claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageHeader {
    pub kind: PageKind,
    /// Bytes after decompression.
    pub unpacked_bytes: u32,
    /// Bytes in the file.
    pub bytes: u32,
    /// Number of values, absent ones included; in a dictionary, its own values.
    pub values: u32,
    /// The number of the values' encoding.
    pub encoding: u32,
    /// The length of the header itself.
    pub header_bytes: usize,
}

/// What a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// Values.
    Data,
    /// Values, with lengths of their levels in the header.
    DataV2,
    /// The values that other pages refer to by number.
    Dictionary,
    /// An index, which no reader needs.
    Index,
}

/// Parses the header at the start of `bytes`; `None` where it is damaged or longer than they are. The parser is
/// stricter than the Parquet library, so that both agree on every header: fields have Parquet's types and order, each
/// occurs once, and there are no lists.
pub(crate) fn page_header(bytes: &[u8]) -> Option<PageHeader> {
    // The fields of a header that hold what belongs to one kind of page.
    const STRUCTURES: std::ops::RangeInclusive<i16> = 5..=8;
    let mut reader = Reader(bytes);
    let (mut kind, mut unpacked_bytes, mut compressed_bytes) = (None, None, None);
    let mut values = [None; 9];
    let mut last = 0;
    while let Some((id, of)) = reader.field(&mut last)? {
        match id {
            1..=3 if of == I32 => {
                let number = Some(reader.natural()?);
                match id {
                    1 => kind = number,
                    2 => unpacked_bytes = number,
                    _ => compressed_bytes = number,
                }
            }
            4 if of == I32 => reader.number().map(|_| ())?,
            id if STRUCTURES.contains(&id) && of == STRUCTURE => {
                values[id as usize] = reader.page_values(id)?;
            }
            1..=8 => return None,
            _ => reader.without_lists(of, MAX_DEPTH)?,
        }
    }
    let (kind, (values, encoding)) = match kind? {
        0 => (PageKind::Data, values[5]?),
        1 => (PageKind::Index, (0, 0)),
        2 => (PageKind::Dictionary, values[7]?),
        3 => (PageKind::DataV2, values[8]?),
        _ => return None,
    };
    Some(PageHeader {
        kind,
        unpacked_bytes: unpacked_bytes?,
        bytes: compressed_bytes?,
        values,
        encoding,
        header_bytes: bytes.len() - reader.0.len(),
    })
}

/// The bytes that were not read yet. Each method takes some from their start, and returns `None` where they are
/// damaged or too few.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// Skips bytes.
    fn bytes(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a number in groups of seven bits, the lowest first; the top bit of a byte tells that another follows.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Skips a value of the type `of`, whose structures and lists nest no deeper than `depth`.
    fn value(&mut self, of: u8, depth: u32) -> Option<()> {
        match of {
            // Two booleans, and a byte.
            TRUE | FALSE | 3 => self.bytes(1),
            4..=6 => self.number().map(|_| ()),
            // A floating-point number.
            7 => self.bytes(8),
            // A text.
            8 => {
                let length = self.number()?;
                self.bytes(length)
            }
            LIST | SET => self.list(depth.checked_sub(1)?),
            STRUCTURE => self.structure(depth.checked_sub(1)?),
            // Parquet's footer has no maps and other types.
            _ => None,
        }
    }

    /// Skips a list, which must not claim more elements than bytes follow.
    fn list(&mut self, depth: u32) -> Option<()> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.number()?,
            short => short.into(),
        };
        if length > self.0.len() as u64 {
            return None;
        }
        (0..length).try_for_each(|_| self.value(header & 15, depth))
    }

    /// Skips a structure.
    fn structure(&mut self, depth: u32) -> Option<()> {
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            if header >> 4 == 0 {
                self.number()?;
            }
            // A boolean is in its header.
            match header & 15 {
                TRUE | FALSE => {}
                of => self.value(of, depth)?,
            }
        }
    }

    /// Returns the number and type of the next field, whose number must be greater than `last`; an inner `None` at
    /// the end.
    fn field(&mut self, last: &mut i16) -> Option<Option<(i16, u8)>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        let id = match header >> 4 {
            0 => i16::try_from(self.signed()?).ok()?,
            more => last.checked_add(more.into())?,
        };
        (id > *last).then_some(())?;
        *last = id;
        Some(Some((id, header & 15)))
    }

    /// Reads a 32-bit number that is not negative.
    fn natural(&mut self) -> Option<u32> {
        i32::try_from(self.signed()?).ok()?.try_into().ok()
    }

    /// Reads a number that may be negative, whose lowest bit is the sign (zigzag).
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Returns the number of values and their encoding from part `part` of a page's header; an inner `None` where the
    /// part lacks them.
    fn page_values(&mut self, part: i16) -> Option<Option<(u32, u32)>> {
        let (mut values, mut encoding, mut last) = (None, None, 0);
        while let Some((id, of)) = self.field(&mut last)? {
            let wanted: &[u8] = match (part, id) {
                (5, 1..=4) | (7, 1..=2) | (8, 1..=6) => &[I32],
                (5, 5) | (8, 8) => &[STRUCTURE],
                (7, 3) | (8, 7) => &[TRUE, FALSE],
                _ => &[of],
            };
            wanted.contains(&of).then_some(())?;
            match (part, id) {
                (5 | 7 | 8, 1) => values = Some(self.natural()?),
                (5 | 7, 2) | (8, 4) => encoding = Some(self.natural()?),
                _ => self.without_lists(of, MAX_DEPTH)?,
            }
        }
        Some(values.zip(encoding))
    }

    /// Skips the value of a field. Lists are refused because the Parquet library reads lists of booleans in another
    /// way.
    fn without_lists(&mut self, of: u8, depth: u32) -> Option<()> {
        match of {
            TRUE | FALSE => Some(()),
            LIST | SET => None,
            STRUCTURE => {
                let mut last = 0;
                while let Some((_, of)) = self.field(&mut last)? {
                    self.without_lists(of, depth.checked_sub(1)?)?;
                }
                Some(())
            }
            of => self.value(of, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_no_longer_than_what_follows_it() {
        // A number, a text, a boolean, and a list of three numbers.
        let fits = [
            0x15, 0x80, 0x01, 0x18, 2, b'a', b'b', 0x11, 0x19, 0x35, 1, 2, 3, 0,
        ];
        assert!(is_plausible(&fits));
        for end in 0..fits.len() {
            assert!(!is_plausible(&fits[..end]), "{end}");
        }
        let claims = [0x19, 0xfc, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0];
        assert!(!is_plausible(&claims));
        let deep = [0x1c; 100];
        assert!(!is_plausible(&deep));
    }

    /// The header of a page of 5 values, whose 100 bytes decompress to 300.
    const HEADER: [u8; 19] = [
        0x15, 0, 0x15, 0xd8, 0x04, 0x15, 0xc8, 0x01, 0x2c, 0x15, 10, 0x15, 0, 0x15, 6, 0x15, 6, 0,
        0,
    ];

    #[test]
    fn a_header_of_a_page_is_read_as_the_parquet_library_reads_it() {
        let expected = PageHeader {
            kind: PageKind::Data,
            unpacked_bytes: 300,
            bytes: 100,
            values: 5,
            encoding: 0,
            header_bytes: HEADER.len(),
        };
        assert_eq!(page_header(&HEADER), Some(expected));
        let longer = [&HEADER[..], &[1, 2, 3]].concat();
        assert_eq!(page_header(&longer), Some(expected));
        for end in 0..HEADER.len() {
            assert_eq!(page_header(&HEADER[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_header_that_another_reader_would_understand_otherwise_is_damaged() {
        let end = HEADER.len() - 1;
        let with = |more: &[u8]| [&HEADER[..end], more, &[0]].concat();
        assert!(page_header(&with(&[0x48, 1, b'a'])).is_some(), "unknown");
        for (more, what) in [
            (&[0x05, 4, 2][..], "the unpacked bytes a second time"),
            (&[0x49, 0x11, 1][..], "a list"),
            (&[0x2c, 0x18, 1, 0, 0][..], "a number that is a text"),
        ] {
            assert_eq!(page_header(&with(more)), None, "{what}");
        }
        let mut negative = HEADER;
        negative[3] = 0xd9;
        assert_eq!(page_header(&negative), None);
    }
}
