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


def main() -> None:
    examples = "200" if "--full" in sys.argv else "25"
    with Gateway(scale=0.01) as gateway, tempfile.TemporaryDirectory() as folder:
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
        command += ["--max-examples", examples, "--seed", "1", "--phases", "examples,coverage,fuzzing"]
        command += ["--request-timeout", "20", "--suppress-health-check", "all", "--generation-database", "none"]
        # Bounded in time as well: examples of slow operations are not worth more.
        command += ["--max-time", "900" if "--full" in sys.argv else "180"]
        done = subprocess.run(command, cwd=folder)
        if gateway.process.poll() is not None:
            sys.exit("the gateway ended")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
