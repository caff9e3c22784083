"""A server of tokens for tests and benchmarks: what it does badly, `--how` says."""

import argparse
import json
import os
import signal
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("--prefill", type=float, default=0.003)
parser.add_argument("--decode", type=float, default=0.001)
parser.add_argument("--slower", choices=("prefill", "decode", ""), default="")
parser.add_argument("--tokens", type=int, default=8)
parser.add_argument("--how", default="well")
parser.add_argument("--log", default="")
options = parser.parse_args()
SLOWER_S = 0.0
if options.slower:
    vars(options)[options.slower] += SLOWER_S


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if options.how == "no health" else 200)
        self.end_headers()

    def do_POST(self) -> None:
        began = time.monotonic()
        self.rfile.read(int(self.headers["Content-Length"]))
        if options.how == "500":
            self.send_error(500, "Out of cache")
            return
        self.send_response(200)
        json_answer = options.how == "json"
        self.send_header("Content-Type", "application/json" if json_answer else "text/event-stream")
        self.end_headers()
        self.say({"delta": {"role": "assistant", "content": ""}})
        time.sleep(options.prefill)
        for number in range(0 if options.how == "no tokens" else options.tokens):
            if number:
                time.sleep(options.decode)
            self.say({"delta": {"content": f" {number}"}})
            if number == 3:
                self.misbehave()
        self.say({"delta": {}, "finish_reason": "length"})
        if options.how != "cut off":
            self.write("data: [DONE]\n\n")
        if options.log:
            with Path(options.log).open("a") as file:
                file.write(json.dumps([str(Path.cwd()), began, time.monotonic()]) + "\n")

    def misbehave(self) -> None:
        if options.how == "dies":
            print("dying of 4 tokens", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        elif options.how == "malformed":
            self.write("<p>502 Bad Gateway</p>\n\n")
        elif options.how == "stalls":
            time.sleep(600)
        elif options.how == "half":
            self.write('data: {"choices": [{"del\n\n')
        elif options.how == "error":
            self.write('data: {"error": {"message": "no blocks left"}}\n\n')

    def say(self, choice: dict) -> None:
        self.write(f"data: {json.dumps({'choices': [choice]})}\n\n")

    def write(self, text: str) -> None:
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer.request_queue_size = 256  # as of a real server: many clients connect at once
ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()
