//! The harness of the black-box tests: a gateway in the test's process, engines that misbehave on
//! command, a network that does, clients that hide nothing, and SQL cases as data.

pub mod cases;
pub mod door;
pub mod engine;
pub mod fixtures;
pub mod gateway;
pub mod http;
pub mod ipc;
pub mod process;
pub mod proxy;
pub mod tls;
