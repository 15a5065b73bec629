"""schemathesis against the gateway's own OpenAPI document: whatever is sent, answers are those that
the document announces, and never a fault of the server."""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

from gateway import PASSWORD, USER, WORK, Gateway

# Examples leave sessions and results behind, which would be kept for half an hour.
LIMITS = """
[limits]
sessions = 20000
sessions_per_user = 20000
operations = 20000
operations_per_user = 20000
result_idle_timeout = "2s"
"""


def main() -> None:
    examples = "200" if "--full" in sys.argv else "25"
    with Gateway(scale=0.01, extra=LIMITS) as gateway, tempfile.TemporaryDirectory() as folder:
        client = gateway.client()
        request = urllib.request.Request(f"https://{gateway.address}/api/openapi.json")
        request.add_header("Authorization", client.authorization)
        with urllib.request.urlopen(request, context=client.context) as answer:
            document = answer.read()
        file = pathlib.Path(folder) / "openapi.json"
        file.write_bytes(document)
        print(f"{len(json.loads(document)['paths'])} paths")
        credentials = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        command = [str(WORK / "venv" / "bin" / "schemathesis"), "run", str(file), "--url", f"https://{gateway.address}"]
        command += ["--header", f"Authorization: Basic {credentials}", "--tls-verify", gateway.certificate]
        command += ["--max-examples", examples, "--seed", "1", "--phases", "examples,coverage,fuzzing,stateful"]
        # Any text is a statement to the schema, and few texts are SQL. Wrong credentials by the
        # hundred are slowed down, which is no 401; tests/service.rs looks at those.
        command += ["--exclude-checks", "positive_data_acceptance,ignored_auth"]
        command += ["--request-timeout", "20", "--suppress-health-check", "all", "--generation-database", "none"]
        # Bounded in time as well: examples of slow operations are not worth more.
        command += ["--max-time", "900" if "--full" in sys.argv else "120"]
        done = subprocess.run(command, cwd=folder)
        if gateway.process.poll() is not None:
            sys.exit("the gateway ended")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
