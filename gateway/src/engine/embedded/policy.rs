//! Which files and URLs SQL may touch: the places that the configuration allows, and never the
//! gateway's own files.
//!
//! Owns the rule and its one error text. Must not know object stores or plans. The rule looks at
//! real paths: links are resolved, also on the way to a file that does not exist yet, and a hard
//! link to a file of the gateway's own is that file. It answers the same whether or not a refused
//! file exists.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use datafusion::datasource::listing::ListingTableUrl;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use sluice_core::error::{Error, ErrorKind, Result};
use url::Url;

/// Trees in which files are not data but the machine's and this process's inner life.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What is to be done with a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    /// Read it, or list it.
    Read,
    /// Create, replace or delete it.
    Write,
}

/// The places that SQL may touch.
#[derive(Debug)]
pub(super) struct Policy {
    folders: Vec<PathBuf>,
    urls: Vec<Url>,
    own: Vec<PathBuf>,
}

impl Policy {
    /// `allow` lists absolute paths and URLs; `own` are files, or whole folders, that are refused
    /// wherever they lie.
    pub(super) fn new(allow: &[String], own: Vec<PathBuf>) -> Result<Self> {
        let (mut folders, mut urls) = (Vec::new(), Vec::new());
        for place in allow {
            match parse_place(place)? {
                Place::Local(path) => folders.push(real_path(&path).ok_or_else(|| {
                    Error::invalid("22023", format!("\"{place}\" in `allow` is a broken link"))
                })?),
                Place::Remote(url) => urls.push(url),
            }
        }
        Ok(Self { folders, urls, own })
    }

    /// Folders and files that SQL may read and write.
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// URLs below which SQL may read and write.
    pub(super) fn urls(&self) -> &[Url] {
        &self.urls
    }

    /// Checks a location as SQL spells it: a path, a path with a glob, or a URL.
    pub(super) fn check_location(&self, location: &str, access: Access) -> Result<()> {
        let url = ListingTableUrl::parse(location)
            .map_err(|_| Error::invalid("22023", format!("\"{location}\" is no path or URL")))?;
        if url.scheme() == "file" {
            let path = local_path(url.prefix());
            let checked = self.check_path(&self.folders, &path, access);
            return checked.map(|_| ()).map_err(|_| refusal(location));
        }
        let allowed = self.urls.iter().any(|place| covers(place, url.get_url()));
        if allowed {
            Ok(())
        } else {
            Err(refusal(location))
        }
    }

    /// Checks a path against `roots`, and gives the real path.
    pub(super) fn check_path(
        &self,
        roots: &[PathBuf],
        path: &Path,
        access: Access,
    ) -> Result<PathBuf> {
        let refused = || refusal(&path.to_string_lossy());
        let real = real_path(path).ok_or_else(refused)?;
        let inside = roots.iter().any(|root| real.starts_with(root));
        // A file is replaced by renaming, which would replace the link and not what it points to.
        let replaces_link = access == Access::Write && is_link(path);
        let system = SYSTEM.iter().any(|tree| real.starts_with(tree));
        if !inside || replaces_link || system || self.own().holds(&real) {
            return Err(refused());
        }
        Ok(real)
    }

    /// The gateway's own files as they are now; they may be replaced while the gateway runs.
    pub(super) fn own(&self) -> OwnFiles {
        let paths: Vec<_> = self.own.iter().filter_map(|path| real_path(path)).collect();
        let ids = paths
            .iter()
            .filter_map(|path| fs::metadata(path).ok())
            .map(id)
            .collect();
        OwnFiles { paths, ids }
    }
}

/// A snapshot of which files are the gateway's own.
pub(super) struct OwnFiles {
    paths: Vec<PathBuf>,
    ids: HashSet<(u64, u64)>,
}

impl OwnFiles {
    /// Whether the real path is, or is below, a file of the gateway's own.
    pub(super) fn holds(&self, real: &Path) -> bool {
        self.paths.iter().any(|own| real.starts_with(own))
            || fs::metadata(real).is_ok_and(|metadata| self.holds_id(&metadata))
    }

    /// Whether it is one of them under another name.
    pub(super) fn holds_id(&self, metadata: &Metadata) -> bool {
        self.ids.contains(&id(metadata.clone()))
    }
}

/// The one answer to whatever SQL may not touch.
pub(super) fn refusal(location: &str) -> Error {
    Error::new(
        ErrorKind::Forbidden,
        format!(
            "\"{location}\" is refused: SQL reads and writes only the configured tables and the \
             places listed under `allow` of this engine, and never the gateway's own files"
        ),
    )
}

/// A place in the configuration.
pub(super) enum Place {
    Local(PathBuf),
    Remote(Url),
}

/// Reads an absolute path or a URL of the configuration.
pub(super) fn parse_place(place: &str) -> Result<Place> {
    if Path::new(place).is_absolute() {
        return Ok(Place::Local(PathBuf::from(place)));
    }
    let wrong = || {
        Error::invalid(
            "22023",
            format!("\"{place}\" is no absolute path and no URL"),
        )
    };
    let url = Url::parse(place).map_err(|_| wrong())?;
    if url.scheme() == "file" {
        return url.to_file_path().map(Place::Local).map_err(|()| wrong());
    }
    Ok(Place::Remote(url))
}

/// The path in the file system that an object store path of `file://` means.
pub(super) fn local_path(path: &ObjectPath) -> PathBuf {
    let root = || Path::new("/").join(path.as_ref());
    LocalFileSystem::new()
        .path_to_filesystem(path)
        .unwrap_or_else(|_| root())
}

/// Whether `url` is `place` or below it.
fn covers(place: &Url, url: &Url) -> bool {
    let authority = ..url::Position::BeforePath;
    if place[authority] != url[authority] {
        return false;
    }
    let Ok(place) = ObjectPath::from_url_path(place.path()) else {
        return false;
    };
    ObjectPath::from_url_path(url.path()).is_ok_and(|path| path.prefix_matches(&place))
}

/// The path without links. What does not exist yet is placed below its nearest real folder; a link
/// that leads nowhere has no real path.
fn real_path(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    if is_link(path) {
        return None;
    }
    let name = path.file_name()?;
    Some(real_path(path.parent()?)?.join(name))
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_symlink())
}

fn id(metadata: Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn setup() -> (tempfile::TempDir, Policy) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["open/sub", "closed"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["open/data.csv", "open/users.toml", "closed/key.pem"] {
            fs::write(root.join(name), "x").unwrap();
        }
        let own = vec![root.join("open/users.toml"), root.join("closed/key.pem")];
        let allow = [
            root.join("open").to_str().unwrap().to_owned(),
            "s3://bucket/open".to_owned(),
        ];
        let policy = Policy::new(&allow, own).unwrap();
        (folder, policy)
    }

    fn checks(policy: &Policy, path: &Path, access: Access) -> bool {
        let result = policy.check_location(path.to_str().unwrap(), access);
        if let Err(error) = &result {
            assert_eq!(error.sqlstate(), "42501");
            assert!(error.message().contains("`allow`"));
        }
        result.is_ok()
    }

    #[test]
    fn only_allowed_places_pass() {
        let (folder, policy) = setup();
        let root = folder.path();
        for access in [Access::Read, Access::Write] {
            assert!(checks(&policy, &root.join("open/data.csv"), access));
            assert!(checks(&policy, &root.join("open/new/file.csv"), access));
            assert!(!checks(&policy, &root.join("closed/other"), access));
            assert!(!checks(&policy, &root.join("opened"), access));
            assert!(!checks(&policy, &root.join("open/../closed/other"), access));
            assert!(!checks(&policy, &root.join("open/users.toml"), access));
            assert!(!checks(&policy, &root.join("closed/key.pem"), access));
            assert!(!checks(&policy, Path::new("/etc/passwd"), access));
            assert!(!checks(&policy, Path::new("relative.csv"), access));
        }
        assert!(checks(&policy, &root.join("open/*.csv"), Access::Read));
        assert!(!checks(&policy, &root.join("*/key.pem"), Access::Read));
    }

    #[test]
    fn links_do_not_help() {
        let (folder, policy) = setup();
        let root = folder.path();
        let link = |to: &str, name: &str| {
            symlink(root.join(to), root.join("open").join(name)).unwrap();
            root.join("open").join(name)
        };
        let file = link("closed/key.pem", "file");
        let inner = link("open/data.csv", "inner");
        let closed = link("closed", "folder");
        let dangling = link("closed/none", "dangling");
        assert!(!checks(&policy, &file, Access::Read));
        assert!(checks(&policy, &inner, Access::Read));
        assert!(!checks(&policy, &inner, Access::Write));
        assert!(!checks(&policy, &closed, Access::Read));
        assert!(!checks(&policy, &closed.join("key.pem"), Access::Read));
        assert!(!checks(&policy, &closed.join("new/file"), Access::Write));
        assert!(!checks(&policy, &dangling, Access::Write));
        assert!(!checks(&policy, &dangling.join("file"), Access::Write));
        let hard = root.join("open/hard");
        fs::hard_link(root.join("closed/key.pem"), &hard).unwrap();
        assert!(!checks(&policy, &hard, Access::Read));
        assert!(!checks(&policy, &hard, Access::Write));
    }

    #[test]
    fn urls_pass_below_their_place_alone() {
        let (_folder, policy) = setup();
        for (url, passes) in [
            ("s3://bucket/open/x.parquet", true),
            ("s3://bucket/open", true),
            ("s3://bucket/opened", false),
            ("s3://bucket/open/../closed", false),
            ("s3://bucket/open/%2e%2e/closed", false),
            ("s3://other/open/x", false),
            ("http://169.254.169.254/latest", false),
            ("gs://bucket/open/x", false),
            ("file://host/etc/passwd", false),
            ("table://0/x", false),
        ] {
            assert_eq!(
                policy.check_location(url, Access::Read).is_ok(),
                passes,
                "{url}"
            );
        }
    }

    #[test]
    fn the_machine_itself_is_no_data() {
        let policy = Policy::new(&["/".to_owned()], Vec::new()).unwrap();
        assert!(checks(&policy, Path::new("/etc/passwd"), Access::Read));
        assert!(!checks(
            &policy,
            Path::new("/proc/self/environ"),
            Access::Read
        ));
        assert!(!checks(&policy, Path::new("/dev/stdin"), Access::Read));
    }
}
