//! Replaces the tables of a page of the documentation, each of which is between two markers: [`Page::open`], then
//! [`Page::replace`] for each table, then [`Page::write`].

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A page of the documentation with its text.
pub struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    pub fn open(path: &Path) -> Result<Page> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Page {
            path: path.to_owned(),
            text,
        })
    }

    /// Replaces the text between the markers of `part`.
    pub fn replace(&mut self, part: &str, content: &str) -> Result<()> {
        self.text = replaced(&self.text, part, content).with_context(|| {
            format!(
                "{} has no lines {} and {}",
                self.path.display(),
                start(part),
                END
            )
        })?;
        Ok(())
    }

    pub fn write(&self) -> Result<()> {
        fs::write(&self.path, &self.text)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

const END: &str = "<!-- end -->";

fn start(part: &str) -> String {
    format!("<!-- measured: {part} -->")
}

/// Returns the text with another content of a part; `None` if it lacks one of the markers.
fn replaced(text: &str, part: &str, content: &str) -> Option<String> {
    let start = start(part);
    let (before, rest) = text.split_once(&start)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{start}\n{content}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_the_named_part_is_replaced() {
        let text = "# A\n<!-- measured: x -->\nold\n<!-- end -->\n<!-- measured: y -->\nkept\n<!-- end -->\n";
        let new = replaced(text, "x", "new").unwrap();
        assert_eq!(
            new,
            "# A\n<!-- measured: x -->\nnew\n<!-- end -->\n<!-- measured: y -->\nkept\n<!-- end -->\n"
        );
        assert_eq!(replaced(text, "z", "new"), None);
    }
}
