//! What xctrace does that nobody expects.

/// Where a document ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// Where it should.
    #[default]
    Nowhere,
    /// After the last row, without closing tags: xctrace crashed when all was written.
    AfterLastRow,
    /// In the middle of the last row.
    InLastRow,
}

/// Oddities of an export. All of them were seen, but forward references, which are possible by the grammar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Where documents end.
    pub cut: Cut,
    /// Rows stand in two nodes, of which the second has no schema.
    pub two_nodes: bool,
    /// Values are referred to before they stand.
    pub forward_references: bool,
    /// The process has no GPU intervals, as compute work on some systems.
    pub no_gpu_rows: bool,
    /// Nor starts and ends of GPU work.
    pub no_points: bool,
    /// Every table is exported as an empty result.
    pub empty: bool,
    /// Missing values leave no `<sentinel/>`, so that cells shift. Tools that rewrite exports do this, not xctrace.
    pub dropped_sentinels: bool,
    /// xctrace crashes (status 133) after writing an export.
    pub crash: bool,
    /// xctrace cannot record, and says why on stderr.
    pub refuse: bool,
}

impl Quirks {
    /// Reads a list of names with commas between.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Quirks, String> {
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
                other => return Err(format!("there is no quirk `{other}`")),
            }
        }
        Ok(quirks)
    }
}
