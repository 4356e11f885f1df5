//! Holds the files of the built page, which are compiled in, and makes one HTML page of them in two parts, between
//! which data is written.

/// A file of the page.
pub struct File {
    /// The last part of the path that the page asks for.
    pub name: &'static str,
    pub media_type: &'static str,
    pub bytes: &'static [u8],
}

/// The built page, its script and its style.
const HTML: File = File {
    name: "index.html",
    media_type: "text/html; charset=utf-8",
    bytes: include_bytes!("../../../web/dist/index.html"),
};
const SCRIPT_FILE: File = File {
    name: "app.js",
    media_type: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../../../web/dist/app.js"),
};
const STYLE_FILE: File = File {
    name: "app.css",
    media_type: "text/css; charset=utf-8",
    bytes: include_bytes!("../../../web/dist/app.css"),
};

/// All files of the page.
pub const FILES: [File; 3] = [HTML, SCRIPT_FILE, STYLE_FILE];

/// The texts of the built HTML file that are replaced: the link to the script, the link to the style, the place of
/// the data, and the element behind which the policy goes.
const SCRIPT: &str = r#"<script type="module" src="./app.js"></script>"#;
const STYLE: &str = r#"<link rel="stylesheet" href="./app.css">"#;
const DATA: &str = "<!-- gapscope-data -->";
const CHARSET: &str = r#"<meta charset="utf-8" />"#;
/// A file may run the script in it and reach nothing else.
const POLICY: &str = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; worker-src blob:; base-uri 'none'; form-action 'none'" />"#;

/// Returns the page as one file: the part before its data, and the part after.
pub fn single() -> (String, String) {
    let text = |file: File| String::from_utf8_lossy(file.bytes).into_owned();
    // Tags that would close the element are escaped in JavaScript and in CSS.
    let script = text(SCRIPT_FILE)
        .replace("</script", "<\\/script")
        .replace("<!--", "<\\!--");
    let style = text(STYLE_FILE).replace("</style", "<\\/style");
    let html = text(HTML);
    let html = html.replacen(CHARSET, &format!("{CHARSET}\n    {POLICY}"), 1);
    let html = html.replacen(STYLE, &format!("<style>{style}</style>"), 1);
    let (before, after) = html.split_once(DATA).unwrap_or((&html, ""));
    // The script comes last, so that no text in it is taken for a placeholder.
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
        let html = str::from_utf8(HTML.bytes).unwrap();
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
