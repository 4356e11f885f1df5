//! Adds up the lengths of texts in Parquet's delta encodings, where a number is stored as its distance from the one
//! before, in blocks of miniblocks whose distances all take the same number of bits. The Parquet library allocates
//! for all texts of a page at once, and a few bytes can claim many long texts.

/// The sum of a run of encoded lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Sum of the lengths.
    pub sum: u64,
    /// Position of the first byte after the encoded lengths.
    pub end: usize,
}

/// Adds up encoded lengths; `None` where there are more than `max_count`, or they are damaged.
pub(crate) fn lengths(bytes: &[u8], max_count: u32) -> Option<Lengths> {
    let mut reader = Reader { bytes, at: 0 };
    let block = usize::try_from(reader.number()?).ok()?;
    let miniblocks = usize::try_from(reader.number()?).ok()?;
    let mut left = reader.number()?;
    let mut length = i32::try_from(reader.signed()?).ok()?;
    let fits = miniblocks != 0 && block % 128 == 0 && block % miniblocks == 0;
    let miniblock = fits
        .then(|| block / miniblocks)
        .filter(|length| length % 32 == 0)?;
    (left <= u64::from(max_count)).then_some(())?;
    let mut sum = 0;
    if left > 0 {
        sum = u64::try_from(length).ok()?;
        left -= 1;
    }
    while left > 0 {
        let least = i32::try_from(reader.signed()?).ok()?;
        let widths = reader.take(miniblocks)?;
        for width in widths {
            if left == 0 {
                break;
            }
            let width = usize::from(*width);
            (width <= 32).then_some(())?;
            let packed = reader.take(width.checked_mul(miniblock)?.div_ceil(8))?;
            for place in 0..miniblock.min(usize::try_from(left).unwrap_or(usize::MAX)) {
                let more = bits(packed, place * width, width) as i32;
                length = length.wrapping_add(least).wrapping_add(more);
                sum += u64::try_from(length).ok()?;
                left -= 1;
            }
        }
    }
    Some(Lengths {
        sum,
        end: reader.at,
    })
}

/// Returns the number of `width` bits, 32 at most, that begins at bit `begin`.
fn bits(bytes: &[u8], begin: usize, width: usize) -> u32 {
    let from = begin / 8;
    let some = bytes.get(from..).unwrap_or_default();
    let mut word = [0; 8];
    let there = some.len().min(8);
    word[..there].copy_from_slice(&some[..there]);
    let mask = (1_u64 << width) - 1;
    (u64::from_le_bytes(word) >> (begin % 8) & mask) as u32
}

/// Reads the encoding's bytes one after the other; each method returns `None` where they end too early.
struct Reader<'a> {
    bytes: &'a [u8],
    /// The index of the next byte.
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// Reads a number in groups of seven bits, the lowest first; the top bit of a byte tells that another follows.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number that may be negative, whose lowest bit is the sign (zigzag).
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_added_up_and_their_end_is_found() {
        // 128 to a block, in four parts; five lengths: 3, 4, 4, 6, 3. Differences from -3 on: 4, 3, 5, 0, in three bits.
        let mut bytes = vec![0x80, 1, 4, 5, 6, 5, 3, 0, 0, 0];
        let differences: u16 = 4 | 3 << 3 | 5 << 6;
        bytes.extend(differences.to_le_bytes());
        bytes.extend([0; 10]);
        let end = bytes.len();
        bytes.extend(b"and texts");
        let found = lengths(&bytes, 5);
        assert_eq!(found, Some(Lengths { sum: 20, end }));
        assert_eq!(lengths(&bytes, 4), None, "more than there may be");
        for end in 0..end {
            assert_eq!(lengths(&bytes[..end], 5), None, "{end}");
        }
    }

    #[test]
    fn what_is_no_length_is_damage() {
        let negative = [0x80, 1, 4, 1, 5];
        assert_eq!(lengths(&negative, 9), None);
        let no_parts = [0x80, 1, 0, 1, 6];
        assert_eq!(lengths(&no_parts, 9), None);
        let empty = [0x80, 1, 4, 0, 0];
        assert_eq!(lengths(&empty, 9), Some(Lengths { sum: 0, end: 5 }));
        let many = [
            0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0,
        ];
        assert_eq!(lengths(&many, u32::MAX), None);
    }
}
