//! Parses `/proc/PID/maps`, Linux's list of a process's memory areas: the file's bytes go in, a [`Mapping`] for each
//! line comes out. Nothing is allocated, since hooks (gapscope's libraries in recorded programs) use it too.

/// A line of `/proc/PID/maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Whether the process may read the memory.
    pub is_readable: bool,
    /// The offset of `start` in the file.
    pub offset: u64,
    /// The file as the process sees it, with ` (deleted)` behind it where it was removed; `None` for memory without a
    /// file.
    pub path: Option<&'a [u8]>,
}

/// Returns the mappings in the order of the file, without invalid lines.
pub fn mappings(maps: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    maps.split(|byte| *byte == b'\n').filter_map(mapping)
}

/// Parses one line; `None` where a field is missing or an address is not hexadecimal.
fn mapping(line: &[u8]) -> Option<Mapping<'_>> {
    // Five fields, then the path, which may contain spaces.
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut addresses = fields.next()?.splitn(2, |byte| *byte == b'-');
    let (start, end) = (hex(addresses.next()?)?, hex(addresses.next()?)?);
    let permissions = fields.next()?;
    let offset = hex(fields.next()?)?;
    let (_device, _inode) = (fields.next()?, fields.next()?);
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    Some(Mapping {
        start,
        end,
        is_readable: permissions.starts_with(b"r"),
        offset,
        path: path.starts_with(b"/").then_some(path),
    })
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_parsed() {
        let maps = b"\
1000-5000 r-xp 00001000 08:01 12                         /usr/bin/a b
6000-7000 rw-p 00000000 00:00 0                          [heap]
7f2000-7f4000 ---p 00002000 08:01 13                     /lib/\xff.so (deleted)
ffffffffff600000-ffffffffff601000 r--p 00000000 00:00 0
nonsense
";
        let parsed: Vec<_> = mappings(maps)
            .map(|m| (m.start, m.end, m.is_readable, m.offset, m.path))
            .collect();
        let deleted = &b"/lib/\xff.so (deleted)"[..];
        let last = 0xffff_ffff_ff60_0000;
        let expected = [
            (0x1000, 0x5000, true, 0x1000, Some(&b"/usr/bin/a b"[..])),
            (0x6000, 0x7000, true, 0, None),
            (0x7f_2000, 0x7f_4000, false, 0x2000, Some(deleted)),
            (last, last + 0x1000, true, 0, None),
        ];
        assert_eq!(parsed, expected);
    }
}
