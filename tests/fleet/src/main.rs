//! Asks one question about many ranks of `gapscope query` and of Ballista (a scheduler, and two executors that are processes of their own), over a
//! folder and over an object store, and compares the answers: `cargo xtask fleet`.
//!
//! `gapscope-fleet-test RUNS PAGE QUERY`: the folder of the ranks, the page whose first SQL is asked, and the program `gapscope-query`.
#![forbid(unsafe_code)]

mod answer;
mod bucket;
mod cluster;
mod store;

use answer::Answer;
use ballista::prelude::SessionContextExt;
use bucket::Bucket;
use cluster::Cluster;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTableUrl};
use datafusion::prelude::SessionContext;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The bucket that the store is asked for, and the folder of the ranks in it.
const IN_BUCKET: &str = "s3://traces/run/";

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [cluster::EXECUTOR, scheduler, endpoint] => cluster::executor(scheduler, endpoint).await,
        [runs, page, query] => compare(Path::new(runs), Path::new(page), query).await,
        _ => Err("usage: gapscope-fleet-test RUNS PAGE QUERY".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn compare(runs: &Path, page: &Path, query: &str) -> Result<()> {
    let page = std::fs::read_to_string(page)?;
    let sql = (page.split_once("```sql\n"))
        .and_then(|(_, rest)| rest.split_once("```"))
        .map(|(sql, _)| sql.trim().trim_end_matches(';'))
        .ok_or("the page has no SQL")?;
    let start = Instant::now();
    let ours = Answer::of_gapscope(query, runs, sql)?;
    if ours.rows.is_empty() {
        return Err("gapscope query has no rows: nothing would be compared".into());
    }
    println!(
        "gapscope query: {} rows in {:.2?}",
        ours.rows.len(),
        start.elapsed()
    );
    let bucket = Bucket::new(runs)?;
    let folder = format!("file://{}/", runs.canonicalize()?.display());
    for place in [folder.as_str(), IN_BUCKET] {
        let cluster = Cluster::start(&bucket.url).await?;
        let start = Instant::now();
        let theirs = asked(&cluster, &bucket, place, sql).await?;
        let took = start.elapsed();
        ours.is_equal(&theirs)
            .map_err(|error| format!("Ballista over {place}: {error}"))?;
        let tasks = cluster.tasks();
        if tasks.contains(&0) {
            return Err(format!("an executor had no task: {tasks:?}").into());
        }
        println!("Ballista over {place}: the same rows in {took:.2?}, tasks by executor {tasks:?}");
    }
    let read = bucket.requests();
    if read.lists == 0 || read.ranges == 0 {
        return Err(format!("the bucket was not read: {read:?}").into());
    }
    println!(
        "the bucket was asked for {} lists and {} ranges",
        read.lists, read.ranges
    );
    Ok(())
}

/// The answer of a cluster about ranks in a place.
async fn asked(cluster: &Cluster, bucket: &Bucket, place: &str, sql: &str) -> Result<Answer> {
    let state = store::state(store::config(), store::runtime(&bucket.url)?);
    let context = SessionContext::remote_with_state(&cluster.url, state).await?;
    for table in ["dispatches", "kernels"] {
        register(&context, table, place).await?;
    }
    Answer::of_batches(&context.sql(sql).await?.collect().await?)
}

/// Makes the files `PLACE/rank=N/TABLE.parquet` a table with the column `rank`.
async fn register(context: &SessionContext, table: &str, place: &str) -> Result<()> {
    // A folder has a file for each table: the end of the path tells them apart, also on the scheduler.
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_file_extension(format!("/{table}.parquet"))
        .with_table_partition_cols(vec![("rank".to_owned(), DataType::Int64)]);
    let url = ListingTableUrl::parse(place)?;
    let schema = options.infer_schema(&context.state(), &url).await?;
    // Ballista 55 fails on a dictionary that went through a shuffle: "column types must match schema types".
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, value) => Arc::new(
            field
                .as_ref()
                .clone()
                .with_data_type(value.as_ref().clone()),
        ),
        _ => field.clone(),
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let listed = context.register_listing_table(table, place, options, Some(schema), None);
    Ok(listed.await?)
}
