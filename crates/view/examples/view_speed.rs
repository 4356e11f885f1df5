//! Times what the page asks for first, over HTTP and from the opening of the trace:
//! `cargo run --release -p gapscope-view --example view_speed -- TRACE`.
#![forbid(unsafe_code)]

use gapscope_view::{Options, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    let Some(trace) = std::env::args_os().nth(1) else {
        eprintln!("usage: speed TRACE");
        std::process::exit(2);
    };
    let start = Instant::now();
    let server = match Server::open(&[PathBuf::from(trace)], Options::default()) {
        Ok(server) => server.start(),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    println!("{:>8} {:>8} {:>12}  answer", "from ms", "to ms", "bytes");
    let print = |name: &str, from: f64, bytes: usize| {
        println!(
            "{from:>8.0} {:>8.0} {bytes:>12}  {name}",
            start.elapsed().as_secs_f64() * 1e3
        );
    };
    let ask = |key: &str| {
        let from = start.elapsed().as_secs_f64() * 1e3;
        let body = get(server.url(), key);
        print(key, from, body.len());
        body
    };
    let overview = ask("overview");
    ask("t/0/strings");
    let overview: serde_json::Value = serde_json::from_slice(&overview).unwrap_or_default();
    let tracks = overview["traces"][0]["tracks"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for track in tracks.iter().filter(|track| track["kind"] == "work") {
        ask(&format!(
            "t/0/track/{}",
            track["id"].as_str().unwrap_or_default()
        ));
    }
    for track in tracks.iter().filter(|track| track["kind"] == "gaps") {
        ask(&format!(
            "t/0/track/{}",
            track["id"].as_str().unwrap_or_default()
        ));
    }
    ask("t/0/range?from=0&to=100000000");
    ask("t/0/rows/dispatches/1000");
    ask("t/0/findings");
    println!("{}", memory());
}

/// Asks for an answer, and throws away what is not its body.
fn get(url: &str, key: &str) -> Vec<u8> {
    let rest = url.trim_start_matches("http://");
    let (host, root) = rest.split_once('/').unwrap_or((rest, ""));
    let request =
        format!("GET /{root}api/{key} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut bytes = Vec::new();
    let answered = TcpStream::connect(host).and_then(|mut stream| {
        stream.write_all(request.as_bytes())?;
        stream.read_to_end(&mut bytes)
    });
    if let Err(error) = answered {
        eprintln!("{key}: {error}");
    }
    let head = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map_or(0, |at| at + 4);
    bytes.split_off(head)
}

/// The server's memory, where the system says it.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"));
    lines.collect::<Vec<_>>().join(", ")
}
