//! Collects the names under which a user may know a kernel: in the code, in C++, and in reports.

use super::{demangle, readable};

/// The different spellings of a kernel's name: in the code, in C++ (full and short), and last in reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spellings(Vec<String>);

impl Spellings {
    /// Collects the spellings of a kernel from its name in the code, which may be mangled.
    pub fn new(in_code: &str) -> Spellings {
        let mut names = vec![in_code.to_owned()];
        let mut add = |name: &str| {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        };
        match demangle(in_code) {
            Some(cpp) => {
                add(&cpp.full);
                add(&cpp.short);
                add(&readable(&cpp.short, Some(&cpp.full)));
            }
            None => add(&readable(in_code, None)),
        }
        Spellings(names)
    }

    /// Returns true when one of the spellings contains `text`.
    ///
    /// ```
    /// use gapscope_model::kernel_names::Spellings;
    /// let fill = Spellings::new(
    ///     "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
    /// );
    /// for text in ["at6native29", "at::native::FillFunctor<float>", "elementwise_kernel<4", "fill<float> (vec4)"] {
    ///     assert!(fill.contain(text), "{text}: {fill:?}");
    /// }
    /// assert!(!fill.contain("Fill<float>"));
    /// ```
    pub fn contain(&self, text: &str) -> bool {
        self.0.iter().any(|name| name.contains(text))
    }

    /// Returns the spelling in reports, without the suffixes that tell kernels of one name apart.
    pub fn shown(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}
