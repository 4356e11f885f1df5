//! The built page.

/// Its files: name, type, bytes.
pub const FILES: [(&str, &str, &[u8]); 3] = [
    (
        "index.html",
        "text/html; charset=utf-8",
        include_bytes!("../../../web/dist/index.html"),
    ),
    (
        "app.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../web/dist/app.js"),
    ),
    (
        "app.css",
        "text/css; charset=utf-8",
        include_bytes!("../../../web/dist/app.css"),
    ),
];

const SCRIPT: &str = r#"<script type="module" src="./app.js"></script>"#;
const STYLE: &str = r#"<link rel="stylesheet" href="./app.css">"#;
const DATA: &str = "<!-- gapscope-data -->";
const CHARSET: &str = r#"<meta charset="utf-8" />"#;
/// A file may run what is in it and reach nothing else.
const POLICY: &str = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; worker-src blob:; base-uri 'none'; form-action 'none'" />"#;

/// The page as one file, up to its data and behind them.
pub fn single() -> (String, String) {
    let text = |file: usize| String::from_utf8_lossy(FILES[file].2).into_owned();
    // What closes the element that holds it is written otherwise in JavaScript and in CSS.
    let script = text(1)
        .replace("</script", "<\\/script")
        .replace("<!--", "<\\!--");
    let style = text(2).replace("</style", "<\\/style");
    let html = text(0);
    let html = html.replacen(CHARSET, &format!("{CHARSET}\n    {POLICY}"), 1);
    let html = html.replacen(STYLE, &format!("<style>{style}</style>"), 1);
    let (before, after) = html.split_once(DATA).unwrap_or((&html, ""));
    // The script comes last, so that the texts in it are not taken for the places of others.
    let whole = |part: &str| {
        part.replacen(
            SCRIPT,
            &format!("<script type=\"module\">{script}</script>"),
            1,
        )
    };
    (whole(before), whole(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_page_has_the_places_that_a_file_fills() {
        let html = str::from_utf8(FILES[0].2).unwrap();
        for place in [SCRIPT, STYLE, DATA, CHARSET] {
            assert_eq!(html.matches(place).count(), 1, "{place}");
        }
    }

    #[test]
    fn a_single_file_names_no_other() {
        let (before, after) = single();
        let html = format!("{before}{after}");
        for place in [SCRIPT, STYLE, DATA, "src=\"./", "href=\"./"] {
            assert!(!html.contains(place), "{place}");
        }
        assert!(html.contains("<style>") && html.contains("<script type=\"module\">"));
    }
}
