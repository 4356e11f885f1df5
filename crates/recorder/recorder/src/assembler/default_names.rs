//! Recognises the names that engines and compilers give to every object, so that only names of the program's own
//! are shown.

/// Entry points that compilers give to every kernel, and placeholder names that people use.
const GENERIC: [&str; 15] = [
    "main",
    "main0",
    "main_0",
    "main_",
    "dawn_entry_point",
    "tint_entry_point",
    "cs_main",
    "CSMain",
    "entry_point",
    "unnamed",
    "<unnamed>",
    "unlabeled",
    "unlabelled",
    "untitled",
    "null",
];

/// Returns the part of an object's name that the program gave; `None` if only its engine named the object.
///
/// Dawn writes `DawnDbg=1;Dawn_ComputePipeline`, followed by the program's label if there is one.
pub fn given(name: &str) -> Option<&str> {
    let name = name.trim();
    let of_dawn = match name.strip_prefix("DawnDbg=") {
        Some(rest) => rest.split_once(';').map_or("", |(_, of_dawn)| of_dawn),
        None => name,
    };
    let name = match of_dawn.strip_prefix("Dawn_") {
        Some(object) => object.split_once('_').map_or("", |(_, label)| label.trim()),
        None => of_dawn,
    };
    let is_default = name.is_empty()
        || GENERIC.contains(&name)
        || name.starts_with("(wgpu internal)")
        || is_renamed(name);
    (!is_default).then_some(name)
}

/// Returns true for names such as `tint_symbol_1`, by which Tint replaces the names in a shader.
fn is_renamed(name: &str) -> bool {
    name.strip_prefix("tint_symbol").is_some_and(|number| {
        number.is_empty()
            || (number.starts_with('_') && number[1..].bytes().all(|c| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::given;

    #[test]
    fn the_default_names_of_engines_are_none() {
        for name in [
            "",
            " ",
            "DawnDbg=1;Dawn_ComputePipeline",
            "DawnDbg=1;Dawn_InternalComputePipeline",
            "DawnDbg=12;Dawn_ComputePipeline_",
            "DawnDbg=1",
            "Dawn_ShaderModule",
            "Dawn_ComputePipeline_main",
            "(wgpu internal) indirect draw validation",
            "main",
            "main0",
            "dawn_entry_point",
            "tint_symbol",
            "tint_symbol_12",
        ] {
            assert_eq!(given(name), None, "{name}");
        }
    }

    #[test]
    fn names_of_the_program_are_kept() {
        for (name, kept) in [
            ("matmul", "matmul"),
            ("DawnDbg=1;Dawn_ComputePipeline_matmul", "matmul"),
            ("Dawn_ShaderModule_my_module", "my_module"),
            ("Dawn", "Dawn"),
            ("main_loop", "main_loop"),
            ("tint_symbolic", "tint_symbolic"),
        ] {
            assert_eq!(given(name), Some(kept));
        }
    }
}
