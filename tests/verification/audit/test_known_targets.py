"""A known target is the same one by any of its paths, with a point for the colon, and with constructor arguments."""

import math

import pytest
from sweep import sweep

from nceref.errors import InputError
from nceref.targets.peers import peer
from nceref.verification.request import request_of
from nceref.verification.verifier import verify

LOSS = """
import numpy as np

class NTXentLoss:
    def __init__(self, temperature=0.5, memory_bank_size=0, gather_distributed=False):
        self.temperature = temperature

    def __call__(self, z1, z2):
        z = np.concatenate([z1, z2])
        z = z / np.sqrt(np.sum(z * z, axis=1, keepdims=True))
        logits = z @ z.T / self.temperature
        np.fill_diagonal(logits, -np.inf)
        positive = np.diag(np.roll(logits, len(z1), axis=1))
        return np.mean(np.logaddexp.reduce(logits, axis=1) - positive)
"""


@pytest.fixture
def lightly(tmp_path, monkeypatch):
    """The package without torchvision, which it imports: only its single files can be loaded."""
    for folder in ("lightly/loss", "lightly-1.0.dist-info"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "lightly/__init__.py").write_text("")
    (tmp_path / "lightly/loss/__init__.py").write_text("import torchvision_that_is_missing")
    (tmp_path / "lightly/loss/ntx_ent_loss.py").write_text(LOSS)
    (tmp_path / "lightly-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: lightly\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("lightly")
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("lightly.loss:NTXentLoss", {}),
        ("lightly.loss.NTXentLoss", {"init": {"temperature": 0.07}}),
        ("lightly-ntxent", {"init": {"temperature": 0.2}}),
    ],
)
def test_it_keeps_its_loss_and_how_it_is_called(text, options):
    report = verify(text, framework="numpy", suite="quick", **options)
    assert (report.loss, report.verdict) == ("nt_xent", "value-only"), report.reason
    fixed = options.get("init", {}).get("temperature")
    temperatures = {r.case.split("-")[-1] for r in report.results if r.quantity == "value"}
    assert temperatures == {f"{fixed:g}"} if fixed else len(temperatures) > 3


@sweep(
    ("text", "name"),
    [
        ("sentence_transformers.losses:MultipleNegativesRankingLoss", "mnrl"),
        ("sentence_transformers.losses.MultipleNegativesRankingLoss", "mnrl"),
        ("info_nce:InfoNCE", "info-nce-pytorch"),
        ("open_clip:ClipLoss", "open-clip-clip"),
        ("torch.nn:CrossEntropyLoss", "torch-cross-entropy"),
        ("lightly.loss.ntx_ent_loss.NTXentLoss", "lightly-ntxent"),
    ],
)
def test_it_is_known_by_the_paths_that_it_is_imported_by(text, name):
    assert peer.find(text)[1].name == name
    assert peer.find(text + "s") is None


def test_constructor_arguments_are_scalars_of_the_loss_in_its_units():
    presets = {name: peer.get(name)[1].presets for name in ("mnrl", "pml-arcface", "lightly-ntxent")}
    assert presets["mnrl"]({"scale": 20.0}) == {"temperature": 0.05}
    assert presets["pml-arcface"]({"margin": 90.0, "scale": 3}) == {"margin": pytest.approx(math.pi / 2), "scale": 3}
    assert presets["lightly-ntxent"]({"memory_bank_size": 0}) is None
    # Once under each of its names is twice.
    assert presets["mnrl"]({"scale": 20.0, "temperature": 0.05}) is None


@pytest.mark.usefixtures("lightly")
def test_other_constructor_arguments_are_those_of_its_own_class():
    request = request_of("lightly.loss.NTXentLoss", None, {"init": {"memory_bank_size": 0}})
    assert (request.thing, request.loss.name) == ("lightly.loss:NTXentLoss", "nt_xent")
    assert request.init == {"memory_bank_size": 0}
    direct = request_of("lightly.loss.ntx_ent_loss:NTXentLoss", None, {"init": {"memory_bank_size": 0}})
    assert direct.thing == "lightly.loss.ntx_ent_loss:NTXentLoss"
    with pytest.raises(InputError, match=r"`loss` must be 'nt_xent' for lightly.loss:NTXentLoss"):
        request_of("lightly.loss:NTXentLoss", "dcl", {"init": {"temperature": 0.1}})


def test_a_name_without_a_path_takes_its_scalars_only(tmp_path):
    (tmp_path / "losses.py").write_text("")
    with peer.checkouts({"supcontrast": tmp_path}):
        assert request_of("supcontrast", None, {"init": {"temperature": 0.1}}).init == {"temperature": 0.1}
        with pytest.raises(InputError, match="`init` of supcontrast must be its scalars"):
            request_of("supcontrast", None, {"init": {"contrast_mode": "one"}})
