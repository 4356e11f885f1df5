//! The table of thresholds, and what is written from it.

use crate::causes::{in_repository, renew};
use gapscope_timeline::thresholds;

#[test]
fn the_reference_lists_all_thresholds_with_their_reasons() {
    const HEAD: &str = "| threshold | value | what it decides | why |\n|---|---|---|---|\n";
    let path = in_repository("docs/thresholds.md");
    let page = std::fs::read_to_string(&path).expect("the reference is there");
    let from = page.find(HEAD).expect("it has the table") + HEAD.len();
    // The table may be the end of the page.
    let to = (page[from..].find("\n\n")).map_or(page.len(), |end| from + end + 1);
    let rows: String = (thresholds::ALL.iter())
        .map(|t| {
            format!(
                "| `{}` | {} | {} | {} |\n",
                t.name,
                t.text(),
                t.decides,
                t.reason
            )
        })
        .collect();
    let renewed = format!("{}{rows}{}", &page[..from], &page[to..]);
    renew(&path, &page, &renewed);
}
