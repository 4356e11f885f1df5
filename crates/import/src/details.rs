//! Reads the details that XLA's profiler gives work as text, such as `regs:32 grid:16,1,1 block:512,1,1` of a kernel
//! and `kind_src:pinned kind_dst:device size:64` of a copy.

/// Returns the value of the first word `KEY:VALUE` with this key.
pub(crate) fn detail<'t>(details: &'t str, key: &str) -> Option<&'t str> {
    details
        .split_ascii_whitespace()
        .filter_map(|word| word.split_once(':'))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// Returns the bytes that a transfer writes: the value of `size`, or else of `num_bytes`.
pub(crate) fn bytes(details: &str) -> Option<u64> {
    let bytes = detail(details, "size").or(detail(details, "num_bytes"));
    bytes?.parse().ok()
}

/// Returns the sizes in x, y and z from a text such as `16,1,1`; `None` for each that the text lacks.
pub(crate) fn sizes(text: Option<&str>) -> [Option<u32>; 3] {
    let mut sizes = text
        .unwrap_or_default()
        .split(',')
        .map(|size| size.parse().ok());
    [(); 3].map(|()| sizes.next().flatten())
}
