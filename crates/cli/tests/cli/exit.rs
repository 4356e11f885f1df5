//! Tests that the exit statuses are those that `docs/scripts.md` lists.

use crate::{Workplace, text};

/// Tests each status of the table in `docs/scripts.md`, and that stdout is empty when nothing could be done.
#[test]
fn each_status_is_as_documented() {
    let workplace = Workplace::new();
    workplace.trace("whole");
    workplace.trace("damaged");
    std::fs::write(workplace.path("damaged/dispatches.parquet"), "no").unwrap();
    std::fs::write(workplace.path("text"), "no program").unwrap();
    for (arguments, status) in [
        (&["report", "--json", "whole"][..], 0),
        (&["report", "--json", "none"], 1),
        (&["info", "none"], 1),
        (&["deps", "--json", "none"], 1),
        (&["replay", "--json", "none"], 1),
        (&["schema", "none"], 1),
        (&["report", "--jason", "whole"], 2),
        (&["record"], 2),
        (&["report", "--json", "damaged"], 3),
        (&["info", "damaged"], 3),
        (&["record", "-o", "whole", "--", "true"], 125),
        (&["record", "--quiet", "-o", "nothing", "--", "true"], 125),
        (&["record", "--", "./text"], 126),
        (&["record", "--", "./none"], 127),
        (
            &["record", "--quiet", "-o", "7", "--", "sh", "-c", "exit 7"],
            7,
        ),
        (
            &[
                "record",
                "--quiet",
                "-o",
                "9",
                "--",
                "sh",
                "-c",
                "kill -9 $$",
            ],
            128 + 9,
        ),
    ] {
        let output = workplace.run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        if !matches!(status, 0 | 3) {
            assert_eq!(text(&output.stdout), "", "{arguments:?}");
        }
    }
}
