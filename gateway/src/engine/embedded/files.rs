//! Tables from files and folders: which format, which columns, which partitions.
//!
//! Owns the guess from names and content, and `CREATE EXTERNAL TABLE`'s factory. Must not know the
//! policy; every access goes through the stores, which ask it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::DataType;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DataFusionError, Result, not_impl_err, plan_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::execution::SessionState;
use datafusion::logical_expr::CreateExternalTable;
use futures::{StreamExt, TryStreamExt};
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};

/// How many files of a folder are looked at to tell its format.
const SAMPLE: usize = 1000;

/// The format of a file, as its name says.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Kind {
    /// The extension in the file's name, without compression.
    extension: &'static str,
    /// DataFusion's name for the format.
    format: &'static str,
    compression: Option<Compression>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Compression {
    extension: &'static str,
    name: &'static str,
}

const FORMATS: [(&str, &str); 11] = [
    ("parquet", "parquet"),
    ("pq", "parquet"),
    ("csv", "csv"),
    ("tsv", "csv"),
    ("json", "json"),
    ("ndjson", "json"),
    ("jsonl", "json"),
    ("arrow", "arrow"),
    ("arrows", "arrow"),
    ("feather", "arrow"),
    ("ipc", "arrow"),
];

const COMPRESSIONS: [Compression; 4] = [
    Compression {
        extension: "gz",
        name: "gzip",
    },
    Compression {
        extension: "bz2",
        name: "bzip2",
    },
    Compression {
        extension: "xz",
        name: "xz",
    },
    Compression {
        extension: "zst",
        name: "zstd",
    },
];

impl Kind {
    fn of(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit_once('.')?;
        let compression = COMPRESSIONS.into_iter().find(|c| c.extension == extension);
        let extension = match compression {
            Some(_) => stem.rsplit_once('.')?.1,
            None => extension,
        };
        let (extension, format) = FORMATS.into_iter().find(|(known, _)| *known == extension)?;
        let whole = compression.is_none() || matches!(format, "csv" | "json");
        whole.then_some(Self {
            extension,
            format,
            compression,
        })
    }

    /// The end that names of its files share.
    fn suffix(self) -> String {
        match self.compression {
            Some(compression) => format!(".{}.{}", self.extension, compression.extension),
            None => format!(".{}", self.extension),
        }
    }
}

/// Whether a name used as a table's looks like a file's, a path or a URL.
pub(super) fn looks_like_path(name: &str) -> bool {
    name.contains('/') || Kind::of(name).is_some()
}

/// A table over the file or folder at `url`.
pub(super) async fn table(state: &SessionState, url: ListingTableUrl) -> Result<ListingTable> {
    let store = state.runtime_env().object_store(&url)?;
    let (kind, sample) = kind_of(state, store.as_ref(), &url).await?;
    let format = format(state, store.as_ref(), kind, &sample).await?;
    let mut options = ListingOptions::new(format).with_file_extension(kind.suffix());
    if url.is_collection() {
        let columns = options.infer_partitions(state, &url).await?;
        let value = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
        let columns = columns
            .into_iter()
            .map(|name| (name, value.clone()))
            .collect();
        options = options.with_table_partition_cols(columns);
    }
    let schema = options.infer_schema(state, &url).await?;
    let config = ListingTableConfig::new(url)
        .with_listing_options(options)
        .with_schema(schema);
    let cache = state.runtime_env().cache_manager.get_file_statistic_cache();
    Ok(ListingTable::try_new(config)?.with_cache(cache))
}

async fn kind_of(
    state: &SessionState,
    store: &dyn ObjectStore,
    url: &ListingTableUrl,
) -> Result<(Kind, ObjectMeta)> {
    let files = url.list_all_files(state, store, "").await?.take(SAMPLE);
    let files: Vec<ObjectMeta> = files.try_collect().await?;
    let mut kinds = BTreeSet::new();
    let mut sample = None;
    for file in files {
        let name = file.location.filename().unwrap_or_default();
        if name.starts_with(['.', '_']) {
            continue;
        }
        let Some(kind) = Kind::of(name) else { continue };
        kinds.insert(kind);
        if sample.is_none() && file.size > 0 {
            sample = Some((kind, file));
        }
    }
    if kinds.len() > 1 {
        let found: Vec<_> = kinds.into_iter().map(Kind::suffix).collect();
        return plan_err!("its files are of several types: {}", found.join(", "));
    }
    let known = FORMATS.map(|(extension, _)| extension).join(", ");
    sample.ok_or_else(|| {
        let message = format!("there is no file with content and a known type ({known})");
        DataFusionError::Plan(message)
    })
}

async fn format(
    state: &SessionState,
    store: &dyn ObjectStore,
    kind: Kind,
    sample: &ObjectMeta,
) -> Result<Arc<dyn FileFormat>> {
    let mut options = HashMap::new();
    let mut set =
        |key: &str, value: &str| options.insert(format!("format.{key}"), value.to_owned());
    if let Some(compression) = kind.compression {
        set("compression", compression.name);
    }
    if kind.format == "csv" {
        set("has_header", "true");
    }
    if kind.extension == "tsv" {
        set("delimiter", "\t");
    }
    if kind.format == "json" && kind.compression.is_none() && is_array(store, sample).await? {
        set("newline_delimited", "false");
    }
    let factory = state.get_file_format_factory(kind.format).ok_or_else(|| {
        DataFusionError::NotImplemented(format!("this build does not read {}", kind.format))
    })?;
    factory.create(state, &options)
}

/// Whether a JSON file is one array instead of a value per line.
async fn is_array(store: &dyn ObjectStore, file: &ObjectMeta) -> Result<bool> {
    let range = Some(GetRange::Bounded(0..file.size.min(1024)));
    let options = GetOptions {
        range,
        ..GetOptions::default()
    };
    let start = store
        .get_opts(&file.location, options)
        .await?
        .bytes()
        .await?;
    Ok(start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'['))
}

/// Makes the tables of `CREATE EXTERNAL TABLE`. DataFusion's own factory has a second way, for
/// unbounded tables, that opens files past the stores; this one has not.
#[derive(Debug, Default)]
pub(super) struct Factory(ListingTableFactory);

#[async_trait]
impl TableProviderFactory for Factory {
    async fn create(
        &self,
        state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let unbounded = command.options.iter().any(|(key, value)| {
            key.to_ascii_lowercase().ends_with("unbounded") && value.eq_ignore_ascii_case("true")
        });
        if command.unbounded || unbounded {
            return not_impl_err!("unbounded tables are not supported");
        }
        let mut command = command.clone();
        let compression = command
            .locations
            .first()
            .and_then(|place| Kind::of(place)?.compression);
        if let Some(compression) = compression {
            let key = "format.compression".to_owned();
            command
                .options
                .entry(key)
                .or_insert_with(|| compression.name.to_owned());
        }
        self.0.create(state, &command).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_format() {
        for (name, expected) in [
            ("a.parquet", Some(("parquet", ".parquet"))),
            ("a.csv.gz", Some(("csv", ".csv.gz"))),
            ("a.b.ndjson.zst", Some(("json", ".ndjson.zst"))),
            ("a.arrow", Some(("arrow", ".arrow"))),
            ("a.parquet.gz", None),
            ("a.gz", None),
            ("users.toml", None),
            ("csv", None),
        ] {
            let found = Kind::of(name).map(|kind| (kind.format, kind.suffix()));
            assert_eq!(found, expected.map(|(f, s)| (f, s.to_owned())), "{name}");
        }
    }

    #[test]
    fn paths_are_told_from_names() {
        for path in ["/etc/passwd", "file.csv", "s3://b/k", "a/b", "../x"] {
            assert!(looks_like_path(path), "{path}");
        }
        for name in ["lineitem", "my table", "users.toml2", "a.b"] {
            assert!(!looks_like_path(name), "{name}");
        }
    }
}
