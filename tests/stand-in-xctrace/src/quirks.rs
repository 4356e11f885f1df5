//! Oddities of xctrace.

use std::error::Error;

/// The place where a document ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// At its end.
    #[default]
    Nowhere,
    /// After the last row, without closing tags, as when xctrace crashed after all was written.
    AfterLastRow,
    /// In the middle of the last row.
    InLastRow,
}

/// Deviations of an export from a plain one. All were seen in real exports except forward references, which the
/// grammar permits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quirks {
    /// The place where documents end.
    pub cut: Cut,
    /// Rows are in two nodes, of which the second has no schema.
    pub two_nodes: bool,
    /// Values are referred to before they are defined.
    pub forward_references: bool,
    /// The process has no GPU intervals, like compute work on some systems.
    pub no_gpu_rows: bool,
    /// There are no starts and ends of GPU work.
    pub no_points: bool,
    /// Every table is exported as an empty result.
    pub empty: bool,
    /// Missing values leave no `<sentinel/>`, so that cells shift. Tools that rewrite exports do this, xctrace does not.
    pub dropped_sentinels: bool,
    /// xctrace crashes (status 133) after writing an export.
    pub crash: bool,
    /// xctrace cannot record, and says why on stderr.
    pub refuse: bool,
}

impl Quirks {
    /// Parses names that are separated by commas.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Quirks, Box<dyn Error>> {
        let mut quirks = Quirks::default();
        for name in text.split(',').filter(|name| !name.is_empty()) {
            match name {
                "cut-after-row" => quirks.cut = Cut::AfterLastRow,
                "cut-in-row" => quirks.cut = Cut::InLastRow,
                "two-nodes" => quirks.two_nodes = true,
                "forward-references" => quirks.forward_references = true,
                "no-gpu-rows" => quirks.no_gpu_rows = true,
                "no-points" => quirks.no_points = true,
                "empty" => quirks.empty = true,
                "dropped-sentinels" => quirks.dropped_sentinels = true,
                "crash" => quirks.crash = true,
                "refuse" => quirks.refuse = true,
                other => return Err(format!("there is no quirk `{other}`").into()),
            }
        }
        Ok(quirks)
    }
}
