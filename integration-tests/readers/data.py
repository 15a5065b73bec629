"""Makes the real files that nobody here wrote: TPC-DS catalog_sales and TPC-H tables as Parquet,
by DuckDB's generators. Files that are there are kept.

Usage: data.py FOLDER [SCALE]
"""

import os
import sys
import time

import duckdb
import duckdb_extension_tpcds
import duckdb_extension_tpch

TABLES = {
    "tpcds": ["catalog_sales"],
    "tpch": ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"],
}
GENERATORS = {
    "tpcds": (duckdb_extension_tpcds, "dsdgen"),
    "tpch": (duckdb_extension_tpch, "dbgen"),
}


def generate(suite: str, folder: str, scale: float) -> None:
    """Generates a whole suite and writes its tables that are missing."""
    wanted = {table: os.path.join(folder, f"{table}.parquet") for table in TABLES[suite]}
    if all(os.path.exists(path) for path in wanted.values()):
        return
    started = time.monotonic()
    module, generator = GENERATORS[suite]
    extension = os.path.join(
        os.path.dirname(module.__file__), "extensions", f"v{duckdb.__version__}", f"{suite}.duckdb_extension"
    )
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "memory_limit": "6GB"})
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL {generator}(sf={scale})")
    for table, path in wanted.items():
        # Written beside and renamed, so that a run that was stopped leaves no half file.
        connection.execute(
            f"COPY {table} TO '{path}.part' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)"
        )
        os.replace(f"{path}.part", path)
    print(f"{suite} at scale {scale:g}: {time.monotonic() - started:.1f} s", flush=True)


def main() -> None:
    folder, scale = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    os.makedirs(folder, exist_ok=True)
    for suite in TABLES:
        generate(suite, folder, scale)


if __name__ == "__main__":
    main()
