//! Checks the shaders of a capture, before it runs, with spirv-val, the validator of Khronos' SPIRV-Tools.

use crate::failure::Failure;
use gapscope_capture::Capture;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// Returns an error if spirv-val rejects a shader that a pipeline of the capture uses.
pub fn check(capture: &Capture) -> Result<(), Failure> {
    let mut kernels = BTreeMap::new();
    for pipeline in capture.pipelines.values() {
        let code = capture.modules[&pipeline.module].code;
        kernels.entry(code).or_insert(pipeline.name.as_str());
    }
    for (code, kernel) in kernels {
        let damaged = |error| failure!("the capture is damaged: {error}");
        let bytes = capture.chunk(code).map_err(damaged)?;
        if let Some(reason) = validate(&bytes)? {
            return Err(failure!(
                "nothing was run: kernel {kernel}: spirv-val says: {reason}"
            ));
        }
    }
    Ok(())
}

/// Returns the error that spirv-val finds in a module; `None` if there is none.
fn validate(code: &[u8]) -> Result<Option<String>, Failure> {
    let failed =
        |error: std::io::Error| failure!("spirv-val cannot be run ({error}): install SPIRV-Tools");
    let mut child = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.3", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // The program closes its end of the pipe early if it needs no more input.
        let _ = input.write_all(code);
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(None);
    }
    let said = [output.stderr, output.stdout].concat();
    Ok(Some(String::from_utf8_lossy(&said).trim().to_owned()))
}
