//! The table of thresholds, and what is written from it.

use crate::causes::{in_repository, renew};
use gapscope_timeline::thresholds;

#[test]
fn the_guide_lists_all_thresholds_with_their_reasons() {
    const HEAD: &str = "| threshold | value | what it decides | why |\n|---|---|---|---|\n";
    let path = in_repository("docs/guide.md");
    let guide = std::fs::read_to_string(&path).expect("the guide is there");
    let from = guide.find(HEAD).expect("the guide has the table") + HEAD.len();
    let to = from + guide[from..].find("\n\n").expect("the table ends") + 1;
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
    let renewed = format!("{}{rows}{}", &guide[..from], &guide[to..]);
    renew(&path, &guide, &renewed);
}
