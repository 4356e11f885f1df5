//! Exports the tables of a recording: a bundle (folder of a recording) of xctrace, Apple's recorder, goes in; XML
//! files come out. Each file is read to its end: xctrace's exit status does not say whether a table is complete.

use crate::Error;
use crate::interrupt::{Interrupts, ToolExit};
use crate::stage::Stage;
use crate::tool::{Xctrace, last_words};
use gapscope_import::xctrace::{TABLES, Toc, check};
use std::fs::File;
use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// How often an export is tried: a crash of xctrace may not happen again.
const ATTEMPTS: u32 = 2;

/// The exported files, and notes about them.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    pub files: Vec<PathBuf>,
    pub notes: Vec<String>,
}

/// Exports the table of contents, and every table that it lists and an import uses, into `folder`. A listed table that
/// has no export is an error if the import needs the table, and a note otherwise. `show` is called before each table.
pub(crate) fn export(
    xctrace: &Xctrace,
    recording: &Path,
    folder: &Path,
    interrupts: &Interrupts,
    show: &mut impl FnMut(Stage),
) -> Result<Exports, Error> {
    let exporter = Exporter {
        xctrace,
        recording,
        folder,
        interrupts,
    };
    let path = exporter.file("toc");
    let exit = exporter.run(&["--toc"], &path)?;
    let not_exported = |what: &str, reason: String| Error::NotExported {
        what: what.to_owned(),
        reason,
        kept: recording.to_owned(),
    };
    let toc = File::open(&path)
        .map_err(|error| error.to_string())
        .and_then(|file| Toc::read(BufReader::new(file)).map_err(|error| error.to_string()))
        .map_err(|error| {
            not_exported("its table of contents", format!("{error}; {}", exit.words))
        })?;
    let run = toc
        .metal_run()
        .ok_or_else(|| not_exported("its table of contents", "it lists no run".to_owned()))?;
    let mut exports = Exports {
        files: vec![path],
        notes: Vec::new(),
    };
    let wanted: Vec<_> = (TABLES.iter())
        .filter(|table| run.tables.iter().any(|listed| listed == table.schema))
        .collect();
    for (done, table) in wanted.iter().enumerate() {
        let of = wanted.len();
        show(Stage::Exporting { done, of });
        let xpath = format!(
            "/trace-toc/run[@number=\"{}\"]/data/table[@schema=\"{}\"]",
            run.number, table.schema
        );
        match exporter.table(table.schema, &xpath)? {
            TableExport::Written(written) => {
                exports.files.push(written.file);
                exports.notes.extend(written.note);
            }
            TableExport::Missing { reason } if table.needed => {
                return Err(not_exported(table.schema, reason));
            }
            TableExport::Missing { reason } => exports.notes.push(format!(
                "No {}: xctrace did not export {} ({reason}).",
                table.gives, table.schema
            )),
        }
    }
    Ok(exports)
}

/// Runs the exports of one recording into one folder.
struct Exporter<'a> {
    xctrace: &'a Xctrace,
    /// xctrace's bundle.
    recording: &'a Path,
    /// Where the files are written.
    folder: &'a Path,
    interrupts: &'a Interrupts,
}

/// The end of one call of xctrace.
struct ExportExit {
    success: bool,
    status: String,
    /// The last lines that xctrace wrote to its error output.
    words: String,
}

/// The outcome of exporting a table: its file, or the reason why there is none with content.
enum TableExport {
    Written(WrittenTable),
    Missing { reason: String },
}

/// A table's file, which may lack rows.
struct WrittenTable {
    file: PathBuf,
    /// A note about the table.
    note: Option<String>,
}

impl Exporter<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.xml"))
    }

    /// Exports a table, again if its file is torn or unreadable: the first whole file is taken, otherwise the first
    /// with any content.
    fn table(&self, schema: &str, xpath: &str) -> Result<TableExport, Error> {
        let mut torn: Option<WrittenTable> = None;
        let mut reason = String::new();
        for attempt in 1..=ATTEMPTS {
            let path = match attempt {
                1 => self.file(schema),
                _ => self.folder.join(format!("{schema}-{attempt}")),
            };
            let exit = self.run(&["--xpath", xpath], &path)?;
            match check(&path) {
                Ok(found) if found.whole && found.nodes > 0 => {
                    let note = (!exit.success).then(|| {
                        format!(
                            "xctrace ended with {} after it had written all of {schema}.",
                            exit.status
                        )
                    });
                    return Ok(TableExport::Written(WrittenTable { file: path, note }));
                }
                Ok(found) if found.nodes > 0 => {
                    let note = format!(
                        "xctrace ended with {} before {schema} was written to its end: {} rows were read, more may be missing.",
                        exit.status, found.rows
                    );
                    torn.get_or_insert(WrittenTable {
                        file: path,
                        note: Some(note),
                    });
                }
                Ok(_) => {
                    // xctrace gave no error, so that asking again gives the same empty result.
                    let reason =
                        "it wrote an empty result, although its table of contents lists the table"
                            .to_owned();
                    return Ok(TableExport::Missing { reason });
                }
                Err(error) => reason = format!("{error}; {}", exit.words),
            }
        }
        Ok(match torn {
            Some(written) => TableExport::Written(written),
            None => TableExport::Missing { reason },
        })
    }

    /// Runs one export of `what`, in the arguments of xctrace, and waits for its end.
    fn run(&self, what: &[&str], output: &Path) -> Result<ExportExit, Error> {
        let program = self.xctrace.program();
        let log = self.folder.join("export.log");
        let writer = File::create(&log).map_err(Error::io(&log))?;
        let mut command = self.xctrace.command(["export", "--input"]);
        command
            .arg(self.recording)
            .args(what)
            .arg("--output")
            .arg(output);
        command.process_group(0);
        command.stdout(Stdio::null()).stderr(writer);
        let mut child = command.spawn().map_err(Error::io(program))?;
        let ToolExit {
            status,
            interrupted,
        } = self.interrupts.wait(&mut child, program)?;
        if interrupted {
            return Err(Error::Interrupted {
                kept: self.recording.to_owned(),
            });
        }
        Ok(ExportExit {
            success: status.success(),
            status: status.to_string(),
            words: last_words(&std::fs::read_to_string(&log).unwrap_or_default()),
        })
    }
}
