//! Listing folders under the policy, one folder at a time.
//!
//! Owns the walk: links that lead out of the roots, and the gateway's own files, are not there for
//! it, and a folder that was seen is not entered again. Must not know object stores beyond the
//! shape of their answers.

use std::collections::HashSet;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{Error, ListResult, ObjectMeta, Result};

use super::policy::{Access, OwnFiles, Policy};

/// All files below `folder`, in no order; none when there is no such folder.
pub(super) fn list(
    policy: Arc<Policy>,
    roots: Vec<PathBuf>,
    folder: PathBuf,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let walk = Walk {
        policy,
        roots,
        folders: vec![folder],
        seen: HashSet::new(),
    };
    stream::try_unfold(walk, |mut walk| async move {
        let Some(folder) = walk.folders.pop() else {
            return Ok(None);
        };
        let step = tokio::task::spawn_blocking(move || {
            let content = walk.read(&folder)?;
            walk.folders.extend(content.folders);
            Ok::<_, Error>((stream::iter(content.files.into_iter().map(Ok)), walk))
        });
        step.await?.map(Some)
    })
    .try_flatten()
    .boxed()
}

/// The files and folders right below `folder`.
pub(super) async fn list_one(
    policy: Arc<Policy>,
    roots: Vec<PathBuf>,
    folder: PathBuf,
) -> Result<ListResult> {
    tokio::task::spawn_blocking(move || {
        let mut walk = Walk {
            policy,
            roots,
            folders: Vec::new(),
            seen: HashSet::new(),
        };
        let content = walk.read(&folder)?;
        let folders = content.folders.iter().map(ObjectPath::from_absolute_path);
        let common_prefixes = folders.collect::<std::result::Result<_, _>>()?;
        Ok(ListResult {
            common_prefixes,
            objects: content.files,
        })
    })
    .await?
}

struct Walk {
    policy: Arc<Policy>,
    roots: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    seen: HashSet<(u64, u64)>,
}

#[derive(Default)]
struct Content {
    folders: Vec<PathBuf>,
    files: Vec<ObjectMeta>,
}

impl Walk {
    fn read(&mut self, folder: &Path) -> Result<Content> {
        let mut content = Content::default();
        let entries = match self.enter(folder) {
            Ok(Some(entries)) => entries,
            Ok(None) => return Ok(content),
            Err(error) => return Err(failed(error)),
        };
        let own = self.policy.own();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Some(metadata) = self.visible(&entry, &own) else {
                continue;
            };
            if metadata.is_dir() {
                content.folders.push(entry.path());
            } else if metadata.is_file() {
                content.files.push(describe(&entry.path(), &metadata)?);
            }
        }
        Ok(content)
    }

    fn enter(&mut self, folder: &Path) -> io::Result<Option<fs::ReadDir>> {
        let metadata = match fs::metadata(folder) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !metadata.is_dir() || !self.seen.insert((metadata.dev(), metadata.ino())) {
            return Ok(None);
        }
        fs::read_dir(folder).map(Some)
    }

    /// What the entry is, if SQL may see it. Only links can lead out of a folder that was entered.
    fn visible(&self, entry: &DirEntry, own: &OwnFiles) -> Option<Metadata> {
        let path = entry.path();
        if is_upload(&path) {
            return None;
        }
        let metadata = if entry.file_type().ok()?.is_symlink() {
            self.policy
                .check_path(&self.roots, &path, Access::Read)
                .ok()?;
            fs::metadata(&path).ok()?
        } else {
            entry.metadata().ok()?
        };
        (!own.holds_id(&metadata)).then_some(metadata)
    }
}

/// The store writes a file as `name#1` first and renames it when it is whole.
fn is_upload(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once('#').is_some_and(|(_, suffix)| {
        !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn describe(path: &Path, metadata: &Metadata) -> Result<ObjectMeta> {
    Ok(ObjectMeta {
        location: ObjectPath::from_absolute_path(path)?,
        last_modified: metadata.modified().map_err(failed)?.into(),
        size: metadata.len(),
        e_tag: None,
        version: None,
    })
}

fn failed(error: io::Error) -> Error {
    Error::Generic {
        store: "files",
        source: Box::new(error),
    }
}
