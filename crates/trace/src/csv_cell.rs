//! Writes cells of CSV so that readers get the text, and spreadsheets run nothing.

use std::io::{self, Write};

/// Writes a text as a cell, quoted where CSV demands it. An empty text is quoted, which distinguishes it from an unknown
/// one.
///
/// A spreadsheet computes a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return, and such a formula can
/// send the other cells away. Names in a trace may be a stranger's, so that an apostrophe comes before such a text;
/// numbers stay as they are.
///
/// # Errors
/// `out` refuses.
pub fn write_cell(text: &str, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let is_formula =
        text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let mark = if is_formula { "'" } else { "" };
    match !text.is_empty() && !text.contains(['"', ',', '\n', '\r']) {
        true => write!(out, "{mark}{text}"),
        false => write!(out, "\"{mark}{}\"", text.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreadsheets_run_no_text_and_numbers_stay() {
        for (text, cell) in [
            ("", "\"\""),
            ("a b", "a b"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("-12", "-12"),
            ("-1.5e-3", "-1.5e-3"),
            ("+7", "+7"),
            ("=1+1", "'=1+1"),
            (
                "=HYPERLINK(\"http://x\",1)",
                "\"'=HYPERLINK(\"\"http://x\"\",1)\"",
            ),
            ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
            ("+cmd", "'+cmd"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
        ] {
            let mut out = Vec::new();
            write_cell(text, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), cell, "{text:?}");
        }
    }
}
