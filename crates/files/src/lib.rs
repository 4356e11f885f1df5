//! Opens and writes the files of folders that a stranger may have made: traces, captures, spools.
//!
//! A folder that the user named and the name of a file in it go in ([`ContainedPath`]), and a regular file inside of
//! that folder comes out. Links in the folder are never followed, whether they stand for the file or for a folder on
//! the way to it, so that a stranger's folder neither shows nor changes other files of its reader. [`NewFile`] writes a
//! file that appears under its name only when it is whole.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod contained_path;
mod new_file;
mod unfinished;

pub use contained_path::{ContainedPath, create_private_folder};
pub use new_file::{NewFile, NewFolder, move_new};
pub use unfinished::{Unfinished, remove_unfinished};
