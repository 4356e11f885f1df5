//! Finds the kernels in PTX (NVIDIA's assembly text), with the source files that they name. The text goes in; a
//! [`Piece`] with the text, its kernels, and whether they can launch others, comes out.

use super::{Kernel, LAUNCHERS, Piece};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the piece of a text; `None` when the text is not PTX: it has neither a kernel nor `.version`.
pub fn piece(bytes: Cow<'_, [u8]>) -> Option<Piece<'_>> {
    let text = str::from_utf8(&bytes).ok()?;
    let kernels = kernels(text);
    let launches = LAUNCHERS.iter().any(|name| text.contains(name));
    (!kernels.is_empty() || text.contains(".version")).then_some(Piece {
        extension: "ptx",
        bytes,
        kernels,
        launches,
    })
}

/// Returns the kernels (`.entry NAME`), each with the file that its first `.loc` without an inlined function names by
/// number; `.file` lines tell the path of each number.
pub fn kernels(text: &str) -> Vec<Kernel> {
    let mut files: FxHashMap<&str, Arc<str>> = FxHashMap::default();
    let mut kernels: Vec<(&str, Option<&str>)> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix(".file") {
            let mut parts = rest.splitn(3, '"');
            if let (Some(number), Some(file)) = (parts.next(), parts.next()) {
                files.entry(number.trim()).or_insert_with(|| file.into());
            }
        } else if let Some(rest) = line.strip_prefix(".loc") {
            if let Some((_, file @ None)) = kernels.last_mut()
                && !rest.contains("function_name")
            {
                *file = rest.split_whitespace().next();
            }
        } else if let Some((before, rest)) = line.split_once(".entry")
            && !before.contains("//")
        {
            let name = rest
                .trim_start()
                .split(|c: char| c == '(' || c.is_whitespace());
            kernels.extend(
                name.take(1)
                    .filter(|name| !name.is_empty())
                    .map(|name| (name, None)),
            );
        }
    }
    let kernel = |(name, number): (&str, Option<&str>)| Kernel {
        name: name.to_owned(),
        file: number.and_then(|number| files.get(number).cloned()),
    };
    kernels.into_iter().map(kernel).collect()
}
