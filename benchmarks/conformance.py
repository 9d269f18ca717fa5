"""Cost of a test suite of a dozen losses, whose checks read one verification a target.

    python -m benchmarks.conformance [numpy] [torch] [packages] [example] [torch-example]

Half of the functions are right, and half return twice the loss, which has to be explained. CPU seconds are those of
this process and of all that it starts, so that the machine may be busy. Those of packages hold what each of their
processes imports; `importing` is what one import takes. Those of the example are whole commands, on the package of
docs/tutorials/maintainers.md; those of torch-example are `nceref verify` on the same losses in PyTorch, with
one import of torch in them, and `beside` it what is left.
"""

import inspect
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from mutants.score import programs
from nceref.losses import get_loss
from nceref.output.json_text import json_text
from nceref.targets.arguments import expected_names
from nceref.targets.process.child import ChildRunner
from nceref.testing import Target, parametrize_with_checks
from nceref.verification.conformance import verification

LIMITS = {"numpy": 24.0, "torch": 60.0, "packages": 15.0}
"""CPU seconds."""
EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "twelve_losses"
COMMANDS = {
    "init": (["nceref", "init", "twelve_losses", "--out", "-"], 60.0),
    "verify": (["nceref", "verify"], 24.0),
    "pytest": (["pytest", "--nceref", "-q", "-p", "no:cacheprovider"], 24.0),
}
"""Commands on the example, each with its limit in CPU seconds."""
TORCH_EXAMPLE = Path(__file__).with_name("twelve_torch_losses.py")
FORMATS = (("float64",), ("float64", "float32"))
BESIDE = 10.0
"""CPU seconds that the losses in PyTorch may take in one format, beside the import of torch."""
FUNCTIONS = 6
PACKAGES = ("pml-ntxent", "info-nce-pytorch")
TORCH = {
    "nt_xent": "nt_xent", "nt_xent_tuned": "nt_xent", "info_nce": "info_nce", "clip": "clip", "siglip": "siglip",
    "supcon_out": "supcon_out",
}  # fmt: skip


def cpu() -> float:
    """CPU seconds of this process and of all that it has started and that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with twice its value."""

    @wraps(function)
    def twice(*arguments: Any, **named: Any) -> Any:
        return 2 * function(*arguments, **named)

    return twice


def targets(kind: str) -> Iterator[Target]:
    """Targets that are checked: functions of a framework, each as it is and doubled, or known packages."""
    if kind == "packages":
        yield from (Target(name, _LOSS_OF[name]) for name in PACKAGES)
        return
    for function, loss in _torch() if kind == "torch" else _numpy():
        yield Target(function, loss)
        yield Target(doubled(function), loss, f"{loss} doubled")


_LOSS_OF = {"pml-ntxent": "nt_xent", "info-nce-pytorch": "info_nce"}


def _torch() -> Iterator[tuple[Callable[..., Any], str]]:
    from benchmarks import baselines

    yield from ((getattr(baselines, name), loss) for name, loss in TORCH.items())


def _numpy() -> Iterator[tuple[Callable[..., Any], str]]:
    """The first correct program of each of some losses, called with what the loss needs alone."""
    right = [p for p in reversed(programs().values()) if not p.named and not p.settings]
    needed = {p.loss: {*expected_names(get_loss(p.loss).declaration, {})} for p in right}
    by_loss = {p.loss: p.function for p in right if {*inspect.signature(p.function).parameters} <= needed[p.loss]}
    yield from ((by_loss[loss], loss) for loss in list(by_loss)[:FUNCTIONS])


def importing(kind: str) -> float:
    """CPU seconds of what a process imports before it runs such a target."""
    words = {"numpy": "import numpy", "torch": "import torch", "packages": "import torch, torch._dynamo"}[kind]
    begin = cpu()
    subprocess.run([sys.executable, "-c", words], check=True)
    return cpu() - begin


def commands() -> Iterator[dict[str, Any]]:
    """CPU seconds of each command of the page for maintainers, on its package."""
    for name, (words, limit) in COMMANDS.items():
        begin = cpu()
        subprocess.run([sys.executable, "-m", *words], cwd=EXAMPLE, check=True, stdout=subprocess.DEVNULL)
        yield {"kind": "example", "command": name, "cpu": round(cpu() - begin, 2), "limit": limit}


def torch_commands() -> Iterator[dict[str, Any]]:
    """CPU seconds of `nceref verify` on the losses in PyTorch, in one format and in two."""
    for dtypes in FORMATS:
        before = importing("torch")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "nceref.toml")
            path.write_text(torch_manifest(dtypes))
            begin = cpu()
            words = ["-m", "nceref", "verify", "--manifest", str(path)]
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        seconds = cpu() - begin
        numbers = {"cpu": seconds, "importing": before, "beside": seconds - before}
        shown = {name: round(number, 2) for name, number in numbers.items()}
        yield {"kind": "torch-example", "dtypes": [*dtypes], **shown, "limit": len(dtypes) * BESIDE}


def torch_manifest(dtypes: tuple[str, ...]) -> str:
    """The manifest of the example for its losses in PyTorch, which have more checks: they return all gradients."""
    text = re.sub(r"^checks = .*\n", "", (EXAMPLE / "nceref.toml").read_text(), flags=re.MULTILINE)
    text = re.sub(r"^dtypes = .*$", f"dtypes = {json_text([*dtypes], indent=None)}", text, flags=re.MULTILINE)
    return text.replace('"twelve_losses:', f'"{TORCH_EXAMPLE}:')


def measure(kind: str) -> dict[str, Any]:
    """Run all checks of a kind of targets, and count what that took."""
    calls: Counter[str] = Counter()
    kept = verification.verify_with, ChildRunner._begin

    def counted(name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        calls[name] += 1
        return function(*arguments, **named)

    verification.verify_with = partial(counted, "verifications", kept[0])  # type: ignore[assignment]
    ChildRunner._begin = lambda self, words: counted("processes", kept[1], self, words)  # type: ignore[method-assign]
    try:
        given = list(targets(kind))
        begin = cpu()
        parameters = parametrize_with_checks(given, suite="quick").mark.args[1]
        words = Counter(_outcome(*p.values) for p in parameters)
    finally:
        verification.verify_with, ChildRunner._begin = kept  # type: ignore[method-assign]
    seconds = {"cpu": round(cpu() - begin, 2), "limit": LIMITS[kind]}
    return {"kind": kind, "targets": len(given), **calls, **words, **seconds}


def _outcome(target: Target, check: Callable[[Target], None]) -> str:
    import pytest

    try:
        check(target)
    except AssertionError:
        return "failed"
    except pytest.skip.Exception:
        return "skipped"
    return "passed"


_COMMANDS = {"example": commands, "torch-example": torch_commands}


@click.command()
@click.argument("kinds", nargs=-1, type=click.Choice([*LIMITS, *_COMMANDS]))
def main(kinds: tuple[str, ...]) -> None:
    """Print a line of JSON for each kind of targets, and for each command on the example."""
    for line in (line for kind in _COMMANDS if kind in kinds or not kinds for line in _COMMANDS[kind]()):
        click.echo(json_text(line, indent=None))
    for kind in [kind for kind in kinds or tuple(LIMITS) if kind in LIMITS]:
        before = importing(kind)
        click.echo(json_text(measure(kind) | {"importing": round(before, 2)}, indent=None))


if __name__ == "__main__":
    main()
