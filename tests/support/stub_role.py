"""A stand-in for a role process: ``python stub_role.py ROLE``. Gateway and vectors answer HTTP as the real ones do."""

import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


def main(role: str) -> None:
    behaviour = os.environ.get(f"STUB_{role.upper()}", "")
    sys.stderr.write(f"{role} starts\n")
    sys.stderr.flush()
    if behaviour == "broken":
        sys.exit("cannot work like this")
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if role in ("gateway", "vectors") and behaviour != "mute":
        prefix = "PREFOLD_VECTORS" if role == "vectors" else "PREFOLD"
        address = (os.environ[f"{prefix}_HOST"], int(os.environ[f"{prefix}_PORT"]))
        server = ThreadingHTTPServer(address, _Ready)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
