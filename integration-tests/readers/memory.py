"""Memory and time to the first row of a scan of 6 million rows: a slow client must cost the gateway
no more than its budget, and a first row no more than the engine takes for it."""

import subprocess
import sys
import threading
import time

import pyarrow.ipc

from gateway import BINARIES, DATA, Client, Gateway, table

MEGABYTE = 1_000_000
RATE = 5 * MEGABYTE
ONE_CLIENT, TWO_CLIENTS = 400 * MEGABYTE, 600 * MEGABYTE
SQL = "SELECT * FROM lineitem"
FIRST_ROW_MORE = 50


def read_slowly(client: Client, codec: str, seconds: float, done: list[int]) -> None:
    """Reads at 5 MB/s until the end, or as long as it is wanted."""
    with client.open(SQL, codec) as body:
        started, count = time.monotonic(), 0
        while time.monotonic() - started < seconds:
            piece = body.read(RATE // 20)
            if not piece:
                break
            count += len(piece)
            ahead = count / RATE - (time.monotonic() - started)
            if ahead > 0:
                time.sleep(ahead)
        done.append(count)


def watch(gateway: Gateway, clients: int, codec: str, seconds: float) -> tuple[list[int], list[int]]:
    """Resident bytes, ten times a second, while so many clients read; and the bytes that each read."""
    done: list[int] = []
    client = gateway.client()
    readers = [threading.Thread(target=read_slowly, args=(client, codec, seconds, done)) for _ in range(clients)]
    for reader in readers:
        reader.start()
    samples = []
    while any(reader.is_alive() for reader in readers):
        samples.append(gateway.memory())
        time.sleep(0.1)
    return samples, done


def flat(samples: list[int]) -> bool:
    """Whether the last third needs no more than the middle one did, by and large."""
    third = len(samples) // 3
    return max(samples[2 * third :]) < 1.25 * max(samples[third : 2 * third]) + 20 * MEGABYTE


def memory(full: bool) -> tuple[list[list[str]], list[str]]:
    rows, problems = [], []
    # Without compression the whole table takes minutes at this speed: all of it in the full run.
    runs = [(1, "zstd", 600.0, ONE_CLIENT), (1, "none", 600.0 if full else 45.0, ONE_CLIENT), (2, "zstd", 600.0, TWO_CLIENTS)]
    runs += [(2, "none", 600.0, TWO_CLIENTS), (2, "lz4", 600.0, TWO_CLIENTS)] if full else []
    for clients, codec, seconds, budget in runs:
        with Gateway({"lineitem": str(DATA / "lineitem.parquet")}) as gateway:
            idle = gateway.memory()
            samples, done = watch(gateway, clients, codec, seconds)
            peak = max(gateway.peak_memory(), *samples)
            name = f"{clients} × 5 MB/s, {codec}"
            if peak >= budget:
                problems.append(f"{name}: {peak / MEGABYTE:.0f} MB at most, {budget / MEGABYTE:.0f} are allowed")
            if not flat(samples):
                problems.append(f"{name}: memory grows over the run")
            read = " + ".join(f"{count / MEGABYTE:.0f}" for count in done)
            figures = [idle, peak, samples[len(samples) // 2], samples[-1]]
            rows.append([name, f"{read} MB in {len(samples) / 10:.0f} s", *[f"{figure / MEGABYTE:.0f} MB" for figure in figures]])
    return rows, problems


def first_row() -> tuple[list[list[str]], list[str]]:
    """Milliseconds from the request on an open connection to the first batch, the best of seven, beside
    what the engine alone takes for it."""
    file = str(DATA / "lineitem.parquet")
    command = [str(BINARIES / "reference"), "--table", f"lineitem={file}", "--first-row"]
    alone = float(subprocess.run(command, input=SQL, capture_output=True, text=True, check=True).stdout)
    rows, problems = [], []
    with Gateway({"lineitem": file}) as gateway:
        client = gateway.client()
        # The first statement of a process pays for more than itself.
        client.query("SELECT 1")
        for codec in ("none", "zstd"):
            best = float("inf")
            for _ in range(7):
                with client.open(SQL, codec) as body:
                    pyarrow.ipc.open_stream(body).read_next_batch()
                    best = min(best, (time.monotonic() - body.asked) * 1000)
            more = best - alone
            rows.append([codec, f"{alone:.0f} ms", f"{best:.0f} ms", f"{more:.0f} ms"])
            # The figure is for the record; a busy machine gets ten times as much.
            if more > 10 * FIRST_ROW_MORE:
                problems.append(f"first row with {codec}: {more:.0f} ms more than the engine alone")
    return rows, problems


def main() -> None:
    rows, problems = memory("--full" in sys.argv)
    print("Resident memory of the gateway's process while clients read 6,001,215 rows of lineitem.\n")
    print(table(["readers", "read", "idle", "peak", "in the middle", "at the end"], rows))
    rows, more = first_row()
    print(f"\nTime from the request to the first batch; {FIRST_ROW_MORE} ms more than the engine alone are allowed.\n")
    print(table(["codec", "engine alone", "through the gateway", "more"], rows))
    for problem in problems + more:
        print(f"problem: {problem}", file=sys.stderr)
    sys.exit(1 if problems + more else 0)


if __name__ == "__main__":
    main()
