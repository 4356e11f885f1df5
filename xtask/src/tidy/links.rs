//! Checks the links of the documents. The tracked files go in, and a sentence for each link to a file or heading that is not
//! there comes out, and for each page of `docs` that the index `docs/README.md` does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The index of the pages in `docs`.
const INDEX: &str = "docs/README.md";

/// Returns a sentence for each violation in the Markdown files of `files` (paths below `root`).
pub fn problems(root: &Path, files: &[String]) -> Vec<String> {
    let pages = (files.iter())
        .filter(|file| file.ends_with(".md") && (file.starts_with("docs/") || !file.contains('/')))
        .filter_map(|file| {
            Some((
                file.as_str(),
                std::fs::read_to_string(root.join(file)).ok()?,
            ))
        });
    check(&pages.collect(), |file| root.join(file).exists())
}

/// Returns a sentence for each violation in `pages` (their texts by path). `is_there` says whether a path exists.
fn check(pages: &BTreeMap<&str, String>, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let headings: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|(&file, text)| (file, anchors(text)))
        .collect();
    let mut problems = Vec::new();
    for (&page, text) in pages {
        for link in links(text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.to_owned()
            } else {
                beside(page, file)
            };
            if !is_there(&target) {
                problems.push(format!("{page}: the link `{link}` leads to no file"));
            } else if !heading.is_empty()
                && headings
                    .get(target.as_str())
                    .is_some_and(|there| !there.contains(heading))
            {
                problems.push(format!("{page}: the link `{link}` leads to no heading"));
            }
        }
    }
    let listed: BTreeSet<String> = (pages.get(INDEX).into_iter())
        .flat_map(|text| links(text))
        .map(|link| beside(INDEX, link.split('#').next().unwrap_or_default()))
        .collect();
    for page in pages.keys().filter(|page| page.starts_with("docs/")) {
        if *page != INDEX && !listed.contains(*page) {
            problems.push(format!("{INDEX}: the page {page} is not listed"));
        }
    }
    problems
}

/// Returns the lines of a page that are outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

/// Returns the targets of a page's links into the repository.
fn links(text: &str) -> Vec<&str> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
        .filter(|link| !link.contains("://") && !link.contains(' '))
        .collect()
}

/// Returns the anchors of a page's headings, as the usual hosting services make them.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                c => c.is_alphanumeric().then_some(c),
            });
            kept.collect()
        })
        .collect()
}

/// Returns the path, from the root, of a link of a page.
fn beside(page: &str, link: &str) -> String {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nowhere_and_an_unlisted_page_are_found() {
        let pages = BTreeMap::from([
            ("docs/README.md", "[a](a.md)\n".to_owned()),
            (
                "docs/a.md",
                "# Kernel `names`\n[x](#kernel-names) [y](#none) [z](gone.md)\n```\n[no](no.md)\n```\n".to_owned(),
            ),
            ("docs/b.md", "[up](../docs/a.md#kernel-names)\n".to_owned()),
        ]);
        assert_eq!(
            check(&pages, |file| pages.contains_key(file)),
            [
                "docs/a.md: the link `#none` leads to no heading",
                "docs/a.md: the link `gone.md` leads to no file",
                "docs/README.md: the page docs/b.md is not listed",
            ]
        );
    }
}
