"""Every option with values that it cannot take: status 2, and one message with the option and the value, nothing else.

The options are read from the commands, so a new one that takes any text needs a line here.
"""

import click
import pytest
from commands.examples import commands, fill
from sweep import sweep

REST = {
    "vectors compare": "vectors outputs.jsonl",
    "expect": "--loss nt_xent --n 8 --temperature 0.1",
    "experiment": "long-tail",
    "init": "targets.py",
    "mutants score": "nt-xent-own-logit-kept",
    "plot-limits": "--similarities 0.5,0.1",
    "quadrants": "--steps 1",
    "derive": "paco-extra",
    "vectors export": "--loss simple --out made",
    "equal": "targets.py:loss targets.py:loss --loss cross_entropy --suite quick",
    "verify": "targets.py:loss --loss cross_entropy --suite quick",
}
"""What a command needs beside the option; options of their own are left out."""
EVIL = "x\x1b[31m\udcff[red]"
NOWHERE = "/proc/none/made"
NUMBERS = ("", "abc", "1.5.5", EVIL)
BY_TYPE = {
    click.types.IntParamType: (*NUMBERS, "nan", "1e3"),
    click.types.FloatParamType: NUMBERS,
    click.IntRange: (*NUMBERS, "0", "1000", "nan"),
    click.Choice: ("", "abc", EVIL),
}
FREE = {
    "claims --source": ("007", EVIL),
    "claims --verdict": ("right", EVIL),
    "vectors compare --html": (".", NOWHERE),
    "vectors compare --json": (".",),
    "vectors compare --junit": (".",),
    "vectors compare --markdown": (".", NOWHERE),
    "derive --out": (NOWHERE,),
    "expect --dim": (*NUMBERS, "-1", "nan"),
    "expect --logit-scale": (*NUMBERS, "-1", "nan"),
    "expect --loss": ("nothing", EVIL),
    "expect --n": (*NUMBERS, "-1", "nan"),
    "expect --set": ("classes", "=3", EVIL),
    "expect --temperature": (*NUMBERS, "-1", "nan"),
    "expect --value": (*NUMBERS,),
    "experiment --json": (NOWHERE,),
    "experiment --out": (NOWHERE,),
    "figures --out": (NOWHERE,),
    "init --out": (".", NOWHERE, "--force"),
    "plot-limits --out": (NOWHERE,),
    "plot-limits --similarities": (*NUMBERS, "0.5,", "0.5;0.1"),
    "plot-limits --temperatures": (*NUMBERS, "0.5", "0,1", "1,0.1", "nan,1", "0.1,inf"),
    "quadrants --json": (NOWHERE,),
    "quadrants --out": (NOWHERE,),
    "quadrants --resume": (NOWHERE, "targets.py"),
    "quadrants --save": (NOWHERE, "--steps"),
    "tables --out": (NOWHERE,),
    "vectors check --loss": ("nothing", EVIL),
    "vectors export --loss": ("nothing", EVIL),
    "vectors export --out": (NOWHERE,),
    "equal --call": ("f(", EVIL),
    "equal --init": ("factor", "=3", EVIL),
    "equal --json": (".",),
    "equal --loss": ("nothing", EVIL),
    "equal --set": ("factor", "=3", EVIL),
    "verify --against": ("simple", EVIL),
    "verify --axis": (EVIL,),
    "verify --badge": (".", NOWHERE),
    "verify --call": ("f(", EVIL),
    "verify --case": ("nothing", EVIL),
    "verify --checkout": (),
    "verify --device": ("nothing", EVIL),
    "verify --expected-failures": (NOWHERE, "targets.py", EVIL),
    "verify --init": ("factor", "=3", EVIL),
    "verify --json": (".",),
    "verify --html": (".", NOWHERE, "--json"),
    "verify --junit": (".", "--html=made"),
    "verify --inputs": (NOWHERE, "targets.py", EVIL),
    "verify --manifest": (NOWHERE, EVIL, "--only=x"),
    "verify --markdown": (".", NOWHERE),
    "verify --only": ("", "nothing", EVIL),
    "verify --loss": ("nothing", EVIL),
    "verify --modes": ("nothing", EVIL),
    "verify --param": ("logits", "=weight", EVIL),
    "verify --accumulate": ("1", "a", EVIL),
    "verify --ranks": ("0", "a", EVIL),
    "verify --repro": (".", "--help"),
    "verify --set": ("factor", "=3", EVIL),
    "verify --shape": ("5", "5,0", "a,b", EVIL),
    "verify --shards": ("0", "3,1", EVIL),
    "verify --with": ("targets.py:loss", "targets.py:loss:0.5", EVIL),
}
NAMED_BY_FILE = {"--resume", "--out"}
"""Options whose message has the file alone."""


def options():
    for name, command in sorted(commands()):
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag:
                yield name, option


def calls():
    for name, option in options():
        words = f"{name} {option.opts[0]}"
        for value in (*BY_TYPE.get(type(option.type), ()), *FREE.get(words, ())):
            yield name, option.opts[0], value


def test_every_option_is_tried():
    tried = {f"{name} {option}" for name, option, _ in calls()} | {"verify --checkout"}
    assert {f"{name} {option.opts[0]}" for name, option in options()} == tried
    assert FREE.keys() <= tried


@pytest.fixture
def folder(tmp_path, monkeypatch):
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder", "in_this_process")
@sweep(("name", "option", "value"), calls(), ids=lambda word: ascii(word)[1:-1])
def test_it_is_refused_by_name(run, name, option, value):
    # What is resumed goes without the other options.
    rest = REST.get(name, "").split() if option != "--resume" else []
    for other in (option, *(["--temperature"] if option == "--logit-scale" else [])):
        if other in rest:
            del rest[rest.index(other) : rest.index(other) + 2]
    status, out, err = run(*name.split(), *rest, option, value)
    assert (status, out) == (2, ""), err
    assert option in NAMED_BY_FILE or option.strip("-").replace("-", "_") in err.replace("-", "_")
    assert value.encode("unicode_escape").decode()[:60] in err.replace("\\\\", "\\")
    assert err.replace("\n", "").isprintable()
    assert "Traceback" not in err
