//! The options of an import, which the caller gives to every importer.

use crate::GpuRows;

/// The options of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The process whose work is imported. By default it is the process that the files name, or the only one.
    pub pid: Option<u32>,
    /// The command of the program. By default it is the command that the files name.
    pub command: Option<Vec<String>>,
    /// The ranks (the processes of a distributed program) that the files are of, in the order of the files. It is empty
    /// where the files say their ranks, or where they are of no ranks.
    pub ranks: Vec<u32>,
    /// The rows of Chrome's JSON that are those of a GPU, where the file does not say it.
    pub gpu_rows: Vec<GpuRows>,
    /// Notes of the caller, which every report shows.
    pub notes: Vec<String>,
    /// The reasons why ends of files could not be read, one for each such file. They become losses of the trace.
    pub unread_ends: Vec<String>,
}
