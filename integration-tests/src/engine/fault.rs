//! An engine that does what a script says, for everything that a real engine does only on a bad
//! day. Owns the counts by which a test sees what became of a query. Must not know doors.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future, stream};
use sluice_core::engine::{
    BatchStream, Dialect, Engine, EngineSession, EngineSetting, Execution, MessageStream,
    MetadataRequest, Output, Query, SessionOptions,
};
use sluice_core::error::{Error, ErrorKind, Result};
use sluice_ipc::{Codec, Message};

use super::script::{Script, Step};
use crate::{fixtures, ipc};

/// The scripted engine. Clones share counts and tables.
#[derive(Clone, Default)]
pub struct FaultEngine {
    counts: Arc<Counts>,
    tables: Arc<Mutex<HashMap<String, Table>>>,
}

type Table = (SchemaRef, Vec<RecordBatch>);

/// What became of the queries of a [`FaultEngine`].
#[derive(Debug, Default)]
pub struct Counts {
    started: AtomicUsize,
    live: AtomicUsize,
    ended: AtomicUsize,
    dropped: AtomicUsize,
    batches: AtomicUsize,
}

impl Counts {
    /// Queries that were handed to the engine.
    pub fn started(&self) -> usize {
        self.started.load(SeqCst)
    }

    /// Queries that are planned or run now.
    pub fn live(&self) -> usize {
        self.live.load(SeqCst)
    }

    /// Queries that were read to their end, or to their error.
    pub fn ended(&self) -> usize {
        self.ended.load(SeqCst)
    }

    /// Queries that were dropped before their end.
    pub fn dropped(&self) -> usize {
        self.dropped.load(SeqCst)
    }

    /// Batches that were taken from all queries together.
    pub fn batches(&self) -> usize {
        self.batches.load(SeqCst)
    }
}

/// Lives as long as a query does.
struct Watch {
    counts: Arc<Counts>,
    ended: bool,
}

impl Watch {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.started.fetch_add(1, SeqCst);
        counts.live.fetch_add(1, SeqCst);
        Self {
            counts: Arc::clone(counts),
            ended: false,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let end = if self.ended {
            &self.counts.ended
        } else {
            &self.counts.dropped
        };
        end.fetch_add(1, SeqCst);
        self.counts.live.fetch_sub(1, SeqCst);
    }
}

impl FaultEngine {
    /// An engine without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// What became of its queries.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Adds what `table NAME` yields.
    pub fn add_table(&self, name: &str, schema: SchemaRef, batches: Vec<RecordBatch>) {
        self.tables().insert(name.to_owned(), (schema, batches));
    }

    fn tables(&self) -> std::sync::MutexGuard<'_, HashMap<String, Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schema_of(&self, script: &Script) -> Result<SchemaRef> {
        let table = script.steps.iter().find_map(|step| match step {
            Step::Table(name) => Some(name),
            _ => None,
        });
        match table {
            Some(name) => Ok(self.table(name)?.0),
            None => Ok(fixtures::rows_schema(script.columns)),
        }
    }

    fn table(&self, name: &str) -> Result<Table> {
        let missing = || {
            Error::invalid(
                "42P01",
                format!("table {name:?} was not given to the fault engine"),
            )
        };
        self.tables().get(name).cloned().ok_or_else(missing)
    }

    fn expand(&self, step: Step, next: &AtomicUsize) -> Vec<Action> {
        match step {
            Step::Rows { rows, batches } => vec![Action::Rows {
                rows,
                batches,
                from: next.fetch_add(1, SeqCst),
            }],
            Step::Huge { bytes } => vec![Action::Batch(fixtures::huge_row(bytes))],
            Step::Table(name) => {
                let batches = self
                    .table(&name)
                    .map(|(_, batches)| batches)
                    .unwrap_or_default();
                batches.into_iter().map(Action::Batch).collect()
            }
            other => vec![Action::Step(other)],
        }
    }
}

/// A step that is ready to be carried out.
enum Action {
    Batch(RecordBatch),
    Rows {
        rows: usize,
        batches: usize,
        from: usize,
    },
    Step(Step),
}

#[async_trait]
impl Engine for FaultEngine {
    fn dialect(&self) -> Dialect {
        Dialect::DataFusion
    }

    fn setting_prefixes(&self) -> &'static [&'static str] {
        &[]
    }

    async fn open(&self, _: SessionOptions) -> Result<Arc<dyn EngineSession>> {
        Ok(Arc::new(self.clone()))
    }

    async fn probe(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl EngineSession for FaultEngine {
    async fn execute(&self, query: Query) -> Result<Execution> {
        let script = Script::of(&query.text).map_err(|wrong| Error::invalid("42601", wrong))?;
        let mut watch = Watch::new(&self.counts);
        for step in &script.plan {
            if let Err(error) = carry_out(step).await {
                watch.ended = true;
                return Err(error);
            }
        }
        let schema = self.schema_of(&script)?;
        let messages = script.messages;
        let with_garbage = script.steps.contains(&Step::Garbage);
        let batches = self.batches(script, watch);
        let output = match messages {
            None => Output::Batches(batches),
            Some(codec) => Output::Messages(messages_of(batches, codec, with_garbage)?),
        };
        Ok(Execution { schema, output })
    }

    async fn set(&self, key: &str, _: &str) -> Result<()> {
        Err(Error::invalid(
            "42704",
            format!("the fault engine has no setting {key}"),
        ))
    }

    async fn reset(&self, _: &str) -> Result<()> {
        Ok(())
    }

    async fn settings(&self) -> Result<Vec<EngineSetting>> {
        Ok(Vec::new())
    }

    async fn set_time_zone(&self, _: &str) -> Result<()> {
        Ok(())
    }

    async fn use_schema(&self, _: Option<&str>, _: Option<&str>) -> Result<()> {
        Ok(())
    }

    async fn current_schema(&self) -> Result<(String, String)> {
        Ok(("fault".to_owned(), "fault".to_owned()))
    }

    async fn metadata(&self, _: MetadataRequest) -> Result<Execution> {
        let schema = fixtures::rows_schema(None);
        Ok(Execution {
            schema,
            output: Output::Batches(stream::empty().boxed()),
        })
    }
}

impl FaultEngine {
    fn batches(&self, script: Script, watch: Watch) -> BatchStream {
        let groups = AtomicUsize::new(0);
        let actions: Vec<_> = script
            .steps
            .clone()
            .into_iter()
            .flat_map(|step| self.expand(step, &groups))
            .collect();
        let script = Arc::new(script);
        let items =
            stream::iter(actions).flat_map(move |action| items_of(action, Arc::clone(&script)));
        let counts = Arc::clone(&self.counts);
        let state = (items.boxed(), watch, false);
        stream::unfold(state, move |(mut items, mut watch, over)| {
            let counts = Arc::clone(&counts);
            async move {
                if over {
                    return None;
                }
                let item = items.next().await;
                watch.ended = !matches!(item, Some(Ok(_)));
                counts.batches.fetch_add(usize::from(!watch.ended), SeqCst);
                let failed = watch.ended;
                item.map(|item| (item, (items, watch, failed)))
            }
        })
        .boxed()
    }
}

fn items_of(action: Action, script: Arc<Script>) -> BatchStream {
    match action {
        Action::Batch(batch) => stream::iter([Ok(batch)]).boxed(),
        Action::Rows {
            rows,
            batches,
            from,
        } => stream::iter(0..batches)
            .then(move |index| {
                let batch = fixtures::rows(
                    rows,
                    from.wrapping_mul(1_000_003)
                        .wrapping_add(index.wrapping_mul(rows)),
                    &script,
                );
                async move {
                    // An endless stream of ready batches still lets others run.
                    tokio::task::yield_now().await;
                    Ok(batch)
                }
            })
            .boxed(),
        Action::Step(step) => stream::once(async move { carry_out(&step).await })
            .filter_map(|done| future::ready(done.err().map(Err)))
            .boxed(),
    }
}

/// What a step does that yields no rows.
async fn carry_out(step: &Step) -> Result<()> {
    match step {
        Step::Sleep(time) => tokio::time::sleep(*time).await,
        Step::Hang => future::pending().await,
        Step::Error(kind) => {
            return Err(Error::new(*kind, format!("scripted error of kind {kind}")));
        }
        Step::Panic => scripted_panic(),
        _ => {}
    }
    Ok(())
}

#[allow(clippy::panic)]
fn scripted_panic() {
    panic!("scripted panic");
}

/// The batches as an engine sends them that has IPC messages: by arrow-rs's own writer, which
/// shares no code with what reads them.
fn messages_of(batches: BatchStream, codec: Codec, garbage: bool) -> Result<MessageStream> {
    let mut writer = Writer::new(codec)?;
    let messages = batches
        .map(move |batch| batch.and_then(|batch| writer.write(&batch)))
        .map_ok(|messages| stream::iter(messages.into_iter().map(Ok)))
        .try_flatten();
    if !garbage {
        return Ok(messages.boxed());
    }
    let last = Message {
        header: Bytes::from_static(&[0x55; 64]),
        body: Bytes::new(),
    };
    Ok(messages.chain(stream::iter([Ok(last)])).boxed())
}

/// Batches to messages, by arrow-rs.
pub(crate) struct Writer {
    options: IpcWriteOptions,
    stream: Option<StreamWriter<Vec<u8>>>,
}

impl Writer {
    pub(crate) fn new(codec: Codec) -> Result<Self> {
        let compression = match codec {
            Codec::None => None,
            Codec::Lz4 => Some(arrow_ipc::CompressionType::LZ4_FRAME),
            Codec::Zstd => Some(arrow_ipc::CompressionType::ZSTD),
        };
        let options = IpcWriteOptions::default()
            .try_with_compression(compression)
            .map_err(internal)?;
        Ok(Self {
            options,
            stream: None,
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Message>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let options = self.options.clone();
                let new = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options)
                    .map_err(internal)?;
                self.stream.insert(new)
            }
        };
        stream.write(batch).map_err(internal)?;
        let bytes = Bytes::from(std::mem::take(stream.get_mut()));
        let parts =
            ipc::Parts::of(&bytes).map_err(|wrong| Error::new(ErrorKind::Internal, wrong))?;
        let rows = parts
            .messages
            .into_iter()
            .filter(|part| part.kind != ipc::Kind::Schema);
        Ok(rows
            .map(|part| Message {
                header: part.header,
                body: part.body,
            })
            .collect())
    }
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::new(
        ErrorKind::Internal,
        "the fault engine could not write a message",
    )
    .with_cause(error)
}
