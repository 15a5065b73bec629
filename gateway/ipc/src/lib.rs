//! Arrow IPC messages in, Arrow IPC messages out: check, re-encode, slice, split, merge, normalise.
//!
//! Everything that leaves goes one way: a [`RecordBatch`](arrow_array::RecordBatch) is made fit for
//! its reader (`fit`), laid out as nodes and buffers without a copy (`layout`), and its buffers are
//! compressed into the place where they stay (`recode`, `codec`). Everything that comes in goes the
//! way back ([`Frames`], [`Decoder`]), and each length that it states is bounded before it counts.
//!
//! No tokio, no sockets, no SQL. Threads are here ([`Pool`]), tenants are opaque numbers.

mod codec;
mod decode;
mod digest;
mod encoder;
mod error;
mod fields;
mod fit;
mod frames;
mod layout;
mod message;
mod pool;
mod recode;
mod shaper;
mod size;

pub use codec::Compression;
pub use decode::Decoder;
pub use digest::Digest;
pub use encoder::Encoder;
pub use error::{Error, Result};
pub use fields::{MAX_NESTING, Types};
pub use fit::compact;
pub use frames::{Frame, Frames, Limits};
pub use message::{Codec, END_OF_STREAM, Encoded, Message, PREFIX_LEN, UnknownCodec};
pub use pool::{Cancelled, Pool};
pub use shaper::{Bounds, Shaper};
pub use size::sliced_bytes;
