"""The options of a verification, each declared once.

A row is the keyword of `nceref.verify`, the option of the command and the key of a manifest at the same time. Its kind
decides how each of the three reads a value: `request` the keyword, `cli.verify` the words, `manifest.keys` the key.
"""

from dataclasses import dataclass
from typing import Any, Literal

from nceref.targets.frameworks import NAMES

Kind = Literal[
    "target", "text", "texts", "choice", "formats", "modes", "values", "flag", "integer", "integers", "shape", "number",
    "inputs", "failures",
]  # fmt: skip

TARGET = "What is judged"
INPUTS = "On which inputs"
REPORT = "Report and verdict"
RUN = "How it is run"
RANKS = "Several ranks, or steps"
CALL, SEARCH, NEW, AUDIT = "call", "search", "new", "audit"
"""Roles: how a target is called, what goes without a loss, what an older program has not, what `--all` takes."""


@dataclass(frozen=True)
class Option:
    """One option: a keyword of `nceref.verify`, and of the command with dashes, with the kind of its value.

    `group` is the heading above it in the help of the command, empty for an option that the command has not; `help` is
    its sentence there, `metavar` what stands for its value, `choices` the words that are taken, and `word` the option
    where it is not the name, as in ``--with``. `default` is the value where none is given, which the command shows;
    None: what reads the option has one, or there is none. `least` and `most` are the range of an integer. `key` is the
    key of a manifest where it is not the name, and None where a manifest has none. `roles` are the sets of options that
    it belongs to beside its heading, see `names_of`.
    """

    name: str
    kind: Kind
    group: str = ""
    help: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None
    least: int = 0
    most: int | None = None
    word: str = ""
    key: str | None = ""
    roles: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The option of the command."""
        return f"--{self.word or self.name.replace('_', '-')}"


OPTIONS = (
    Option(
        "call",
        "text",
        TARGET,
        'How it is called, as in "f(z1, z2, tau=temperature)".',
        metavar="EXPR",
        roles=(CALL, SEARCH),
    ),
    Option(
        "init",
        "values",
        TARGET,
        "Argument of a class's constructor, or of each call of a function.",
        metavar="K=V",
        roles=(CALL, SEARCH),
    ),
    Option(
        "param",
        "values",
        TARGET,
        'Parameter of a torch module, as in "logit_scale=exp(log_s)".',
        metavar="INPUT=PATH",
        roles=(CALL,),
    ),
    Option(
        "framework",
        "text",
        TARGET,
        "Framework of TARGET; default: recognized.",
        choices=NAMES,
        roles=(CALL, SEARCH),
    ),
    Option(
        "against",
        "target",
        TARGET,
        "An older program: what it computes is the reference, whatever that is.",
        metavar="OLD",
        roles=(NEW,),
    ),
    Option("device", "text", TARGET, "Device, as the framework names it.", default="cpu"),
    Option(
        "suite",
        "choice",
        INPUTS,
        "How many cases.",
        choices=("quick", "standard", "full"),
        default="standard",
        roles=(AUDIT,),
    ),
    Option(
        "dtype",
        "formats",
        INPUTS,
        "Format of the numbers; may be repeated.",
        choices=("float64", "float32", "bfloat16", "float16"),
        default=("float64",),
        key="dtypes",
        roles=(AUDIT,),
    ),
    Option("case", "texts", INPUTS, "Only this case; may be repeated.", metavar="ID", key=None, roles=(NEW,)),
    Option("inputs", "inputs", INPUTS, "A batch of your own, .npz or .safetensors, judged as well.", metavar="FILE"),
    Option("shape", "shape", INPUTS, "Rows, features and classes of all cases.", metavar="N,D[,C]", roles=(SEARCH,)),
    Option("multiple_of", "integer", INPUTS, "Round all sizes up to multiples of M.", metavar="M", least=1, most=256),
    Option("seed", "integer", INPUTS, "Seed of the cases.", default=0, least=0),
    Option("temperatures", "number", INPUTS, "Lowest temperature that must work; default: 0.005.", metavar="LOW"),
    Option(
        "modes",
        "modes",
        INPUTS,
        "Other ways to call it: compile, autocast, tf32; separated by commas.",
        metavar="NAMES",
    ),
    Option(
        "algorithm",
        "choice",
        INPUTS,
        "Formula whose rounding errors are allowed.",
        choices=("textbook", "log1p"),
        default="textbook",
    ),
    Option("repro", "flag", key=None, roles=(NEW,)),
    Option("explain", "flag", REPORT, "Show the parts of each bound.", key=None, roles=(NEW,)),
    Option("require_grad", "flag", REPORT, "Fail a target without gradients.", roles=(NEW,)),
    Option(
        "expected_failures",
        "failures",
        REPORT,
        "Results that fail for a known reason, a line each: an id (* is any letters) and the reason.",
        metavar="FILE",
        roles=(NEW,),
    ),
    Option("isolate", "flag", RUN, "Run TARGET without network and write access.", roles=(SEARCH,)),
    Option("timeout", "number", RUN, "Seconds for one case.", metavar="S", default=30.0, roles=(SEARCH,)),
    Option(
        "calls",
        "integer",
        RUN,
        "Calls of TARGET that may be made to explain a difference; 0: no explanation; default: 4000.",
        metavar="N",
        least=0,
    ),
    Option("ranks", "integers", RANKS, "Run TARGET on W ranks; PyTorch and JAX.", metavar="W[,W]"),
    Option("accumulate", "integers", RANKS, "Call TARGET in K steps of gradient accumulation.", metavar="K[,K]"),
    Option(
        "sync",
        "choice",
        RANKS,
        "How gradients are combined over ranks or steps; default: mean.",
        choices=("mean", "sum"),
    ),
    Option(
        "value",
        "choice",
        RANKS,
        "How the values of ranks or steps are combined; default: mean.",
        choices=("mean", "sum", "rank0", "each"),
    ),
    Option("shards", "integers", RANKS, "Share of the rows of each rank or step; default: equal.", metavar="A,B"),
    Option("duplicate", "flag", RANKS, "Repeat rows until all ranks have equally many."),
    Option(
        "added",
        "text",
        RANKS,
        "A second loss that is added, on ranks.",
        metavar="TARGET:WEIGHT",
        word="with",
        key="with",
    ),
    Option("axis", "text", RANKS, "Device axis of a JAX target; default: batch.", metavar="NAME"),
)
"""Every option of `nceref.verify`; every other keyword of it is a convention."""
BY_NAME = {option.name: option for option in OPTIONS}
KEYS = {option.key or option.name: option for option in OPTIONS if option.key is not None}
"""Options by their key in a manifest."""


def names_of(role: str) -> frozenset[str]:
    """The names of the options of a role, or below a heading."""
    return frozenset(option.name for option in OPTIONS if role in (option.group, *option.roles))
