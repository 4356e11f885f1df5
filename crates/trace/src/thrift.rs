//! Whether lists in a footer can be as long as they say. The Parquet library makes room for what they say before it reads them.

/// Types of the compact protocol, <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCTURE: u8 = 12;
/// Structures in structures; those of Parquet's footer are six deep.
const DEEPEST: u32 = 32;

/// True where a structure begins at the start of the bytes, no list of which has more elements than bytes follow it.
pub(crate) fn is_plausible(bytes: &[u8]) -> bool {
    Reader(bytes).value(STRUCTURE, DEEPEST).is_some()
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

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

    fn value(&mut self, of: u8, depth: u32) -> Option<()> {
        match of {
            // Two booleans, and a byte.
            1..=3 => self.bytes(1),
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
            // Maps and the rest are not in Parquet's footer.
            _ => None,
        }
    }

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
                1 | 2 => {}
                of => self.value(of, depth)?,
            }
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
}
