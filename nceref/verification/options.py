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


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name : str
        The keyword of `nceref.verify`; with dashes, the option of the command.
    kind : str
        The kind of its value.
    group : str
        The heading above it in the help of the command; empty for an option that the command has not.
    help : str
        One sentence for the command line.
    metavar : str
        The letter or word of the value in the help.
    choices : tuple of str
        The words that the command takes.
    default : any
        The value that the command shows and hands over if none is given; None: the default is that of the request.
    least, most : int, int or None
        The range of an integer.
    word : str
        The option of the command where it is not the name, as in ``--with``.
    key : str or None
        The key of a manifest where it is not the name; None where a manifest has none.
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

    @property
    def flag(self) -> str:
        """The option of the command."""
        return f"--{self.word or self.name.replace('_', '-')}"


OPTIONS = (
    Option("call", "text", TARGET, 'How it is called, as in "f(z1, z2, tau=temperature)".', metavar="EXPR"),
    Option(
        "init", "values", TARGET, "Argument of a class's constructor, or of each call of a function.", metavar="K=V"
    ),
    Option(
        "param",
        "values",
        TARGET,
        'Parameter of a torch module, as in "logit_scale=exp(log_s)".',
        metavar="INPUT=PATH",
    ),
    Option(
        "framework",
        "text",
        TARGET,
        "Framework of TARGET; default: recognized.",
        choices=NAMES,
    ),
    Option(
        "against",
        "target",
        TARGET,
        "An older program: what it computes is the reference, whatever that is.",
        metavar="OLD",
    ),
    Option("device", "text", TARGET, "Device, as the framework names it.", default="cpu"),
    Option("suite", "choice", INPUTS, "How many cases.", choices=("quick", "standard", "full"), default="standard"),
    Option(
        "dtype",
        "formats",
        INPUTS,
        "Format of the numbers; may be repeated.",
        choices=("float64", "float32", "bfloat16", "float16"),
        default=("float64",),
        key="dtypes",
    ),
    Option("case", "texts", INPUTS, "Only this case; may be repeated.", metavar="ID", key=None),
    Option("inputs", "inputs", INPUTS, "A batch of your own, .npz or .safetensors, judged as well.", metavar="FILE"),
    Option("shape", "shape", INPUTS, "Rows, features and classes of all cases.", metavar="N,D[,C]"),
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
    Option("repro", "flag", key=None),
    Option("explain", "flag", REPORT, "Show the parts of each bound.", key=None),
    Option("require_grad", "flag", REPORT, "Fail a target without gradients."),
    Option(
        "expected_failures",
        "failures",
        REPORT,
        "Results that fail for a known reason, a line each: an id (* is any letters) and the reason.",
        metavar="FILE",
    ),
    Option("isolate", "flag", RUN, "Run TARGET without network and write access."),
    Option("timeout", "number", RUN, "Seconds for one case.", metavar="S", default=30.0),
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
