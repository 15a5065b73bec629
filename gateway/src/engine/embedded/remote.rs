//! Stores behind URLs: S3, Google Cloud Storage, Azure, HTTP.
//!
//! Owns how a URL becomes a store; only builds with the feature `object-store` have any. Must not
//! know the policy: what may be read or written there is the guard's business.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use sluice_core::error::{Error, Result};
use url::Url;

/// The store for `url`, and the path in it that the URL means. `options` are named as the store's
/// crate names them, such as `aws_region`.
#[cfg(feature = "object-store")]
pub(super) fn open(
    url: &Url,
    options: &[(String, String)],
) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let wrong = |text: String| Error::invalid("22023", format!("\"{url}\" cannot be used: {text}"));
    let options = options
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let (store, path) =
        object_store::parse_url_opts(url, options).map_err(|error| wrong(error.to_string()))?;
    let plain = Path::from_url_path(url.path()).map_err(|error| wrong(error.to_string()))?;
    if plain != path {
        return Err(wrong(
            "its bucket is a part of its path; use s3://, gs:// or az://".to_owned(),
        ));
    }
    Ok((Arc::from(store), path))
}

/// There are no remote stores in this build.
#[cfg(not(feature = "object-store"))]
pub(super) fn open(url: &Url, _: &[(String, String)]) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let message = format!("\"{url}\" needs a build with the feature `object-store`");
    Err(Error::invalid("0A000", message))
}
