//! Launches a program with one of gapscope's Vulkan layers (libraries that Vulkan's loader puts between the program
//! and the driver) and the library for CUDA in its environment, without a recording, and waits for its end.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gapscope_trace::manifest::Exit;

use crate::launch::{add_cuda, add_layer, check_program, exit_of};
use crate::signals::Signals;
use crate::{Error, inherited_settings};

/// A program to run with a layer.
#[derive(Debug, Clone)]
pub struct LaunchWithLayer {
    /// The command with its arguments. It inherits this process's environment and standard streams.
    pub command: Vec<OsString>,
    /// The layer's name.
    pub name: &'static str,
    /// The layer's library.
    pub library: PathBuf,
    /// The library that the CUDA driver and NVTX load into the program; `None` for none.
    pub cuda: Option<PathBuf>,
    /// A folder for the loader's manifest of the layer. It must outlive the program.
    pub folder: PathBuf,
    /// A variable for the layer, with its value.
    pub variable: (&'static str, String),
}

impl LaunchWithLayer {
    /// Checks that the command can be run.
    ///
    /// # Errors
    /// The command does not exist or cannot be run.
    pub fn check(&self) -> Result<(), Error> {
        check_program(self.program()?)
    }

    /// Returns the command's first word.
    fn program(&self) -> Result<&OsStr, Error> {
        let program = self.command.first().ok_or(Error::NoCommand)?;
        Ok(program)
    }

    /// Runs the command to its end and calls `tick` every few milliseconds. Signals to this process reach the
    /// command.
    ///
    /// # Errors
    /// The command cannot be run.
    pub fn run(self, mut tick: impl FnMut()) -> Result<Exit, Error> {
        self.check()?;
        let program = self.program()?;
        let mut command = Command::new(program);
        command.args(&self.command[1..]);
        add_layer(&mut command, &self.folder, self.name, &self.library)?;
        if let Some(library) = &self.cuda {
            add_cuda(&mut command, library);
        }
        command.env(self.variable.0, &self.variable.1);
        inherited_settings::pass_to(&mut command);
        let path = Path::new(program);
        let signals = Signals::catch().map_err(Error::io(path))?;
        let mut child = command.spawn().map_err(|source| Error::NotExecutable {
            command: path.to_owned(),
            source,
        })?;
        loop {
            if let Some(exit) = exit_of(&mut child) {
                return Ok(exit);
            }
            signals.pass_on(child.id());
            tick();
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}
