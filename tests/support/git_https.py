"""Serves git repositories over https, as a forge does, for the tests of git sources.

The real work is done by git's own `http-backend`. This adds TLS, a token, and a log of one line a request:
the method, the path with its query, the status, and `token` or `anonymous`. The token is read again for each request.

The first part of a path may ask for a fault instead: `/status-503/…` is answered with that status, `/login/…` with the
page of somebody who wants to be logged in to, and `/moved/…` with a redirect to the address in `--moved-to`.
Of what is fetched from `/cut/…` only the first half is sent, and `/stall/…` goes silent there.
"""

import argparse
import base64
import http.server
import os
import ssl
import subprocess
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--root", required=True, help="the folder with the bare repositories")
parser.add_argument("--certificate", help="the server's certificate, and those that lead to its authority")
parser.add_argument("--key", help="the private key of the certificate; without both it is http")
parser.add_argument("--token-file", help="the file with the token that requests must bring; none if anybody may read")
parser.add_argument("--log", required=True)
parser.add_argument("--moved-to", default="")
options = parser.parse_args()

log_lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fault = None

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        first, _, rest = path.lstrip("/").partition("/")
        if first.startswith("status-"):
            self.answer(int(first.removeprefix("status-")), {"Content-Type": "text/plain"}, b"as you wish\n")
        elif first == "login":
            self.answer(200, {"Content-Type": "text/html"}, b"<form>Who are you?</form>\n")
        elif first == "moved":
            self.answer(302, {"Location": f"{options.moved_to}/{rest}?{query}"}, b"")
        elif options.token_file and not self.has_token():
            self.answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"who are you?\n")
        else:
            self.fault = first if first in ("cut", "stall") and self.command == "POST" else None
            self.run_backend(path.removeprefix("/cut").removeprefix("/stall"), query, body)

    do_GET = do_POST = handle_any

    def has_token(self):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Basic":
            return False
        _, _, password = base64.b64decode(value).decode().partition(":")
        with open(options.token_file, encoding="utf-8") as file:
            return password == file.read().strip()

    def run_backend(self, path, query, body):
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_PROJECT_ROOT": options.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        backend = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = backend.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(headers.pop("Status", "200" if headers else "500").split()[0])
        self.answer(status, headers, content)

    def answer(self, status, headers, content):
        # The log first: who sees the answer may look into it.
        sender = "token" if "Authorization" in self.headers else "anonymous"
        with log_lock, open(options.log, "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {status} {sender}\n")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        # A short answer only says where history is cut; the commit comes after it.
        if self.fault and len(content) > 200:
            self.wfile.write(content[: len(content) // 2])
            time.sleep(3600 if self.fault == "stall" else 0)
            self.close_connection = True
        else:
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
server.daemon_threads = True
if options.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    # The handshake takes place in the thread of the request, so that nobody can hold up the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
