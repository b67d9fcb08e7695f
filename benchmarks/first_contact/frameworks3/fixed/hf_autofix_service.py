"""Log autofix: a server that completes a window of event codes by the next 16.

Requests come from a queue, one answer each; here a thread plays the clients.
"""
import logging
import os
import queue
import statistics
import threading
import time
from concurrent.futures import Future

import numpy as np
import torch
from transformers import GenerationConfig, MistralConfig, MistralForCausalLM

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("autofix")

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WINDOW, ANSWER, CODES = (96 if SMALL else 2048), 16, 4096


class AutofixService:
    def __init__(self):
        torch.manual_seed(11)
        config = MistralConfig(
            vocab_size=CODES,
            hidden_size=256 if SMALL else 1536,
            intermediate_size=512 if SMALL else 4096,
            num_hidden_layers=3 if SMALL else 8,
            num_attention_heads=4 if SMALL else 16,
            num_key_value_heads=2 if SMALL else 4,
            max_position_embeddings=WINDOW + ANSWER,
            sliding_window=None,
            pad_token_id=0,
        )
        model = MistralForCausalLM._from_config(
            config,
            dtype=torch.bfloat16 if DEVICE.type == "cuda" else torch.float32,
            attn_implementation="sdpa",
        )
        self.model = model.eval().to(DEVICE)
        self.generation = GenerationConfig(
            max_new_tokens=ANSWER,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            use_cache=True,
            cache_implementation="static" if DEVICE.type == "cuda" else None,
        )
        self.inbox = queue.Queue(maxsize=64)
        self.latencies = []

    def submit(self, codes):
        future = Future()
        self.inbox.put((codes, future))
        return future

    def answer(self, codes):
        ids = torch.from_numpy(codes)[None].to(DEVICE)
        out = self.model.generate(
            ids, attention_mask=torch.ones_like(ids), generation_config=self.generation
        )
        return out[0, WINDOW:].tolist()

    def serve(self):
        while True:
            item = self.inbox.get()
            if item is None:
                return
            codes, future = item
            begin = time.perf_counter()
            try:
                future.set_result(self.answer(codes))
            except Exception as error:  # the client gets it
                future.set_exception(error)
            self.latencies.append(time.perf_counter() - begin)
            if len(self.latencies) % 50 == 0:
                median = statistics.median(self.latencies[-50:])
                log.info("%d answers, median %.1f ms", len(self.latencies), 1e3 * median)


def clients(service, count, answers):
    rng = np.random.default_rng(5)
    for _ in range(count):
        codes = (rng.integers(1, CODES) + np.arange(WINDOW) * rng.integers(1, 7)) % (CODES - 1) + 1
        answers.append(service.submit(codes.astype(np.int64)))
    service.inbox.put(None)


def main():
    service, answers = AutofixService(), []
    sender = threading.Thread(target=clients, args=(service, 100 if SMALL else 300, answers))
    sender.start()
    service.serve()
    sender.join()
    checksum = sum(sum(a.result()) for a in answers)
    log.info("%d requests, checksum %d", len(answers), checksum)


if __name__ == "__main__":
    main()
