//! Notes of the reader at moments and ranges of a trace, kept in its folder.

use crate::Error;
use crate::protocol::{Note, NotesAnswer, OrMissing};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file in the folder of a trace.
const FILE: &str = "notes.json";
/// What this gapscope writes, and all that it reads.
const FORMAT: u32 = 1;
/// Notes of a trace at most, characters of one, bytes of the file.
const MAX_NOTES: usize = 1000;
const MAX_NOTE_CHARACTERS: usize = 10_000;
const MAX_FILE_BYTES: u64 = 8 << 20;

/// What the file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotesFile {
    format: u32,
    notes: Vec<Note>,
}

/// What the page sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplacedNotes {
    /// Of the notes that it has changed.
    revision: String,
    notes: Vec<Note>,
}

/// Why notes were not written.
#[derive(Debug, PartialEq)]
pub enum NotesError {
    /// What was sent are no notes.
    Wrong(String),
    /// They were changed elsewhere meanwhile.
    Changed,
    /// The folder cannot be written, or what is there cannot be read.
    Refused(String),
}

/// The notes of a trace.
pub struct Notes {
    folder: PathBuf,
    /// Held while they are written.
    writing: Mutex<()>,
}

impl Notes {
    pub fn new(folder: &Path) -> Notes {
        Notes {
            folder: folder.to_owned(),
            writing: Mutex::new(()),
        }
    }

    /// The notes with their revision, or why they cannot be read; `unwritable` says why none can be written.
    pub fn answer(&self, unwritable: Option<&str>) -> OrMissing<NotesAnswer> {
        match self.read() {
            Ok((revision, notes)) => OrMissing::There(NotesAnswer {
                revision,
                notes,
                unwritable: unwritable.map(str::to_owned),
            }),
            Err(sentence) => OrMissing::missing(sentence),
        }
    }

    /// Replaces all notes by those of an answer's shape, if nobody has changed them since that revision.
    ///
    /// # Errors
    /// See [`NotesError`].
    pub fn replace(&self, sent: &[u8]) -> Result<(), NotesError> {
        let ReplacedNotes { revision, notes } = serde_json::from_slice(sent)
            .map_err(|error| NotesError::Wrong(format!("These are no notes: {error}.")))?;
        check(&notes).map_err(NotesError::Wrong)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, _) = self.read().map_err(NotesError::Refused)?;
        if now != revision {
            return Err(NotesError::Changed);
        }
        self.write(notes).map_err(|error| {
            let path = self.folder.join(FILE);
            let reason = error.to_string();
            NotesError::Refused(format!("{}.", Error::Write { path, reason }))
        })
    }

    fn read(&self) -> Result<(String, Vec<Note>), String> {
        let path = self.folder.join(FILE);
        let unread = |reason: String| {
            format!(
                "The notes in {} cannot be read: {reason}. Move that file away to write others.",
                path.display()
            )
        };
        let mut bytes = Vec::new();
        match open(&path) {
            Ok(file) => file
                .take(MAX_FILE_BYTES + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| unread(error.to_string()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((String::new(), Vec::new()));
            }
            Err(error) => return Err(unread(error.to_string())),
        };
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(unread("it is too large".to_owned()));
        }
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } =
            serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string()))?;
        if format != FORMAT {
            return Err(unread(format!(
                "a later gapscope wrote it, in format {format}"
            )));
        }
        let NotesFile { notes, .. } =
            serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string()))?;
        check(&notes).map_err(|sentence| unread(sentence.trim_end_matches('.').to_owned()))?;
        Ok((blake3::hash(&bytes).to_hex().to_string(), notes))
    }

    /// All of it or nothing: whoever reads meanwhile has the old or the new notes.
    fn write(&self, notes: Vec<Note>) -> io::Result<()> {
        let path = self.folder.join(FILE);
        if notes.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let format = FORMAT;
        let mut text = serde_json::to_vec_pretty(&NotesFile { format, notes })?;
        text.push(b'\n');
        let part = self
            .folder
            .join(format!("{FILE}.{}.part", std::process::id()));
        let written = (|| {
            let mut file = File::create(&part)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&part, &path)
        })();
        if written.is_err() {
            // What it said first is what counts.
            let _ = fs::remove_file(&part);
        }
        written
    }
}

/// Opens a file that is one: a pipe would be waited for.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    File::open(path)
}

fn check(notes: &[Note]) -> Result<(), String> {
    if notes.len() > MAX_NOTES {
        return Err(format!("A trace has at most {MAX_NOTES} notes."));
    }
    for Note {
        from_ns,
        to_ns,
        text,
    } in notes
    {
        if to_ns.is_some_and(|to_ns| to_ns < *from_ns) {
            return Err("A note's range ends before it starts.".to_owned());
        }
        if text.trim().is_empty() {
            return Err("A note has a text.".to_owned());
        }
        if text.chars().count() > MAX_NOTE_CHARACTERS {
            return Err(format!(
                "A note has at most {MAX_NOTE_CHARACTERS} characters."
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn answer(notes: &Notes, unwritable: Option<&str>) -> Value {
        json!(notes.answer(unwritable))
    }

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
                Err(NotesError::Refused(_))
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
            assert!(matches!(notes.replace(wrong), Err(NotesError::Wrong(_))));
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
