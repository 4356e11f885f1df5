//! A stand-in for `xctrace`: takes its arguments, runs the command, and exports a planted scene whatever the command did. The variable
//! STAND_IN_XCTRACE lists its oddities; with STAND_IN_SIGNPOSTS the scene has labels of the SDK.
#![forbid(unsafe_code)]

use stand_in_xctrace::{Quirks, Scene};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The command buffers of the planted scene.
const COMMAND_BUFFERS: u64 = 5;
/// xctrace's status when its target did not end with 0.
const TARGET_FAILED: u8 = 54;
/// A shell's status for a SIGTRAP.
const CRASHED: u8 = 133;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<u8, Box<dyn Error>> {
    let quirks = Quirks::parse(&std::env::var("STAND_IN_XCTRACE").unwrap_or_default())?;
    match arguments.first().map(String::as_str) {
        Some("version") => {
            println!("xctrace version 27.2 (27B5019j)");
            Ok(0)
        }
        Some("record") => record(&arguments[1..], &quirks),
        Some("export") => export(&arguments[1..], &quirks),
        _ => Err("xctrace: expected record, export or version".into()),
    }
}

#[derive(Default)]
struct Record {
    template: String,
    output: PathBuf,
    time_limit: Option<Duration>,
    env: Vec<(String, String)>,
    stdout: Option<PathBuf>,
    attach: Option<u32>,
    launch: Vec<String>,
}

fn parse(arguments: &[String]) -> Result<Record, Box<dyn Error>> {
    let mut record = Record::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || {
            rest.next()
                .cloned()
                .ok_or(format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "--template" => record.template = value()?,
            "--output" => record.output = value()?.into(),
            "--time-limit" => {
                let text = value()?;
                let ms = text.strip_suffix("ms").and_then(|ms| ms.parse().ok());
                record.time_limit = Some(Duration::from_millis(ms.ok_or("bad time limit")?));
            }
            "--env" => {
                let pair = value()?;
                let (name, value) = pair.split_once('=').ok_or("bad --env")?;
                record.env.push((name.to_owned(), value.to_owned()));
            }
            "--target-stdout" => record.stdout = Some(value()?.into()),
            "--attach" => record.attach = value()?.parse().ok(),
            "--no-prompt" | "--launch" => {}
            "--" => {
                record.launch = rest.cloned().collect();
                break;
            }
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(record)
}

fn record(arguments: &[String], quirks: &Quirks) -> Result<u8, Box<dyn Error>> {
    let record = parse(arguments)?;
    if quirks.refuse {
        return Err("Recording failed: Developer mode is not enabled".into());
    }
    if record.template != "Metal System Trace" {
        return Err(format!("no template named {}", record.template).into());
    }
    if record.output.exists() {
        return Err(format!("{} already exists", record.output.display()).into());
    }
    println!("Starting recording with the Metal System Trace template.");
    let started = Instant::now();
    let (pid, status) = match (record.attach, record.launch.split_first()) {
        (Some(pid), _) => {
            std::thread::sleep(record.time_limit.unwrap_or_default());
            (pid, Some(0))
        }
        (None, Some((program, arguments))) => {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .env_clear()
                .envs(record.env)
                .stdin(Stdio::null());
            if let Some(path) = &record.stdout {
                command.stdout(File::create_new(path)?);
            }
            let mut child = command.spawn()?;
            loop {
                if let Some(status) = child.try_wait()? {
                    break (child.id(), status.code());
                }
                if record
                    .time_limit
                    .is_some_and(|limit| started.elapsed() >= limit)
                {
                    child.kill()?;
                    child.wait()?;
                    break (child.id(), None);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        (None, None) => return Err("nothing to record".into()),
    };
    std::fs::create_dir(&record.output)?;
    let facts = format!(
        "{pid}\n{}\n",
        status.map_or("ended".to_owned(), |status| status.to_string())
    );
    std::fs::write(record.output.join("facts"), facts)?;
    println!("Output file saved as: {}", record.output.display());
    Ok(if status.unwrap_or(0) == 0 {
        0
    } else {
        TARGET_FAILED
    })
}

fn export(arguments: &[String], quirks: &Quirks) -> Result<u8, Box<dyn Error>> {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let input = value("--input").ok_or("no --input")?;
    let output = Path::new(value("--output").ok_or("no --output")?);
    let facts = std::fs::read_to_string(Path::new(input).join("facts"))
        .map_err(|error| format!("{input}: {error}"))?;
    let mut facts = facts.lines();
    let mut scene = match std::env::var_os("STAND_IN_SIGNPOSTS") {
        Some(_) => Scene::chain_under_signposts(4 * COMMAND_BUFFERS),
        None => Scene::labelled_chain(COMMAND_BUFFERS),
    };
    scene.process.pid = facts
        .next()
        .and_then(|pid| pid.parse().ok())
        .ok_or("bad bundle")?;
    let status = facts.next().and_then(|status| status.parse().ok());
    scene.exit_status = status.unwrap_or(0);
    let text = if arguments.iter().any(|argument| argument == "--toc") {
        let toc = scene.toc();
        match status {
            Some(_) => toc,
            None => toc.replace("Target app exited", "Time limit reached"),
        }
    } else {
        let xpath = value("--xpath").ok_or("no --xpath")?;
        let schema = xpath
            .split("@schema=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        scene.table(schema.unwrap_or_default(), quirks)
    };
    std::fs::write(output, text)?;
    Ok(if quirks.crash { CRASHED } else { 0 })
}
