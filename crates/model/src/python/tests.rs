//! Tests the layouts of Python interpreters, on bytes that real interpreters had and on damaged ones.

use super::*;
use proptest::prelude::*;

const RELEASES: [u32; 5] = [
    0x030b_07f0,
    0x030c_01f0,
    0x030d_00f0,
    0x030e_00f0,
    0x030f_02f0,
];

fn table_of_3_13() -> Vec<u8> {
    let mut words = vec![0_u64; 80];
    words[0] = u64::from_le_bytes(*b"xdebugpy");
    words[1] = 0x030d_00f0;
    let offsets = [
        (5, 632),
        (8, 7264),
        (9, 7344),
        (17, 7480),
        (18, 7472),
        (21, 8),
        (23, 72),
        (25, 160),
        (26, 232),
        (29, 8),
        (30, 0),
        (31, 56),
        (33, 70),
        (35, 112),
        (36, 120),
        (37, 128),
        (38, 136),
        (39, 68),
        (43, 200),
        (66, 32),
        (68, 32),
        (69, 16),
        (70, 40),
    ];
    for (place, offset) in offsets {
        words[place] = offset;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn with_word(mut bytes: Vec<u8>, offset: usize, word: u64) -> Vec<u8> {
    bytes[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
    bytes
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

#[test]
fn the_interpreter_says_where_things_are() {
    let layout = Layout::for_version(Version(0x030d_00f0), &table_of_3_13()).unwrap();
    assert_eq!(layout.first_interpreter, 632);
    let thread = vec![0; layout.thread_bytes()];
    let thread = with_word(with_word(thread, 72, 0x7000), 160, 42);
    let thread = layout.thread(&thread).unwrap();
    assert_eq!(
        (thread.native_id, thread.current),
        (42, CurrentFrame::Frame(0x7000))
    );
    let frame = vec![0; layout.frame_bytes()];
    let frame = with_word(
        with_word(with_word(frame, 0, 0x9000), 8, 0x6f00),
        56,
        0x90d2,
    );
    assert_eq!(
        layout.frame(&frame),
        Ok(Frame {
            code: 0x9000,
            instruction: 0x90d2,
            previous: 0x6f00,
        })
    );
}

#[test]
fn before_3_13_the_frame_is_behind_the_c_frame() {
    let layout = Layout::for_version(Version(RELEASES[0]), &[]).unwrap();
    let thread = with_word(vec![0; layout.thread_bytes()], 56, 0x5000);
    assert_eq!(
        layout.thread(&thread).unwrap().current,
        CurrentFrame::AddressAt(0x5008)
    );
}

#[test]
fn frames_without_code_are_passed_over_and_torn_ones_refused() {
    let layout = Layout::for_version(Version(RELEASES[1]), &[]).unwrap();
    let bytes = with_word(vec![0; layout.frame_bytes()], 8, 0x6f00);
    let owned = |owner: u8, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[70] = owner;
        layout.frame(&bytes)
    };
    assert_eq!(owned(3, &bytes).unwrap().code, 0);
    assert!(
        owned(0, &bytes).is_err(),
        "a frame of a thread without code"
    );
    assert!(owned(5, &bytes).is_err(), "an owner that does not exist");
    let yielded = with_word(with_word(bytes.clone(), 0, 0x9000), 8, 0);
    assert!(owned(1, &yielded).is_err(), "a generator without a caller");
    assert!(owned(0, &yielded).is_ok(), "the outermost frame");
    let odd = with_word(bytes, 8, 0x6f01);
    assert!(owned(3, &odd).is_err(), "a caller at an odd address");
}

#[test]
fn what_cannot_be_read_is_said() {
    let refused = |version, table: &[u8]| Layout::for_version(Version(version), table).unwrap_err();
    let table = table_of_3_13();
    assert_eq!(
        refused(0x030a_0df0, &table).to_string(),
        "Python 3.10.13: 3.11 to 3.15 can be read"
    );
    assert_eq!(
        refused(0x0310_00a1, &table),
        Unsupported::Version(Version(0x0310_00a1))
    );
    assert_eq!(
        refused(0x030f_00b2, &table),
        Unsupported::Unreleased(Version(0x030f_00b2))
    );
    let free_threaded = with_word(table.clone(), 16, 1);
    assert_eq!(
        refused(0x030d_00f0, &free_threaded),
        Unsupported::FreeThreaded
    );
    assert_eq!(refused(0x030d_01f0, &table), Unsupported::Table);
    assert_eq!(refused(0x030d_00f0, &table[..100]), Unsupported::Table);
    let hostile = with_word(table.clone(), 23 * 8, u64::MAX);
    assert_eq!(refused(0x030d_00f0, &hostile), Unsupported::Table);
    let without_cookie = with_word(table, 0, 0);
    assert_eq!(refused(0x030d_00f0, &without_cookie), Unsupported::Table);
}

/// The table is of a function with all forms of entries, the lines are from that Python's `co_lines()`.
#[test]
fn lines_are_those_that_python_names() {
    let table_of_3_12 = "8000e00809884189058041dc0d1290318b58f2003705148801d8080988519021d81415f103011316f100010e17f1000109178801f46801000e1290218b57f0000209149801d81c1dd610239071a2119211d21023f200011114d80e0f9011f0030128148841f703020914f000020914f06b01370514f07001000c0d8048f9f205001124f703020914f000020914fa";
    let lines_of_3_12 = [
        (0, 2, Some(2)),
        (2, 12, Some(4)),
        (12, 40, Some(5)),
        (40, 46, Some(6)),
        (46, 48, Some(7)),
        (48, 62, Some(6)),
        (62, 86, Some(58)),
        (86, 128, Some(59)),
        (128, 132, Some(60)),
        (132, 136, Some(59)),
        (136, 154, Some(58)),
        (154, 156, Some(5)),
        (156, 160, Some(61)),
        (160, 164, None),
        (164, 170, Some(59)),
        (170, 188, Some(58)),
        (188, 194, None),
    ];
    let table = unhex(table_of_3_12);
    let lines = Lines::new(&table, 2);
    assert_eq!(lines.code_bytes(), 194);
    for (start, end, line) in lines_of_3_12 {
        for offset in (start..end).step_by(2) {
            assert_eq!(lines.line(offset), line, "at {offset}");
        }
    }
    assert_eq!(lines.line(-2), Some(2), "a frame that has not begun");
    assert_eq!(lines.line(194), None, "behind the code");
}

fn string(kind: u32, is_ascii: bool, characters: u64) -> Vec<u8> {
    let state = kind << 2 | 1 << 5 | u32::from(is_ascii) << 6;
    let bytes = with_word(vec![0; HEADER_BYTES], 16, characters);
    with_word(bytes, 32, u64::from(state))
}

#[test]
fn strings_of_every_width_are_read() {
    let layout = Layout::for_version(Version(RELEASES[1]), &[]).unwrap();
    let read = |kind, is_ascii, characters, bytes: &[u8]| {
        let text = layout.text(&string(kind, is_ascii, characters)).unwrap();
        (text.offset, text.decode(bytes))
    };
    assert_eq!(read(1, true, 4, b"main!"), (40, "main".to_owned()));
    assert_eq!(read(1, false, 2, &[0xe9, 0x74]), (56, "ét".to_owned()));
    let wide: Vec<u8> = "Ω훈".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read(2, false, 2, &wide), (56, "Ω훈".to_owned()));
    let widest = u32::from('𝛼').to_le_bytes();
    assert_eq!(read(4, false, 1, &widest), (56, "𝛼".to_owned()));
    // A lone surrogate, which Python allows.
    assert_eq!(read(2, false, 1, &[0x00, 0xd8]).1, "\u{fffd}");
    for (kind, is_ascii, characters) in [
        (0, false, 1),
        (3, false, 1),
        (2, true, 1),
        (1, true, 1 << 40),
    ] {
        assert!(layout.text(&string(kind, is_ascii, characters)).is_err());
    }
}

proptest! {
    /// No content of a program's memory makes a reader panic.
    #[test]
    fn any_bytes_can_be_read(
        release in 0_usize..RELEASES.len(),
        table in proptest::collection::vec(any::<u8>(), 0..TABLE_BYTES),
        bytes in proptest::collection::vec(any::<u8>(), 0..512),
        first_line in any::<i32>(),
        offset in any::<i64>(),
    ) {
        let version = Version(RELEASES[release]);
        let mut hostile = table.clone();
        let head = [*b"xdebugpy", u64::from(version.0).to_le_bytes(), [0; 8]].concat();
        let known = head.len().min(hostile.len());
        hostile[..known].copy_from_slice(&head[..known]);
        let _ = Layout::for_version(version, &table);
        if let Ok(layout) = Layout::for_version(version, &hostile) {
            read_all(&layout, &bytes);
        }
        let lines = Lines::new(&bytes, first_line);
        let length = lines.code_bytes();
        prop_assert!(length <= bytes.len() as u64 * 16);
        let _ = lines.line(offset);
        let _ = lines.line(i64::try_from(length).unwrap() - 1);
    }

    /// Tables with small offsets get further than those of noise.
    #[test]
    fn any_table_of_small_offsets_can_be_used(
        minor in 13_u32..=15,
        words in proptest::collection::vec(0_u64..5000, 128),
        bytes in proptest::collection::vec(any::<u8>(), 0..6000),
    ) {
        let version = Version(0x0300_00f0 | minor << 16);
        let mut words = words;
        words[0] = u64::from_le_bytes(*b"xdebugpy");
        words[1] = u64::from(version.0);
        words[2] = 0;
        let table: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Ok(layout) = Layout::for_version(version, &table) {
            prop_assert!(layout.thread_bytes() <= STRUCTURE_BYTES);
            prop_assert!(layout.frame_bytes() <= STRUCTURE_BYTES);
            prop_assert!(layout.code_bytes() <= STRUCTURE_BYTES);
            read_all(&layout, &bytes);
        }
    }
}

fn read_all(layout: &Layout, bytes: &[u8]) {
    let _ = layout.thread(bytes);
    let _ = layout.frame(bytes);
    let _ = layout.code(bytes);
    let _ = layout.bytes_length(bytes);
    if let Ok(text) = layout.text(bytes) {
        assert!(text.decode(bytes).chars().count() <= text.characters);
    }
    assert!(layout.frame_bytes() <= STRUCTURE_BYTES && layout.code_bytes() <= STRUCTURE_BYTES);
}
