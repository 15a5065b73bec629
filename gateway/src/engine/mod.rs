//! The engines of this build, by name.
//!
//! Owns the registry. Must not know front ends, nor what an engine does with its configuration.

pub mod embedded;

use std::collections::HashMap;
use std::sync::Arc;

use sluice_core::engine::Engine;
use sluice_core::error::{Error, Result};

/// What kind of engine a name stands for, with its typed configuration.
#[derive(Clone, Debug)]
pub enum Config {
    /// DataFusion in this process.
    Embedded(embedded::Config),
}

/// Builds every engine.
///
/// # Errors
/// Tells what is wrong with all of them at once, by name.
pub fn build(configs: Vec<(String, Config)>) -> Result<HashMap<String, Arc<dyn Engine>>> {
    let (mut engines, mut wrong) = (HashMap::new(), Vec::new());
    for (name, config) in configs {
        let engine: Result<Arc<dyn Engine>> = match config {
            Config::Embedded(config) => embedded::Embedded::build(config).map(|engine| engine as _),
        };
        match engine {
            Ok(engine) => drop(engines.insert(name, engine)),
            Err(error) => wrong.push(format!("engine \"{name}\": {}", error.message())),
        }
    }
    if wrong.is_empty() {
        Ok(engines)
    } else {
        Err(Error::invalid("22023", wrong.join("; ")))
    }
}
