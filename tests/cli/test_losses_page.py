"""Pages, records and the table of the README, for every loss."""

import json
from dataclasses import replace

import pytest

from nceref.checks.expect import expected_readings
from nceref.checks.locate import locate
from nceref.checks.properties import PROPERTIES
from nceref.checks.run import CheckResult
from nceref.cli import check_page, expect_page, losses_page
from nceref.errors import InputError
from nceref.losses import all_losses, get_loss
from nceref.output import pages
from nceref.spec import Scalar


def plain_lines(text):
    lines = text.splitlines()
    assert text.endswith("\n")
    assert [line for line in lines if line != line.rstrip() or "\x1b" in line] == []
    assert max(map(len, lines)) <= pages.WIDTH
    return lines


def words(text):
    return " ".join(text.split())


def test_list_fits_80_columns_and_names_every_loss_with_its_summary_and_sources():
    page = losses_page.overview(all_losses().values()).text()
    plain_lines(page)
    for name, loss in all_losses().items():
        block = page[page.index(f"\n{name} ") if not page.startswith(f"{name} ") else 0 :]
        for text in (loss.declaration.summary, *(source.work for source in loss.sources)):
            assert text in words(block)


def test_page_of_a_loss_fits_80_columns_and_holds_all_that_is_declared(loss_name):
    loss = get_loss(loss_name)
    page = losses_page.page_of(loss).text()
    plain_lines(page)
    declared = loss.declaration
    texts = [declared.summary, declared.text, declared.gradient, declared.rows, declared.sign, declared.notes]
    texts += [p.meaning for p in loss.parameters] + [p.name for p in loss.parameters]
    texts += [r.statement for r in declared.relations] + [k.subgradient for k in declared.kinks]
    texts += [str(source) for source in loss.sources]
    texts += [f"{name.replace('_', ' ')} {PROPERTIES[name].statement}" for name in loss.properties]
    for text in texts:
        assert words(text) in words(page)
    wide = losses_page.page_of(loss).text(width=300)
    assert all(f"{source.place.strip()} [{source.read}]" in wide for source in loss.sources)


@pytest.mark.parametrize("width", [40, 50, 64])
def test_narrow_page_of_a_loss_loses_nothing(loss_name, width):
    wide, narrow = (losses_page.page_of(get_loss(loss_name)).text(width=columns) for columns in (300, width))
    assert max(map(len, narrow.splitlines())) <= width
    assert "…" not in narrow
    assert "".join(narrow.split()) == "".join(wide.split())


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


def test_ids_are_explained_once_where_there_are_some():
    explained = "An id such as {} names the statement behind a reading"
    assert (
        words(expect_page.page_of(expected_readings("nt_xent", {"n": 8, "temperature": 1})).text()).count(
            explained.format("WL-1")
        )
        == 1
    )
    found = expected_readings("nt_xent", {"n": 8, "temperature": 1})
    bare = replace(found, readings=tuple(replace(reading, because="by definition") for reading in found.readings))
    assert "An id such as" not in expect_page.page_of(bare).text()


def test_expectations_fit_80_columns_and_mark_defaults_and_what_is_missing():
    lines = plain_lines(
        expect_page.page_of(expected_readings("supcon_out", {"n": 30, "temperature": 0.1, "classes": 3})).text()
    )
    assert lines[1] == "n = 30, classes = 3, views = 1 (default), temperature = 0.1, dim not given"
    assert "needs --dim" in expect_page.page_of(expected_readings("uniformity", {"n": 256})).text()


def test_place_of_a_value_stands_below_the_expectations():
    found = expected_readings("nt_xent", {"n": 256, "temperature": 0.07})
    plain_lines(page := expect_page.page_of(found, locate(found, "6.2364")).text())
    assert "\n6.2364 is collapse and chance (6.23637), to 5 digits.\n" in page


def test_color_adds_nothing_but_color():
    loss = get_loss("nt_xent")
    assert "\x1b[1m" in losses_page.page_of(loss).text(color=True)
    assert "\x1b" not in losses_page.page_of(loss).text()


def test_results_show_the_worst_error_and_every_failure():
    found = [
        CheckResult("dcl", "formula float64", "pass", "worst relative error 3e-16"),
        CheckResult("dcl", "nonnegative", "fail", "declared, but the value is -3"),
        CheckResult("dcl", "scale_invariant", "skip", "the question does not arise"),
        CheckResult("dcl", "relation to nt_xent", "pass", "never above"),
    ]
    page = check_page.page_of(found).text()
    assert [words(line) for line in plain_lines(page)[1:]] == [
        "formula float64 pass worst relative error 3e-16",
        "properties fail 1 failed, 1 skipped",
        "nonnegative fail declared, but the value is -3",
        "skip scale invariant: the question does not arise",
        "relations pass 1 passed",
    ]
    assert check_page.tally(found) == "2 passed, 1 failed, 1 skipped"


def test_readme_table_is_replaced_between_its_markers_and_only_once(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"# title\n\n{losses_page.BEGIN}\nold\n{losses_page.END}\n\nrest\n", encoding="utf-8")
    assert losses_page.update_readme(readme)
    text = readme.read_text(encoding="utf-8")
    assert text == f"# title\n\n{losses_page.BEGIN}\n{losses_page.readme_table()}\n{losses_page.END}\n\nrest\n"
    assert not losses_page.update_readme(readme)
    for name in all_losses():
        assert f"| `{name}(" in text


@pytest.mark.parametrize(
    "text",
    ["", losses_page.BEGIN, f"{losses_page.END} {losses_page.BEGIN}", f"{losses_page.BEGIN}{losses_page.END}" * 2],
)
def test_readme_without_its_markers_is_refused_and_left_alone(tmp_path, text):
    readme = tmp_path / "README.md"
    readme.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="once each"):
        losses_page.update_readme(readme)
    assert readme.read_text(encoding="utf-8") == text


def test_every_line_of_the_readme_table_has_three_columns():
    for line in losses_page.readme_table().splitlines():
        assert line.replace("\\|", "").count("|") == 4
