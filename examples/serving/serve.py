"""Serves the transformer: POST {"prompt": "…", "max_tokens": 16} is answered token by token."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from model import VOCABULARY, Transformer

torch.manual_seed(0)
torch.set_num_threads(1)
model = Transformer().eval()


class Handler(BaseHTTPRequestHandler):
    """Streams server-sent events, as OpenAI's completions do."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = [hash_of(word) for word in asked["prompt"].split()]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for token in model.generate(prompt, asked["max_tokens"]):
            event = json.dumps({"choices": [{"text": f" {token}"}]})
            self.wfile.write(f"data: {event}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def hash_of(word: str) -> int:
    """Return a word's token."""
    return sum(word.encode()) % VOCABULARY


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
