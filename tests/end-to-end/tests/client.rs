//! Finds the real programs that `cargo xtask test` installs, and skips tests of programs that are not installed.

use std::fs;
use std::path::PathBuf;

use crate::driver::Lavapipe;
use crate::product;
use crate::recording::Program;

/// Returns the folder of a client, or `None` after printing why its test is skipped.
///
/// With GAPSCOPE_REQUIRE_CLIENTS=1 a client that is missing fails the test.
fn installed(name: &str) -> Option<PathBuf> {
    let clients = product::target().join("clients");
    if !clients.join(format!("{name}.installed")).exists() {
        let reason = fs::read_to_string(clients.join(format!("{name}.missing")))
            .unwrap_or_else(|_| "`cargo xtask test` has not installed it".to_owned());
        let required =
            std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
        assert!(!required, "{name} is missing: {reason}");
        eprintln!("skipped: {name}: {reason}");
        return None;
    }
    Some(clients)
}

/// Returns the Python and the script of a client that is not recorded; `None` as for [`program`].
pub fn script(name: &str) -> Option<[PathBuf; 2]> {
    let python = installed(name)?.join("python/bin/python");
    Some([python, product::source(&format!("clients/{name}/run.py"))])
}

/// Returns the program of a client; `None` if it is not installed.
pub fn program(name: &str) -> Option<Program> {
    let clients = installed(name)?;
    let node = clients.join(name);
    let command = if node.join("node_modules").exists() {
        // Node looks for packages from the script's folder upwards.
        let script = node.join("run.mjs");
        fs::copy(product::source(&format!("clients/{name}/run.mjs")), &script)
            .expect("the script can be copied");
        vec![PathBuf::from("node"), script]
    } else {
        vec![
            clients.join("python/bin/python"),
            product::source(&format!("clients/{name}/run.py")),
        ]
    };
    Some(Program::new(command, &Lavapipe).variable("PYTHONDONTWRITEBYTECODE", "1"))
}
