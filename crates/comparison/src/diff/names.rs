//! Reduces names of kernels and labels to the part that stays the same between builds and runs.
//!
//! Compilers number and hash their output: `triton_poi_fused_add_0` becomes `triton_poi_fused_add_1` after an edit
//! elsewhere, and `gemm_sm80` becomes `gemm_sm90` on another machine. Labels have numbers of steps: `step 3`.

/// Returns a kernel's name without counters at its end, hashes and architectures. Numbers inside it stay: they are
/// sizes of tiles and types.
pub(super) fn normal_kernel(name: &str) -> String {
    let name = without_hash_of_rust(name);
    let mut normal = String::with_capacity(name.len());
    for (at, word) in words(name) {
        match () {
            () if is_hash(word) => normal.push('#'),
            () if is_architecture(word) => normal.push_str("sm#"),
            () if is_counter(word, &name[..at], &name[at + word.len()..]) => {
                normal.push('#');
            }
            () => normal.push_str(word),
        }
    }
    normal
}

/// Returns a label path without its numbers: `epoch # / step #`.
pub(super) fn normal_path(path: &str) -> String {
    let mut normal = String::with_capacity(path.len());
    let mut in_number = false;
    for c in path.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                normal.push('#');
            }
            in_number = true;
        } else {
            in_number = false;
            normal.push(c);
        }
    }
    normal
}

/// Returns the operations that a name of Triton's compiler lists: `add` and `mul` for `triton_poi_fused_add_mul_0`.
pub(super) fn fused_operations(name: &str) -> Option<Vec<&str>> {
    let (kind, operations) = name.strip_prefix("triton_")?.split_once("_fused_")?;
    if !matches!(kind, "poi" | "per" | "red" | "tem" | "for") {
        return None;
    }
    let operation = |word: &&str| !word.is_empty() && !word.bytes().all(|b| b.is_ascii_digit());
    let operations: Vec<&str> = operations.split('_').filter(operation).collect();
    (!operations.is_empty()).then_some(operations)
}

/// Splits a name into groups of letters and digits and the text between them, with their positions.
fn words(name: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut left = 0;
    std::iter::from_fn(move || {
        let rest = &name[left..];
        let first = is_word(rest.chars().next()?);
        let end = rest.find(|c: char| is_word(c) != first);
        let word = &rest[..end.unwrap_or(rest.len())];
        let at = left;
        left += word.len();
        Some((at, word))
    })
}

/// The number of hexadecimal digits, letters and figures among them, from which on a word is a hash.
const MIN_HASH_DIGITS: usize = 8;

/// Returns true for a long word of hexadecimal digits with both letters and figures.
fn is_hash(word: &str) -> bool {
    word.len() >= MIN_HASH_DIGITS
        && word.bytes().all(|b| b.is_ascii_hexdigit())
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Removes the end of a mangled name of Rust: `17h`, sixteen digits and `E`.
fn without_hash_of_rust(name: &str) -> &str {
    let parts = name
        .strip_suffix('E')
        .and_then(|rest| rest.rsplit_once("17h"));
    match parts {
        Some((start, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            start
        }
        _ => name,
    }
}

/// Returns true for a word such as `sm80` or `sm90a`.
fn is_architecture(word: &str) -> bool {
    let Some(digits) = word.strip_prefix("sm").or_else(|| word.strip_prefix("SM")) else {
        return false;
    };
    let digits = digits.trim_end_matches(['a', 'f']);
    matches!(digits.len(), 2 | 3) && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Returns true for a number at the end of an identifier, after `_` or `.`, and for the architecture of `sm_80`.
fn is_counter(word: &str, before: &str, after: &str) -> bool {
    if !word.bytes().all(|b| b.is_ascii_digit()) || word.is_empty() {
        return false;
    }
    let separated = before.ends_with(['_', '.']);
    let of_architecture = before.ends_with("sm_") || before.ends_with("SM_");
    let at_end = after.is_empty() || after.starts_with([' ', '(', '<']);
    separated && (at_end || of_architecture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_hashes_and_architectures_are_no_part_of_a_kernels_name() {
        let same = [
            ("triton_poi_fused_add_0", "triton_poi_fused_add_12"),
            ("gemm_sm80_tn", "gemm_sm90a_tn"),
            ("cutlass_sm_80_gemm", "cutlass_sm_90_gemm"),
            ("scale spv:48373bb5", "scale spv:9f00aa17"),
            (
                "_ZN4demo5scale17h0123456789abcdefE",
                "_ZN4demo5scale17hfedcba9876543210E",
            ),
            ("fusion.3", "fusion.17"),
        ];
        for (a, b) in same {
            assert_eq!(normal_kernel(a), normal_kernel(b));
            assert_ne!(normal_kernel(a), a);
        }
    }

    #[test]
    fn tiles_types_and_operations_are() {
        let others = [
            ("gemm bf16 128x256", "gemm bf16 128x128"),
            ("add_f32", "add_f16"),
            ("triton_poi_fused_add_0", "triton_poi_fused_mul_0"),
            ("conv2d", "conv3d"),
            ("deadbeef", "feedface"),
        ];
        for (a, b) in others {
            assert_ne!(normal_kernel(a), normal_kernel(b));
        }
    }

    #[test]
    fn labels_are_counted_together() {
        assert_eq!(normal_path("epoch 1 / step 20"), "epoch # / step #");
        assert_eq!(normal_path("decode"), "decode");
    }

    #[test]
    fn a_fused_name_lists_its_operations() {
        let operations = fused_operations("triton_poi_fused_add_mul_relu_0");
        assert_eq!(operations, Some(vec!["add", "mul", "relu"]));
        assert_eq!(fused_operations("triton_mm"), None);
        assert_eq!(fused_operations("fused_add"), None);
    }
}
