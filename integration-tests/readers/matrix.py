"""Readers by codecs: each reads the gateway's own stream and is compared, value by value, with the
answer that the engine itself gives. Prints the table; fails where a reader does not do what is
known of it, better or worse."""

import csv
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import duckdb
import nanoarrow
import polars
import pyarrow
import pyarrow.ipc

from gateway import BINARIES, CODECS, HERE, PASSWORD, USER, WORK, Client, Gateway, table

SCALE = 0.02
QUERIES = {
    "lineitem": "SELECT * FROM tpch.lineitem ORDER BY l_orderkey, l_linenumber",
    "types": (HERE / "types.sql").read_text(),
    "no rows": "SELECT * FROM tpch.orders WHERE o_orderkey < 0",
}

# What a reader is known not to do, in its own words or in ours.
KNOWN: dict[tuple[str, str], str] = {}


def read_pyarrow(stream: bytes) -> pyarrow.Table:
    return pyarrow.ipc.open_stream(stream).read_all()


def read_polars(stream: bytes) -> pyarrow.Table:
    return polars.read_ipc_stream(io.BytesIO(stream)).to_arrow()


def read_duckdb(stream: bytes) -> pyarrow.Table:
    reader = pyarrow.ipc.open_stream(stream)
    result = duckdb.connect().from_arrow(reader).arrow()
    return result if isinstance(result, pyarrow.Table) else result.read_all()


def read_nanoarrow(stream: bytes) -> pyarrow.Table:
    return pyarrow.RecordBatchReader.from_stream(nanoarrow.ArrayStream.from_readable(io.BytesIO(stream))).read_all()


IN_PROCESS = {
    f"pyarrow {pyarrow.__version__}": read_pyarrow,
    f"polars {polars.__version__}": read_polars,
    f"DuckDB {duckdb.__version__} (arrow scan)": read_duckdb,
    f"nanoarrow {nanoarrow.__version__}": read_nanoarrow,
}


def programs() -> dict[str, list[str]]:
    """Readers that are programs: bytes in, a JSON array a row out."""
    found = {}
    script = WORK / "js" / "read.mjs"
    if shutil.which("node") and script.exists():
        manifest = json.loads((WORK / "js" / "node_modules" / "apache-arrow" / "package.json").read_text())
        found[f"arrow-js {manifest['version']}"] = ["node", "--max-old-space-size=4096", str(script)]
    if (WORK / "arrow-go-reader").exists():
        version = subprocess.run([WORK / "arrow-go-reader", "--version"], capture_output=True, text=True, check=True)
        found[f"arrow-go {version.stdout.strip()}"] = [str(WORK / "arrow-go-reader")]
    sdk = BINARIES / "sdk-reader"
    found["sluice-client (Rust SDK)"] = [str(sdk)]
    return found


def reference(name: str, sql: str, folder: str) -> pyarrow.Table:
    """The engine's own answer, by a program that has no gateway in it."""
    path = os.path.join(folder, f"{name}.arrow")
    command = [str(BINARIES / "reference"), "--scale", str(SCALE), "--out", path]
    subprocess.run(command, input=sql, text=True, check=True)
    with pyarrow.OSFile(path) as file:
        return pyarrow.ipc.open_file(file).read_all()


def plain(table: pyarrow.Table) -> pyarrow.Table:
    """With plain text and values instead of views and dictionaries, and one chunk a column."""

    def of(data_type: pyarrow.DataType) -> pyarrow.DataType:
        if pyarrow.types.is_dictionary(data_type):
            return of(data_type.value_type)
        if pyarrow.types.is_string_view(data_type) or pyarrow.types.is_large_string(data_type):
            return pyarrow.string()
        if pyarrow.types.is_binary_view(data_type) or pyarrow.types.is_large_binary(data_type):
            return pyarrow.binary()
        if pyarrow.types.is_list(data_type) or pyarrow.types.is_large_list(data_type):
            return pyarrow.list_(of(data_type.value_type))
        if pyarrow.types.is_struct(data_type):
            return pyarrow.struct([(field.name, of(field.type)) for field in data_type])
        return data_type

    columns = [column.cast(of(column.type)).combine_chunks() for column in table.columns]
    return pyarrow.table(columns, names=table.column_names)


def compare(found: pyarrow.Table, expected: pyarrow.Table) -> str:
    """What differs first; empty when nothing does."""
    if found.column_names != expected.column_names:
        return f"columns {found.column_names}"
    if found.num_rows != expected.num_rows:
        return f"{found.num_rows} rows instead of {expected.num_rows}"
    for name, ours, theirs in zip(expected.column_names, expected.columns, found.columns):
        if ours.type != theirs.type:
            # A reader has types of its own: they must hold every value.
            theirs = theirs.cast(ours.type)
        if not ours.equals(theirs):
            return f"column {name} differs"
    return ""


def cell(value, data_type: pyarrow.DataType):
    """A value as the programs print it: numbers as text, so that none is rounded on its way."""
    if value is None:
        return None
    if pyarrow.types.is_boolean(data_type) or pyarrow.types.is_string(data_type):
        return value
    if pyarrow.types.is_binary(data_type):
        return value.hex()
    if pyarrow.types.is_floating(data_type):
        return struct.pack(">d", value).hex()
    if pyarrow.types.is_list(data_type):
        return [cell(item, data_type.value_type) for item in value]
    if pyarrow.types.is_struct(data_type):
        return [cell(value[field.name], field.type) for field in data_type]
    return str(value)


def cells(table: pyarrow.Table) -> list[list]:
    columns = []
    for column in table.columns:
        data_type = column.type
        if pyarrow.types.is_decimal(data_type):
            # The unscaled number, which is what every reader has in its hands.
            scale = data_type.scale
            values = [None if v is None else str(int(v.scaleb(scale))) for v in column.to_pylist()]
        elif pyarrow.types.is_date32(data_type):
            values = [cell(v, pyarrow.int32()) for v in column.cast(pyarrow.int32()).to_pylist()]
        elif pyarrow.types.is_timestamp(data_type):
            values = [cell(v, pyarrow.int64()) for v in column.cast(pyarrow.int64()).to_pylist()]
        else:
            values = [cell(v, data_type) for v in column.to_pylist()]
        columns.append(values)
    return [list(row) for row in zip(*columns)]


def run_program(command: list[str], stream: bytes) -> list[list]:
    done = subprocess.run(command, input=stream, capture_output=True)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(next((line for line in lines if "rror" in line), lines[-1]))
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare_cells(found: list[list], expected: list[list]) -> str:
    if len(found) != len(expected):
        return f"{len(found)} rows instead of {len(expected)}"
    for number, (ours, theirs) in enumerate(zip(expected, found)):
        if ours != theirs:
            at = next((i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), len(ours))
            return f"row {number}, column {at}: {theirs[at:at + 1]} instead of {ours[at:at + 1]}"
    return ""


def outcome(read, compare_with) -> str:
    try:
        return compare_with(read())
    except Exception as error:  # noqa: BLE001: whatever a reader throws is its answer
        return (str(error).strip() or type(error).__name__).splitlines()[0][:160]


def text_forms(client: Client, expected: dict[str, pyarrow.Table], certificate: str) -> list[list[str]]:
    """curl, which reads JSON, NDJSON and CSV."""
    version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    rows = []
    for media in ("application/json", "application/x-ndjson", "text/csv"):
        sql = "SELECT l_orderkey, l_comment, l_extendedprice, l_shipdate FROM tpch.lineitem ORDER BY l_orderkey, l_linenumber"
        command = ["curl", "--silent", "--show-error", "--fail", "--cacert", certificate, "--user", f"{USER}:{PASSWORD}"]
        command += ["--header", f"Accept: {media}", "--json", json.dumps({"statement": sql})]
        done = subprocess.run([*command, f"https://{client.address}/api/v1/query"], capture_output=True)
        problem = done.stderr.decode() if done.returncode else text_differs(media, done.stdout.decode(), expected["lineitem"])
        rows.append([f"curl {version}, {media}", "✓" if not problem else f"✗ {problem}", "—", "—"])
    return rows


def text_differs(media: str, body: str, lineitem: pyarrow.Table) -> str:
    columns = ["l_orderkey", "l_comment", "l_extendedprice", "l_shipdate"]
    wanted = [[str(value) for value in row.values()] for row in lineitem.select(columns).to_pylist()]
    if media == "text/csv":
        head, *found = csv.reader(io.StringIO(body))
        if head != columns:
            return f"head {head}"
    else:
        rows = json.loads(body, parse_float=str) if media == "application/json" else [
            json.loads(line, parse_float=str) for line in body.splitlines()
        ]
        if isinstance(rows, dict):
            rows = rows["rows"]
        found = [[str(v) for v in (row.values() if isinstance(row, dict) else row)] for row in rows]
    if len(found) != len(wanted):
        return f"{len(found)} rows instead of {len(wanted)}"
    wrong = next((i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]), None)
    return "" if wrong is None else f"row {wrong}: {found[wrong]} instead of {wanted[wrong]}"


def main() -> None:
    started = time.monotonic()
    problems, rows, sizes = [], [], {}
    with tempfile.TemporaryDirectory() as folder, Gateway(scale=SCALE) as gateway:
        client = gateway.client()
        expected = {name: plain(reference(name.replace(" ", "-"), sql, folder)) for name, sql in QUERIES.items()}
        expected_cells = {name: cells(table) for name, table in expected.items()}
        streams = {codec: {name: client.query(sql, codec) for name, sql in QUERIES.items()} for codec in CODECS}
        sizes = {codec: {name: len(stream) for name, stream in by_name.items()} for codec, by_name in streams.items()}

        def tell(reader: str, codec: str, results: dict[str, str]) -> str:
            wrong = "; ".join(f"{name}: {problem}" for name, problem in results.items() if problem)
            known = next((KNOWN[key] for key in KNOWN if reader.startswith(key[0]) and key[1] == codec), None)
            if bool(wrong) != bool(known):
                problems.append(f"{reader} with {codec}: {wrong or f'reads it, although it is known for: {known}'}")
            return "✓" if not wrong else f"✗ {known or wrong}"

        for reader, read in IN_PROCESS.items():
            row = [reader]
            for codec in CODECS:
                results = {
                    name: outcome(lambda: plain(read(stream)), lambda found: compare(found, expected[name]))
                    for name, stream in streams[codec].items()
                }
                row.append(tell(reader, codec, results))
            rows.append(row)
        for reader, command in programs().items():
            row = [reader]
            for codec in CODECS:
                results = {}
                for name, stream in streams[codec].items():
                    if reader.startswith("sluice-client"):
                        arguments = [gateway.address, gateway.certificate, USER, PASSWORD, codec, QUERIES[name]]
                        read = lambda: run_program([*command, *arguments], b"")  # noqa: E731
                    else:
                        read = lambda: run_program(command, stream)  # noqa: E731
                    results[name] = outcome(read, lambda found: compare_cells(found, expected_cells[name]))
                row.append(tell(reader, codec, results))
            rows.append(row)
        texts = text_forms(client, expected, gateway.certificate)
        problems += [f"{row[0]}: {row[1]}" for row in texts if row[1] != "✓"]
        rows += texts

    counts = ", ".join(f"{name} {table.num_rows} rows × {table.num_columns}" for name, table in expected.items())
    print(f"Every value compared with the engine's own answer: {counts}.\n")
    print(table(["reader", *CODECS], rows))
    print()
    print(table(["bytes", *CODECS], [[name, *[str(sizes[codec][name]) for codec in CODECS]] for name in QUERIES]))
    if sizes["zstd"]["lineitem"] > 0.3 * sizes["none"]["lineitem"]:
        problems.append("zstd needs more than 30 % of the bytes of lineitem")
    print(f"\n{time.monotonic() - started:.1f} s")
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
