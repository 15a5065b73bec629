"""A result that breaks in the middle, seen by each reader: an engine that fails, a link that is cut,
a gateway that is killed. Every reader that can see it must end with an error; curl always does."""

import json
import shutil
import ssl
import subprocess
import sys
import threading
import time

import duckdb
import httpx
import nanoarrow
import polars
import pyarrow
import pyarrow.ipc

import gateway
from gateway import ARROW, BINARIES, WORK, Client, Process, table

FAULTS = ["engine fails", "link is cut", "gateway is killed"]
SCRIPTS = {
    "engine fails": "rows 5000 x 20; sleep 300ms; error Engine",
    "link is cut": "rows 5000 x 40",
    "gateway is killed": "rows 5000 x 20; sleep 2s; rows 5000 x 20",
}


class FaultGateway(Process):
    """The gateway with the scripted engine, and a proxy in front of it that cuts."""

    def __init__(self):
        super().__init__([str(BINARIES / "fault-gateway")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        told = json.loads(self.process.stdout.readline())
        self.address, self.cutting = told["address"], told["cutting"]
        self.certificate = told["certificate"]
        # Client signs in as these.
        gateway.USER, gateway.PASSWORD = told["user"], told["password"]


def request(script: str) -> dict:
    return {"statement": f"SELECT * FROM fault('{script}')", "configs": {"gateway.engine": "fault"}}


def body_of(address: str, certificate: str, script: str):
    asked = request(script)
    return Client(address, certificate).open(asked["statement"], "none", configs=asked["configs"])


def with_pyarrow(address, certificate, script):
    return pyarrow.ipc.open_stream(body_of(address, certificate, script)).read_all().num_rows


def with_polars(address, certificate, script):
    return polars.read_ipc_stream(body_of(address, certificate, script).read()).height


def with_duckdb(address, certificate, script):
    reader = pyarrow.ipc.open_stream(body_of(address, certificate, script))
    return duckdb.connect().from_arrow(reader).aggregate("count(*)").fetchall()[0][0]


def with_nanoarrow(address, certificate, script):
    stream = nanoarrow.ArrayStream.from_readable(body_of(address, certificate, script))
    return sum(len(array) for array in stream)


def with_httpx(address, certificate, script):
    context = ssl.create_default_context(cafile=certificate)
    with httpx.Client(http2=True, http1=False, verify=context, auth=(gateway.USER, gateway.PASSWORD), timeout=60) as client:
        answer = client.post(f"https://{address}/api/v1/query", json=request(script), headers={"Accept": ARROW})
        answer.raise_for_status()
        return pyarrow.ipc.open_stream(answer.content).read_all().num_rows


def by_curl(version: str):
    def run(address, certificate, script):
        command = ["curl", "--silent", "--fail", "--output", "/dev/null", version, "--cacert", certificate]
        command += ["--user", f"{gateway.USER}:{gateway.PASSWORD}", "--header", "Content-Type: application/json"]
        command += ["--header", f"Accept: {ARROW}", "--data", json.dumps(request(script))]
        subprocess.run([*command, f"https://{address}/api/v1/query"], check=True)

    return run


def by_program(command: list[str]):
    """A program that asks over HTTP by itself: address, certificate, user, password, body."""

    def run(address, certificate, script):
        arguments = [address, certificate, gateway.USER, gateway.PASSWORD, json.dumps(request(script))]
        subprocess.run([*command, "--ask", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return run


def readers() -> dict:
    curl = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    found = {
        f"pyarrow {pyarrow.__version__} over HTTP/1.1": with_pyarrow,
        f"polars {polars.__version__} over HTTP/1.1": with_polars,
        f"DuckDB {duckdb.__version__} over HTTP/1.1": with_duckdb,
        f"nanoarrow {nanoarrow.__version__} over HTTP/1.1": with_nanoarrow,
        f"pyarrow {pyarrow.__version__}, httpx {httpx.__version__} over HTTP/2": with_httpx,
        f"curl {curl} over HTTP/1.1": by_curl("--http1.1"),
        f"curl {curl} over HTTP/2": by_curl("--http2"),
    }
    if shutil.which("node") and (WORK / "js" / "read.mjs").exists():
        found["arrow-js over HTTP/1.1"] = by_program(["node", str(WORK / "js" / "read.mjs")])
    if (WORK / "arrow-go-reader").exists():
        found["arrow-go over HTTP/2"] = by_program([str(WORK / "arrow-go-reader")])
    found["sluice-client (Rust SDK)"] = by_program([str(BINARIES / "sdk-reader")])
    return found


def outcome(read, fault: str) -> str:
    """`error` as it should be, or what was taken for a result."""
    with FaultGateway() as faulty:
        whole = read_quietly(read, faulty.address, faulty.certificate, "rows 5000 x 40")
        if whole:
            return f"✗ cannot read a whole result: {whole}"
        address = faulty.cutting if fault == "link is cut" else faulty.address
        if fault == "gateway is killed":
            threading.Timer(1.0, faulty.kill).start()
        return "error" if read_quietly(read, address, faulty.certificate, SCRIPTS[fault]) else "✗ nothing seen"


def read_quietly(read, *arguments) -> str:
    try:
        read(*arguments)
        return ""
    except Exception as error:  # noqa: BLE001: whatever a reader throws is its answer
        return (str(error).strip() or type(error).__name__).splitlines()[0]


def main() -> None:
    started, problems, rows = time.monotonic(), [], []
    for name, read in readers().items():
        outcomes = [outcome(read, fault) for fault in FAULTS]
        rows.append([name, *outcomes])
        problems += [f"{name}, {fault}: {seen}" for fault, seen in zip(FAULTS, outcomes) if seen != "error"]
    print("What each reader makes of a result that breaks in the middle.\n")
    print(table(["reader", *FAULTS], rows))
    print(f"\n{time.monotonic() - started:.1f} s")
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
