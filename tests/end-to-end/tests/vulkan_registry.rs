//! Tests that gapscope's list of Vulkan's commands is that of the installed registry. A test of the layer compares
//! the layer's hooks with the list.

use std::fs;
use std::process::Command;

use crate::{client, product};

#[test]
fn the_list_of_commands_is_that_of_the_registry() {
    let Some([python, script]) = client::script("vulkan-registry") else {
        return;
    };
    let output = Command::new(python)
        .arg(script)
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let list = product::source("../../crates/recorder/vulkan-layer/registry/commands.tsv");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&list, &output.stdout).expect("the list can be written");
    }
    let committed = fs::read(&list).expect("the list is there");
    assert!(
        committed == output.stdout,
        "the registry has changed: UPDATE=1 cargo test -p end-to-end registry writes the list, and the tests of \
         gapscope-vulkan say which commands are new"
    );
}
