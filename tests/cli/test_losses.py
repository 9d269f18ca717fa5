"""`nceref losses`: its pages, its records, and the table of docs, for every loss."""

import json

import pytest
from output.page_text import plain_lines, words
from sweep import every_loss

from nceref.checks.properties import PROPERTIES
from nceref.checks.settings import in_words
from nceref.cli import losses_page
from nceref.errors import InputError
from nceref.losses import all_losses, get_loss
from nceref.spec import Scalar


def test_an_empty_name_is_no_list_and_an_import_path_is_the_loss_itself(run):
    assert run("losses", "")[0] == 2
    assert run("losses", "nceref.losses:nt_xent") == run("losses", "nt_xent")


def test_latex_prints_the_formula_alone(run):
    assert run("losses", "nt_xent", "--latex") == (0, get_loss("nt_xent").latex + "\n", "")


@every_loss
def test_page_of_a_loss_fits_80_columns_and_holds_all_that_is_declared(loss_name):
    loss = get_loss(loss_name)
    page = losses_page.page_of(loss).text()
    plain_lines(page)
    declared = loss.declaration
    texts = [declared.summary, declared.text, declared.gradient, declared.rows, declared.sign, declared.notes]
    texts += [p.meaning for p in loss.parameters] + [p.name for p in loss.parameters]
    texts += [r.statement for r in declared.relations] + [k.subgradient for k in declared.kinks]
    texts += [str(source) for source in loss.sources]
    for name, hypothesis in declared.properties.items():
        only = f" Only {in_words(hypothesis)}." if hypothesis else ""
        texts.append(f"{name.replace('_', ' ')} {PROPERTIES[name].statement}{only}")
    texts += ["on the kinks No property is claimed there."] * bool(declared.kinks)
    for text in texts:
        assert words(text) in words(page)
    wide = losses_page.page_of(loss).text(width=300)
    assert all(f"{source.place.strip()} [{source.read}]" in wide for source in loss.sources)


@every_loss
def test_record_of_a_loss_survives_json(loss_name):
    record = losses_page.record(get_loss(loss_name))
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert [entry["name"] for entry in record["inputs"]] == [p.name for p in get_loss(loss_name).parameters]


def test_record_says_what_must_be_given_and_what_gets_a_gradient():
    inputs = {entry["name"]: entry for entry in losses_page.record(get_loss("supcon_out"))["inputs"]}
    assert "default" not in inputs["temperature"]
    assert inputs["labels"]["default"] is None
    assert inputs["embeddings"]["shapes"] == [["N", "D"], ["N", "V", "D"]]
    assert inputs["temperature"]["gradient"]
    assert not inputs["mask"]["gradient"]
    assert inputs["form"]["options"] == ["mean", "sum"]


def test_record_gives_the_typical_range_of_a_scalar():
    for loss in map(get_loss, ("siglip", "nt_xent")):
        typical = {p.name: list(p.typical) for p in loss.parameters if isinstance(p, Scalar)}
        assert {i["name"]: i["typical"] for i in losses_page.record(loss)["inputs"] if "typical" in i} == typical


def test_color_adds_nothing_but_color():
    loss = get_loss("nt_xent")
    assert "\x1b[1m" in losses_page.page_of(loss).text(color=True)
    assert "\x1b" not in losses_page.page_of(loss).text()


def test_losses_table_is_replaced_between_its_markers_and_only_once(tmp_path):
    page = tmp_path / "losses.md"
    page.write_text(f"# title\n\n{losses_page.BEGIN}\nold\n{losses_page.END}\n\nrest\n", encoding="utf-8")
    assert losses_page.update_table(page)
    text = page.read_text(encoding="utf-8")
    assert text == f"# title\n\n{losses_page.BEGIN}\n{losses_page.losses_table()}\n{losses_page.END}\n\nrest\n"
    assert not losses_page.update_table(page)
    for name in all_losses():
        assert f"| `{name}(" in text


@pytest.mark.parametrize(
    "text",
    ["", losses_page.BEGIN, f"{losses_page.END} {losses_page.BEGIN}", f"{losses_page.BEGIN}{losses_page.END}" * 2],
)
def test_a_page_without_its_markers_is_refused_and_left_alone(tmp_path, text):
    page = tmp_path / "losses.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="once each"):
        losses_page.update_table(page)
    assert page.read_text(encoding="utf-8") == text


def test_every_line_of_the_table_has_three_columns():
    for line in losses_page.losses_table().splitlines():
        assert line.replace("\\|", "").count("|") == 4
