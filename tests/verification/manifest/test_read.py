"""Manifests: what they may say, and the sentence with file and line for what they may not."""

from importlib.metadata import version
from pathlib import Path

import pytest
from sweep import sweep

from nceref.cases.expected_failures import ExpectedFailure
from nceref.errors import InputError
from nceref.verification.conformance.target import Target
from nceref.verification.manifest.keys import DEFAULTS as DEFAULT_KEYS
from nceref.verification.manifest.read import find_manifest, read_manifest
from nceref.verification.manifest.toml_lines import TomlLines

WHOLE = """\
[[target]]
target = "losses.py:nt_xent"
loss = "nt_xent"

[[target]]
name = "ours"
target = "package.losses:Ours"
loss = "own.py:LOSS"
call = "f(z1, z2)"
suite = "quick"
dtypes = ["float64", "float32"]
ranks = [2, 3]
with = "losses.py:other:0.5"
inputs = "batch.npz"
timeout = 60
set = {temperature = 0.1, labels = "given"}
init = {scale = 2}
expected_failures = [
  {id = "*/value", reason = "known"},
  {id = "opposed-*", reason = "flaky", link = "https://example.org/1", strict = false},
]
"""


def written(tmp_path, text, name="nceref.toml"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


@sweep("name", ["nceref.toml", "pyproject.toml", "other.toml"])
def test_a_whole_manifest(tmp_path, monkeypatch, name):
    below = name == "pyproject.toml"
    (tmp_path / "sub").mkdir(exist_ok=True)
    text = (
        '[tool.other]\nx = "[[target]]"\n' + WHOLE.replace("[[target]]", "[[tool.nceref.target]]") if below else WHOLE
    )
    monkeypatch.chdir(tmp_path)
    manifest = read_manifest(written(Path("sub"), text, name))
    first, second = manifest.targets
    assert manifest.problems == first.problems == second.problems == ()
    assert (first.name, first.target) == ("nt_xent", Target("sub/losses.py:nt_xent", "nt_xent", "nt_xent"))
    expected = {
        "*/value": ExpectedFailure("known"),
        "opposed-*": ExpectedFailure("flaky", "https://example.org/1", False),
    }
    options = {"temperature": 0.1, "labels": ..., "call": "f(z1, z2)", "init": {"scale": 2}, "suite": "quick"}
    options |= {"dtype": ("float64", "float32"), "ranks": (2, 3), "added": "sub/losses.py:other:0.5", "timeout": 60}
    options |= {"inputs": "sub/batch.npz", "expected_failures": expected}
    assert second.target == Target("package.losses:Ours", "sub/own.py:LOSS", "ours", options)
    assert second.place("expected_failures", 1) == f"sub/{name}:{20 + 2 * below}"
    assert [entry.name for entry in manifest.chosen(["ours", "nt_xent"])] == ["nt_xent", "ours"]
    with pytest.raises(InputError, match=r"--only our: .* did you mean 'ours'\?"):
        manifest.chosen(["ours", "our"])


DEFAULTS = """\
[defaults]
suite = "quick"
dtypes = ["float64", "float32"]
loss = "simple"
[[target]]
target = "a.py:f"
[[target]]
target = "a.py:g"
dtypes = "float32"
[[target.expected_failures]]
id = ["*/value", "*/grad.*"]
reason = "known"
dtypes = "float32"
[[target]]
target = "a.py:h"
[[target.expected_failures]]
id = ["*/value",
  "*/grad.*"]
reason = "known"
dtypes = ["float32", "float64"]
diagnosis = "outer-factor-2"
strict = "some"
[[target.expected_failures]]
id = "*/mode.*"
reason = "in another release"
versions = {numpy = ["0.1", "0.2"]}
[[target.expected_failures]]
id = "*/identity.*"
reason = "in this release"
versions = {numpy = "NUMPY", mpmath = ["0.1", "MPMATH"]}
[[target]]
target = "a.py:i"
ranks = 2
expected_failures = [{id = "2-ranks/*", reason = "known", dtypes = "float32"}]
"""


def test_defaults_and_the_formats_and_versions_of_expected_failures(tmp_path):
    text = DEFAULTS.replace("NUMPY", version("numpy")).replace("MPMATH", version("mpmath"))
    manifest = read_manifest(written(tmp_path, text))
    assert manifest.problems == ()
    f, g, h, i = manifest.targets
    both = {"suite": "quick", "dtype": ("float64", "float32")}
    assert f.target == Target(f"{tmp_path}/a.py:f", "simple", "f", both)
    # A target's own key comes first, and without other formats an id does not name its own.
    known = ExpectedFailure("known")
    own = {"*/value": known, "*/grad.*": known}
    assert g.target == Target(
        f"{tmp_path}/a.py:g", "simple", "g", {**both, "dtype": "float32", "expected_failures": own}
    )
    some = ExpectedFailure("known", strict="some", diagnosis="outer-factor-2")
    ids = [f"{dtype}/*/{name}" for dtype in ("float32", "float64") for name in ("value", "grad.*")]
    assert h.expected == {**dict.fromkeys(ids, some), "*/identity.*": ExpectedFailure("in this release")}
    assert list(i.expected) == ["float32-2-ranks/*"]
    lines = [h.place_of(id).rpartition(":")[2] for id in h.ids]
    assert lines == ["17", "18", "17", "18", "27"]
    assert h.place("suite").rpartition(":")[2] == "2"
    assert h.place_of_result("float32/designed-0.3/value") == (str(tmp_path / "nceref.toml"), 17)
    assert h.place_of_result("float32/designed-0.3/other") == (str(tmp_path / "nceref.toml"), 14)


def test_what_is_in_a_folder(tmp_path):
    assert find_manifest(tmp_path) == ""
    project = written(tmp_path, "[tool.other]\n[project]\n", "pyproject.toml")
    assert find_manifest(tmp_path) == ""
    project.write_text("[tool.nceref]\n")
    assert find_manifest(tmp_path) == str(project)
    own = written(tmp_path, "")
    assert find_manifest(tmp_path) == str(own)
    (tmp_path / "nceref.toml").unlink()
    project.write_text("[tool.nceref\n")
    with pytest.raises(InputError, match=r"pyproject.toml:1 is not TOML: "):
        find_manifest(tmp_path)


TARGET = '[[target]]\ntarget = "a.py:f"\n'


@sweep(
    ("text", "sentences"),
    [
        (TARGET + 'los = "simple"', ["3: `los` is no key of a target; did you mean `loss`?"]),
        (TARGET + "dtype = 'float32'", ["3: `dtype` is no key of a target; did you mean `dtypes`?"]),
        ('[[target]]\n\nloss = "simple"', ['1: a target needs `target`; add target = "my_losses.py:nt_xent"']),
        (TARGET + "timeout = true\nset = 1\nranks = ['2']", [
            "3: `timeout` must be a number, got True",
            "4: `set` must be a table, such as {temperature = 0.1}, got 1",
            "5: `ranks` must be a whole number, or a list of whole numbers, got ['2']",
        ]),
        (TARGET + "dtypes = []\nname = ' '\nloss.x = 1", [
            "3: `dtypes` must be text, or a list of texts, got []",
            "4: `name` must be text, got ' '",
            "5: `loss` must be text, got a table",
        ]),
        (TARGET + "[target.set]\nsuite = 'quick'\ndtype = 'float32'\ncase = 'a'", [
            "4: `suite` is no convention; write it beside `set`, as `suite`",
            "5: `dtype` is no convention; write it beside `set`, as `dtypes`",
            "6: `case` is no convention; leave it out",
        ]),
        (TARGET + "expected_failures = 'x'", [
            '3: `expected_failures` must be a list of tables {id = "...", reason = "..."}, got \'x\'',
        ]),
        (TARGET + "[[target.expected_failures]]\nid = 'x'\nresaon = 'y'\n[[target.expected_failures]]\nid = 1\n", [
            "5: `resaon` is no key of an expected failure; did you mean `reason`?",
            '3: an expected failure needs `reason`; add reason = "why it fails"',
            "7: `id` must be text, or a list of texts, got 1",
            '6: an expected failure needs `reason`; add reason = "why it fails"',
        ]),
        (TARGET + "expected_failures = [{id = 'x', reason = 'y'},\n{id = 'x', reason = 'z'}]", [
            "4: the expected failure 'x' stands there twice; leave one out",
        ]),
        (TARGET + TARGET, ["3: line 1 has a target named 'f' as well; give each its own `name`"]),
        (TARGET + TARGET + "name = 'f'", ["5: line 1 has a target named 'f' as well; give each its own `name`"]),
        (TARGET + "dtypes = 'float32'\n[[target.expected_failures]]\nid = 'x'\nreason = 'y'\ndtypes = 'float64'", [
            "7: the target is not judged in float64; its `dtypes` are float32",
        ]),
        (TARGET + "[[target.expected_failures]]\nid = ['x', 1]\nreason = 'y'\nstrict = 'maybe'\nversions = {a = 1}\n"
         "diagnosis = 'gremlins'", [
            "4: `id` must be text, or a list of texts, got ['x', 1]",
            "6: `strict` must be true, false or \"some\", got 'maybe'",
            '7: `versions` must be a table, such as {optax = "0.2.8"}, got a table',
            "8: `diagnosis` must be the id of a convention, see `nceref tables conventions`, got 'gremlins'",
        ]),
        (TARGET + "checks = {value = 1, modes = -3, gradients = 2.5,"
         " identities = true, values = '1', refusals = 0}", [
            "3: `value` is no key of `checks`; did you mean `values`?",
            "3: `modes` must be a number of checks, 0 or more, got -3",
            "3: `gradients` must be a number of checks, 0 or more, got 2.5",
            "3: `identities` must be a number of checks, 0 or more, got True",
            "3: `values` must be a number of checks, 0 or more, got '1'",
        ]),
        (TARGET + "checks = 3", ["3: `checks` must be a table, such as {values = 28, gradients = 84}, got 3"]),
        (TARGET + "set = {checks = 3}", ["3: `checks` is no convention; write it beside `set`, as `checks`"]),
        ("[defaults]\nchecks = {values = 1}\n" + TARGET, [
            "2: `checks` is no key of defaults; keys are "
            + ", ".join(f"`{key}`" for key in DEFAULT_KEYS),
        ]),
        ("[defaults]\nsuite = 3\ndtype = 'x'\n" + TARGET, [
            "2: `suite` must be text, got 3",
            "3: `dtype` is no key of defaults; did you mean `dtypes`?",
        ]),
        ("defaults = 1\n" + TARGET, ["1: `defaults` must be a table, [defaults], got 1"]),
        ("targets = 1\n" + TARGET, ["1: `targets` is no key of a manifest; did you mean `target`?"]),
    ],
)  # fmt: skip
def test_what_is_wrong_has_a_sentence_with_its_line(tmp_path, text, sentences):
    path = written(tmp_path, f'{text}\n[[target]]\nname = "sound"\ntarget = "b.py:g"\n')
    manifest = read_manifest(path)
    problems = [p for entry in manifest.targets for p in entry.problems] + list(manifest.problems)
    assert problems == [f"{path}:{sentence}" for sentence in sentences]
    assert manifest.targets[-1].target is not None
    assert len({entry.name for entry in manifest.targets}) == len(manifest.targets)


@sweep(
    ("text", "sentence"),
    [
        ("", r"nceref.toml has no target; write \[\[target\]\] with"),
        (
            "isolate = true\n" + TARGET,
            r":1: `isolate` is a key of a target; move it below \[\[target\]\] or \[defaults\]",
        ),
        ("[[targets]]\n", r":1: `targets` is no key of a manifest; did you mean `target`\?"),
        ("\n[target]\n", r":2: `target` must be an array of tables, \[\[target\]\] with .*, got a table"),
        ("\ntarget = [1]", r":2: `target` must be an array of tables, .* got \[1\]"),
        ("a = 1\nb = \nc = 2", r":2 is not TOML: Invalid value"),
        ("a = 1\nb = '''", r":2 is not TOML: "),
        ("[target]\nloss = 1\n[target]", r":3 is not TOML: .*; write \[\[target\]\] above each target"),
        ("a = " + "[" * 5000, r"nceref.toml(:1)? is (nested too deeply|not TOML)"),
    ],
)
def test_what_cannot_be_read_is_one_error(tmp_path, text, sentence):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=sentence):
        read_manifest(path)


def test_lines_are_those_of_the_text():
    text = '# [[a]]\nx = """\n[[a]]\n\\""""\n[[a]]\n"b.c" = \'[\' # ]\nd.e = [1, # ]\n'
    text += ' {f = "}"},\n {g = []}]\n[[ a ]]\n[a.h]\ni=0'
    lines = TomlLines(text)
    paths = [("x",), ("a",), ("a", 0), ("a", 0, "b.c"), ("a", 0, "d", "e", 0), ("a", 0, "d", "e", 1, "f")]
    paths += [("a", 0, "d", "e", 2, "g"), ("a", 1), ("a", 1, "h"), ("a", 1, "h", "i"), ("a", 1, "missing", 3), ("z",)]
    assert [lines.of(*path) for path in paths] == [2, 5, 5, 6, 7, 8, 9, 10, 11, 12, 10, 1]
