"""Numbers of checks written into a manifest: nothing else changes, in whatever way its tables are written."""

import re
import tomllib

import pytest
from sweep import sweep

from nceref.errors import InputError
from nceref.verification.manifest.read import read_manifest
from nceref.verification.manifest.rewrite import with_checks, without_checks

MADE = {"values": 28, "gradients": 84}
WRITTEN = "checks = {values = 28, gradients = 84}"
ONE = '# of f\n[[target]]  # the first\ntarget = "a.py:f" # where\n{}\n# of g\n[[target]]\ntarget = "b.py:g"\n'


def rewritten(folder, text, name="nceref.toml", counts=None):
    path = folder / name
    path.write_bytes(text.encode())
    manifest = read_manifest(path)
    assert [entry.problems for entry in manifest.targets] == [()] * len(manifest.targets)
    content = with_checks(manifest, {"f": MADE} if counts is None else counts, "--update-checks")
    assert path.read_bytes() == text.encode()
    return content.decode()


# The line that is there, and what becomes of it.
LINES = {
    "": f"{WRITTEN}\n",
    "checks = {values = 1}": WRITTEN,
    "checks = {}": WRITTEN,
    "checks={ modes = 3 }   # by hand": "checks={values = 28, gradients = 84}   # by hand",
    "'checks' = {values = 1}": "'checks' = {values = 28, gradients = 84}",
    'set = {temperature = 0.1}   # "checks = {"': f'set = {{temperature = 0.1}}   # "checks = {{"\n{WRITTEN}',
    "dtypes = [\n  'float64', # } ]\n  'float32',\n]": f"dtypes = [\n  'float64', # }} ]\n  'float32',\n]\n{WRITTEN}",
    "checks = {values = 1}\ntimeout = 3": f"{WRITTEN}\ntimeout = 3",
    'call = """\n[[target]]\nf(x)"""': f'call = """\n[[target]]\nf(x)"""\n{WRITTEN}',
    "seed = 3\n[target.set]\ntemperature = 1": f"seed = 3\n{WRITTEN}\n[target.set]\ntemperature = 1",
    "set.temperature = 1\n[[target.expected_failures]]\nid = '*'\nreason = 'x'": None,
}


@sweep("line", LINES)
def test_one_value_or_one_line_is_written_and_all_else_stays(tmp_path, line):
    text = ONE.format(line)
    made = rewritten(tmp_path, text)
    if LINES[line] is not None:
        # Where there is no line of its own, it stands below the last one.
        expected = text.replace("# where\n", f"# where\n{WRITTEN}\n") if not line else ONE.format(LINES[line])
        assert made == expected
    before, after = tomllib.loads(text), tomllib.loads(made)
    assert after["target"][0].pop("checks") == MADE
    before["target"][0].pop("checks", None)
    assert after == before
    # Numbers that are there already change nothing.
    assert rewritten(tmp_path, made) == made
    assert re.findall("#.*", made) == re.findall("#.*", text)


@sweep(
    ("name", "text", "expected"),
    [
        ("nceref.toml", '[[target]]\ntarget = "a.py:f"', f'[[target]]\ntarget = "a.py:f"\n{WRITTEN}'),
        ("nceref.toml", 'target = [{target = "a.py:f"}, {target = "b.py:g"}]\n', None),
        ("nceref.toml", 'target = [\n  {target = "a.py:f", checks = {}}, # f\n]\n', None),
        (
            "nceref.toml",
            '[[target]]\r\ntarget = "a.py:f" # é\r\n\r\n# end\r\n',
            f'[[target]]\r\ntarget = "a.py:f" # é\r\n{WRITTEN}\r\n\r\n# end\r\n',
        ),
        ("nceref.toml", '\ufeff[[target]]\ntarget = "a.py:f"\n', None),
        (
            "pyproject.toml",
            '[project]\nx = nan\ny = 1979-05-27\n[[tool.nceref.target]]\ntarget = "a.py:f"\n[o]\n',
            None,
        ),
        ("pyproject.toml", '[tool.nceref]\ntarget = [{target = "a.py:f", loss = "clip"}]\n', None),
    ],
)
def test_every_form_of_a_file_is_kept(tmp_path, name, text, expected):
    made = rewritten(tmp_path, text, name)
    assert made == expected or expected is None
    assert made.startswith("\ufeff") == text.startswith("\ufeff")
    path = tmp_path / name
    path.write_bytes(made.encode())
    first, *others = read_manifest(path).targets
    assert first.checks == MADE
    assert [each.checks for each in others] == [{}] * len(others)
    short = re.sub(r"(, |\r?\n)?checks = \{values = 28, gradients = 84\}", "", made)
    assert short == re.sub(r", checks = \{\}", "", text)


def test_the_numbers_of_other_targets_stay(tmp_path):
    text = ONE.format("checks = {values = 1}") + "checks = {modes = 2}\n"
    both = rewritten(tmp_path, text, counts={"f": {"values": 3}, "g": {"modes": 4}})
    assert both == text.replace("values = 1", "values = 3").replace("modes = 2", "modes = 4")
    assert rewritten(tmp_path, text, counts={"g": {"modes": 4}}) == text.replace("modes = 2", "modes = 4")
    assert rewritten(tmp_path, text, counts={}) == text
    manifest = without_checks(read_manifest(tmp_path / "nceref.toml"), ["g"])
    assert [entry.checks for entry in manifest.targets] == [{"values": 1}, {}]


@sweep("lines", ["[target.checks]\nvalues = 1", "checks.values = 1"])
def test_numbers_in_lines_of_their_own_are_refused_and_nothing_is_changed(tmp_path, lines):
    with pytest.raises(
        InputError, match=r"nceref.toml:4: --update-checks writes `checks` as a line below \[\[targ"
    ) as e:
        rewritten(tmp_path, ONE.format(lines))
    assert str(e.value).endswith(f"write {WRITTEN} yourself")


def test_a_file_that_was_changed_meanwhile_is_not_written(tmp_path):
    path = tmp_path / "nceref.toml"
    path.write_text(ONE.format(""))
    manifest = read_manifest(path)
    path.write_text(ONE.format("timeout = 3"))
    with pytest.raises(InputError, match="was changed while its targets ran: --update-checks writes nothing; run it"):
        with_checks(manifest, {"f": MADE}, "--update-checks")
