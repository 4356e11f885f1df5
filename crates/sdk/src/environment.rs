//! Reads the switches of the environment.

/// Returns true if one of these variables is set to something other than `0` and the empty text.
pub(crate) fn any_is_on(variables: &[&str]) -> bool {
    let on = |value: std::ffi::OsString| means_on(&value.to_string_lossy());
    variables
        .iter()
        .any(|variable| std::env::var_os(variable).is_some_and(on))
}

fn means_on(value: &str) -> bool {
    !matches!(value.trim(), "" | "0")
}

#[cfg(test)]
mod tests {
    use super::means_on;

    #[test]
    fn off_is_off() {
        for off in ["", "0", " 0 "] {
            assert!(!means_on(off), "{off:?}");
        }
        for on in ["1", "true", "yes", "2"] {
            assert!(means_on(on), "{on:?}");
        }
    }
}
