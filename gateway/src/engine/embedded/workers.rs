//! The threads that plan and run statements, apart from those that serve connections.
//!
//! Owns the runtime, and the tie between a task and whoever waits for it: when the waiting side
//! goes, the task is stopped. Must not know SQL.

use std::future::Future;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::{StreamExt, stream};
use sluice_core::engine::BatchStream;
use sluice_core::error::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::error::{from_join, translate};
use super::stop::StopOnDrop;

/// Batches that may wait between the engine and the gateway.
const READY_BATCHES: usize = 2;

/// Threads that wait for disks.
const FILE_THREADS: usize = 64;

/// Values of nested statements are dropped, cloned and compared recursively, by code that does not
/// look at the stack. It is address space; memory is taken as deep as it is used.
const STACK: usize = 64 << 20;

/// The engine's own threads.
#[derive(Debug)]
pub(super) struct Workers {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Workers {
    pub(super) fn start(threads: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .max_blocking_threads(FILE_THREADS)
            .thread_stack_size(STACK)
            .thread_name("embedded-engine")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "the engine's threads cannot start")
                    .with_cause(error)
            })?;
        let handle = runtime.handle().clone();
        Ok(Self {
            runtime: Some(runtime),
            handle,
        })
    }

    /// Runs `work` here. Dropping the returned future stops it at its next pause.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        AbortOnDropHandle::new(self.handle.spawn(work))
            .await
            .map_err(from_join)?
    }

    /// Runs `work` here and blocks until it is done, from any thread.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.handle.spawn(async move { sender.send(work.await) });
        let lost = |_| Error::new(ErrorKind::Internal, "the engine failed while it was built");
        receiver.recv().map_err(lost)?
    }

    /// Reads `batches` here, a little ahead. Dropping the returned stream stops the query, for
    /// which it holds `waiting`.
    pub(super) fn pump(
        &self,
        batches: SendableRecordBatchStream,
        waiting: StopOnDrop,
    ) -> BatchStream {
        let (sender, receiver) = mpsc::channel(READY_BATCHES);
        let task = AbortOnDropHandle::new(self.handle.spawn(forward(batches, sender)));
        stream::unfold(Some((receiver, task, waiting)), |running| async {
            let (mut receiver, task, waiting) = running?;
            if let Some(item) = receiver.recv().await {
                return Some((item, Some((receiver, task, waiting))));
            }
            let error = task.await.err().map(from_join)?;
            Some((Err(error), None))
        })
        .boxed()
    }

    /// The runtime's figures, by which tests see that tasks end.
    #[cfg(test)]
    pub(super) fn tasks(&self) -> usize {
        self.handle.metrics().num_alive_tasks()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // The last owner may be a task, where waiting for the threads is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn forward(
    mut batches: SendableRecordBatchStream,
    sender: mpsc::Sender<Result<RecordBatch>>,
) {
    let schema = batches.schema();
    while let Some(item) = batches.next().await {
        let item = item
            .map_err(translate)
            .and_then(|batch| conform(batch, &schema));
        let last = item.is_err();
        if sender.send(item).await.is_err() || last {
            return;
        }
    }
}

/// Batches of different files may differ from the announced schema in metadata.
fn conform(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(|error| translate(error.into()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    use super::super::stop::Stop;
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_statement() {
        let workers = Workers::start(1).unwrap();
        let broken = async { if true { panic!("on purpose") } else { Ok(()) } };
        let error = workers.run(broken).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Engine, "XX000")
        );
        let rows = stream::once(async { panic!("on purpose") });
        let schema = Arc::new(Schema::empty());
        let rows = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
        let mut rows = workers.pump(rows, Stop::default().on_drop());
        assert_eq!(rows.next().await.unwrap().unwrap_err().sqlstate(), "XX000");
        assert!(rows.next().await.is_none());
        assert_eq!(workers.run(async { Ok(1) }).await.unwrap(), 1);
    }

    #[test]
    fn waiting_needs_no_runtime() {
        let workers = Workers::start(1).unwrap();
        assert_eq!(workers.wait(async { Ok(1) }).unwrap(), 1);
        assert!(workers.wait::<()>(async { panic!("on purpose") }).is_err());
    }
}
