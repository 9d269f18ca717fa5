"""An example of every command with every option and every format, and the small sizes that they run with."""

import json
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256

import click
import numpy as np
from verification.vectors.answers import right_answers

from mutants.score_command import score
from nceref import cli
from nceref.checks import run as checks
from nceref.checks.run import run
from nceref.cli import experiment_page
from nceref.experiments.samples import long_tail, synthetic
from nceref.experiments.setting import Training
from nceref.losses import get_loss
from nceref.targets.process import child
from nceref.targets.process.isolation import Isolation
from nceref.verification import identify, loss_search, request, verifier
from nceref.verification.audit import audit
from nceref.verification.manifest.run import ManifestResult
from nceref.verification.report import Report
from nceref.verification.vectors import check, store
from nceref.verification.vectors.store import DATA, folder_files, read_vectors

TARGETS = """
import numpy as np


def loss(logits, target, temperature=1.0):
    s = logits / temperature
    top = s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - s[np.arange(len(s)), target])


class Doubled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, logits, target, temperature=1.0):
        return self.factor * loss(logits, target, temperature)
"""

MANIFEST_TEXT = """
[[target]]
name = "doubled"
target = "targets.py:Doubled"
loss = "cross_entropy"
init = {factor = 2}
suite = "quick"
expected_failures = [{id = "*/value", reason = "it returns twice the mean"}]
"""


@dataclass(frozen=True)
class Example:
    """One call: the words after ``nceref``, and its exit status."""

    words: str
    status: int = 0

    @property
    def json(self):
        """The file that holds its JSON, - for standard output; empty where it has none."""
        _, wanted, rest = f"{self.words} -".partition(" --json ")
        file = rest.split()[0] if wanted else ""
        return "-" if file.startswith("-") else file

    @property
    def quick(self):
        """Whether it takes less than a tenth of a second or so."""
        return not self.words.startswith(_SLOW)


_SLOW = ("check", "claims", "experiment long", "figures limit", "figures sphere", "init", "mutants", "plot-limits")
_SLOW += ("derive nce-optimum --text", "quadrants --steps 3 --temperature 0.2 --out", "verify targets")
_SLOW += ("equal", "vectors", "verify --manifest")


def commands():
    """Every command by its words; those of a group one by one."""
    context = click.Context(cli.nceref)
    for name in cli.COMMANDS:
        command = cli.nceref.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {word}", part) for word, part in command.commands.items())
        else:
            # In a clone, the first word of one of them is that of another.
            yield from [("mutants score", score)] * (name == "mutants")
            yield name, command


ID = json.loads((DATA / "nce.json").read_text())["cases"][0]["id"]
PRINTED = {
    "equal uniformity uniformity --loss uniformity --suite quick": "text markdown html latex json",
    "experiment long-tail --seeds 1 --first-seed 7": "text markdown html latex json",
    "init targets.py --out printed.toml --force": "text markdown html latex",
    "quadrants --steps 3 --temperature 0.2": "text markdown html latex json",
    "check simple": "text markdown html latex json",
    "claims wl-6": "text markdown html latex json",
    "derive paco-extra": "text markdown html latex",
    "expect --loss uniformity --n 8 --dim 4 --value=-2.7": "text markdown html latex json",
    "losses nt_xent": "text markdown html latex json",
    "mutants nt-xent-own-logit-kept": "text markdown html latex json",
    "mutants score alignment-always-squared --dtype float64": "text markdown html latex json",
    "vectors check --loss nce": "text markdown html latex json",
    f"vectors info {ID}": "text markdown html latex json",
    "vectors list simple": "text markdown html latex json",
}
"""Calls that print a page, and the formats in which they do."""
EXAMPLES = (
    *(Example(f"{words} --format {form}") for words, forms in PRINTED.items() for form in forms.split()),
    Example("check --certify uniformity"),
    Example("check --certify simple --second-engine --json"),
    Example("check simple --json"),
    Example("claims"),
    Example("claims is-5 PC-19"),
    Example("claims wl-6 --latex"),
    Example("claims --verdict wrong --source 003 --json"),
    Example("vectors compare vectors outputs.jsonl"),
    Example("vectors compare both several.jsonl --markdown -"),
    Example(
        "vectors compare vectors wrong.jsonl --json made.json --html made.html --markdown made.md --junit made.xml", 1
    ),
    Example("vectors compare both several.jsonl --json"),
    Example("derive"),
    Example("derive nce-optimum --text"),
    Example("derive nce-optimum --latex --out made.tex"),
    Example("expect --loss nt_xent --n 256 --temperature 0.07 --dim 8 --value 6.2364"),
    Example("expect --loss nt_xent --n 256 --temperature 0.07 --value=-1", 1),
    Example("expect --loss siglip --n 8 --logit-scale 10 --set logit_bias=-10 --value 3 --json"),
    Example("experiment"),
    Example("experiment long-tail --seeds 1 --first-seed 7 --json - --out made"),
    Example("figures --list"),
    Example("figures sphere-force --out made"),
    Example("figures sphere-force --out made --check"),
    Example("figures sphere-force --format svg --format png --format pdf --out made"),
    Example("verify targets.py:loss --call f(logits,target,temperature) --framework numpy --timeout 60 --isolate"),
    Example("verify targets.py:Doubled --init factor=2 --set factor=outer-factor-2 --json"),
    Example("init targets.py --out made.toml --timeout 60 --isolate"),
    Example("init targets.py --out made.toml --force"),
    Example("init targets.py --out -"),
    Example("losses"),
    Example("losses --latex"),
    Example("losses --json"),
    Example("mutants"),
    Example("mutants --ranks 2"),
    Example("mutants --catalogue gradients"),
    Example("mutants --json"),
    Example("mutants score alignment-always-squared --dtype float64 --suite quick --leave-one-out"),
    Example("mutants score moco-as-in-its-third-version --dtype float64 --catalogue independent"),
    # With PyTorch and without: there is no such program.
    Example("mutants score no-such-program --ranks 2", 2),
    Example("mutants score alignment-always-squared --dtype float64 --suite quick --json"),
    Example("plot-limits --out limits"),
    Example("plot-limits --similarities 0.25,0.5,-0.45 --temperatures 0.05,1 --format svg --format png --out own"),
    Example("plot-limits --format pdf --out own"),
    Example("figures limit-zero limit-minimum --out limits --check"),
    Example("claims --prove IS-1"),
    # The counterexample of this claim is decided by NumPy.
    Example("claims --prove PC-12 IS-1 --json"),
    Example("quadrants --seed 3 --steps 3 --dtype float64 --temperature 0.2 --confounder --save made.npz"),
    Example("quadrants --resume made.npz"),
    Example("quadrants --steps 3 --temperature 0.2 --out made --animate 0.2 --json made.json"),
    Example("quadrants --steps 3 --temperature 0.2 --json -"),
    Example("vectors list"),
    Example("vectors list --json"),
    Example("vectors list uniformity simple"),
    Example("vectors list nce --json"),
    Example(f"vectors info {ID} --json"),
    *(
        Example(f"vectors export --loss nce --loss simple --dtype float16 --format {ending} --out made")
        for ending in ("npz", "safetensors", "c-header", "json")
    ),
    Example("vectors export --loss nce --full --out whole"),
    Example("vectors export --loss nce --loss simple --as test --for torch --runner unittest --out tests --force"),
    Example("vectors check nowhere", 2),
    Example("vectors check --loss nce --json"),
    Example("tables --list"),
    Example("tables --list --format json"),
    Example("tables paco-optimum --format text"),
    Example("tables paco-optimum --format markdown"),
    Example("tables paco-optimum temperature-easy --format html"),
    Example("tables paco-optimum --format csv"),
    Example("tables paco-optimum --format csv --out made"),
    Example("tables paco-optimum --format latex --digits 4"),
    Example("tables paco-optimum --format json"),
    Example("verify --conventions"),
    Example("verify targets.py:loss --loss cross_entropy --suite quick --dtype float32 --list-cases"),
    Example(
        "verify targets.py:loss --loss cross_entropy --call f(logits,target,temperature) --framework numpy --device cpu"
        " --algorithm log1p --seed 1 --timeout 60 --suite quick --case seven-0.5 --explain --json -"
    ),
    Example(
        "verify targets.py:loss --loss cross_entropy --suite quick --case seven-0.5 --require-grad --junit - --isolate",
        1,
    ),
    Example("verify targets.py:Doubled --loss cross_entropy --init factor=2 --set factor=outer-factor-2 --suite quick"),
    Example(
        "verify targets.py:Doubled --loss cross_entropy --init factor=2 --suite quick --json made.json"
        " --html made.html --markdown made.md --junit made.xml --repro made.py",
        1,
    ),
    Example("verify targets.py:Doubled --loss cross_entropy --init factor=2 --suite quick --calls 0 --explain", 1),
    Example(
        "verify targets.py:Doubled --loss cross_entropy --init factor=2 --suite quick --expected-failures known.txt"
    ),
    Example("verify targets.py:loss --loss cross_entropy --modes compile", 2),
    Example("verify targets.py:loss --loss cross_entropy --param temperature=exp(log_tau) --suite quick", 2),
    Example("verify targets.py:loss --loss cross_entropy --suite quick --multiple-of 4 --inputs batch.npz --json"),
    Example("verify targets.py:loss --loss cross_entropy --suite quick --shape 12,5 --temperatures 0.01"),
    # NumPy has no ranks.
    Example(
        "verify targets.py:loss --loss cross_entropy --ranks 2 --sync sum --value sum --shards 3,1"
        " --with targets.py:loss:0.5",
        4,
    ),
    Example("verify targets.py:loss --loss cross_entropy --ranks 2 --duplicate --axis devices", 4),
    Example("verify targets.py:loss --loss cross_entropy --suite quick --accumulate 2"),
    Example("verify targets.py:loss --loss cross_entropy --suite quick --dtype float64 --dtype float32"),
    Example(
        "verify --manifest nceref.toml --only doubled --json made.json --html made.html --junit made.xml"
        " --markdown made.md --badge made.svg"
    ),
    Example("verify --update-checks --only doubled"),
    Example("verify targets.py:loss --loss cross_entropy --suite quick --against targets.py:loss"),
    Example(
        "equal targets.py:loss targets.py:Doubled --loss cross_entropy --init factor=2 --set label_smoothing=0.0"
        " --call f(logits,target,temperature) --framework numpy --suite quick --dtype float64 --seed 1 --timeout 60"
        " --calls 40 --json made.json"
    ),
    Example("equal cross_entropy targets.py:loss --suite quick --isolate --json"),
    Example("verify --all --suite quick --dtype float64 --checkout supcontrast=. --html made.html"),
    Example("verify --all --json made.json --checkout supcontrast=."),
)


def fill(folder):
    """Put the files that the examples read into a folder; what one writes there, the next may read."""
    (folder / "targets.py").write_text(TARGETS)
    (folder / "known.txt").write_text("*/value  it returns twice the mean\n")
    (folder / "losses.py").write_text("")
    (folder / "nceref.toml").write_text(MANIFEST_TEXT)
    (folder / "vectors").mkdir(exist_ok=True)
    (folder / "both").mkdir(exist_ok=True)
    for name, content in recorded_files().items():
        (folder / name).write_bytes(content)
    np.savez(folder / "batch.npz", logits=np.arange(12.0).reshape(4, 3), target=np.array([0, 2, 1, 1]))


@cache
def recorded_files():
    """A few vectors, and outputs of programs that answer them: right ones, a wrong one, and of two losses."""
    cases = {name: read_vectors(losses=(name,)).cases[name][:6] for name in ("nt_xent", "supcon_out")}
    folders = {"vectors": folder_files({"nt_xent": cases["nt_xent"]}), "both": folder_files(cases)}
    first = {name: {"manifest": sha256(each["MANIFEST.json"]).hexdigest()} for name, each in folders.items()}
    right = {name: right_answers(each) for name, each in cases.items()}
    wrong = [{"id": line["id"], "value": 2 * line["value"]} for line in right["nt_xent"]]
    outputs = {
        "outputs": [first["vectors"], *right["nt_xent"]],
        "wrong": [first["vectors"], *wrong],
        "several": [first["both"], *right["nt_xent"], *right["supcon_out"]],
    }
    lines = {name: "".join(f"{json.dumps(line)}\n" for line in each) for name, each in outputs.items()}
    return {**{f"{folder}/{name}": content for folder, each in folders.items() for name, content in each.items()},
            **{f"{name}.jsonl": text.encode() for name, text in lines.items()}}  # fmt: skip


def make_small(setattr=setattr):
    """Small sizes: little data, two losses to be identified as, one peer that is always right.

    Vectors are read once, losses checked once, and encoders trained once.
    """
    study = experiment_page.experiments()["long-tail"]
    more = {k: v for k, v in study.run.keywords.items() if k not in ("data", "training")}
    more |= {"data": few_samples, "training": Training((32, 16, 8), 4, 6, 1e-3)}
    short = replace(study, run=partial(trained_once, partial(study.run.func, **more)))
    setattr(experiment_page, "experiments", lambda: {"long-tail": short})
    for module in (identify, loss_search):
        setattr(module, "all_losses", lambda: {name: get_loss(name) for name in ("cross_entropy", "simple")})
    setattr(audit, "released", one_peer)
    # Whether the system has means to isolate, and what programs cost, are concerns of other tests.
    setattr(verifier, "costs_of", lambda request, run: {})
    for module in (child, request):
        setattr(module, "isolation", lambda folder: Isolation("bubblewrap"))
    setattr(store, "read_vectors", read_once)
    setattr(checks, "run", checked_once)
    setattr(check, "check_all", vectors_checked_once)
    agrees = Report("supcontrast", "supcon_out", "conforms", 0, "all is as it should be")
    setattr(audit, "verify_manifest", lambda given, **_: tuple(ManifestResult(e, agrees) for e in given.targets))


_RELEASED = audit.released


@cache
def one_peer():
    """The manifest of the audit with one released program."""
    manifest = _RELEASED()
    return replace(manifest, targets=tuple(e for e in manifest.targets if e.table["needs"] == "supcontrast"))


_OWN = cache(lambda losses: read_vectors(losses=losses))


def read_once(folder=None, losses=()):
    """In place of `store.read_vectors`: those of the package are read once, of two losses where all are asked for."""
    return _OWN(losses or ("nt_xent", "supcon_out")) if folder is None else read_vectors(folder, losses)


_CHECKED: dict = {}
_TRAINED: dict = {}


def trained_once(run, seed, on_progress):
    """The results of a seed, which every format prints."""
    if seed not in _TRAINED:
        _TRAINED[seed] = run(seed, on_progress)
    return _TRAINED[seed]


def vectors_checked_once(cases, check):
    """In place of `check.check_all`: the vectors of a loss are checked once."""
    for loss, each in cases.items():
        if loss not in _CHECKED:
            _CHECKED[loss] = check(loss, each)
        yield _CHECKED[loss]


@cache
def checked_once(losses):
    """In place of `checks.run.run`: every format prints the same results."""
    return tuple(run(losses))


def few_samples(seed):
    return synthetic(seed, long_tail(4, 40, 4), latent=3, test=6)
