"""A failing case of an executable as a script that runs without nceref: the lines that it is sent, and both numbers."""

from nceref.cases.records import Outcome, Probe
from nceref.targets import protocol
from nceref.targets.command_line import words_of
from nceref.targets.frameworks.call import call_request
from nceref.targets.target import ResolvedTarget
from nceref.verification.repro.script import DOCSTRING, comparisons, described, title

_ID = "smallest"
_TEMPLATE = """{docstring}

import json
import struct
import subprocess
import sys

import numpy as np

# Run this in the folder from which nceref was run.
command = {words!r}
sent = (
{lines}
)
answered = subprocess.run(command, input=sent, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
result = json.loads(answered[1])["result"]


def numbers(x):
    if isinstance(x, list):
        return [numbers(each) for each in x]
    # The bits of a float64, a word such as NaN, or a number.
    return struct.unpack(">d", bytes.fromhex(x))[0] if isinstance(x, str) and len(x) == 16 else float(x)


value = numbers(result["value"])
grads = {{name: numbers(x) for name, x in (result.get("grad") or {{}}).items()}}

{comparisons}

sys.exit(1 if differ else 0)
"""


def command_script(target: ResolvedTarget, probe: Probe, outcome: Outcome) -> str:
    """Python source of a script, as of `script`, that starts the executable and sends it one case.

    `outcome` decides whether the value is shown, or the gradients. The script needs NumPy.
    """
    request = call_request(probe)
    lines = (
        protocol.hello(probe.loss.name, [probe.dtype]),
        protocol.run(_ID, probe.loss.name, request),
        protocol.line("bye", {}),
    )
    return _TEMPLATE.format(
        docstring=DOCSTRING.format(title=title(target, probe), inputs=described(probe)),
        words=words_of(target.text),
        lines="\n".join(f"    {line!r} '\\n'" for line in lines),
        comparisons=comparisons(target, probe, outcome),
    )
