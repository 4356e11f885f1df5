//! A stand-in for `gpucapture`: writes the arguments that it got as its capture.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("list") => println!("4711 python"),
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
