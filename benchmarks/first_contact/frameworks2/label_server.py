"""An HTTP service that labels messages with a transformers classifier; a client thread sends requests."""
import json
import os
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification

SMALL = os.environ.get("SMALL") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
REQUESTS = 200 if SMALL else 400
LENGTH = 48 if SMALL else 256

config = DistilBertConfig(
    vocab_size=1000 if SMALL else 30522,
    dim=64 if SMALL else 768,
    hidden_dim=128 if SMALL else 3072,
    n_layers=2 if SMALL else 6,
    n_heads=4 if SMALL else 12,
    num_labels=4,
)
torch.manual_seed(0)
MODEL = DistilBertForSequenceClassification._from_config(config, attn_implementation="eager")  # expert: attn_implementation
MODEL.to(DEVICE).eval()


def encode(text):
    ids = [hash(word) % config.vocab_size for word in text.split()][:LENGTH]
    return ids + [0] * (LENGTH - len(ids))


@torch.no_grad()
def label(texts):
    ids = torch.tensor([encode(text) for text in texts], device=DEVICE)
    logits = MODEL(input_ids=ids, attention_mask=(ids != 0).long()).logits
    return logits.softmax(-1).tolist()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        scores = label(json.loads(body)["texts"])
        answer = json.dumps({"scores": scores}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def client(port, server):
    for number in range(REQUESTS):
        texts = [" ".join(f"w{(number * 31 + i * j) % 997}" for j in range(40)) for i in range(8)]
        data = json.dumps({"texts": texts}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/label", data, timeout=60) as answer:
            json.loads(answer.read())
    server.shutdown()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=client, args=(server.server_address[1], server), daemon=True).start()
    server.serve_forever()
    print("served", REQUESTS)
