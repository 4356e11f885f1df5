//! Changes protobuf messages so that they stay protobuf: a message is a row of fields, each with a tag (its number
//! and type) and a value, which may be a message again.

use fastrand::Rng;
use std::ops::Range;

/// Doubles, removes or exchanges fields of the outermost message, or changes a field inside it and the lengths around
/// it.
pub(super) fn change(message: &mut Vec<u8>, rng: &mut Rng) {
    change_at(message, rng, 8);
}

/// Changes a message, or one inside it, at most `depth` messages deep.
fn change_at(message: &mut Vec<u8>, rng: &mut Rng, depth: u32) {
    let fields = fields(message);
    if fields.is_empty() {
        return;
    }
    let at = rng.usize(0..fields.len());
    let (whole, inner) = fields[at].clone();
    if let Some(inner) = inner.filter(|inner| !inner.is_empty() && depth > 0 && rng.u8(0..4) > 0) {
        let mut content = message[inner.clone()].to_vec();
        change_at(&mut content, rng, depth - 1);
        // The tag stays; the length is that of the new content.
        let mut rest = &message[whole.start..];
        let before = rest.len();
        let _ = varint(&mut rest);
        let tag = message[whole.start..whole.start + before - rest.len()].to_vec();
        let mut field = tag;
        push_varint(&mut field, content.len() as u64);
        field.extend(content);
        message.splice(whole, field);
        return;
    }
    match rng.u8(0..4) {
        0 => drop(message.drain(whole)),
        1 => {
            let copy = message[whole].to_vec();
            let to = fields[rng.usize(0..fields.len())].0.start;
            message.splice(to..to, copy);
        }
        2 => {
            // The field gets another number of the same type.
            let kind = message[whole.start] & 7;
            message[whole.start] = rng.u8(0..16) << 3 | kind;
        }
        _ => {
            // The field gets another value.
            let end = whole.end;
            if message[whole.start] & 7 == 0 && end > whole.start + 1 {
                let mut value = Vec::new();
                push_varint(&mut value, rng.u64(..) >> rng.u32(0..64));
                message.splice(whole.start + 1..end, value);
            } else {
                message[end - 1] = rng.u8(..);
            }
        }
    }
}

/// Returns the range of each field, at most 4,096, and of its content; `None` for numbers, which have none. It ends
/// at the first byte that is no field.
fn fields(message: &[u8]) -> Vec<(Range<usize>, Option<Range<usize>>)> {
    let mut found = Vec::new();
    let mut rest = message;
    let place = |rest: &[u8]| message.len() - rest.len();
    while !rest.is_empty() && found.len() < 4096 {
        let start = place(rest);
        let Some(tag) = varint(&mut rest) else { break };
        let length = match tag & 7 {
            0 => match varint(&mut rest) {
                Some(_) => 0,
                None => break,
            },
            1 => 8,
            2 => match varint(&mut rest) {
                Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
                None => break,
            },
            5 => 4,
            _ => break,
        };
        let inside = place(rest);
        let Some(after) = rest.get(length..) else {
            break;
        };
        rest = after;
        let inner = (tag & 7 == 2).then(|| inside..place(rest));
        found.push((start..place(rest), inner));
    }
    found
}

/// Takes a number of variable length from the start of the bytes; `None` where it is cut or too long.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (place, byte) in rest.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * place as u32).min(63);
        if byte & 0x80 == 0 {
            *rest = &rest[place + 1..];
            return Some(number);
        }
    }
    None
}

fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
