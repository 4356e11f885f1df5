//! Changes bytes without knowledge of their format; the functions below that change values or lines know only that
//! the bytes are text.

use fastrand::Rng;

/// A function that changes bytes without a format: the fuzzer's own mutation.
pub type MutateBytes<'a> = &'a mut dyn FnMut(&mut Vec<u8>, &mut Rng);

/// Numbers as text that often reveal faults.
pub const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483647",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e308",
    "-0.0",
    "0.5",
    "1e-320",
    "99999999999999999999999999",
];

/// Texts that often reveal faults.
pub const TEXTS: [&str; 12] = [
    "",
    "\u{1b}[2J",
    "\u{202e}txt",
    "\u{2066}\u{200f}",
    "a\nb",
    "\r",
    "\u{9b}31m",
    "e\u{301}\u{301}\u{301}\u{301}",
    "\u{1f468}\u{200d}\u{1f469}",
    "<<<<>>>>((((",
    "void f<int, (bool)1>(T*)::{lambda()#1}",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
];

/// Makes one change of any bytes.
pub fn change(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.usize(0..=bytes.len());
    let end = (at + rng.usize(1..=16)).min(bytes.len());
    match rng.u8(0..8) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.u8(0..8),
        2 if at < bytes.len() => bytes[at] = rng.u8(..),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let part = bytes[at..end].to_vec();
            let to = rng.usize(0..=bytes.len());
            bytes.splice(to..to, part);
        }
        5 => bytes.splice(at..at, [rng.u8(..)]).for_each(drop),
        6 => {
            let value: u64 = one_of(rng, &[0, 1, 0x7f, 0xffff_ffff, u64::MAX, 1 << 63]);
            let width = 1 << rng.u32(0..4);
            for (byte, new) in bytes[at..].iter_mut().zip(value.to_le_bytes()).take(width) {
                *byte = new;
            }
        }
        // The bytes are a variable-length number of the maximum length.
        _ => {
            let varint = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
            let length = rng.usize(1..=10);
            bytes
                .splice(
                    at..(at + 1).min(bytes.len()),
                    varint[10 - length..].iter().copied(),
                )
                .for_each(drop);
        }
    }
}

/// Returns a random element.
pub fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(0..of.len())]
}

/// Replaces a run of digits in a text, or the text between two quotes.
pub fn change_value(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let from = rng.usize(0..=bytes.len());
    let number = |byte: &u8| byte.is_ascii_digit();
    if rng.bool() {
        let Some(start) = bytes[from..].iter().position(number).map(|at| from + at) else {
            return;
        };
        let length = bytes[start..].iter().take_while(|b| number(b)).count();
        let new = one_of(rng, &NUMBERS).bytes();
        bytes.splice(start..start + length, new).for_each(drop);
    } else {
        let quote = |from: usize| Some(from + bytes.get(from..)?.iter().position(|b| *b == b'"')?);
        let Some((start, end)) = quote(from).and_then(|at| Some((at + 1, quote(at + 1)?))) else {
            return;
        };
        let new = one_of(rng, &TEXTS).bytes();
        bytes.splice(start..end, new).for_each(drop);
    }
}

/// Doubles, removes or exchanges one of the lines of a text.
pub fn change_lines(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let (at, other) = (rng.usize(0..lines.len()), rng.usize(0..lines.len()));
    match rng.u8(0..3) {
        0 => lines.insert(other, lines[at]),
        1 => drop(lines.remove(at)),
        _ => lines.swap(at, other),
    }
    *bytes = lines.concat();
}
