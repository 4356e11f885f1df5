//! A stand-in for `gpucapture`, which writes its arguments as its capture. It lists an invented process, and those whose environment
//! lets them be captured.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("list") => {
            println!("4711 python");
            for (pid, name) in capturable() {
                println!("{pid} {name}");
            }
        }
        Some("start") => {
            let output = arguments.iter().position(|argument| argument == "--output");
            let (Some(output), false) = (
                output.and_then(|at| arguments.get(at + 1)),
                arguments.iter().any(|a| a == "666"),
            ) else {
                eprintln!("error: the process cannot be captured");
                return ExitCode::FAILURE;
            };
            let written = std::fs::create_dir(output).and_then(|()| {
                std::fs::write(
                    std::path::Path::new(output).join("capture"),
                    arguments.join(" "),
                )
            });
            if written.is_err() {
                return ExitCode::FAILURE;
            }
        }
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

fn capturable() -> Vec<(u32, String)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = processes.filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(process.path().join("environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find(|v| *v == b"MTL_CAPTURE_ENABLED=1")?;
        let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
        Some((pid, name.trim().to_owned()))
    });
    found.collect()
}
