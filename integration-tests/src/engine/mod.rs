//! Engines for tests: one that does what a script says, and one that yields another engine's rows
//! in another shape.

pub mod fault;
pub mod reshape;
pub mod script;

pub use fault::FaultEngine;
pub use reshape::{Reshape, Shape};
pub use script::Script;
