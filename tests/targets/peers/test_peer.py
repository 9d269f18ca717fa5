"""Peers without their packages: declarations, what is missing, checkouts."""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from nceref.diagnosis.conventions import CONVENTIONS
from nceref.errors import InputError, UnavailableError
from nceref.losses import get_loss
from nceref.spec import Array, Choice, Labels, Scalar
from nceref.targets.peers import peer

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
    options = {option for way in target.ranks for option in way}
    assert options <= {name for name, p in taken.items() if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}
    assert taken.keys() - (options | {"rank", "world_size"} if target.ranks else set()) <= parameters.keys()
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


def test_an_unknown_target_is_refused_with_one_like_it():
    with pytest.raises(InputError, match="did you mean 'optax-ntxent'"):
        peer.get("optax-ntxnt")


def test_peers_are_listed_without_importing_one():
    script = (
        "import sys; from nceref.targets.peers.peer import peers;"
        " [p.version for p in peers().values()]; print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "jax", "optax", "lightly", "transformers", "numpy"} & set(modules)


def absent():
    return replace(peer.peers()["lightly"], name="no-such-package", package="no_such_package", pip="no-such-package")


def test_a_missing_package_is_named_with_its_command():
    assert absent().version is None
    with pytest.raises(UnavailableError, match=r"lightly.loss:NTXentLoss.*: pip install no-such-package"):
        absent().require()


def test_a_missing_checkout_is_named_with_its_command():
    with pytest.raises(UnavailableError, match=r"paco: git clone https://\S+, then --checkout paco=PATH"):
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
    # T / base_temperature in front is the authors' own; the loss of the reference has it as a setting.
    assert options == {"temperature": 0.5, "base_temperature": 0.5}


@pytest.fixture
def solo_learn(tmp_path):
    """A checkout whose files import the rest of it."""
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
    with pytest.raises(InputError, match=rf"losses.py, got '{tmp_path}'"):
        peer.checkouts({"supcontrast": tmp_path}).__enter__()


def test_a_checkout_must_be_of_a_peer_that_has_one(tmp_path):
    with pytest.raises(InputError, match="NAME one of paco, solo-learn, supcontrast, got 'lightly'"):
        peer.checkouts({"lightly": tmp_path}).__enter__()
