//! Demangles the names of C++ kernels: a linker's name such as `_ZN2at6native…` goes in, a full and a short C++ name
//! come out.

use cpp_demangle::{DemangleOptions, Symbol};

/// The most characters of a name; longer ones are cut. A demangled name can be exponentially longer than the mangled
/// one.
const MAX_CHARACTERS: usize = 4096;

/// A demangled C++ name in two lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CppName {
    /// The name with namespaces and parameters.
    pub full: String,
    /// The name without namespaces, return type and parameters. Template arguments stay, since they tell kernels
    /// apart.
    pub short: String,
}

/// Demangles a name; `None` where it is not mangled, is too long, or cannot be parsed.
pub fn demangle(mangled: &str) -> Option<CppName> {
    if !mangled.starts_with("_Z") || mangled.len() > 4 * MAX_CHARACTERS {
        return None;
    }
    let symbol = Symbol::new(mangled).ok()?;
    let full = symbol.demangle().ok()?;
    let bare = DemangleOptions::default().no_params().no_return_type();
    let bare = symbol.demangle_with_options(&bare).ok()?;
    Some(CppName {
        short: cut(&shorten(&bare)),
        full: cut(&full),
    })
}

/// Cuts a name that is too long, and marks the cut with `…`.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Removes all namespaces, and what compilers add to numbers and brackets.
fn shorten(name: &str) -> String {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let name = name.replace(ANONYMOUS, "").replace("{lambda", "lambda");
    let mut short = String::with_capacity(name.len());
    // Start in `short` of the current identifier.
    let mut word = 0;
    let mut rest = name.as_str();
    while let Some(next) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("::") {
            short.truncate(word);
            rest = behind;
            continue;
        }
        let behind = &rest[next.len_utf8()..];
        if next == ' ' && behind.starts_with('>') {
            // `> >`
        } else {
            short.push(next);
            // A name with template arguments may also be a namespace: `Outer<int>::Inner`.
            let in_name = next.is_alphanumeric() || matches!(next, '_' | '~');
            if !in_name && next != '>' {
                word = short.len();
            } else if next == '>' {
                word = name_start(&short).unwrap_or(word);
            }
        }
        rest = behind;
    }
    plain_numbers(&short)
}

/// Returns the start of the name whose template arguments end at the end of `text`; `None` where no `<` opens them.
fn name_start(text: &str) -> Option<usize> {
    let mut depth = 0;
    let open = text.char_indices().rev().find_map(|(at, c)| {
        match c {
            '>' => depth += 1,
            '<' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })?;
    let before = &text[..open];
    let begin = before
        .rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '~')))
        .map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
    Some(begin)
}

/// Removes the types of literals: `4ul` and `(int)4` become `4`, `(bool)1` becomes `true`.
fn plain_numbers(text: &str) -> String {
    let mut text = text.replace("(bool)1", "true").replace("(bool)0", "false");
    for cast in [
        "(int)",
        "(unsigned int)",
        "(long)",
        "(unsigned long)",
        "(unsigned char)",
        "(char)",
    ] {
        text = text.replace(cast, "");
    }
    let mut plain = String::with_capacity(text.len());
    let mut number = false;
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let starts = !(before.is_alphanumeric() || before == '_');
        number = letter.is_ascii_digit() && (number || starts);
        plain.push(letter);
        before = letter;
        if number && matches!(letters.peek(), Some('u' | 'l')) {
            while letters.next_if(|l| matches!(l, 'u' | 'l')).is_some() {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_what_tells_kernels_apart() {
        for (mangled, short) in [
            ("_Z6vecAddPKfS0_Pfi", "vecAdd"),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
                "vectorized_elementwise_kernel<4, FillFunctor<float>, array<char*, 1>>",
            ),
            (
                "_ZN7cutlass6KernelI68cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8EEvNT_6ParamsE",
                "Kernel<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>",
            ),
        ] {
            let name = demangle(mangled).unwrap();
            assert_eq!(name.short, short);
            assert!(name.full.contains('('), "{}", name.full);
        }
    }

    #[test]
    fn what_is_not_mangled_stays() {
        for name in [
            "triton_poi_fused_add_0",
            "ampere_sgemm_128x64_tn",
            "_Znonsense",
            "_Z",
            "",
        ] {
            assert_eq!(demangle(name), None, "{name}");
        }
    }

    #[test]
    fn nested_names_lose_what_is_around_them() {
        assert_eq!(shorten("a::b<c::d>::e<f::g<h>, i>"), "e<g<h>, i>");
        assert_eq!(
            shorten("(anonymous namespace)::k<std::array<char*, 2ul> >"),
            "k<array<char*, 2>>"
        );
        assert_eq!(shorten("k<(bool)1, (int)16, x1u>"), "k<true, 16, x1u>");
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_survived(name in "(_Z)?.{0,80}") {
            demangle(&name);
            shorten(&name);
        }
    }
}
