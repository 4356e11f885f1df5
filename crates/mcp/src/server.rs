//! The tools: what each asks for, and what it runs.

use crate::child::{self, Ended, cut};
use crate::roots::{Roots, of_address};
use gapscope_command::{INCOMPLETE, Mcp, one_line};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a task may take that records nothing.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a recording may take beyond its limit, for the command's end and for what is written then.
const AFTER: Duration = Duration::from_secs(120);
/// How long the client has to name its roots.
const ROOTS_LIMIT: Duration = Duration::from_secs(5);
/// Tasks at one time: more wait.
const AT_ONCE: usize = 2;
/// Characters of what a recorded command printed.
const PRINTED: usize = 4_000;

const INSTRUCTIONS: &str = "\
gapscope records the GPU timeline of a program and says why the GPU waits. Start with `explain` on a trace (a folder NAME.gapscope): \
it says in a page what bounds the program, and each claim names rows of the trace's tables. Look those up, or ask anything else, with \
`query` (SQL; without SQL it lists the tables). `report` has all figures. `record` runs a command and makes a trace; `import` makes one of \
another tool's file; `diff` compares two. Times are nanoseconds, unknown is null and never 0.";

/// The server.
#[derive(Clone)]
pub struct Server {
    options: Arc<Mcp>,
    /// Those of the options; absent where there are none.
    roots: Option<Roots>,
    turns: Arc<Semaphore>,
    tool_router: ToolRouter<Server>,
}

/// What of a trace to report.
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

/// What to explain.
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

/// A question in SQL.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// Traces, or globs such as `runs/*/rank=*`
    traces: Vec<String>,
    /// One SELECT (DataFusion's SQL). Without it the answer is the tables and columns, and what they mean
    sql: Option<String>,
}

/// Two traces.
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

/// A file of another tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Import {
    /// The files or folders of it
    inputs: Vec<String>,
    /// The trace to write: a folder that does not exist, such as `run.gapscope`
    output: String,
}

/// A command to record.
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

type Outcome = Result<CallToolResult, rmcp::ErrorData>;

#[tool_router]
impl Server {
    #[tool(
        description = "All figures of a trace: verdict, idle time by cause, kernels, labels, transfers, memory, accuracy, losses",
        annotations(title = "Report", read_only_hint = true)
    )]
    async fn report(
        &self,
        Parameters(asked): Parameters<Report>,
        context: RequestContext<RoleServer>,
    ) -> Outcome {
        self.answered(self.report_of(asked, &context.peer).await)
    }

    #[tool(
        description = "What a trace shows, in plain English: what bounds the program, the largest causes and what to do, with the rows that each claim rests on",
        annotations(title = "Explain", read_only_hint = true)
    )]
    async fn explain(
        &self,
        Parameters(asked): Parameters<Explain>,
        context: RequestContext<RoleServer>,
    ) -> Outcome {
        let answer = async {
            let roots = self.roots(&context.peer).await?;
            let mut words = words(&["explain"]);
            if asked.format == Some(ExplainFormat::Json) {
                words.push("--json".into());
            }
            words.push(roots.existing(&asked.trace)?.into());
            let ended = self.run(words, "", &roots, LIMIT).await?;
            self.text(ended, "")
        };
        self.answered(answer.await)
    }

    #[tool(
        description = "SQL over one trace or many. Without SQL: the tables and columns with their meanings",
        annotations(title = "Query", read_only_hint = true)
    )]
    async fn query(
        &self,
        Parameters(asked): Parameters<Query>,
        context: RequestContext<RoleServer>,
    ) -> Outcome {
        self.answered(self.answer_of(asked, &context.peer).await)
    }

    #[tool(
        description = "Compare two traces: whether they did equal work, and what changed, with confidence intervals, as JSON",
        annotations(title = "Diff", read_only_hint = true)
    )]
    async fn diff(
        &self,
        Parameters(asked): Parameters<Diff>,
        context: RequestContext<RoleServer>,
    ) -> Outcome {
        let answer = async {
            let roots = self.roots(&context.peer).await?;
            let mut words = words(&["diff", "--json"]);
            for gate in asked.gates.unwrap_or_default() {
                words.push(format!("--gate={gate}").into());
            }
            words.push(roots.existing(&asked.before)?.into());
            words.push(roots.existing(&asked.after)?.into());
            let ended = self.run(words, "", &roots, LIMIT).await?;
            // With an answer, 1 is a broken gate.
            let broken = ended.status.code() == Some(1) && !ended.stdout.is_empty();
            match broken {
                true => Ok(self.cut(&ended.stdout, "")),
                false => self.text(ended, ""),
            }
        };
        self.answered(answer.await)
    }

    #[tool(
        description = "Make a trace of another tool's file, such as a PyTorch or Instruments recording",
        annotations(title = "Import", read_only_hint = false, destructive_hint = false)
    )]
    async fn import(
        &self,
        Parameters(asked): Parameters<Import>,
        context: RequestContext<RoleServer>,
    ) -> Outcome {
        let answer = async {
            let roots = self.roots(&context.peer).await?;
            let output = roots.new_file(&asked.output)?;
            let mut words = words(&["import", "-o"]);
            words.push(output.clone().into());
            for input in &asked.inputs {
                words.push(roots.existing(input)?.into());
            }
            let ended = self.run(words, "", &roots, LIMIT).await?;
            let said = ended.stderr.clone();
            self.text(ended, "")?;
            Ok(json!({ "trace": output, "said": cut(&said, PRINTED, "") }).to_string())
        };
        self.answered(answer.await)
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
        Parameters(asked): Parameters<Record>,
        context: RequestContext<RoleServer>,
    ) -> Outcome {
        self.answered(self.recording_of(asked, &context.peer).await)
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
    /// A server with these options.
    ///
    /// # Errors
    /// No root is a folder: a sentence.
    pub fn new(options: Mcp) -> Result<Server, String> {
        let roots = match options.root.is_empty() {
            true => None,
            false => Some(Roots::of(&options.root)?),
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
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            tool_router,
        })
    }

    /// Those of the options, else the client's where it names some, else the current folder.
    async fn roots(&self, peer: &Peer<RoleServer>) -> Result<Roots, String> {
        if let Some(roots) = &self.roots {
            return Ok(roots.clone());
        }
        if let Some(folders) = named(peer).await {
            return Roots::of(&folders);
        }
        let here = std::env::current_dir();
        let here = here.map_err(|error| format!("the current folder is not known: {error}"))?;
        Roots::of(&[here])
    }

    async fn report_of(&self, asked: Report, peer: &Peer<RoleServer>) -> Result<String, String> {
        let roots = self.roots(peer).await?;
        let trace = roots.existing(&asked.trace)?;
        let json = asked.format == Some(ReportFormat::Json) || asked.keys.is_some();
        let mut words = words(&["report", if json { "--json" } else { "--markdown" }]);
        if let Some(label) = &asked.label {
            words.push(format!("--label={label}").into());
        }
        if let Some(top) = asked.top {
            words.push(format!("--top={top}").into());
        }
        words.push(trace.into());
        let mut ended = self.run(words, "", &roots, LIMIT).await?;
        if let (Some(keys), Ok(Value::Object(mut report))) =
            (&asked.keys, serde_json::from_str(&ended.stdout))
        {
            let there: Vec<String> = report.keys().cloned().collect();
            if let Some(absent) = keys.iter().find(|key| !there.contains(key)) {
                let there = there.join(", ");
                return Err(format!(
                    "the report has no key \"{absent}\": it has {there}"
                ));
            }
            report.retain(|key, _| keys.contains(key));
            ended.stdout = Value::Object(report).to_string();
        }
        self.text(
            ended,
            "Ask for some `keys`, a `label`, a smaller `top`, or rows by `query`.",
        )
    }

    async fn answer_of(&self, asked: Query, peer: &Peer<RoleServer>) -> Result<String, String> {
        let roots = self.roots(peer).await?;
        let mut words = words(match asked.sql {
            Some(_) => &["query", "--format=json"],
            // As text it is shorter.
            None => &["query", "--schema"],
        });
        if asked.traces.is_empty() {
            return Err("no trace was named".to_owned());
        }
        for trace in &asked.traces {
            for path in roots.matching(trace)? {
                words.push(path.into());
            }
        }
        // Not as an argument: it could begin as an option does, or be taken for a trace.
        let sql = asked.sql.unwrap_or_default();
        let ended = self.run(words, &sql, &roots, LIMIT).await?;
        self.text(
            ended,
            "Add a `limit`, group the rows, or name fewer columns.",
        )
    }

    async fn recording_of(&self, asked: Record, peer: &Peer<RoleServer>) -> Result<String, String> {
        let roots = self.roots(peer).await?;
        let longest = self.options.longest;
        let limit_s = asked.time_limit_s.unwrap_or(longest.min(30));
        if limit_s == 0 || limit_s > longest {
            return Err(format!(
                "time_limit_s is {limit_s}: a recording may take 1 to {longest} s (gapscope mcp --longest)"
            ));
        }
        if asked.command.is_empty() {
            return Err("no command was named".to_owned());
        }
        let output = roots.new_file(&asked.output)?;
        let folder = match &asked.folder {
            Some(folder) => roots.existing(folder)?,
            None => roots.first().to_owned(),
        };
        let mut words = words(&["record", "--quiet", "--no-report"]);
        words.push(format!("--time-limit={limit_s}s").into());
        words.extend(["-o".into(), output.clone().into(), "--".into()]);
        words.extend(asked.command.into_iter().map(OsString::from));
        let limit = Duration::from_secs(limit_s.into()) + AFTER;
        let turn = self.turns.acquire().await;
        let ended = child::run(words, "", &folder, limit).await?;
        drop(turn);
        if !output.join("trace.json").exists() {
            return Err(format!(
                "nothing was recorded ({}): {}",
                ended.status,
                one_line(cut(&ended.stderr, PRINTED, "").trim())
            ));
        }
        let answer = json!({
            "trace": output,
            "exit_status": ended.status.code(),
            "stdout": cut(&ended.stdout, PRINTED, ""),
            "stderr": cut(&ended.stderr, PRINTED, ""),
        });
        Ok(answer.to_string())
    }

    async fn run(
        &self,
        words: Vec<OsString>,
        stdin: &str,
        roots: &Roots,
        limit: Duration,
    ) -> Result<Ended, String> {
        let _turn = self.turns.acquire().await;
        child::run(words, stdin, roots.first(), limit).await
    }

    /// What a task printed, with what it said of what is missing.
    fn text(&self, ended: Ended, instead: &str) -> Result<String, String> {
        let said = ended.stderr.trim();
        match ended.status.code() {
            Some(0) => Ok(self.cut(&ended.stdout, instead)),
            Some(status) if status == i32::from(INCOMPLETE) => Ok(format!(
                "{}\nNot all could be read: {}",
                self.cut(&ended.stdout, instead),
                one_line(match said {
                    "" => "the answer says what is missing",
                    said => said,
                })
            )),
            _ if said.is_empty() => Err(format!("gapscope ended with {}", ended.status)),
            _ => {
                let sentence = said.strip_prefix("gapscope: ").unwrap_or(said);
                Err(cut(sentence, PRINTED, ""))
            }
        }
    }

    fn cut(&self, text: &str, instead: &str) -> String {
        cut(text, self.options.most as usize, instead)
    }

    /// An answer, or a sentence that says why there is none: the client's model is to see it.
    fn answered(&self, answer: Result<String, String>) -> Outcome {
        Ok(match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(sentence) => CallToolResult::error(vec![ContentBlock::text(sentence)]),
        })
    }
}

/// The folders that the client names as its roots; absent where it, or the version of the protocol, names none.
#[expect(
    deprecated,
    reason = "clients of older versions of the protocol name their roots so"
)]
async fn named(peer: &Peer<RoleServer>) -> Option<Vec<PathBuf>> {
    peer.peer_info()?.capabilities.roots.as_ref()?;
    let asked = tokio::time::timeout(ROOTS_LIMIT, peer.list_roots());
    let roots = asked.await.ok()?.ok()?.roots;
    let folders = roots.iter().filter_map(|root| of_address(&root.uri));
    Some(folders.collect())
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
