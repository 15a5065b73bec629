//! Settings: one typed registry of keys, the layers that a value comes from, the administrator's
//! policy, and what an operation takes of them when it starts.
//!
//! ```text
//!   registry default < server default < user default < connection < session
//!                    every value ≤ Policy ceilings            │ freeze
//!                                                             ▼
//!                                        Frozen ── choose_codec(client) ──▶ Chosen
//! ```
//!
//! Pure: no engine is called here. A setting of an engine's own is recognised by its prefix and
//! handed back to the caller, who takes it to the engine and then records it. Must not know how
//! SQL spells a `SET`, nor which front end a value came through.

mod change;
mod defaults;
mod duration;
mod frozen;
mod layer;
mod negotiate;
mod policy;
mod registry;
mod row;
mod secret;
mod session;
mod show;
mod value;
mod zone;

pub use change::{Change, Reset, Source, Target, Unknown};
pub use defaults::Defaults;
pub use frozen::Frozen;
pub use negotiate::{Chosen, Why, choose};
pub use policy::Policy;
pub use registry::{KEYS, Key};
pub use row::Row;
pub use secret::{is_secret, mask};
pub use session::Settings;
pub use value::ResultFormat;

/// What is wrong in the administrator's configuration: the key, and why with the allowed values.
pub type Mistake = (String, String);
