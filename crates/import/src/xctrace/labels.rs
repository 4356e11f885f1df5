//! Tells the labels that the program set from the texts that Instruments makes up or extends.

/// Returns the kind of object in a name that Instruments gives an unnamed object; `None` for other names. The kind in
/// `Blit Command 3` is `Blit Command`.
pub(crate) fn default_kind(label: &str) -> Option<&str> {
    let (kind, number) = label.rsplit_once(' ')?;
    let counted = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let known = kind == "Command Buffer"
        || kind
            .strip_suffix(" Command")
            .is_some_and(|word| ["Compute", "Blit", "Render"].contains(&word));
    (counted && known).then_some(kind)
}

/// Returns the label if the program set it, and `None` if Instruments made it up.
pub(crate) fn given_by_program(label: Option<&str>) -> Option<&str> {
    label.filter(|label| !label.is_empty() && default_kind(label).is_none())
}

/// Removes the process or thread that Instruments appends: `X (python (99926))` becomes `X`. `process` and `pid` are
/// the recorded process; other texts stay as they are.
pub(crate) fn without_owner<'a>(text: &'a str, process: &str, pid: u32) -> &'a str {
    let text = text.trim_end();
    let owner = [
        format!(" ({process} ({pid}))"),
        format!(" ( {process} ({pid}) )"),
    ];
    for owner in owner {
        if let Some(text) = text.strip_suffix(owner.as_str()) {
            return text;
        }
    }
    // The form is ` (NAME (0xTID) (python, pid: 99926))`.
    if text.ends_with(&format!("pid: {pid}))"))
        && let Some(tid) = text.rfind(" (0x")
        && let Some(at) = text[..tid].rfind(" (")
    {
        return &text[..at];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_instruments_gives_are_not_labels() {
        for text in [
            "Command Buffer 0",
            "Compute Command 12",
            "Blit Command 3",
            "Render Command 1",
        ] {
            assert_eq!(given_by_program(Some(text)), None, "{text}");
        }
        for text in [
            "layer.attn",
            "Command Buffer",
            "Compute Command x",
            "Command Buffer 0a",
            "step 3",
        ] {
            assert_eq!(given_by_program(Some(text)), Some(text));
        }
    }

    #[test]
    fn owners_are_cut_off() {
        let cut = |text| without_owner(text, "python", 99926);
        assert_eq!(
            cut("Command Buffer 0 Scheduled Handler (python (99926))"),
            "Command Buffer 0 Scheduled Handler"
        );
        assert_eq!(
            cut("Command Buffer 0 (python (0x11ab9f0) (python, pid: 99926))"),
            "Command Buffer 0"
        );
        assert_eq!(cut("a (b)"), "a (b)");
    }
}
