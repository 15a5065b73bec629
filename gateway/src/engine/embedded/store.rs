//! The one way from DataFusion to files: object stores that ask the policy before every access.
//!
//! Owns the guard around a store and the registry in which DataFusion finds stores. The registry
//! knows three kinds: `file://` for what SQL names, `table://N` for the N-th configured table (its
//! own folder, read only), and the URLs that `allow` lists. Nothing can be added to it. Must not
//! know SQL.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::Result as DataFusionResult;
use datafusion::execution::object_store::ObjectStoreRegistry;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use sluice_core::error::Error;
use url::{Position, Url};

use super::error::carry;
use super::policy::{Access, Policy, local_path, refusal};
use super::walk;

/// The scheme under which configured tables have their stores.
pub(super) const TABLE_SCHEME: &str = "table";

/// A store that lets through what its scope covers.
#[derive(Clone, Debug)]
pub(super) struct Guarded {
    inner: Arc<dyn ObjectStore>,
    scope: Arc<Scope>,
}

#[derive(Debug)]
struct Scope {
    policy: Arc<Policy>,
    area: Area,
    writable: bool,
}

#[derive(Debug)]
enum Area {
    Local(Vec<PathBuf>),
    Remote(Vec<Path>),
}

impl Guarded {
    /// What SQL may do with local files.
    pub(super) fn sql(policy: &Arc<Policy>) -> Self {
        Self::local(policy, policy.folders().to_vec(), true)
    }

    /// What a configured table reads: its own file or folder.
    pub(super) fn table(policy: &Arc<Policy>, root: PathBuf) -> Self {
        Self::local(policy, vec![root], false)
    }

    /// A remote store, below the given prefixes.
    pub(super) fn remote(
        policy: &Arc<Policy>,
        inner: Arc<dyn ObjectStore>,
        prefixes: Vec<Path>,
        writable: bool,
    ) -> Self {
        let policy = Arc::clone(policy);
        Self {
            inner,
            scope: Arc::new(Scope {
                policy,
                area: Area::Remote(prefixes),
                writable,
            }),
        }
    }

    fn local(policy: &Arc<Policy>, roots: Vec<PathBuf>, writable: bool) -> Self {
        let policy = Arc::clone(policy);
        let scope = Arc::new(Scope {
            policy,
            area: Area::Local(roots),
            writable,
        });
        Self {
            inner: Arc::new(LocalFileSystem::new()),
            scope,
        }
    }
}

impl Scope {
    fn check(&self, path: &Path, access: Access) -> Result<()> {
        let checked = if access == Access::Write && !self.writable {
            Err(refusal(path.as_ref()))
        } else {
            match &self.area {
                Area::Local(roots) => self
                    .policy
                    .check_path(roots, &local_path(path), access)
                    .map(|_| ()),
                Area::Remote(prefixes) if prefixes.iter().any(|p| path.prefix_matches(p)) => Ok(()),
                Area::Remote(_) => Err(refusal(path.as_ref())),
            }
        };
        checked.map_err(|error| denied(path, error))
    }

    /// Looks at the file that was really opened: a link may have changed since the check.
    fn check_opened(&self, path: &Path, result: &GetResult) -> Result<()> {
        let GetResultPayload::File(file, _) = &result.payload else {
            return Ok(());
        };
        let own = self.policy.own();
        let fine = file
            .metadata()
            .is_ok_and(|metadata| metadata.is_file() && !own.holds_id(&metadata));
        if fine {
            Ok(())
        } else {
            Err(denied(path, refusal(path.as_ref())))
        }
    }
}

fn denied(path: &Path, error: Error) -> object_store::Error {
    object_store::Error::PermissionDenied {
        path: path.to_string(),
        source: Box::new(error),
    }
}

#[async_trait]
impl ObjectStore for Guarded {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.scope.check(location, Access::Write)?;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.scope.check(location, Access::Write)?;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.scope.check(location, Access::Read)?;
        let result = self.inner.get_opts(location, options).await?;
        self.scope.check_opened(location, &result)?;
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.scope.check(location, Access::Read)?;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let scope = Arc::clone(&self.scope);
        let checked = locations.map(move |location| {
            let location = location?;
            scope.check(&location, Access::Write)?;
            Ok(location)
        });
        self.inner.delete_stream(checked.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = prefix.cloned().unwrap_or_default();
        if let Err(error) = self.scope.check(&prefix, Access::Read) {
            return stream::once(async { Err(error) }).boxed();
        }
        match &self.scope.area {
            Area::Local(roots) => walk::list(
                Arc::clone(&self.scope.policy),
                roots.clone(),
                local_path(&prefix),
            ),
            Area::Remote(_) => self.inner.list(Some(&prefix)),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        self.scope.check(&prefix, Access::Read)?;
        match &self.scope.area {
            Area::Local(roots) => {
                let (policy, roots) = (Arc::clone(&self.scope.policy), roots.clone());
                walk::list_one(policy, roots, local_path(&prefix)).await
            }
            Area::Remote(_) => self.inner.list_with_delimiter(Some(&prefix)).await,
        }
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.scope.check(from, Access::Read)?;
        self.scope.check(to, Access::Write)?;
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.scope.check(from, Access::Write)?;
        self.scope.check(to, Access::Write)?;
        self.inner.rename_opts(from, to, options).await
    }
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guarded({})", self.inner)
    }
}

/// Where DataFusion finds stores by URL.
#[derive(Debug)]
pub(super) struct Stores {
    files: Arc<dyn ObjectStore>,
    by_authority: HashMap<String, Arc<dyn ObjectStore>>,
}

impl Stores {
    pub(super) fn new(files: Guarded) -> Self {
        Self {
            files: Arc::new(files),
            by_authority: HashMap::new(),
        }
    }

    /// Adds the store for one scheme and authority.
    pub(super) fn add(&mut self, url: &Url, store: Guarded) {
        self.by_authority.insert(authority(url), Arc::new(store));
    }
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        _url: &Url,
        _store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> DataFusionResult<Arc<dyn ObjectStore>> {
        if url.scheme() == "file" {
            return Ok(Arc::clone(&self.files));
        }
        self.by_authority
            .get(&authority(url))
            .cloned()
            .ok_or_else(|| carry(refusal(url.as_str())))
    }
}

fn authority(url: &Url) -> String {
    url[..Position::BeforePath].to_owned()
}
