//! Reads and writes the notes that a reader of the page makes on a trace, in a file of the trace's folder. The
//! revision of the notes is the hash of their file: a window of the page that sends notes names the revision it has
//! read, so that it cannot overwrite those of another window.

use crate::Error;
use crate::kept_file;
use crate::protocol::{Note, NotesAnswer, OrMissing};
use gapscope_files::ContainedPath;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Name of the file in the folder of a trace.
const FILE: &str = "notes.json";
/// The only version of the file that this gapscope writes and reads.
const FORMAT: u32 = 1;
/// The most notes of a trace; more are refused.
const MAX_NOTES: usize = 1000;
/// The most characters of a note.
const MAX_NOTE_CHARACTERS: usize = 10_000;
/// The most bytes of the file; a larger one is not read.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotesFile {
    format: u32,
    notes: Vec<Note>,
}

/// Notes that the page sends to replace the old ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplacedNotes {
    /// The revision of the notes that the page has read and changed.
    revision: String,
    notes: Vec<Note>,
}

/// The reason why notes cannot be read or were not written.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotesError {
    /// The request cannot be parsed.
    #[error("These are no notes: {0}.")]
    Malformed(String),
    /// The request has an invalid note.
    #[error("{0}.")]
    Invalid(#[from] InvalidNotes),
    /// The notes have been changed since the revision of the request.
    #[error("The notes were changed in another window meanwhile.")]
    Changed,
    /// The file in the folder cannot be read.
    #[error("The notes in {} cannot be read: {reason}. Move that file away to write others.", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// The folder cannot be written, for a reason in a sentence.
    #[error("{0}")]
    Unwritable(String),
}

/// A rule that notes break.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidNotes {
    #[error("A trace has at most {MAX_NOTES} notes")]
    TooMany,
    #[error("A note's range ends before it starts")]
    EndsBeforeStart,
    #[error("A note has a text")]
    Empty,
    #[error("A note has at most {MAX_NOTE_CHARACTERS} characters")]
    TooLong,
}

/// The notes of a trace.
pub struct Notes {
    folder: PathBuf,
    /// Held while the notes are written.
    writing: Mutex<()>,
}

impl Notes {
    pub fn new(folder: &Path) -> Notes {
        Notes {
            folder: folder.to_owned(),
            writing: Mutex::new(()),
        }
    }

    /// Returns the notes with their revision, or why they cannot be read; `unwritable` says why none can be written.
    pub fn answer(&self, unwritable: Option<&str>) -> OrMissing<NotesAnswer> {
        match self.read() {
            Ok((revision, notes)) => OrMissing::There(NotesAnswer {
                revision,
                notes,
                unwritable: unwritable.map(str::to_owned),
            }),
            Err(error) => OrMissing::missing(error.to_string()),
        }
    }

    /// Replaces all notes, if nobody has changed them since the given revision.
    ///
    /// # Errors
    /// See [`NotesError`].
    pub fn replace(&self, sent: &[u8]) -> Result<(), NotesError> {
        let ReplacedNotes { revision, notes } = serde_json::from_slice(sent)
            .map_err(|error| NotesError::Malformed(error.to_string()))?;
        check(&notes)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, _) = self.read()?;
        if now != revision {
            return Err(NotesError::Changed);
        }
        self.write(notes).map_err(|error| {
            let path = self.folder.join(FILE);
            let reason = error.to_string();
            NotesError::Unwritable(format!("{}.", Error::Write { path, reason }))
        })
    }

    /// Returns the notes with their revision, which is the hash of the file.
    fn read(&self) -> Result<(String, Vec<Note>), NotesError> {
        let path = self.folder.join(FILE);
        parsed(&ContainedPath::new(&self.folder, FILE)).map_err(|error| NotesError::Unreadable {
            path,
            reason: error.to_string(),
        })
    }

    /// Writes the file, or removes it where there are no notes.
    fn write(&self, notes: Vec<Note>) -> io::Result<()> {
        let path = ContainedPath::new(&self.folder, FILE);
        if notes.is_empty() {
            return match path.remove_file() {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let format = FORMAT;
        let mut text = serde_json::to_vec_pretty(&NotesFile { format, notes })?;
        text.push(b'\n');
        path.replace_private(&text)
    }
}

/// Reads a file of notes; without a file there are no notes and the revision is empty.
fn parsed(path: &ContainedPath) -> io::Result<(String, Vec<Note>)> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Some(bytes) = kept_file::read(path, MAX_FILE_BYTES)? else {
        return Ok((String::new(), Vec::new()));
    };
    // A later format may have other keys.
    let Format { format } = serde_json::from_slice(&bytes)?;
    if format != FORMAT {
        return Err(kept_file::other_format(format));
    }
    let NotesFile { notes, .. } = serde_json::from_slice(&bytes)?;
    check(&notes).map_err(io::Error::other)?;
    Ok((blake3::hash(&bytes).to_hex().to_string(), notes))
}

/// Returns the first rule that notes break.
fn check(notes: &[Note]) -> Result<(), InvalidNotes> {
    if notes.len() > MAX_NOTES {
        return Err(InvalidNotes::TooMany);
    }
    for Note {
        from_ns,
        to_ns,
        text,
    } in notes
    {
        if to_ns.is_some_and(|to_ns| to_ns < *from_ns) {
            return Err(InvalidNotes::EndsBeforeStart);
        }
        if text.trim().is_empty() {
            return Err(InvalidNotes::Empty);
        }
        if text.chars().count() > MAX_NOTE_CHARACTERS {
            return Err(InvalidNotes::TooLong);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::fs;

    fn answer(notes: &Notes, unwritable: Option<&str>) -> Value {
        json!(notes.answer(unwritable))
    }

    /// Returns the bytes with which the page replaces the notes of a revision.
    fn sent(revision: &str, texts: &[&str]) -> Vec<u8> {
        let note = |text: &&str| json!({"from_ns": 5, "to_ns": null, "text": text});
        let notes: Vec<Value> = texts.iter().map(note).collect();
        json!({"revision": revision, "notes": notes})
            .to_string()
            .into_bytes()
    }

    fn revision(notes: &Notes) -> String {
        answer(notes, None)["revision"].as_str().unwrap().to_owned()
    }

    #[test]
    fn notes_are_kept_until_the_last_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path());
        assert_eq!(answer(&notes, None)["notes"], json!([]));
        notes.replace(&sent("", &["first", "second"])).unwrap();
        let answer = answer(&Notes::new(folder.path()), Some("why"));
        assert_eq!(answer["notes"][1]["text"], "second");
        assert_eq!(answer["unwritable"], "why");
        notes.replace(&sent(&revision(&notes), &[])).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn notes_that_somebody_else_changed_are_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path());
        notes.replace(&sent("", &["mine"])).unwrap();
        assert_eq!(
            notes.replace(&sent("", &["late"])),
            Err(NotesError::Changed)
        );
        assert_eq!(answer(&notes, None)["notes"][0]["text"], "mine");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let notes = Notes::new(folder.path());
        for (text, says) in [
            ("{", "cannot be read"),
            (
                r#"{"format": 2, "notes": [], "more": 1}"#,
                "a later gapscope wrote it, in format 2",
            ),
            (
                r#"{"format": 1, "notes": [{"from_ns": 5, "to_ns": 4, "text": "x"}]}"#,
                "ends before it starts",
            ),
        ] {
            fs::write(&path, text).unwrap();
            let answer = answer(&notes, None);
            assert!(
                answer["missing"].as_str().unwrap().contains(says),
                "{answer}"
            );
            assert!(matches!(
                notes.replace(&sent("", &["x"])),
                Err(NotesError::Unreadable { .. })
            ));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(
            answer(&notes, None)["missing"]
                .as_str()
                .unwrap()
                .contains("not a file")
        );
    }

    #[test]
    fn what_is_no_note_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path());
        let long = "x".repeat(MAX_NOTE_CHARACTERS + 1);
        for wrong in [
            &b"no"[..],
            &sent("", &[" "]),
            &sent("", &[&long]),
            &sent("", &["x"; MAX_NOTES + 1]),
        ] {
            assert!(matches!(
                notes.replace(wrong),
                Err(NotesError::Malformed(_) | NotesError::Invalid(_))
            ));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_told(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(FILE), &bytes).unwrap();
            let answer = answer(&Notes::new(folder.path()), None);
            prop_assert!(answer.get("missing").is_some() || answer.get("notes").is_some());
        }
    }
}
