"""The child's side of `watch`: loads a target once and answers requests until its parent is gone."""

import os
import pickle
import queue
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from nceref.errors import NcerefError
from nceref.losses import get_loss
from nceref.verification import loading
from nceref.verification.located import folder_of
from nceref.verification.running import outcome, replied


@dataclass(frozen=True, eq=False)
class Order:
    """What a child is started for: arguments of `loading.target`, and the device."""

    text: str
    loss: str
    options: Mapping[str, Any]
    device: str


def main() -> None:
    """Answer the order, then each request, on what was the standard output when the process began."""
    requests, replies = _own_streams()
    inbox: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    order = inbox.get()
    sys.argv[1:] = []
    # Behind everything else, for what the target imports when it is called.
    sys.path.append(str(folder_of(order.text)))
    try:
        target = loading.target(order.text, get_loss(order.loss).declaration, **order.options)
    except NcerefError as error:
        _send(replies, error)
        return
    _send(replies, target.described())
    while True:
        asked, twice, answer = inbox.get()
        try:
            found: Any = outcome(target, asked, twice) if answer is None else replied(target, asked, answer)
        except NcerefError as error:
            found = error
        _send(replies, found)


def _own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to the parent; what the target knows as standard input and output leads nowhere."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return requests, replies


def _listen(stream: IO[bytes], inbox: "queue.Queue[Any]") -> None:
    """Hand on what comes, also while the target is busy: it ends with its parent, whatever it is doing."""
    try:
        while True:
            inbox.put(pickle.load(stream))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)


def _send(stream: IO[bytes], message: Any) -> None:
    pickle.dump(message, stream)
    stream.flush()
