"""The generated signatures are those of the losses, and a type checker uses them."""

import ast
import importlib.util
import inspect
import subprocess
import sys

import pytest

from nceref import losses
from nceref.losses import get_loss
from tools import stubs

RIGHT = (
    "losses.nt_xent(1, 2, temperature=0.1)",
    "losses.nt_xent.value_and_grad(1, 2, temperature=0.1, reduction='none', cotangent=3)",
    "losses.nt_xent.anatomy(1, 2, temperature=0.1).logits",
    "losses.supcon_out(1, 2, temperature=0.1, base_temperature=None, form='sum')",
    "losses.paco.decompose(1, 2, 3, alpha=0.05, temperature=0.1)",
    "losses.simple(queries=1, keys=2)",
    "losses.get_loss('nt_xent')(1, 2, temperature=0.1)",
    "losses.all_losses()['dcl'].declaration.name",
)
WRONG = {
    "losses.nt_xent(1, 2, temprature=0.1)": "call-arg",
    "losses.nt_xent(1, 2)": "call-arg",
    "losses.nt_xent(1, 2, 0.1)": "call-arg",
    "losses.nt_xent(1, 2, temperature='0.1')": "arg-type",
    "losses.nt_xent(1, 2, temperature=0.1, normalize='L2')": "arg-type",
    "losses.nt_xent.value_and_grad(1, 2, tau=0.1)": "call-arg",
    "losses.nt_xent.anatomy(1, 2, temperature=0.1, reduction='sum')": "call-arg",
    "losses.uniformity(1, reduction='sum')": "arg-type",
    "losses.ntxent(1, 2, temperature=0.1)": "attr-defined",
}


def test_stub_is_up_to_date():
    assert stubs.PATH.read_text(encoding="utf-8") == stubs.render(), "run `make generate`"


def test_stub_defines_what_the_module_defines():
    tree = ast.parse(stubs.render())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    real = {name for name, value in vars(losses).items() if getattr(value, "__module__", "") == losses.__name__}
    assert {name for name in defined if not name.startswith("_")} == {name for name in real if not name.startswith("_")}


def test_stub_has_the_real_arguments(loss_name):
    tree = ast.parse(stubs.render())
    annotation = next(n for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == loss_name)
    kind = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == ast.unparse(annotation.annotation))
    call = next(n for n in kind.body if isinstance(n, ast.FunctionDef) and n.name == "__call__")
    real = inspect.signature(get_loss(loss_name)).parameters.values()
    assert [a.arg for a in call.args.args[1:]] == [p.name for p in real if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [a.arg for a in call.args.kwonlyargs] == [p.name for p in real if p.kind is p.KEYWORD_ONLY]
    defaults = [p.default for p in real if p.kind is p.KEYWORD_ONLY]
    written = [inspect.Parameter.empty if d is None else ast.literal_eval(d) for d in call.args.kw_defaults]
    assert written == defaults


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install 'nceref[dev]'")
def test_mypy_accepts_right_calls_and_refuses_wrong_ones(tmp_path):
    script = tmp_path / "script.py"
    shown = "reveal_type(losses.nt_xent.value_and_grad)"
    script.write_text("\n".join(["from nceref import losses", *RIGHT, *WRONG, shown, ""]), encoding="utf-8")
    options = ["--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--show-error-codes", "--no-error-summary"]
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(script)], capture_output=True, text=True, check=False
    )
    lines = [line for line in finished.stdout.splitlines() if ": error:" in line]
    errors = {int(line.split(":")[1]): line.rsplit("[", 1)[1].rstrip("]") for line in lines}
    first = 2 + len(RIGHT)
    assert errors == {first + i: code for i, code in enumerate(WRONG.values())}, finished.stdout + finished.stderr
    note = next(line for line in finished.stdout.splitlines() if "Revealed type" in line)
    for name in (*inspect.signature(losses.nt_xent).parameters, "cotangent"):
        assert f"{name}: " in note
    assert "temperature: typing.SupportsFloat" in note
