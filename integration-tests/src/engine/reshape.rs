//! An engine that gives the rows of another one in a shape that some real engine has: a row a
//! batch, empty batches in between, slices of larger batches, compressed messages. Whatever the
//! shape, a client must see the same result.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use sluice_core::engine::{
    BatchStream, Dialect, Engine, EngineSession, EngineSetting, Execution, MetadataRequest, Output,
    Query, SessionOptions,
};
use sluice_core::error::Result;
use sluice_ipc::Codec;

use super::fault::Writer;

/// How the rows of the engine inside are given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// As the engine inside gives them.
    AsIs,
    /// Empty batches before, between and after.
    EmptyBetween,
    /// As IPC messages.
    Messages(Codec),
    /// One row a batch.
    OneRow,
    /// Each batch in three slices of itself.
    Sliced,
}

/// The engine inside, and the shape.
pub struct Reshape {
    inner: Arc<dyn Engine>,
    shape: Shape,
}

struct ReshapeSession {
    inner: Arc<dyn EngineSession>,
    shape: Shape,
}

impl Reshape {
    /// `inner` in `shape`.
    pub fn new(inner: Arc<dyn Engine>, shape: Shape) -> Self {
        Self { inner, shape }
    }
}

#[async_trait]
impl Engine for Reshape {
    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn setting_prefixes(&self) -> &'static [&'static str] {
        self.inner.setting_prefixes()
    }

    async fn open(&self, options: SessionOptions) -> Result<Arc<dyn EngineSession>> {
        Ok(Arc::new(ReshapeSession {
            inner: self.inner.open(options).await?,
            shape: self.shape,
        }))
    }

    async fn probe(&self) -> Result<()> {
        self.inner.probe().await
    }
}

#[async_trait]
impl EngineSession for ReshapeSession {
    async fn execute(&self, query: Query) -> Result<Execution> {
        reshaped(self.inner.execute(query).await?, self.shape)
    }

    async fn set(&self, key: &str, value: &str) -> Result<()> {
        self.inner.set(key, value).await
    }

    async fn reset(&self, key: &str) -> Result<()> {
        self.inner.reset(key).await
    }

    async fn settings(&self) -> Result<Vec<EngineSetting>> {
        self.inner.settings().await
    }

    async fn set_time_zone(&self, zone: &str) -> Result<()> {
        self.inner.set_time_zone(zone).await
    }

    async fn use_schema(&self, catalog: Option<&str>, schema: Option<&str>) -> Result<()> {
        self.inner.use_schema(catalog, schema).await
    }

    async fn current_schema(&self) -> Result<(String, String)> {
        self.inner.current_schema().await
    }

    async fn metadata(&self, request: MetadataRequest) -> Result<Execution> {
        self.inner.metadata(request).await
    }
}

fn reshaped(execution: Execution, shape: Shape) -> Result<Execution> {
    let Execution { schema, output } = execution;
    let Output::Batches(batches) = output else {
        return Ok(Execution { schema, output });
    };
    let empty = RecordBatch::new_empty(Arc::clone(&schema));
    let output = match shape {
        Shape::AsIs => Output::Batches(batches),
        Shape::EmptyBetween => Output::Batches(cut(batches, move |batch| {
            let (first, rest) = (batch.num_rows().min(1), batch.num_rows().saturating_sub(1));
            vec![
                empty.clone(),
                batch.slice(0, first),
                empty.clone(),
                batch.slice(first, rest),
                empty.clone(),
            ]
        })),
        Shape::OneRow => Output::Batches(cut(batches, |batch| {
            (0..batch.num_rows())
                .map(|row| batch.slice(row, 1))
                .collect()
        })),
        Shape::Sliced => Output::Batches(cut(batches, |batch| {
            let third = batch.num_rows() / 3;
            let rest = batch.num_rows() - 2 * third;
            vec![
                batch.slice(0, third),
                batch.slice(third, third),
                batch.slice(2 * third, rest),
            ]
        })),
        Shape::Messages(codec) => {
            let mut writer = Writer::new(codec)?;
            let messages = batches
                .map(move |batch| batch.and_then(|batch| writer.write(&batch)))
                .map_ok(|messages| stream::iter(messages.into_iter().map(Ok)))
                .try_flatten();
            Output::Messages(messages.boxed())
        }
    };
    Ok(Execution { schema, output })
}

fn cut(
    batches: BatchStream,
    pieces: impl Fn(&RecordBatch) -> Vec<RecordBatch> + Send + 'static,
) -> BatchStream {
    batches
        .map_ok(move |batch| stream::iter(pieces(&batch).into_iter().map(Ok)))
        .try_flatten()
        .boxed()
}
