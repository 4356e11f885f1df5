//! Demangles names of functions: a name as a symbol table has it (`_ZN3foo3barEv`) goes in, the name in the source
//! (`foo::bar`) comes out.

use std::fmt::{self, Write};

/// A demangled name can be exponentially longer than the mangled one.
const MAX_NAME_BYTES: usize = 1000;

/// Returns a name without parameters, hashes and the symbol's version (`memcpy@@GLIBC_2.14`), cut at
/// `MAX_NAME_BYTES`. A name that is not mangled loses its version alone.
pub fn demangled(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return cut(|text| write!(text, "{rust:#}")).unwrap_or_else(|| name.to_owned());
    }
    if name.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::default()
            .no_params()
            .no_return_type();
        let symbol = cpp_demangle::Symbol::new(name.as_bytes());
        let symbol = symbol.ok();
        let text = symbol.and_then(|symbol| cut(|text| symbol.structured_demangle(text, &options)));
        return text.unwrap_or_else(|| name.to_owned());
    }
    cut(|text| text.write_str(name)).unwrap_or_default()
}

/// Returns the text that `write` writes, cut at [`MAX_NAME_BYTES`]; `None` when `write` fails before.
fn cut(write: impl FnOnce(&mut Cut) -> fmt::Result) -> Option<String> {
    let mut text = Cut(String::new());
    let result = write(&mut text);
    (result.is_ok() || text.0.len() >= MAX_NAME_BYTES).then_some(text.0)
}

/// A text of at most [`MAX_NAME_BYTES`] bytes; writing more is an error.
struct Cut(String);

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.0.len() >= MAX_NAME_BYTES {
                return Err(fmt::Error);
            }
            self.0.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_they_were_written() {
        for (name, expected) in [
            ("clock_nanosleep@@GLIBC_2.17", "clock_nanosleep"),
            ("_ZN2at6native6resizeERKNS_6TensorE", "at::native::resize"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            (
                "_ZN3std6thread5sleep17h0123456789abcdefE",
                "std::thread::sleep",
            ),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(demangled(name), expected);
        }
        assert_eq!(demangled(&"x".repeat(5000)).len(), MAX_NAME_BYTES);
    }
}
