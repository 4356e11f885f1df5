//! Defines the tools of the server: their parameters, and the commands that they run. A call's parameters go in, the
//! output of `gapscope` comes out as the answer for the client's model. The model also reads the descriptions of
//! tools and the doc comments of parameters.

use crate::child::{self, ChildError, FinishedChild, cut};
use crate::roots::{Roots, RootsError, folder_of_address};
use gapscope_companion::{INCOMPLETE, Mcp, one_line};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    ContentBlock, Implementation, IntoContents, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The time limit of tasks that record nothing.
const TASK_LIMIT: Duration = Duration::from_secs(300);
/// The time that a recording may take beyond its limit, to end the command and to write the trace.
const RECORDING_GRACE: Duration = Duration::from_secs(120);
/// The time that the client has to name its roots (the folders that tools may use).
const ROOTS_LIMIT: Duration = Duration::from_secs(5);
/// The most tasks that run at once; further calls wait.
const MAX_TASKS: usize = 2;
/// The most characters of a recorded command's output in an answer.
const MAX_OUTPUT_CHARACTERS: usize = 4_000;

/// What the client's model is told of the server.
const INSTRUCTIONS: &str = "\
gapscope records the GPU timeline of a program and says why the GPU waits. Start with `explain` on a trace (a folder NAME.gapscope): \
it says in a page what bounds the program, and each claim names rows of the trace's tables. Look those up, or ask anything else, with \
`query` (SQL; without SQL it lists the tables). `report` has all figures. `record` runs a command and makes a trace; `import` makes one of \
another tool's file; `diff` compares two. Times are nanoseconds, unknown is null and never 0.";

/// The server.
#[derive(Clone)]
pub struct Server {
    options: Arc<Mcp>,
    /// The roots of the options; absent without such options.
    roots: Option<Roots>,
    /// A permit for each task that may run now.
    turns: Arc<Semaphore>,
    /// The tools that the client may call.
    tool_router: ToolRouter<Server>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Report {
    /// The trace: a folder such as `run.gapscope`, or a folder of ranks
    trace: String,
    /// `markdown` to read (the default), or `json` for all figures; `gapscope schema report` says what its keys mean
    format: Option<ReportFormat>,
    /// Only these keys of the JSON, such as `verdict`, `gaps`, `kernels`: the whole may be too long for an answer
    keys: Option<Vec<String>>,
    /// Only the work under the label with this text, or else under labels that contain it
    label: Option<String>,
    /// Rows in each table of the markdown; 10 if not given
    top: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ReportFormat {
    Markdown,
    Json,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Explain {
    /// The trace: a folder such as `run.gapscope`
    trace: String,
    /// `text` to read (the default), or `json`: claims with figures, rows and the query that finds them
    format: Option<ExplainFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ExplainFormat {
    Text,
    Json,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// Traces, or globs such as `runs/*/rank=*`
    traces: Vec<String>,
    /// One SELECT (DataFusion's SQL). Without it the answer is the tables and columns, and what they mean
    sql: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Diff {
    /// The trace before the change
    before: String,
    /// The trace after it
    after: String,
    /// Limits such as `gpu_time > 3%`: the answer says which are broken
    gates: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhatIf {
    /// The trace
    trace: String,
    /// Changes that are made together, such as `kernel:*softmax*=0.5x`, `cause:host-late=0`, `wait=each10`: the `gains` of a report have some
    changes: Option<Vec<String>>,
    /// The label of the steps that are replayed; the steps of the report if not given
    step: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Import {
    /// The files or folders that the other tool wrote
    inputs: Vec<String>,
    /// The trace to write: a folder that does not exist, such as `run.gapscope`
    output: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Record {
    /// The program and its arguments; no shell looks at them
    command: Vec<String>,
    /// The trace to write: a folder that does not exist, such as `run.gapscope`
    output: String,
    /// The command is ended after so many seconds: SIGTERM, and SIGKILL 5 s later. 30 if not given
    time_limit_s: Option<u32>,
    /// The folder that the command runs in; the first root if not given
    folder: Option<String>,
}

/// Why a tool has no answer. Each prints as one sentence for the client's model.
#[derive(Debug, thiserror::Error)]
enum ToolError {
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error(transparent)]
    Child(#[from] ChildError),
    #[error(
        "the client names no folder that may be used: add a root to it, or start gapscope mcp with --root"
    )]
    NoClientRoot,
    #[error("the client did not name its roots: ask again, or start gapscope mcp with --root")]
    NoRootsAnswer,
    #[error("the current folder is not known: {0}")]
    CurrentFolder(#[source] io::Error),
    #[error("the report has no key \"{absent}\": it has {known}")]
    NoKey { absent: String, known: String },
    #[error("no trace was named")]
    NoTrace,
    #[error("no command was named")]
    NoCommand,
    #[error(
        "time_limit_s is {limit_s}: a recording may take 1 to {longest_s} s (gapscope mcp --longest)"
    )]
    TimeLimit { limit_s: u32, longest_s: u32 },
    #[error("nothing was recorded ({status}): {stderr}")]
    NotRecorded { status: String, stderr: String },
    #[error("gapscope ended with {0}")]
    Ended(ExitStatus),
    /// The sentence of a task that failed.
    #[error("{0}")]
    Task(String),
}

/// The client's model sees an error as the result of the tool.
impl IntoContents for ToolError {
    fn into_contents(self) -> Vec<ContentBlock> {
        self.to_string().into_contents()
    }
}

#[tool_router]
impl Server {
    #[tool(
        description = "All figures of a trace: verdict, idle time by cause, kernels, labels, transfers, memory, accuracy, losses",
        annotations(title = "Report", read_only_hint = true)
    )]
    async fn report(
        &self,
        Parameters(call): Parameters<Report>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ToolError> {
        let roots = self.roots(&context.peer).await?;
        let trace = roots.existing(&call.trace)?;
        let json = call.format == Some(ReportFormat::Json) || call.keys.is_some();
        let mut arguments = to_arguments(&["report", if json { "--json" } else { "--markdown" }]);
        arguments.extend(call.label.map(|label| format!("--label={label}").into()));
        arguments.extend(call.top.map(|top| format!("--top={top}").into()));
        // The lines of source that an answer quotes are of files that the client may read.
        for root in roots.folders() {
            arguments.extend(["--sources-within".into(), root.into()]);
        }
        arguments.push(trace.into());
        let mut ended = self.run(arguments, "", &roots).await?;
        if let (Some(keys), Ok(Value::Object(mut report))) =
            (&call.keys, serde_json::from_str(&ended.stdout))
        {
            let there: Vec<String> = report.keys().cloned().collect();
            if let Some(absent) = keys.iter().find(|key| !there.contains(key)) {
                return Err(ToolError::NoKey {
                    absent: absent.clone(),
                    known: there.join(", "),
                });
            }
            report.retain(|key, _| keys.contains(key));
            ended.stdout = Value::Object(report).to_string();
        }
        let advice = "Ask for some `keys`, a `label`, a smaller `top`, or rows by `query`.";
        self.text(ended, advice)
    }

    #[tool(
        description = "What a trace shows, in plain English: what bounds the program, the largest causes and what to do, with the rows that each claim rests on",
        annotations(title = "Explain", read_only_hint = true)
    )]
    async fn explain(
        &self,
        Parameters(call): Parameters<Explain>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ToolError> {
        let roots = self.roots(&context.peer).await?;
        let mut arguments = to_arguments(&["explain"]);
        if call.format == Some(ExplainFormat::Json) {
            arguments.push("--json".into());
        }
        arguments.push(roots.existing(&call.trace)?.into());
        let ended = self.run(arguments, "", &roots).await?;
        self.text(ended, "")
    }

    #[tool(
        description = "SQL over one trace or many. Without SQL: the tables and columns with their meanings",
        annotations(title = "Query", read_only_hint = true)
    )]
    async fn query(
        &self,
        Parameters(call): Parameters<Query>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ToolError> {
        let roots = self.roots(&context.peer).await?;
        let mut arguments = to_arguments(match call.sql {
            Some(_) => &["query", "--format=json"],
            // The text form is shorter than JSON.
            None => &["query", "--schema"],
        });
        if call.traces.is_empty() {
            return Err(ToolError::NoTrace);
        }
        for trace in &call.traces {
            arguments.extend(roots.matching(trace)?.into_iter().map(OsString::from));
        }
        // The SQL goes to stdin: as an argument it could look like an option or a trace.
        let sql = call.sql.unwrap_or_default();
        let ended = self.run_query(arguments, &sql, &roots).await?;
        self.text(
            ended,
            "Add a `limit`, group the rows, or name fewer columns.",
        )
    }

    #[tool(
        description = "Compare two traces: whether they did equal work, and what changed, with confidence intervals, as JSON",
        annotations(title = "Diff", read_only_hint = true)
    )]
    async fn diff(
        &self,
        Parameters(call): Parameters<Diff>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ToolError> {
        let roots = self.roots(&context.peer).await?;
        let mut arguments = to_arguments(&["diff", "--json"]);
        let gates = call.gates.unwrap_or_default().into_iter();
        arguments.extend(gates.map(|gate| format!("--gate={gate}").into()));
        arguments.push(roots.existing(&call.before)?.into());
        arguments.push(roots.existing(&call.after)?.into());
        let ended = self.run(arguments, "", &roots).await?;
        // With an answer, status 1 means a broken gate.
        let broken =
            ended.status.and_then(|status| status.code()) == Some(1) && !ended.stdout.is_empty();
        match broken {
            true => Ok(self.cut(&ended.stdout, "")),
            false => self.text(ended, ""),
        }
    }

    #[tool(
        description = "What changes to a recorded program would bring, by replays of the run: the time of a step now and then, as an interval, as JSON. Where the trace cannot know, `refused` says why. Without changes: the critical path",
        annotations(title = "What if", read_only_hint = true)
    )]
    async fn what_if(
        &self,
        Parameters(call): Parameters<WhatIf>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ToolError> {
        let roots = self.roots(&context.peer).await?;
        let mut arguments = to_arguments(&["what-if", "--json"]);
        let changes = call.changes.unwrap_or_default().into_iter();
        arguments.extend(changes.map(|change| format!("--set={change}").into()));
        arguments.extend(call.step.map(|step| format!("--step={step}").into()));
        arguments.push(roots.existing(&call.trace)?.into());
        let ended = self.run(arguments, "", &roots).await?;
        // A refusal ends with a status of its own, and is an answer.
        match ended.stdout.is_empty() {
            true => self.text(ended, ""),
            false => Ok(self.cut(&ended.stdout, "")),
        }
    }

    #[tool(
        description = "Make a trace of another tool's file, such as a PyTorch or Instruments recording",
        annotations(title = "Import", read_only_hint = false, destructive_hint = false)
    )]
    async fn import(
        &self,
        Parameters(call): Parameters<Import>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ToolError> {
        let roots = self.roots(&context.peer).await?;
        let output = roots.new_file(&call.output)?;
        let mut arguments = to_arguments(&["import", "-o"]);
        arguments.push(output.clone().into());
        for input in &call.inputs {
            arguments.push(roots.existing(input)?.into());
        }
        let ended = self.run(arguments, "", &roots).await?;
        let said = cut(&ended.stderr, MAX_OUTPUT_CHARACTERS, "");
        self.text(ended, "")?;
        Ok(json!({ "trace": output, "said": said }).to_string())
    }

    #[tool(
        description = "Run a command and record its GPU timeline as a trace. The command runs with the rights of this server, and is ended at a time limit",
        annotations(
            title = "Record",
            read_only_hint = false,
            destructive_hint = true,
            open_world_hint = true
        )
    )]
    async fn record(
        &self,
        Parameters(call): Parameters<Record>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ToolError> {
        let roots = self.roots(&context.peer).await?;
        let longest_s = self.options.longest;
        let limit_s = call.time_limit_s.unwrap_or(longest_s.min(30));
        if limit_s == 0 || limit_s > longest_s {
            return Err(ToolError::TimeLimit { limit_s, longest_s });
        }
        if call.command.is_empty() {
            return Err(ToolError::NoCommand);
        }
        let output = roots.new_file(&call.output)?;
        let folder = match &call.folder {
            Some(folder) => roots.existing(folder)?,
            None => roots.first().to_owned(),
        };
        let mut arguments = to_arguments(&["record", "--quiet", "--no-report"]);
        arguments.push(format!("--time-limit={limit_s}s").into());
        arguments.extend(["-o".into(), output.clone().into(), "--".into()]);
        arguments.extend(call.command.into_iter().map(OsString::from));
        let limit = Duration::from_secs(limit_s.into()) + RECORDING_GRACE;
        let turn = self.turns.acquire().await;
        let ended = child::run(arguments, "", &folder, limit, None).await?;
        drop(turn);
        let stderr = cut(&ended.stderr, MAX_OUTPUT_CHARACTERS, "");
        // The manifest exists once there is a trace.
        if !output.join("trace.json").exists() {
            return Err(ToolError::NotRecorded {
                status: ended
                    .status
                    .map_or("no status".to_owned(), |status| status.to_string()),
                stderr: one_line(stderr.trim()),
            });
        }
        let answer = json!({
            "trace": output,
            "exit_status": ended.status.and_then(|status| status.code()),
            "stdout": cut(&ended.stdout, MAX_OUTPUT_CHARACTERS, ""),
            "stderr": stderr,
        });
        Ok(answer.to_string())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("gapscope", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }
}

impl Server {
    /// Creates a server with these options.
    ///
    /// # Errors
    /// None of the roots is a folder.
    pub fn new(options: Mcp) -> Result<Server, RootsError> {
        let roots = match options.root.is_empty() {
            true => None,
            false => Some(Roots::new(&options.root)?),
        };
        let mut tool_router = Server::tool_router();
        if options.read_only {
            for tool in ["record", "import"] {
                tool_router.remove_route(tool);
            }
        }
        Ok(Server {
            options: Arc::new(options),
            roots,
            turns: Arc::new(Semaphore::new(MAX_TASKS)),
            tool_router,
        })
    }

    /// Returns the roots of the options, else those of the client if it has roots, else the current folder. A client that has
    /// roots and names none gets an error, as the current folder would be more than it allows.
    async fn roots(&self, peer: &Peer<RoleServer>) -> Result<Roots, ToolError> {
        if let Some(roots) = &self.roots {
            return Ok(roots.clone());
        }
        if let Some(folders) = client_roots(peer).await? {
            return match folders.is_empty() {
                true => Err(ToolError::NoClientRoot),
                false => Ok(Roots::new(&folders)?),
            };
        }
        let here = std::env::current_dir();
        Ok(Roots::new(&[here.map_err(ToolError::CurrentFolder)?])?)
    }

    /// Runs a task that records nothing, when its turn comes.
    async fn run(
        &self,
        arguments: Vec<OsString>,
        stdin: &str,
        roots: &Roots,
    ) -> Result<FinishedChild, ToolError> {
        let _turn = self.turns.acquire().await;
        Ok(child::run(arguments, stdin, roots.first(), TASK_LIMIT, None).await?)
    }

    /// Runs a query when its turn comes. It is ended once its answer is longer than what the client gets.
    async fn run_query(
        &self,
        arguments: Vec<OsString>,
        sql: &str,
        roots: &Roots,
    ) -> Result<FinishedChild, ToolError> {
        let _turn = self.turns.acquire().await;
        // A character has at most four bytes.
        let most = Some((self.options.most as usize).saturating_mul(4));
        Ok(child::run(arguments, sql, roots.first(), TASK_LIMIT, most).await?)
    }

    /// Turns a finished task into an answer, with its warnings about missing data, or into an error with what it
    /// said. `advice` is for the reader of an answer that is cut.
    fn text(&self, ended: FinishedChild, advice: &str) -> Result<String, ToolError> {
        let said = ended.stderr.trim();
        let Some(status) = ended.status else {
            return Ok(self.cut(&ended.stdout, advice));
        };
        match status.code() {
            Some(0) => Ok(self.cut(&ended.stdout, advice)),
            Some(status) if status == i32::from(INCOMPLETE) => Ok(format!(
                "{}\nNot all could be read: {}",
                self.cut(&ended.stdout, advice),
                one_line(match said {
                    "" => "the answer says what is missing",
                    said => said,
                })
            )),
            _ if said.is_empty() => Err(ToolError::Ended(status)),
            _ => {
                let sentence = said.strip_prefix("gapscope: ").unwrap_or(said);
                Err(ToolError::Task(cut(sentence, MAX_OUTPUT_CHARACTERS, "")))
            }
        }
    }

    /// Cuts an answer to the length that the options allow.
    fn cut(&self, text: &str, advice: &str) -> String {
        cut(text, self.options.most as usize, advice)
    }
}

/// Returns the folders that the client names as its roots, which may be none; `None` where it has no roots, or its version
/// of the protocol has no question for them.
///
/// # Errors
/// The client has roots and does not answer.
#[expect(
    deprecated,
    reason = "clients of older versions of the protocol name their roots so"
)]
async fn client_roots(peer: &Peer<RoleServer>) -> Result<Option<Vec<PathBuf>>, ToolError> {
    let has_roots = peer.peer_info().is_some_and(|client| {
        client.capabilities.roots.is_some()
            && client.protocol_version < ProtocolVersion::V_2026_07_28
    });
    if !has_roots {
        return Ok(None);
    }
    let asked = tokio::time::timeout(ROOTS_LIMIT, peer.list_roots()).await;
    let Ok(Ok(answer)) = asked else {
        return Err(ToolError::NoRootsAnswer);
    };
    let roots = answer.roots.iter();
    let folders = roots.filter_map(|root| folder_of_address(&root.uri));
    Ok(Some(folders.collect()))
}

/// Returns texts as arguments of a command.
fn to_arguments(texts: &[&str]) -> Vec<OsString> {
    texts.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests;
