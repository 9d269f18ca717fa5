"""The child's side of a target in a process of its own: loads it once and answers until its parent is gone."""

import os
import pickle
import queue
import sys
import threading
import traceback
from typing import IO, Any

from nceref.errors import NcerefError
from nceref.verification.targets import load
from nceref.verification.targets.attempt import attempt, attempt_answer
from nceref.verification.targets.find import folder_of
from nceref.verification.targets.target import LoadRequest


def main() -> None:
    """Answer each request to load and each call, on what was the standard output when the process began."""
    # Before anything is imported that may print.
    requests, replies = _own_streams()
    inbox: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    # The parent's import path is no argument of the target.
    sys.argv[1:] = []
    target: Any = None
    while True:
        message = inbox.get()
        try:
            if isinstance(message, LoadRequest):
                target = _loaded(message)
                reply: Any = target.described()
            else:
                request, twice, answer = message
                reply = attempt(target, request, twice) if answer is None else attempt_answer(target, request, answer)
        except NcerefError as error:
            reply = error
        _send(replies, reply)


def _loaded(request: LoadRequest) -> Any:
    """The target of a request; a later one for the same text finds its packages imported already."""
    folder = str(folder_of(request.text))
    if folder not in sys.path:
        # Behind everything else, for what the target imports when it is called.
        sys.path.append(folder)
    return load.resolve_target(request.text, request.loss, **request.options)


def _own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to the parent; what the target has as standard input and output leads nowhere."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Descriptors and not `sys.stdout`: compiled code prints to these as well.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return requests, replies


def _listen(stream: IO[bytes], inbox: "queue.Queue[Any]") -> None:
    """Hand on what comes, also while the target is busy: it ends with its parent, whatever it is doing."""
    try:
        while True:
            inbox.put(pickle.load(stream))
    except EOFError:
        os._exit(0)
    except Exception:
        # Its last words, for the parent to show: what was sent cannot be read here.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _send(stream: IO[bytes], message: Any) -> None:
    pickle.dump(message, stream)
    stream.flush()
