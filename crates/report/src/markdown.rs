//! Draws a document as Markdown (CommonMark with tables). Important text and warnings are bold, names from code are
//! code; bars are left out.

use crate::document::{Block, Document, Row, Table, Text, Tone};
use crate::fit;

/// Returns a document as Markdown text, which ends with a line feed.
pub fn draw(document: &Document) -> String {
    let mut page = String::new();
    let mut before: Option<&Block> = None;
    for block in &document.blocks {
        let joins = matches!(
            (before, block),
            (None, _) | (Some(Block::Item(_)), Block::Item(_))
        );
        if !joins {
            page.push('\n');
        }
        match block {
            Block::Title(title, aside) => {
                page.push_str(&format!("# {}\n", escaped(title)));
                if !aside.is_empty() {
                    page.push_str(&format!("\n{}\n", escaped(aside)));
                }
            }
            Block::Heading(title, aside) => {
                page.push_str(&format!("## {}\n", escaped(title)));
                if !aside.is_empty() {
                    page.push_str(&format!("\n*{}*\n", escaped(aside)));
                }
            }
            Block::Sentence(text) | Block::Apart(text) => {
                page.push_str(&format!("{}\n", inline(text)));
            }
            Block::Item(text) => page.push_str(&format!("- {}\n", inline(text))),
            Block::Picture(lines) => {
                page.push_str("```text\n");
                for line in lines {
                    page.push_str(line.plain_text().trim_end());
                    page.push('\n');
                }
                page.push_str("```\n");
            }
            Block::Table(table) => draw_table(&mut page, table),
        }
        before = Some(block);
    }
    page
}

/// Appends a table to the page, with a column of notes if any row has a note.
fn draw_table(page: &mut String, table: &Table) {
    let columns = || table.columns.iter().filter(|c| !c.picture);
    let noted = table.rows.iter().any(|row| row.note.is_some());
    let mut titles: Vec<String> = columns().map(|c| escaped(&c.title)).collect();
    let mut rules: Vec<&str> = columns()
        .map(|c| if c.right { "---:" } else { "---" })
        .collect();
    if noted {
        titles.push(escaped(&table.note_title));
        rules.push("---");
    }
    page.push_str(&format!("| {} |\n", titles.join(" | ")));
    page.push_str(&format!("| {} |\n", rules.join(" | ")));
    for Row { cells, note } in &table.rows {
        let mut line: Vec<String> = cells
            .iter()
            .zip(&table.columns)
            .filter(|(_, column)| !column.picture)
            .map(|(cell, column)| {
                // Names of kernels are code: Markdown must not interpret their underscores.
                if column.code && !cell.spans.is_empty() {
                    code(&cell.plain_text())
                } else {
                    inline(cell)
                }
            })
            .collect();
        if noted {
            line.push(note.as_ref().map(inline).unwrap_or_default());
        }
        page.push_str(&format!("| {} |\n", line.join(" | ")));
    }
}

/// Returns a text with its important pieces in bold.
fn inline(text: &Text) -> String {
    let mut out = String::new();
    for (tone, piece) in &text.spans {
        let bare = piece.trim();
        match tone {
            Tone::Strong | Tone::Warning if !bare.is_empty() => {
                let lead = &piece[..piece.len() - piece.trim_start().len()];
                let tail = &piece[piece.trim_end().len()..];
                out.push_str(&format!("{lead}**{}**{tail}", escaped(bare)));
            }
            _ => out.push_str(&escaped(piece)),
        }
    }
    out
}

/// Returns a name as code.
fn code(text: &str) -> String {
    // Blanks at the start show the nesting of a label; Markdown would drop them.
    let bare = text.trim_start_matches(' ');
    let nesting = "\u{a0}".repeat(text.len() - bare.len());
    let text = format!("{nesting}{}", bare.replace('|', "\\|"));
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// Escapes what Markdown would interpret.
fn escaped(text: &str) -> String {
    let text = fit::clean(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Column;

    #[test]
    fn a_name_cannot_break_its_table() {
        let mut table = Table::new([Column::name("kernel"), Column::number("count")]);
        table.row(["a|b".into(), "1".into()]);
        table.row(["a`b".into(), Text::new().strong("2")]);
        let document = Document {
            blocks: vec![Block::Table(table)],
        };
        assert_eq!(
            draw(&document),
            "| kernel | count |\n| --- | ---: |\n| `a\\|b` | 1 |\n| `` a`b `` | **2** |\n"
        );
    }
}
