//! Names kernels that MLX compiles. `Bf4ISinACf4ICosBDf4IExpCEf4OLogD_V_f4_123_contiguous` is a list of operations,
//! each with the name and type of its result (`B`, 4 bytes of float), a flag whether the result is kept (`O`) or not
//! (`I`), the operation (`Sin`) and its inputs (`A`). Results are named by successive letters.

use super::operations::snake;

/// The most operations of a name; names with more are not recognised.
const MAX_OPERATIONS: usize = 24;

/// Returns a name such as `sin cos exp log (fused f32, contiguous)`; `None` for names that MLX did not make. Behind
/// the list stands `V`, `S` or `C` for each input, and values are numbered from 1, the inputs first.
pub(super) fn name(name: &str) -> Option<String> {
    let (tape, rest) = name.split_once('_')?;
    let inputs = rest.split('_').next()?;
    if inputs.is_empty() || !inputs.bytes().all(|c| matches!(c, b'V' | b'S' | b'C')) {
        return None;
    }
    let first = inputs.len() as u64 + 1;
    let mut operations: Vec<String> = Vec::new();
    let mut types: Vec<String> = Vec::new();
    let (mut left, mut result) = (tape, first);
    while !left.is_empty() {
        let (type_name, behind) = node(left, result)?;
        let after = next_node(behind, result + 1).unwrap_or(behind.len());
        let operation = behind[..after].trim_end_matches(|c: char| c.is_ascii_uppercase());
        if operation.is_empty() || operations.len() == MAX_OPERATIONS {
            return None;
        }
        operations.push(snake(operation));
        if !types.contains(&type_name) {
            types.push(type_name);
        }
        left = &behind[after..];
        result += 1;
    }
    let layout = rest.rsplit('_').next().unwrap_or_default();
    let layout = layout.split('<').next().unwrap_or_default();
    let layout = match layout.bytes().all(|c| c.is_ascii_lowercase()) {
        true if !layout.is_empty() => format!(", {layout}"),
        _ => String::new(),
    };
    Some(format!(
        "{} (fused {}{layout})",
        operations.join(" "),
        types.join(" ")
    ))
}

/// Parses the start of the node (an item of the list) of the value with the number `result`: its letters, type and
/// flag. Returns its type and the rest; `None` where another text begins.
fn node(text: &str, result: u64) -> Option<(String, &str)> {
    let text = text.strip_prefix(letters(result).as_str())?;
    let kind = text.chars().next().filter(|c| "biufcV".contains(*c))?;
    let text = &text[1..];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let bytes: u32 = text[..digits].parse().ok().filter(|bytes| *bytes <= 16)?;
    let type_name = match (kind, bytes) {
        ('b', _) => "bool".to_owned(),
        ('V', 2) => "bf16".to_owned(),
        ('c', bytes) => format!("complex{}", bytes * 8),
        (kind, bytes) => format!("{kind}{}", bytes * 8),
    };
    let text = &text[digits..];
    let mut two = text.chars();
    let flag = two.next().is_some_and(|c| c == 'I' || c == 'O')
        && two.next().is_some_and(|c| c.is_ascii_uppercase());
    Some((type_name, if flag { &text[1..] } else { text }))
}

/// Returns where the node of a result begins, behind the operation at the start of `text`; `None` for the last one.
fn next_node(text: &str, result: u64) -> Option<usize> {
    let name = letters(result);
    let mut found = text.match_indices(name.as_str());
    found.find_map(|(at, _)| (at > 0 && node(&text[at..], result).is_some()).then_some(at))
}

/// Returns the name of a value, counted from 1: `A`, `B`, …, `Z`, `AA`, …
fn letters(mut number: u64) -> String {
    let mut letters = Vec::new();
    while number > 0 {
        letters.push(b'A' + ((number - 1) % 26) as u8);
        number = (number - 1) / 26;
    }
    letters.iter().rev().map(|c| char::from(*c)).collect()
}
