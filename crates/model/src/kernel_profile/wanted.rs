//! Parses the user's requests for profiles of kernel launches, `NAME` or `NAME:N`, and formats them for the
//! environment variable through which the recorded program gets them. `N` is the number of launches, 1 where it is
//! left out.

use std::str::FromStr;

/// A request for profiles of the first launches of kernels whose names contain a text: `NAME` or `NAME:N`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// A part of one of the kernel's [`Spellings`](crate::kernel_names::Spellings).
    pub name: String,
    /// Number of launches in each process, over all such kernels together; at least 1.
    pub launches: u32,
}

/// Why a text is not a request for profiles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WantedError {
    /// The name is missing.
    #[error("a part of a kernel's name is needed, as in `gemm:2`")]
    NoName,
    /// The number in this text is 0 or too great.
    #[error("{0} is not a number of launches from 1 to {max}", max = Wanted::MAX_LAUNCHES)]
    Number(String),
}

impl Wanted {
    /// The most launches; a greater number is an error. Profiling a launch takes a good part of a second.
    pub const MAX_LAUNCHES: u32 = 1000;

    /// Formats several requests for an environment variable: a line `LAUNCHES NAME` for each.
    pub fn to_lines(all: &[Wanted]) -> String {
        let line = |wanted: &Wanted| format!("{} {}", wanted.launches, wanted.name);
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Parses [`Wanted::to_lines`] and skips lines that are not valid.
    pub fn from_lines(lines: &str) -> Vec<Wanted> {
        let read = |line: &str| {
            let (launches, name) = line.split_once(' ')?;
            Some(Wanted {
                name: name.to_owned(),
                launches: launches.parse().ok()?,
            })
        };
        lines.lines().filter_map(read).collect()
    }
}

impl FromStr for Wanted {
    type Err = WantedError;

    /// Parses `NAME` or `NAME:N`. The last colon separates a number, unless it is part of a double colon, as in
    /// `at::native`.
    fn from_str(text: &str) -> Result<Wanted, WantedError> {
        let (name, number) = match text.rsplit_once(':') {
            Some((name, number))
                if !name.ends_with(':')
                    && !number.is_empty()
                    && number.bytes().all(|digit| digit.is_ascii_digit()) =>
            {
                (name, Some(number))
            }
            _ => (text, None),
        };
        if name.trim().is_empty() || name.contains(['\n', '\r']) {
            return Err(WantedError::NoName);
        }
        let launches = match number {
            None => 1,
            Some(number) => (number.parse().ok())
                .filter(|launches| (1..=Wanted::MAX_LAUNCHES).contains(launches))
                .ok_or_else(|| WantedError::Number(number.to_owned()))?,
        };
        Ok(Wanted {
            name: name.to_owned(),
            launches,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_behind_a_single_colon_is_that_of_launches() {
        let read = |text: &str| text.parse::<Wanted>().map(|w| (w.name, w.launches));
        let is = |name: &str, launches| Ok((name.to_owned(), launches));
        assert_eq!(read("gemm"), is("gemm", 1));
        assert_eq!(read("gemm:3"), is("gemm", 3));
        assert_eq!(read("at::native::fill"), is("at::native::fill", 1));
        assert_eq!(read("at::native:2"), is("at::native", 2));
        assert_eq!(read("a::7"), is("a::7", 1));
        assert_eq!(read("fill<float> (vec4):2"), is("fill<float> (vec4)", 2));
        assert_eq!(read(""), Err(WantedError::NoName));
        assert_eq!(read(":2"), Err(WantedError::NoName));
        assert_eq!(read("gemm:0"), Err(WantedError::Number("0".into())));
        assert_eq!(read("gemm:1001"), Err(WantedError::Number("1001".into())));
    }

    proptest::proptest! {
        #[test]
        fn what_was_read_is_read_again(texts in proptest::collection::vec(".{0,30}(:[0-9]{1,4})?", 0..4)) {
            let all: Vec<Wanted> = texts.iter().filter_map(|text| text.parse().ok()).collect();
            proptest::prop_assert_eq!(Wanted::from_lines(&Wanted::to_lines(&all)), all);
        }
    }
}
