//! Streams that Arrow C++ wrote: read as arrow-rs reads them, and written again.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::{fs, iter};

use support::{ALL, CODECS, foreign, read};

fn golden(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn golden_streams_are_read_as_arrow_reads_them_and_written_again() {
    let mut count = 0;
    for (path, stream) in ["0.14.1", "1.0.0", "2.0.0", "4.0.0"]
        .into_iter()
        .flat_map(golden)
    {
        if path.to_string_lossy().contains("bigendian") {
            continue;
        }
        let name = path.display();
        for chunk in [1, 13, 1 << 20] {
            let (schema, batches) =
                read(&stream, chunk).unwrap_or_else(|error| panic!("{name}: {error}"));
            let (expected_schema, expected) = foreign(&stream);
            assert_eq!(schema, expected_schema, "{name}");
            assert_eq!(batches, expected, "{name}");
            if chunk > 13 {
                for compression in CODECS {
                    let encoder = sluice_ipc::Encoder::try_new(&schema, ALL, compression).unwrap();
                    let again = support::stream(&encoder, &batches);
                    assert_eq!(
                        foreign(&again).1,
                        expected,
                        "{name} with {}",
                        compression.codec
                    );
                    assert_eq!(
                        read(&again, 1 << 20).unwrap().1,
                        expected,
                        "{name} with {}",
                        compression.codec
                    );
                }
            }
        }
        count += 1;
    }
    assert!(count > 30, "{count} streams");
}

#[test]
fn what_is_laid_out_differently_is_refused_by_name() {
    let (_, union) = golden("0.17.1").remove(0);
    let error = read(&union, 1 << 20).unwrap_err().to_string();
    assert!(error.contains("unions of metadata version V4"), "{error}");

    let big = golden("1.0.0")
        .into_iter()
        .find(|(path, _)| path.to_string_lossy().contains("bigendian"));
    let error = read(&big.unwrap().1, 1 << 20).unwrap_err().to_string();
    assert!(error.contains("big-endian"), "{error}");
}

#[test]
fn a_stream_that_stops_anywhere_is_an_error() {
    for (path, stream) in iter::empty().chain(golden("2.0.0")).chain(golden("4.0.0")) {
        for end in 0..stream.len() {
            assert!(
                read(&stream[..end], 1 << 20).is_err(),
                "{} cut at {end}",
                path.display()
            );
        }
    }
}
