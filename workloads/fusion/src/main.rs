//! Runs one chain of elementwise operations eagerly (one kernel for each operation) and compiled (one kernel for
//! all), prints how long each takes and what fusion saves, and checks the results against the CPU. In a recording both
//! modes do the same work under a debug group each, which gapscope can compare.
#![forbid(unsafe_code)]

mod chain;
mod expr;
mod gpu;
mod op;
mod program;
mod reference;
mod wgsl;

use std::f64::consts::PI;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, ValueEnum};

use chain::Chain;
use gpu::Gpu;
use program::Program;
use reference::{Output, compare};

#[derive(Parser)]
#[command(
    version,
    about,
    after_help = "\
Examples:
  fusion
  fusion --n 16777216 --iterations 20 --mode compiled
  fusion --chain tanh,mul:x,add:0.5,sqrt --adapter llvmpipe"
)]
struct Args {
    /// Number of float32 values
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// Timed evaluations of each mode
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// One dispatch an operation, one fused dispatch, or one mode after the other
    #[arg(long, value_enum, default_value_t = Mode::Both)]
    mode: Mode,
    /// Evaluations of each mode before the timed ones
    #[arg(long, default_value_t = 2)]
    warm_up: u32,
    /// Operations in order, as in sin,add:2.5,mul:x; x is the input, which runs from 0 to π
    #[arg(long, default_value = "sin,cos,exp,log")]
    chain: Chain,
    /// Part of the name of the GPU to use
    #[arg(long)]
    adapter: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Eager,
    Compiled,
    Both,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Warms the programs of the wanted modes up, times one after the other, and checks them.
fn run(args: &Args) -> Result<()> {
    let gpu = Gpu::open(args.adapter.as_deref())?;
    gpu.check_length(args.n)?;
    println!(
        "Adapter: {} ({}), chain {}",
        gpu.adapter.name,
        gpu.adapter.backend,
        args.chain.text()
    );

    let input: Vec<f32> = (0..args.n)
        .map(|i| (PI * (f64::from(i) + 0.5) / f64::from(args.n)) as f32)
        .collect();
    let x = program::upload(&gpu, &input);
    let expr = args.chain.expr();
    let mut eager = None;
    let mut compiled = None;
    if args.mode != Mode::Compiled {
        eager = Some(Program::eager(&gpu, expr, &x, args.n)?);
    }
    if args.mode != Mode::Eager {
        compiled = Some(Program::compiled(&gpu, expr, &x, args.n)?);
    }

    println!("Warming up...");
    for program in eager.iter().chain(&compiled) {
        for _ in 0..args.warm_up {
            program.evaluate("warm-up")?;
        }
    }
    let mut eager_time = None;
    if let Some(program) = &eager {
        println!("Running Eager Mode...");
        let time = time(program, "eager", args.iterations)?;
        println!("Eager Time: {:.4}s", time.as_secs_f64());
        eager_time = Some(time);
    }
    if let Some(program) = &compiled {
        println!("Running Compiled Mode...");
        let time = time(program, "compiled", args.iterations)?;
        println!("Compiled Time: {:.4}s", time.as_secs_f64());
        if let Some(eager_time) = eager_time {
            println!(
                "Speedup: {:.2}x",
                eager_time.as_secs_f64() / time.as_secs_f64()
            );
        }
    }
    check(args, &input, eager.as_ref(), compiled.as_ref())
}

/// Returns the time of all iterations, each of which submits once under the debug group `group` and waits until the GPU
/// has finished.
fn time(program: &Program, group: &str, iterations: u32) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..iterations {
        program.evaluate(group)?;
    }
    Ok(start.elapsed())
}

/// Compares the results with the CPU's, and prints how far they are off; a value outside its tolerance is an error.
fn check(
    args: &Args,
    input: &[f32],
    eager: Option<&Program>,
    compiled: Option<&Program>,
) -> Result<()> {
    let mut outputs = Vec::new();
    for (mode, program) in [("eager", eager), ("compiled", compiled)] {
        if let Some(program) = program {
            outputs.push(Output {
                mode,
                values: program.read()?,
            });
        }
    }
    let comparison = compare(args.chain.expr(), input, &outputs)?;
    print!("Check: {comparison}");
    if outputs.len() == 2 {
        print!(
            "; eager and compiled differ by at most {:.3e}",
            comparison.max_difference
        );
    }
    println!();
    Ok(())
}
