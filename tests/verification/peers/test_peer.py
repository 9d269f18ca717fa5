"""Peers without their packages: declarations, what is missing, checkouts, and what the audit makes of a report."""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from nceref.errors import DeclarationError, InputError, UnavailableError
from nceref.losses import get_loss
from nceref.spec import Array, Choice, Labels, Scalar
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.peers import audit, peer
from nceref.verification.records import Diagnosis, Result
from nceref.verification.report import Report

TARGETS = {target.name: (held, target) for held in peer.peers().values() for target in held.targets}


@pytest.fixture(autouse=True)
def no_checkouts(monkeypatch):
    for held in peer.peers().values():
        if held.checkout:
            monkeypatch.delenv(held.checkout.variable, raising=False)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_the_inputs_of_its_loss(name):
    _, target = TARGETS[name]
    parameters = {p.name: p for p in get_loss(target.loss).parameters}
    taken = inspect.signature(target.call).parameters
    assert taken.keys() <= parameters.keys()
    assert {n for n, p in parameters.items() if isinstance(p, Array | Labels) and p.required} <= taken.keys()
    assert {n for n, p in parameters.items() if isinstance(p, Scalar) and p.default is ...} <= taken.keys()
    assert all(isinstance(parameters[n], Scalar) and n in taken for n in target.floats)
    for setting, value in target.settings.items():
        if isinstance(parameters.get(setting), Choice):
            assert value in parameters[setting].options
        elif setting not in parameters:
            assert CONVENTIONS[value].axis == setting


@pytest.mark.parametrize("name", TARGETS)
def test_what_another_process_loads_is_the_call_of_the_target(name):
    module, _, function = TARGETS[name][1].address.partition(":")
    assert getattr(sys.modules[module], function) is TARGETS[name][1].call


def test_names_and_paths_stand_for_one_target_each():
    names = [text for _, target in TARGETS.values() for text in (target.name, target.path) if text]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in TARGETS)


def test_a_target_is_found_by_its_import_path():
    held, target = peer.find("lightly.loss:NTXentLoss")
    assert (held.name, target.name, target.loss) == ("lightly", "lightly-ntxent", "nt_xent")
    assert peer.find("lightly.loss:Nothing") is None


def test_an_unknown_target_is_told_what_it_may_have_meant():
    with pytest.raises(InputError, match="did you mean 'optax-ntxent'"):
        peer.get("optax-ntxnt")


def test_peers_are_listed_without_importing_one():
    script = (
        "import sys; from nceref.verification.peers.peer import peers;"
        " [p.version for p in peers().values()]; print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "jax", "optax", "lightly", "transformers", "numpy"} & set(found)


def absent():
    return replace(peer.peers()["lightly"], name="no-such-package", package="no_such_package", pip="no-such-package")


def test_a_missing_package_is_named_with_its_command():
    assert absent().version is None
    said = "target 'lightly.loss:NTXentLoss', .* needs no-such-package: pip install no-such-package"
    with pytest.raises(UnavailableError, match=said):
        absent().require()


def test_a_missing_checkout_is_named_with_its_command():
    with pytest.raises(UnavailableError, match=r"needs paco: git clone https://\S+, then --checkout paco=PATH or N"):
        peer.peers()["paco"].require()


def supcontrast(folder, body="return features, labels, mask, self.options"):
    (folder / "losses.py").write_text(
        "class SupConLoss:\n"
        "    def __init__(self, **options):\n"
        "        self.options = options\n"
        "    def __call__(self, features, labels=None, mask=None):\n"
        f"        {body}\n"
    )
    return folder


def test_a_checkout_is_called_as_its_authors_call_it(tmp_path):
    x = np.arange(6.0).reshape(3, 2)
    with peer.checkouts({"supcontrast": supcontrast(tmp_path)}):
        features, labels, mask, options = TARGETS["supcontrast"][1].call(x, [0, 1, 1], temperature=0.5)
    assert features.shape == (3, 1, 2)
    assert (labels, mask) == ([0, 1, 1], None)
    # T / base_temperature in front is the authors' own; the loss of the reference has it where it is asked for.
    assert options == {"temperature": 0.5, "base_temperature": 0.5}


@pytest.fixture
def solo_learn(tmp_path):
    """A checkout whose files want the rest of it."""
    losses = tmp_path / "solo" / "losses"
    losses.mkdir(parents=True)
    body = (
        "from solo.utils.misc import gather\ndef simclr_loss_func(z, indexes, temperature): return gather(z), indexes\n"
    )
    for name in ("simclr", "mocov2plus", "mocov3"):
        (losses / f"{name}.py").write_text(body)
    with peer.checkouts({"solo-learn": tmp_path}):
        yield TARGETS["solo-learn-supcon"][1]


def test_the_rest_of_a_checkout_is_stood_in_for_and_leaves_no_trace(solo_learn):
    assert solo_learn.call("z", "labels", temperature=1.0) == ("z", "labels")
    assert not [name for name in sys.modules if name.split(".")[0] == "solo"]


def test_stand_ins_leave_what_was_imported_before(solo_learn, monkeypatch):
    monkeypatch.setitem(sys.modules, "solo", json)
    assert solo_learn.call("z", "labels", temperature=1.0) == ("z", "labels")
    assert sys.modules["solo"] is json


def test_the_version_of_a_checkout_is_its_content(tmp_path):
    held = peer.peers()["supcontrast"]
    with peer.checkouts({"supcontrast": supcontrast(tmp_path)}):
        first = held.version
        supcontrast(tmp_path, "return 0")
        assert re.fullmatch("sha256 [0-9a-f]{12}", first)
        assert held.version != first
    assert held.version is None


def test_a_checkout_must_hold_the_file(tmp_path):
    with pytest.raises(InputError, match=rf"supcontrast must be in a folder that holds losses.py, got '{tmp_path}'"):
        peer.checkouts({"supcontrast": tmp_path}).__enter__()


def test_a_checkout_must_be_of_a_peer_that_has_one(tmp_path):
    with pytest.raises(InputError, match="NAME one of paco, solo-learn, supcontrast, got 'lightly'"):
        peer.checkouts({"lightly": tmp_path}).__enter__()


# The audit: rows out of reports.


def results(*failing, cases=("designed-0.3", "designed-0.001")):
    ids = [(case, quantity) for case in cases for quantity in ("value", "grad.z1")]
    status = {f"{case}/{quantity}": "fail" if f"{case}/{quantity}" in failing else "pass" for case, quantity in ids}
    return tuple(Result(id, *id.split("/"), word, 1, 1, 1, "off") for id, word in status.items())


def reported(*failing, diagnosis=()):
    code = 1 if failing else 0
    found = tuple(Diagnosis(one, "your loss equals something else") for one in diagnosis)
    return Report("t", "nt_xent", "differs" if failing else "conforms", code, "the reason", found, results(*failing))


ENTRY = audit.Difference(
    "optax-ntxent", ("0.2.8",), ("float64",), ("*-0.001/*",), "exp-underflows", "It underflows.", "https://x.example"
)


def judged(report, *entries):
    return audit.row(*TARGETS["optax-ntxent"], "0.2.8", "float64", report, entries)


def test_a_target_without_failures_agrees():
    row = judged(reported())
    assert (row.status, row.cases, row.failed, row.why) == ("agrees", 2, 0, ())


def test_a_listed_difference_is_known():
    row = judged(reported("designed-0.001/value", diagnosis=["exp-underflows"]), ENTRY)
    assert (row.status, row.failed, row.why) == ("known", 1, ("It underflows.",))


def test_a_difference_that_is_not_listed_is_new():
    row = judged(reported("designed-0.001/value", "designed-0.3/value", diagnosis=["exp-underflows"]), ENTRY)
    assert row.status == "new"
    assert row.why == ("the reason", "designed-0.3/value: off")


def test_a_listed_difference_that_does_not_fail_any_more_is_stale():
    row = judged(reported(), replace(ENTRY, diagnosis=""))
    assert row.status == "stale"
    assert "known difference *-0.001/* does not fail any more" in row.why[0]


def test_a_suite_without_the_cases_of_an_entry_makes_nothing_stale():
    row = audit.row(*TARGETS["optax-ntxent"], "0.2.8", "float64", reported(), [ENTRY], strict=False)
    assert (row.status, row.why) == ("agrees", ())


def test_a_listed_difference_with_another_diagnosis_is_stale():
    assert judged(reported("designed-0.001/value", diagnosis=["value-saturates"]), ENTRY).status == "stale"


def test_one_part_of_a_joint_diagnosis_is_enough():
    row = judged(reported("designed-0.001/value", diagnosis=["exp-underflows+outer-factor-2"]), ENTRY)
    assert row.status == "known"


def test_a_run_that_proves_nothing_is_new():
    report = replace(reported(), verdict="inconclusive", exit_code=6)
    assert judged(report).status == "new"


def test_the_exit_code_is_that_of_the_worst_row():
    agrees, known = judged(reported()), judged(reported("designed-0.001/value", diagnosis=["exp-underflows"]), ENTRY)
    new, missing = judged(reported("designed-0.3/value")), replace(agrees, status="missing")
    assert [audit.exit_code(rows) for rows in ([agrees, known, missing], [agrees, new], [missing], [])] == [0, 1, 5, 5]


def test_missing_packages_are_listed_with_their_command():
    rows = audit.audit(["paco", "supcontrast"])
    assert [row.status for row in rows] == ["missing", "missing"]
    text = " ".join(audit.page_of(rows).text().split())
    assert "paco not installed: git clone https://github.com/dvlab-research/Parametric-Contrastive-Learning" in text
    assert "2 not installed" in text


def test_the_page_fits_a_terminal():
    rows = [
        judged(reported("designed-0.001/value", diagnosis=["exp-underflows"]), replace(ENTRY, reason="word " * 40)),
        judged(reported("designed-0.3/value")),
        *audit.audit(["paco"]),
    ]
    text = audit.page_of(rows).text()
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("optax 0.2.8\n  optax-ntxent  nt_xent  float64  1 of 2 differ  known\n    exp-underflows\n")


def test_the_markdown_has_a_row_for_each_target_and_a_column_for_each_dtype():
    both = [judged(reported()), replace(judged(reported("designed-0.3/value")), dtype="float32")]
    lines = audit.markdown(both).splitlines()
    assert "| target | release | loss | float64 | float32 |" in lines
    assert "| `optax-ntxent` | optax 0.2.8 | `nt_xent` | agrees, 2 cases | new, 1 of 2 differ |" in lines


def test_the_record_is_json():
    assert json.loads(json.dumps(audit.record([judged(reported())])))["rows"][0]["status"] == "agrees"


def test_every_known_difference_is_well_formed():
    assert all(difference.target in TARGETS for difference in audit.known())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "optax-ntxnt"}, "did you mean 'optax-ntxent'"),
        ({"link": "ask me"}, "link must say something"),
        ({"reason": ""}, "reason must say something"),
        ({"version": ["1"]}, "unexpected keyword argument 'version'"),
    ],
)
def test_a_known_difference_that_says_too_little_is_refused(change, said):
    entry = {field: getattr(ENTRY, field) for field in ENTRY.__dataclass_fields__}
    with pytest.raises(DeclarationError, match=said):
        audit.difference({**entry, **change})
