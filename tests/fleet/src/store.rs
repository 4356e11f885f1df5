//! The object store, as client, scheduler and executors reach it.

use crate::Result;
use crate::bucket::KEY;
use ballista_core::extension::{
    SessionConfigExt, ballista_aggregate_functions, ballista_scalar_functions,
    ballista_window_functions,
};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use object_store::aws::AmazonS3Builder;
use std::sync::Arc;

/// Files, and the bucket `traces` at an address, by the client of S3 that the `object_store` crate has.
pub fn runtime(endpoint: &str) -> Result<Arc<RuntimeEnv>> {
    let store = AmazonS3Builder::new()
        .with_bucket_name("traces")
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_region("none")
        .with_access_key_id(KEY)
        .with_secret_access_key("not a secret")
        .build()?;
    let runtime = Arc::new(RuntimeEnv::default());
    let bucket = ObjectStoreUrl::parse("s3://traces")?;
    runtime.register_object_store(bucket.as_ref(), Arc::new(store));
    Ok(runtime)
}

/// What a session of Ballista is configured with.
pub fn config() -> SessionConfig {
    SessionConfig::new_with_ballista().with_target_partitions(8)
}

/// A session that reaches the store.
pub fn state(config: SessionConfig, runtime: Arc<RuntimeEnv>) -> SessionState {
    SessionStateBuilder::new()
        .with_runtime_env(runtime)
        .with_config(config)
        .with_default_features()
        .with_scalar_functions(ballista_scalar_functions())
        .with_aggregate_functions(ballista_aggregate_functions())
        .with_window_functions(ballista_window_functions())
        .build()
}
