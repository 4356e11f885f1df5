//! Ballista's own scheduler in this process, and two of its executors in processes of their own.

use crate::{Result, store};
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_executor::new_standalone_executor_from_builder;
use ballista_scheduler::standalone::new_standalone_scheduler_with_builder;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The argument that makes this program an executor.
pub const EXECUTOR: &str = "executor";
/// What an executor says once it runs, and for each task.
const READY: &str = "ready";
const TASK: &str = "task";
/// Tasks that an executor runs at a time.
const CORES: usize = 1;

/// An executor whose starter is gone ends after so long.
const MAX_LIFETIME: Duration = Duration::from_secs(600);

/// A scheduler with two executors, which end with it.
pub struct Cluster {
    /// Where the scheduler listens.
    pub url: String,
    executors: Vec<Executor>,
}

struct Executor {
    process: Child,
    tasks: Arc<AtomicUsize>,
}

impl Cluster {
    /// Starts one; `endpoint` is where its object store listens.
    pub async fn start(endpoint: &str) -> Result<Cluster> {
        let runtime = store::runtime(endpoint)?;
        let address = new_standalone_scheduler_with_builder(
            Arc::new(move |config| Ok(store::state(config, runtime.clone()))),
            Arc::new(store::config),
            BallistaCodec::default(),
        )
        .await?;
        let url = format!("http://localhost:{}", address.port());
        let executors = (0..2).map(|_| Executor::start(&url, endpoint));
        Ok(Cluster {
            executors: executors.collect::<Result<_>>()?,
            url,
        })
    }

    /// The tasks of each executor so far.
    pub fn tasks(&self) -> Vec<usize> {
        let executors = self.executors.iter();
        executors
            .map(|executor| executor.tasks.load(Ordering::Relaxed))
            .collect()
    }
}

impl Executor {
    fn start(scheduler: &str, endpoint: &str) -> Result<Executor> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args([EXECUTOR, scheduler, endpoint])
            .stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("an executor has no output")?;
        let tasks = Arc::new(AtomicUsize::new(0));
        let mut executor = Executor {
            process,
            tasks: tasks.clone(),
        };
        let mut lines = BufReader::new(output).lines();
        match lines.next() {
            Some(Ok(line)) if line == READY => {}
            _ => {
                let status = executor.process.wait()?;
                return Err(format!("an executor did not start: {status}").into());
            }
        }
        std::thread::spawn(move || {
            for line in lines.map_while(std::io::Result::ok) {
                tasks.fetch_add(usize::from(line == TASK), Ordering::Relaxed);
            }
        });
        Ok(executor)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Is an executor, until it is stopped.
pub async fn executor(scheduler: &str, endpoint: &str) -> Result<()> {
    log::set_logger(&Tasks)?;
    log::set_max_level(log::LevelFilter::Debug);
    let scheduler = SchedulerGrpcClient::connect(scheduler.to_owned()).await?;
    let runtime = store::runtime(endpoint)?;
    let state = store::state(store::config(), runtime.clone());
    new_standalone_executor_from_builder(
        scheduler,
        CORES,
        Arc::new(store::config),
        Arc::new(move |_| Ok(runtime.clone())),
        BallistaCodec::default(),
        (&state).into(),
    )
    .await?;
    println!("{READY}");
    // The one that started it stops it; without that one it ends by itself.
    tokio::time::sleep(MAX_LIFETIME).await;
    Err("an executor ran for ten minutes: whoever started it is gone".into())
}

/// Tells of each task that the executor ran: what it logs of it.
struct Tasks;

impl log::Log for Tasks {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        if record.target().starts_with("ballista_executor::metrics") {
            println!("{TASK}");
        } else if record.level() == log::Level::Error {
            eprintln!("executor: {}", record.args());
        }
    }

    fn flush(&self) {}
}
