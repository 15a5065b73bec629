"""A gateway in a process of its own, and a client that hides nothing: what the scripts beside this
one share. Owns the process, its configuration and its users."""

import base64
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = HERE.parent / ".work"
DATA = WORK / "data" / "sf1"
BINARIES = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"

USER, PASSWORD = "ada", "correct horse battery staple"
ARROW = "application/vnd.apache.arrow.stream"
CODECS = ["none", "lz4", "zstd"]


def accept(codec: str) -> str:
    """What a client sends that reads `codec` and nothing else."""
    return ARROW if codec == "none" else f'{ARROW}; codecs="{codec}"'


class Process:
    """A program that is stopped with the block it is used in."""

    def __init__(self, command: list[str], **arguments):
        self.process = subprocess.Popen(command, **arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """Ends it as a crash does."""
        self.process.kill()
        self.process.wait()


class Gateway(Process):
    """`sluice serve` on loopback, with a user, a certificate and tables."""

    def __init__(self, tables: dict[str, str] | None = None, scale: float | None = None, extra: str = ""):
        self.folder = tempfile.mkdtemp(prefix="sluice-")
        folder = pathlib.Path(self.folder)
        self.port, self.admin = free_port(), free_port()
        self.certificate = str(folder / "cert.pem")
        make_certificate(self.certificate, str(folder / "key.pem"))
        hashed = subprocess.run(
            [BINARIES / "sluice", "hash-password"], input=PASSWORD, capture_output=True, text=True, check=True
        ).stdout.strip()
        (folder / "users.toml").write_text(f"{USER} = {json.dumps(hashed)}\n")
        config = f"""
[server]
listen = "127.0.0.1:{self.port}"
[admin]
listen = "127.0.0.1:{self.admin}"
[tls]
certificate = "cert.pem"
key = "key.pem"
[auth]
method = "file"
users_file = "users.toml"
[engines.embedded]
kind = "embedded"
default = true
"""
        if tables:
            lines = [f"{json.dumps(name)} = {json.dumps(path)}" for name, path in tables.items()]
            config += "[engines.embedded.tables]\n" + "\n".join(lines) + "\n"
        if scale is not None:
            config += f"[engines.embedded.tpch]\nscale_factor = {scale}\n"
        (folder / "gateway.toml").write_text(config + extra)
        self.log = open(folder / "log", "w")
        super().__init__(
            [str(BINARIES / "sluice"), "serve", "--config", str(folder / "gateway.toml")],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        self.address = f"localhost:{self.port}"
        self.await_ready()

    def await_ready(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"the gateway did not start:\n{pathlib.Path(self.log.name).read_text()}")

    def __exit__(self, *rest):
        super().__exit__(*rest)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self) -> "Client":
        return Client(self.address, self.certificate)

    def peak_memory(self) -> int:
        """The most bytes that were resident so far."""
        return status_of(self.pid, "VmHWM")

    def memory(self) -> int:
        """Bytes that are resident now."""
        return status_of(self.pid, "VmRSS")


class Client:
    """Asks with one connection a request, over HTTP/1.1, by Python's own client."""

    def __init__(self, address: str, certificate: str):
        self.address = address
        self.certificate = certificate
        self.context = ssl.create_default_context(cafile=certificate)
        self.authorization = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def open(self, sql: str, codec: str = "none", **more) -> http.client.HTTPResponse:
        """The answer to a query in one call, with its body yet to be read."""
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPSConnection(host, int(port), context=self.context, timeout=600)
        configs = {"arrow.compression.codec": codec} | more.pop("configs", {})
        body = json.dumps({"statement": sql, "configs": configs} | more)
        headers = {
            "Authorization": self.authorization,
            "Content-Type": "application/json",
            "Accept": more.pop("accept", accept(codec)),
        }
        connection.connect()
        asked = time.monotonic()
        connection.request("POST", "/api/v1/query", body, headers)
        answer = connection.getresponse()
        # The answer holds its connection from here on, and the moment of the request.
        answer.connection, answer.asked = connection, asked
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {answer.read().decode()}")
        return answer

    def query(self, sql: str, codec: str = "none", **more) -> bytes:
        """The whole body."""
        with self.open(sql, codec, **more) as answer:
            return answer.read()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificate(certificate: str, key: str) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    # OpenSSL makes an authority unless told otherwise, and webpki takes none for a server.
    names = ["-addext", "basicConstraints=critical,CA:FALSE"]
    names += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(command.split() + names, check=True, capture_output=True)


def status_of(pid: int, field: str) -> int:
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} of process {pid}")


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
