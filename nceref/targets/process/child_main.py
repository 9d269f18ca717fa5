"""The child's side of a target in a process of its own: loads it once and answers until its parent is gone."""

import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from nceref.cases.records import Outcome
from nceref.errors import NcerefError, TargetError
from nceref.registry import folder_of
from nceref.targets import load, protocol
from nceref.targets.attempt import attempt, attempt_answer
from nceref.targets.frameworks import jax
from nceref.targets.process import messages
from nceref.targets.process.messages import Message
from nceref.targets.process.module_contents import ModuleRequest, contents_message, contents_of


def main() -> None:
    """Answer each request to load and each call, on what was the standard output when the process began."""
    # Before anything is imported that may print.
    requests, replies = _own_streams()
    inbox: queue.Queue[Message] = queue.Queue()
    threading.Thread(target=_listen, args=(requests, replies, inbox), daemon=True).start()
    # The parent's import path is no argument of the target.
    sys.argv[1:] = []
    try:
        _serve(inbox, replies)
    except BaseException:
        # A thread of the target may keep a process that has failed.
        _fail()


def _serve(inbox: "queue.Queue[Message]", replies: int) -> None:
    own, answers = os.getpid(), Answers()
    while True:
        kind, content = inbox.get()
        reply = _reply(answers, kind, content)
        # A copy that the target has made of this process has come back from the call as well.
        if os.getpid() != own:
            os._exit(0)
        _write(replies, messages.packed(content["id"], reply))


def _reply(answers: "Answers", kind: str, content: Mapping[str, Any]) -> Message:
    try:
        return answers(kind, content)
    # The user's Ctrl-C does not reach this process: the target has raised it.
    except KeyboardInterrupt:
        if kind != "run":
            return messages.error_message(TargetError("loading the target raises KeyboardInterrupt"))
        return messages.outcome_message(Outcome(trouble="raises", sentence="raises KeyboardInterrupt"))


def _fail() -> NoReturn:
    """Leave the last words, for the parent to show."""
    try:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


class Answers:
    """The replies to requests, with the target that was loaded last."""

    def __init__(self) -> None:
        self._target: Any = None

    def __call__(self, kind: str, content: Mapping[str, Any]) -> Message:
        """The reply to a request; Ctrl-C passes through."""
        answers: dict[str, Callable[[Mapping[str, Any]], Message]]
        answers = {"load": self._loaded, "list": self._listed, "run": self._called}
        try:
            return answers[kind](content)
        except NcerefError as error:
            return messages.error_message(error)

    def _loaded(self, content: Mapping[str, Any]) -> Message:
        """The target of a request; a later one for the same text finds its packages imported already."""
        request = messages.load_request(content)
        _add_to_path(request.text)
        if "store" in request.group:
            from nceref.targets.process import rank_group

            rank_group.join(request.group)
        place = jax.place(request.group) if "axis" in request.group else request.group
        place = {name: x for name, x in place.items() if name in ("rank", "world_size")}
        self._target = load.resolve_target(request.text, request.loss, place=place, **request.options)
        return messages.target_message(self._target)

    def _listed(self, content: Mapping[str, Any]) -> Message:
        """The contents of a module."""
        request = ModuleRequest(content["module"], content["package"])
        _add_to_path(request.text)
        return contents_message(contents_of(request))

    def _called(self, content: Mapping[str, Any]) -> Message:
        request, twice, known = messages.run_request(content)
        if known is None:
            return messages.outcome_message(attempt(self._target, request, twice))
        return messages.outcome_message(attempt_answer(self._target, request, known))


def _add_to_path(text: str) -> None:
    folder = str(folder_of(text))
    if folder not in sys.path:
        # Behind everything else, for what the target imports when it is called.
        sys.path.append(folder)


def _own_streams() -> tuple[int, int]:
    """The pipes to the parent; what the target has as standard input and output leads nowhere."""
    requests, replies = os.dup(0), os.dup(1)
    # Descriptors and not `sys.stdout`: compiled code prints to these as well.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return requests, replies


def _listen(requests: int, replies: int, inbox: "queue.Queue[Message]") -> None:
    """Hand on what comes, also while the target is busy: it ends with its parent, whatever it is doing."""
    try:
        with open(requests, "rb", closefd=False) as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                kind, content = protocol.record(protocol.received(line), messages.REQUESTS)
                if kind == "where":
                    # In place of the answer that the target does not give: this process is ended after that.
                    _write(replies, messages.packed(content["id"], messages.where_message(_where())))
                else:
                    inbox.put((kind, content))
        os._exit(0)
    except OSError:
        os._exit(messages.WITHOUT_PIPE)
    except Exception:
        # What was sent cannot be read here.
        _fail()


def _where() -> str:
    from nceref.targets.process.rank_group import waiting_in

    return waiting_in(sys._current_frames().get(threading.main_thread().ident or 0))


def _write(replies: int, content: bytes) -> None:
    rest = memoryview(content)
    try:
        while rest:
            rest = rest[os.write(replies, rest) :]
    # The target has closed it, and with it, most likely, where the reason would be written.
    except OSError:
        os._exit(messages.WITHOUT_PIPE)
