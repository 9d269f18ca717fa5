"""Choosing declarations by name; a wrong name gets near names, or what is described by that word, as suggestions."""

import re
import subprocess
import sys

import pytest
from sweep import sweep

from nceref import registry
from nceref.errors import InputError, TargetError
from nceref.losses import all_losses, get_loss
from nceref.output.words import letters
from nceref.targets.peers.peer import peers


@sweep(
    ("name", "meant"),
    [
        ("simclr", ["nt_xent"]),
        ("nt_xnet", ["nt_xent"]),
        ("supcon", ["supcon_in", "supcon_out"]),
        ("decoupled", ["dcl", "dclw"]),
        ("GTE", ["multi_direction"]),
        ("Qwen3", ["guided_info_nce"]),
        ("logQ correction", ["sampled_softmax"]),
        ("InfoNCE with hard negatives", ["hard_contrastive", "mnrl"]),
        ("loss", []),
        ("xyz", []),
        ("", []),
    ],
)
def test_only_what_is_near_or_described_so_is_suggested(name, meant):
    hint = f"; did you mean {' or '.join(map(repr, meant))}? " if meant else ". "
    with pytest.raises(InputError) as caught:
        get_loss(name)
    assert str(caught.value) == f"no loss named {name!r}{hint}See `nceref losses`"


@pytest.mark.parametrize(("name", "transform"), [("MatryoshkaLoss", "matryoshka"), ("GradCache", "accumulated")])
def test_a_transform_of_a_loss_is_named_where_a_loss_is_asked_for(name, transform):
    message = rf"no loss named '{name}': it is made of one, see nceref.transforms.{transform} and docs/losses.md"
    with pytest.raises(InputError, match=message):
        get_loss(name)


@sweep(
    ("name", "loss"),
    [
        ("ntxent", "nt_xent"),
        ("NT-XENT", "nt_xent"),
        ("NTXentLoss", "nt_xent"),
        ("InfoNCE", "info_nce"),
        ("SigLipLoss", "siglip"),
        ("SupConLoss", "supcon_out"),
        ("MultipleNegativesRankingLoss", "mnrl"),
    ],
)
def test_a_loss_is_found_under_the_name_that_packages_give_it(name, loss):
    assert get_loss(name) is get_loss(loss)


def test_no_two_losses_are_known_by_one_name():
    names = [letters(n) for loss in all_losses().values() for n in (loss.name, *loss.declaration.known_as)]
    assert len(names) == len({*names})


def test_chosen_are_those_named_each_once_or_all():
    known = {"one": 1, "two": 2, "three": 3}
    assert registry.choose("number", ["three", "one", "three"], known, "count") == [3, 1]
    assert registry.choose("number", [], known, "count") == [1, 2, 3]
    with pytest.raises(InputError, match="no number named 'thre'; did you mean 'three'"):
        registry.choose("number", ["one", "thre"], known, "count")


def test_every_loss_is_found_in_other_letters():
    for name in all_losses():
        other = name.replace("_", "-").upper()
        assert repr(name) in str(registry.unknown("loss", other, registry.names("nceref.family"), "nceref losses"))


def test_what_python_looks_for_in_a_module_loads_no_declaration():
    script = "import sys, nceref.losses; hasattr(nceref.losses, '__wrapped__'); print(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not [name for name in finished.stdout.split() if name.startswith("nceref.family.")]


def test_registry_imports_nothing_heavy():
    script = "import sys, nceref.registry; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_pip_is_advised_for_every_package_that_is_judged_and_for_no_guess():
    judged = {peer.package.partition(".")[0]: peer.pip for peer in peers().values() if peer.pip}
    # The machinery knows no loss by its name.
    judged = {package: pip for package, pip in judged.items() if package not in all_losses()}
    assert judged
    for package, pip in judged.items():
        assert registry.DISTRIBUTIONS[package] == re.split(r"[<>=]", pip.strip("'"))[0]
    with pytest.raises(TargetError) as caught:
        registry.find_object("no_such_package:loss")
    assert "pip" not in str(caught.value)


def test_a_file_of_a_package_has_its_own_neighbors_and_a_broken_package_leaves_it_alone(tmp_path):
    for folder, number in (("first_of_two", 1), ("second_of_two", 2)):
        package = tmp_path / folder / "pkg" / "inner"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").write_text("")
        (package / "__init__.py").write_text("from pkg.inner.part import number\n")
        (package / "part.py").write_text("from ..numbers import number\n")
        (package.parent / "numbers.py").write_text(f"number = lambda: {number}\n")
        (package / "needy.py").write_text("from .part import missing\n")
        code = "from nceref.registry import find_object; import sys; print(find_object(sys.argv[1])())"
        for name in ("part.py", "__init__.py"):
            words = [sys.executable, "-c", code, f"{package / name}:number"]
            assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == f"{number}\n"
        words = [sys.executable, "-c", code, f"{package / 'needy.py'}:number"]
        assert (
            "cannot import name 'missing'" in subprocess.run(words, capture_output=True, text=True, check=False).stderr
        )
        (package.parent / "__init__.py").write_text("import not_there_at_all\n")
        words = [sys.executable, "-c", code, f"{package.parent / 'numbers.py'}:number"]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == f"{number}\n"
        words = [sys.executable, "-c", code, f"{package / 'part.py'}:number"]
        assert "not_there_at_all" in subprocess.run(words, capture_output=True, text=True, check=False).stderr
