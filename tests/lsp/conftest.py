"""A folder with a script that has results, and a client that sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lsp.client import Client, capabilities
from tests.lsp.folder import write_run

#: 40 ms in all; the lines with a number are the ones with results.
TRAIN = """\
import torch


def attend(q, k):
    scores = q @ k  # 20 ms
    return scores.softmax(-1)  # 4 ms


def step(model, x):
    loss = model(x).sum()  # 10 ms
    loss.backward()  # 5.8 ms
    return loss.item()  # 0.2 ms


for _ in range(3):
    step(1, 2)
"""
VSCODE = "vscode-139.1-lc11"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    """``connect(*folders, name=recorded client, …)`` gives an initialized client; all end with the test."""
    clients: list[Client] = []

    def made(*folders: Path, name: str = VSCODE, **options: object) -> Client:
        client = Client(*folders, **{"capabilities": capabilities(name), **options})
        clients.append(client)
        client.initialize()
        return client

    yield made
    for client in clients:
        client.close()


@pytest.fixture
def profiled(script: Path, connect: Callable[..., Client]) -> tuple[Client, str]:
    """A client that has the script open, and its hints."""
    write_run(script.parent, {script: TRAIN})
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    return client, uri
