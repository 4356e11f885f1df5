//! Tests `gapscope schema`: schemas are listed and printed.

use crate::{Workplace, assert_status, text};
use std::path::Path;

#[test]
fn schemas_are_listed_and_printed() {
    let workplace = Workplace::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let list = workplace.run(&["schema"]);
    for line in text(&list.stdout).lines() {
        let name = line.split_whitespace().next().unwrap();
        let printed = workplace.run(&["schema", name]);
        let published = folder.join(format!("{name}.schema.json"));
        assert_eq!(
            text(&printed.stdout),
            std::fs::read_to_string(published).unwrap()
        );
    }
    let none = workplace.run(&["schema", "reports"]);
    assert_status(&none, 1);
    assert!(text(&none.stderr).starts_with("gapscope: no schema \"reports\": did you mean report"));
    let none = workplace.run(&["schema", "zebra"]);
    assert!(text(&none.stderr).starts_with("gapscope: no schema \"zebra\": there are report, "));
}
