"""A manifest that is made of a package: each callable once, and of each what verify says with just that table."""

import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from sweep import sweep

import nceref
from mutants.bug import correct_programs
from nceref.cases.records import Diagnosis, DiagnosisPart, Result
from nceref.errors import InputError
from nceref.targets.runner import child_runner
from nceref.verification import loss_search
from nceref.verification.manifest import recognize, run
from nceref.verification.manifest.package import Package, PublicCallable, package_name
from nceref.verification.manifest.read import read_manifest
from nceref.verification.manifest.write import ManifestDraft, draft_manifest, manifest_text, page_of
from nceref.verification.report import Report

PAGE = " ".join((Path(__file__).parents[3] / "docs/tutorials/maintainers.md").read_text(encoding="utf-8").split())

FILES = {
    "__init__": """
from json import dumps
from my_losses.rows import Spread, info_nce

__all__ = ["Spread", "dumps", "info_nce"]
""",
    "rows": """
import numpy as np

def info_nce(queries, keys, temperature):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    s = q @ k.T / temperature
    top = s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s))

class Spread:
    def __init__(self, batch_size, device):
        self.batch_size, self.device = batch_size, device

    def __call__(self, x, t=2.0):
        assert (len(x), self.device) == (self.batch_size, "cpu")
        u = x / np.linalg.norm(x, axis=1, keepdims=True)
        i, j = np.triu_indices(len(u), 1)
        return np.log(np.mean(np.exp(-t * np.sum((u[i] - u[j]) ** 2, axis=1))))
""",
    "wrong": """
import numpy as np
from my_losses.rows import info_nce

def summed(queries, keys, temperature):
    return len(queries) * info_nce(queries, keys, temperature)

def doubled(queries, keys, temperature):
    return 2 * info_nce(queries, keys, temperature)

def uniformity(queries, keys, temperature):
    return info_nce(queries, keys, temperature)

def info_nce_of_views(features, tau):
    return info_nce(features[:, 0], features[:, 1, : features.shape[2]], tau)

def of_views(features, tau):
    return info_nce_of_views(features, tau)

def half_of_views(features, tau):
    return info_nce_of_views(features, tau) / 2

def random(x):
    return np.random.default_rng().normal() + x.sum()

def accepts(x):
    return x.ndim == 2

def refuses(x):
    raise ValueError('no\\n[[target]]\\nname = "x"\\n# \\x1b[31m')

def nothing():
    return 0

def _hidden(queries, keys, temperature):
    return 0
""",
    "ends": "import os\nos._exit(3)\n",
    "misses": "import not_there\n",
    "_private": "raise ValueError\n",
    "test_rows": "raise ValueError\n",
}


@pytest.fixture(scope="module")
def draft(tmp_path_factory):
    """What is recognized of a package, with three losses in place of all; and the folder that holds it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "my_losses").mkdir()
    for name, text in FILES.items():
        (folder / "my_losses" / f"{name}.py").write_text(text)
    some = {name: nceref.get_loss(name) for name in ("alignment", "info_nce", "uniformity")}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(loss_search, "all_losses", lambda: some)
        assert package_name("my_losses/") == package_name("./my_losses") == "my_losses"
        made = draft_manifest("my_losses")
    (folder / "nceref.toml").write_text(manifest_text(made, folder))
    return made, folder


def test_each_public_callable_is_tried_once_under_its_shortest_name(draft):
    names = [each.callable.text for each in draft[0].targets]
    wrong = ("summed", "doubled", "uniformity", "info_nce_of_views", "of_views", "half_of_views")
    wrong += ("random", "accepts", "refuses", "nothing")
    assert names == ["my_losses:Spread", "my_losses:info_nce", *(f"my_losses.wrong:{name}" for name in wrong)]


def test_modules_that_fail_are_listed_with_the_reason_and_the_others_go_on(draft):
    failed = draft[0].package.failed
    assert failed == {
        "my_losses.ends": "cannot be imported: importing it ends the process with exit code 3",
        "my_losses.misses": "imports not_there, and there is no module of that name",
    }


def test_a_table_has_what_the_loss_needs_and_what_it_keeps(draft):
    made = tomllib.loads((draft[1] / "nceref.toml").read_text())
    assert made["defaults"] == {"suite": "quick", "dtypes": ["float64", "float32"]}
    tables = {each["name"]: each for each in made["target"]}
    assert tables["Spread"] == {
        "name": "Spread", "target": "my_losses:Spread", "loss": "uniformity", "shape": [8, 16],
        "init": {"batch_size": 8, "device": "cpu"}, "checks": tables["Spread"]["checks"],
    }  # fmt: skip
    # Of one that differs, the numbers are not those that it will have.
    assert [name for name, each in tables.items() if "checks" in each] == [
        "Spread",
        "info_nce",
        "summed",
        "uniformity",
        "info_nce_of_views",
        "of_views",
    ]
    # Whatever it is named after.
    for name in ("info_nce_of_views", "of_views"):
        assert tables[name]["call"] == "f(np.stack([queries, keys], 1), tau=temperature)"
        assert "set" not in tables[name]
    assert tables["summed"]["set"] == {"reduction": "sum"}
    assert "set" not in tables["doubled"]
    assert list(tables) == ["Spread", "info_nce", "summed", "doubled", "uniformity", "info_nce_of_views", "of_views"]


def test_comments_say_what_was_measured_and_nothing_else_gets_in(draft):
    text = (draft[1] / "nceref.toml").read_text()
    words = " ".join(re.sub(r"^# ?", "", text, flags=re.MULTILINE).split())
    assert "It is info_nce: the value is right on 28 of 28 cases in float64 and 28 of 28 cases in float32;" in words
    assert "It differs from info_nce, in float64 (float32 was not tried): the value fails on 27 of 28 cases." in words
    assert "outer-factor-2 explains that: your loss equals the reference with an outer factor 2, on 28 of 28" in words
    assert "Fix: Divide by 2" in words
    assert words.count("Its name says uniformity, which it is not.") == 1
    assert r'- my_losses.wrong:refuses: raises ValueError: no [[target]] name = "x" # \x1b[31m' in words
    assert "- my_losses.wrong:random: as uniformity, " in words
    assert "- my_losses.wrong:accepts: it gives the same number on 3 of 3 cases" in words
    assert "- my_losses.wrong:nothing: it fits the inputs of no loss" in words


def test_the_nearest_call_of_what_is_none_is_a_line_to_paste_wherever_it_is_said(draft):
    reason = "my_losses.wrong:half_of_views: as info_nce, this call runs, but gives other values than the reference:"
    call = '--call "f(np.stack([queries, keys], 1), tau=temperature)"'
    command = f"nceref verify my_losses.wrong:half_of_views --loss info_nce {call}"
    text = (draft[1] / "nceref.toml").read_text()
    assert f"\n# - {reason}\n#   {command}\n" in text.replace("the\n#   reference", "the reference")
    for written in ("", "nceref.toml"):
        printed = page_of(draft[0], written).text()
        assert f"\n  {command}\n" in printed
        assert reason in " ".join(printed.split())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(draft[1])
        report = nceref.verify(**target_and_options(command))
    assert [d.id for d in report.diagnosis] == ["outer-factor-half"]


def target_and_options(command):
    """The arguments of `nceref.verify` that a command has."""
    _, _, target, *words = shlex.split(command)
    return {"target": target, **{name.removeprefix("--"): x for name, x in zip(words[::2], words[1::2], strict=True)}}


def judged(folder, text, only=()):
    """Results of the targets of a manifest, by name."""
    (folder / "own.toml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        results = run.verify_manifest(read_manifest("own.toml"), only)
    assert [problem for result in results for problem in result.problems] == []
    return {result.entry.name: result for result in results}


@pytest.mark.usefixtures("in_this_process")
def test_verify_agrees_and_each_suggestion_makes_it_pass(draft):
    _, folder = draft
    # A verdict needs no explanation.
    text = (folder / "nceref.toml").read_text().replace("[defaults]\n", "[defaults]\ncalls = 0\n")
    results = judged(folder, text)
    right = ("Spread", "info_nce", "summed", "uniformity", "info_nce_of_views", "of_views")
    assert {name: each.report.verdict for name, each in results.items()} == dict.fromkeys(right, "value-only") | {
        "doubled": "differs"
    }
    # What was counted when they were recognized is what is counted now.
    assert {name: each.checks for name, each in results.items() if each.entry.checks} == {
        name: results[name].entry.checks for name in right
    }
    for key in ("set", "expected_failures"):
        changed = text.replace(f"# {key} = ", f"{key} = ")
        assert changed != text
        assert judged(folder, changed, ["doubled"])["doubled"].report.verdict == "value-only"


@pytest.mark.slow(reason="every correct program of the catalogue; the package above has one of each kind")
def test_each_correct_program_of_the_catalogue_is_recognized_by_its_numbers_alone(monkeypatch):
    monkeypatch.setattr(loss_search, "is_named_after", lambda name, loss: False)
    child = child_runner(None, "cpu", 60.0, 120.0, isolate=False)
    other = {}
    try:
        for id, program in correct_programs().items():
            text = f"{program.function.__module__}:{program.function.__name__}"
            made = recognize.recognize(PublicCallable(text), child)
            if program.loss not in (made.loss, *made.also) or not made.report.ok:
                other[id] = made.loss
    finally:
        child.stop()
    # With the two directions apart and no other setting it is that loss.
    assert other == {"directions-apart": "clip"}
    assert f"all {len(correct_programs())} correct programs of the catalogue" in PAGE


PARTS = {"computes": (DiagnosisPart("it equals another", role="computes"),), "wrong": (DiagnosisPart("it is wrong"),)}


def differing(right, id, role):
    """A report of four cases, so many of them right."""
    results = [Result(f"{i}/value", str(i), "value", "pass" if i < right else "fail", 0, 1, 1, "") for i in range(4)]
    reason = f"the value fails on {4 - right} of 4 cases"
    diagnosis = (Diagnosis(id, PARTS[role]),) if id else ()
    about = {"dtype": "float64"}
    return Report("my.py:f", "clip", "differs", 1, reason, diagnosis, tuple(results), about)


@sweep(
    ("right", "id", "role", "named_after_it", "another"),
    [
        (3, "unexplained", "wrong", True, True),
        (3, "", "wrong", True, True),
        (2, "unexplained", "wrong", False, False),
        (0, "outer-factor-2", "computes", True, True),
        (0, "outer-factor-2+rows-not-normalized", "computes", True, False),
        (0, "sum-instead-of-mean+exp-overflows", "computes", True, True),
        (0, "not-repeatable", "wrong", True, False),
        (0, "raises-an-error", "wrong", False, False),
    ],
)
def test_what_differs_is_taken_for_a_loss_only_on_evidence(right, id, role, named_after_it, another):
    report = differing(right, id, role)
    assert [recognize._is_taken_for(report, named) for named in (True, False)] == [named_after_it, another]
    right_one = replace(report, exit_code=6)
    assert not recognize._is_taken_for(right_one, is_named=True)


def test_a_difference_that_nothing_explains_is_said_to_be_that():
    target = recognize.RecognizedTarget(PublicCallable("my.py:f"), "clip", report=differing(3, "unexplained", "wrong"))
    text = manifest_text(ManifestDraft(Package("my.py", (), {}), (target,)))
    words = " ".join(text.replace("\n# ", " ").split())
    assert (
        "It differs from clip, in float64 (float32 was not tried): the value fails on 1 of 4 cases. Nothing explains"
        " that. [[target]]" in words
    )
    assert 'reason = "not explained yet", strict = "some"}]' in text
    assert '# expected_failures = [{id = ["*/value"' in text
    assert "# set" not in text


def test_what_is_done_beside_right_numbers_explains_a_difference_alone():
    wrong = differing(3, "", "wrong")
    beside = Result("0/behavior.modifies-inputs", "0", "behavior.modifies-inputs", "fail", None, None, None, "")
    assert recognize.what_differs(replace(wrong, results=(*wrong.results, beside))) == "unexplained"
    report = replace(differing(4, "", "wrong"), results=(*differing(4, "", "wrong").results, beside))
    assert recognize.what_differs(report) == "modifies-inputs"
    target = recognize.RecognizedTarget(PublicCallable("my.py:f"), "clip", report=report)
    text = manifest_text(ManifestDraft(Package("my.py", (), {}), (target,)))
    assert "Nothing explains" not in text
    assert 'reason = "modifies-inputs"' in text


def test_the_working_folder_stands_for_its_only_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/__init__.py").touch()
    with pytest.raises(InputError, match="holds no package; name a package"):
        package_name(".")
    (tmp_path / "one").mkdir()
    (tmp_path / "one/__init__.py").touch()
    assert package_name(".") == package_name("./") == "one"
    (tmp_path / "two").mkdir()
    (tmp_path / "two/__init__.py").touch()
    with pytest.raises(InputError, match=r"holds 2 packages \(one, two\)"):
        package_name(".")
    monkeypatch.chdir(tmp_path / "one")
    with pytest.raises(InputError, match="inside a package"):
        package_name(".")


LABELLED = """
import numpy as np

def sup_con(embeddings, labels, temperature):
    z = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    s = z @ z.T / temperature
    np.fill_diagonal(s, -np.inf)
    top = s.max(axis=1, keepdims=True)
    logits = s - top - np.log(np.exp(s - top).sum(axis=1, keepdims=True))
    positive = (labels[:, None] == labels) & ~np.eye(len(z), dtype=bool)
    total = -np.where(positive, logits, 0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.mean(total / COUNT)
"""


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("count", "written"),
    [
        ("np.maximum(positive.sum(axis=1), 1)", 'set = {no_positive = "zero"}'),
        (
            "positive.sum(axis=1)",
            "An anchor without a positive is not judged: "
            'no_positive = "skip" and no_positive = "zero" both fail there.',
        ),
    ],
)
def test_what_an_anchor_without_a_positive_counts_as_is_measured(count, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("labelled.py").write_text(LABELLED.replace("COUNT", count))
    monkeypatch.setattr(loss_search, "all_losses", lambda: {"supcon_out": nceref.get_loss("supcon_out")})
    text = manifest_text(draft_manifest("labelled.py"), tmp_path)
    assert 'loss = "supcon_out"' in text
    assert written in " ".join(text.replace("\n#", "").split())
