"""Real files that nobody here wrote, through the gateway: `SELECT *` equals a direct read by
pyarrow, and LIMIT cuts exactly, for every codec."""

import sys
import time

import pyarrow
import pyarrow.compute
import pyarrow.ipc
import pyarrow.parquet

from gateway import CODECS, DATA, Client, Gateway, table
from matrix import plain

SMALL = ["customer", "nation", "part", "partsupp", "region", "supplier"]
LARGE = ["orders", "catalog_sales", "lineitem"]


def whole(client: Client, name: str, codec: str) -> tuple[str, int, float]:
    """What differs from a direct read, row group by row group so that memory stays small; bytes; seconds."""
    started = time.monotonic()
    file = pyarrow.parquet.ParquetFile(DATA / f"{name}.parquet")
    expected = (plain(pyarrow.Table.from_batches([batch])) for batch in file.iter_batches(batch_size=122_880))
    with client.open(f"SELECT * FROM {name}", codec, configs={"datafusion.execution.target_partitions": "1"}) as body:
        counted = Counted(body)
        reader = pyarrow.ipc.open_stream(counted)
        problem = equal(reader, expected, file.metadata.num_rows)
    return problem, counted.bytes, time.monotonic() - started


class Counted:
    """A file that counts what is read from it."""

    def __init__(self, inner):
        self.inner = inner
        self.bytes = 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        piece = self.inner.read(size if size >= 0 else None)
        self.bytes += len(piece)
        return piece

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def equal(reader, expected, rows: int) -> str:
    """Compares two runs of rows whose batches fall differently."""
    ours, theirs, seen = None, None, 0
    while True:
        if ours is None or ours.num_rows == 0:
            ours = next(expected, None)
        if theirs is None or theirs.num_rows == 0:
            try:
                theirs = plain(pyarrow.Table.from_batches([reader.read_next_batch()]))
            except StopIteration:
                theirs = None
        if ours is None or theirs is None:
            break
        count = min(ours.num_rows, theirs.num_rows)
        if ours.column_names != theirs.column_names:
            return f"columns {theirs.column_names}"
        for name, left, right in zip(ours.column_names, ours.columns, theirs.columns):
            left, right = left.slice(0, count), right.slice(0, count)
            if left.type != right.type:
                right = right.cast(left.type)
            if not left.equals(right):
                return f"column {name} differs in the {count} rows from {seen}"
        seen += count
        ours, theirs = ours.slice(count), theirs.slice(count)
    return "" if ours is None and theirs is None and seen == rows else f"{seen} rows instead of {rows}"


def limits(client: Client, name: str) -> list[str]:
    """LIMIT at 0, 1, around every kind of edge and beyond the end, for each codec."""
    problems = []
    rows = pyarrow.parquet.ParquetFile(DATA / f"{name}.parquet").metadata.num_rows
    for codec in CODECS:
        first = pyarrow.ipc.open_stream(client.query(f"SELECT * FROM {name} LIMIT 100000", codec)).read_next_batch().num_rows
        edges = [0, 1, first - 1, first, first + 1, 8191, 8192, 8193, 65535, 65536, 65537]
        for limit in [*edges, *([rows, rows + 1] if rows < 2_000_000 else [])]:
            found = pyarrow.ipc.open_stream(client.query(f"SELECT * FROM {name} LIMIT {limit}", codec)).read_all().num_rows
            if found != min(limit, rows):
                problems.append(f"{name} LIMIT {limit} with {codec}: {found} rows")
    return problems


def main() -> None:
    problems, rows = [], []
    tables = {name: str(DATA / f"{name}.parquet") for name in SMALL + LARGE}
    with Gateway(tables) as gateway:
        client = gateway.client()
        for name in SMALL + LARGE:
            cells = []
            for codec in CODECS:
                problem, size, seconds = whole(client, name, codec)
                cells.append(problem and f"✗ {problem}" or f"✓ {size / 1e6:.1f} MB, {seconds:.1f} s")
                if problem:
                    problems.append(f"{name} with {codec}: {problem}")
            count = pyarrow.parquet.ParquetFile(DATA / f"{name}.parquet").metadata.num_rows
            rows.append([name, f"{count:,}", *cells])
        for name in ["catalog_sales", "orders"]:
            problems += limits(client, name)
    print("SELECT * through the gateway, every value compared with a direct read of the file by pyarrow.\n")
    print(table(["file", "rows", *CODECS], rows))
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
