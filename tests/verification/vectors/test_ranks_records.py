"""Cases on several ranks: what ranks that gather leave, the judge of their answers, and records that are refused."""

import copy
import json
from dataclasses import replace
from functools import cache, partial

import jsonschema
import numpy as np
import pytest
from slow import partly_slow
from verification.vectors.answers import proven

from nceref import InputError
from nceref.exact.number_systems import Floats
from nceref.exact.reference import arguments, mapped
from nceref.exact.reverse_mode import ReverseMode, Variable, backward, value_of
from nceref.losses import get_loss
from nceref.output.schema import check
from nceref.targets.frameworks.call import Trouble
from nceref.targets.ranks.contract import split_inputs
from nceref.verification.vectors.export import export
from nceref.verification.vectors.ranks import ranks_diagnoses, ranks_observation, ranks_results
from nceref.verification.vectors.ranks_check import check_cases, check_ranks
from nceref.verification.vectors.ranks_file import joined_rows, ranks_case_of, ranks_record, read_ranks
from nceref.verification.vectors.records import hex_of
from nceref.verification.vectors.store import DATA, RANKS, read_vectors
from tools.vectors.ranks import SCENARIOS, ranks_cases

pytestmark = pytest.mark.machine

LOSSES = ("clip", "info_nce", "nt_xent", "siglip", "supcon_out")
RECORDS = {}
for _record in json.loads((DATA / RANKS).read_text())["cases"]:
    RECORDS[_record["loss"], sum(name == _record["loss"] for name, _ in RECORDS)] = _record


@cache
def case(loss, number):
    return ranks_case_of(RECORDS[loss, number], "here")


def test_each_loss_has_every_scenario():
    assert set(RECORDS) == {(loss, number) for loss in LOSSES for number in range(len(SCENARIOS))}
    for (_, number), record in RECORDS.items():
        formulation, shards, temperature = SCENARIOS[number]
        assert record["ranks"]["formulation"] == formulation
        assert record["ranks"]["shards"] == [list(own) for own in shards]
        assert f"-{temperature:g}-" in record["id"]


@pytest.mark.parametrize(("loss", "number"), sorted(RECORDS))
def test_numbers_are_what_ranks_that_gather_leave(loss, number):
    made = case(loss, number)
    values, grads = left_by(made)
    assert np.allclose([float(x.numbers) for x in made.values], values, rtol=1e-12, atol=0)
    for own, theirs in zip(made.grads, grads, strict=True):
        assert own.keys() == theirs.keys()
        for name, output in own.items():
            assert np.allclose(output.numbers, theirs[name], rtol=1e-10, atol=1e-14), name


def left_by(made):
    """Values and gradients of ranks that share their variables, as a gather with gradients lets them."""
    loss, count = get_loss(made.joined.loss).declaration, joined_rows(made.joined)
    base, inputs = Floats(), made.joined.arguments
    split, learned = split_inputs(loss, inputs), [n for n in loss.differentiable if n in inputs]
    given = arguments(loss, base, {p.name: inputs.get(p.name) for p in loss.parameters})
    variable = partial(Variable, base)
    ranks = made.contract.rows(count)
    held = [
        {n: mapped(variable, [given[n][i] for i in own] if n in split else given[n]) for n in learned} for own in ranks
    ]
    values = []
    for rank, own in enumerate(ranks):
        joined = {n: [row for each in held for row in each[n]][:count] for n in learned if n in split}
        rows = loss.formula(ReverseMode(base), **{**given, **held[rank], **joined})
        chosen = rows if made.formulation == "joined" else [row for i, row in enumerate(rows) if i % count in own]
        values.append(sum(chosen) / len(rows if made.formulation == "share" else chosen))
    backward(sum(values))
    slopes = [{n: np.array(mapped(lambda x: float(x.slope), x)) for n, x in each.items()} for each in held]
    return [value_of(x) for x in values], slopes


def answers(made, changed=lambda rank, value, grads: (value, grads)):
    """What an implementation writes that has the numbers of the record, or others."""
    out = []
    for rank, (value, grads) in enumerate(zip(made.values, made.grads, strict=True)):
        x, g = changed(rank, float(value.numbers), {n: o.numbers for n, o in grads.items()})
        out.append({"value": x, "grad": {n: hex_of(y) if np.ndim(y) else float(y) for n, y in g.items()}})
    return out


def failed(made, given, dtype="float64"):
    return {r.quantity for r in ranks_results(made, given, dtype) if r.status == "fail"}


@pytest.mark.parametrize(("loss", "number"), sorted(RECORDS))
def test_the_numbers_of_a_record_pass(loss, number):
    made = case(loss, number)
    # Each format has its turn.
    results = ranks_results(made, answers(made), made.joined.formats[number % 4])
    assert {r.status for r in results} == {"pass"}
    assert {r.quantity for r in results} >= {"value", *(f"grad.{name}" for name in made.grads[0])}


WRONG = {
    "without the gradient of the gather": (lambda r, x, g: (x, {n: y / 2 for n, y in g.items()}), 0, {"image", "text"}),
    "a value twice": (lambda r, x, g: (2 * x, g), 0, {"value"}),
    "a rank alone": (lambda r, x, g: (x * (1 + 1e-6 * r), g), 0, {"value"}),
    "copies count": (lambda r, x, g: (x, {n: y + 1e-3 for n, y in g.items()}), 5, {"image", "text"}),
    "a mean of a share": (lambda r, x, g: (x * (4 / 3, 4)[r], g), 10, {"value"}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_between_ranks_fails(wrong):
    changed, number, quantities = WRONG[wrong]
    made = case("clip", number)
    assert {name if name == "value" else f"grad.{name}" for name in quantities} <= failed(made, answers(made, changed))


def test_other_formulations_of_the_same_loss_pass():
    """The joined loss on each rank, where the record has means over own anchors."""
    made = case("clip", 7)
    whole = float(made.joined.outputs["value"].numbers)
    scale = made.joined.outputs["grad.logit_scale"].numbers
    assert not failed(made, answers(made, lambda r, x, g: (whole, {**g, "logit_scale": scale})))


NAMED = {
    "": lambda w, x, rows, scale: (x, rows, scale),
    "gradient-divided-by-ranks": lambda w, x, rows, scale: (x, rows / w, scale),
    "value-times-ranks+gradient-times-ranks": lambda w, x, rows, scale: (w * x, w * rows, w * scale),
    "scalar-not-synchronized": lambda w, x, rows, scale: (x, rows, scale / w),
}


@pytest.mark.parametrize("id", NAMED)
def test_what_is_wrong_between_ranks_has_its_name(id):
    """Of an implementation that computes the joined loss on each rank."""
    seen = []
    for made in (case("clip", number) for number in range(len(SCENARIOS))):
        outputs = {name.removeprefix("grad."): x.numbers for name, x in made.joined.outputs.items()}
        size, given = made.contract.world_size, []
        for own in made.contract.rows(joined_rows(made.joined)):
            answer = NAMED[id](size, outputs["value"], size, outputs["logit_scale"])
            grads = {name: hex_of(answer[1] * outputs[name][own]) for name in ("image", "text")}
            given.append({"value": float(answer[0]), "grad": {**grads, "logit_scale": float(answer[2])}})
        if made.formulation != "share" and not made.contract.duplicate:
            seen.append((made, ranks_observation(made, given, "float64")))
    assert [d.id for d in ranks_diagnoses(seen)] == ([id] if id else [])


def test_a_rank_that_fails_is_named():
    made = case("clip", 2)
    given = [*answers(made)[:2], {"error": "no room"}]
    (result,) = ranks_results(made, given, "float64")
    assert result.status == "error"
    assert "no room on rank 2 of 3" in result.why


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda a: a[:1], "answers for 1 rank, but the case has 2 ranks"),
        (lambda a: {"value": 1.0}, "answers for no ranks"),
        (lambda a: [a[0], 1.0], "rank 1 with something else than an object"),
        (lambda a: [a[0], {**a[1], "grad": {"image": [0.0]}}], r"\(rank 1\)"),
        (lambda a: [a[0], {**a[1], "grad": {"picture": [0.0]}}], r"\(rank 1\)"),
    ],
)
def test_what_is_no_answer_of_ranks_is_refused(given, words):
    made = case("clip", 0)
    with pytest.raises(Trouble, match=words):
        ranks_results(made, given(answers(made)), "float64")


def changed_by(record, path, to):
    record = copy.deepcopy(record)
    *way, last = path
    place = record
    for key in way:
        place = place[key]
    place[last] = to
    return record


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        (("ranks", "shards"), [[0, 2], [1, 3]], "are none of the formulation 'joined'"),
        (("ranks", "shards"), [[0, 1], [2, 2.5]], "are none of the formulation"),
        (("ranks", "shards"), [[0, 1, 2], [3]], "the id must begin with joined-2-ranks-3"),
        (("ranks", "shards"), [], "are none of the formulation"),
        (("ranks", "shards"), [0, 1], "are none of the formulation"),
        (("ranks", "formulation"), "global", "are none of the formulation 'global'"),
        (("ranks", "formulation"), "share", "`value` is not what follows"),
        (("ranks", "world_size"), 3, "`world_size` is not what follows"),
        (("ranks", "sync"), "sum", "`sync` is not what follows"),
        (("ranks", "values"), [], "must have an entry for each rank"),
        (("ranks", "grads", 0, "image", "shape"), [3, 2], "`shape` .* does not hold|in the shapes of its shard"),
        (("ranks", "grads", 1), {}, "in the shapes of its shard"),
        (("inputs", "logit_scale", "hex"), ["4008000000000000"], "its contents have the id"),
    ],
)
def test_a_record_that_is_not_as_it_must_be_is_refused(path, to, words):
    with pytest.raises(InputError, match=words):
        ranks_case_of(changed_by(RECORDS["clip", 0], path, to), "here")


@pytest.mark.parametrize("engine", ["arb", "decimal"])
def test_a_check_encloses_joined_batches_anew_and_adds_up_ranks(engine):
    if engine == "arb":
        pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")
    made = [case("siglip", number) for number in range(len(SCENARIOS))]
    checked = check_ranks("siglip", made, engine)
    assert checked.wrong == ()
    assert (checked.cases, checked.engine) == (len(SCENARIOS), engine)
    assert check_cases("siglip", [*made[:2], made[0].joined]).cases == 3
    one = made[5]
    for name in ("image", "logit_bias"):
        output = one.grads[1][name]
        off = replace(output, numbers=output.numbers + 1e-15)
        changed = replace(one, grads=(one.grads[0], {**one.grads[1], name: off}))
        assert check_ranks("siglip", [changed], engine).wrong == (
            f"{one.id}, {name}: the ranks do not add up to the joined batch",
        )


@pytest.mark.parametrize("loss", partly_slow(LOSSES, lambda name: name == "info_nce", "they take 15 seconds each"))
def test_certified_anew_the_records_are_the_same(request, loss):
    pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")
    fresh = ranks_cases(get_loss(loss).declaration)
    numbers = range(len(SCENARIOS)) if loss != "info_nce" else range(1)
    for number in numbers:
        assert proven(ranks_record(next(fresh))) == proven(RECORDS[loss, number])


def test_records_are_as_their_schema_says():
    validator = jsonschema.Draft202012Validator(json.loads((DATA / "ranks.schema.json").read_text()))
    content = json.loads((DATA / RANKS).read_text())
    validator.validate(content)
    check(content, DATA / "ranks.schema.json", "here")
    wrong = [(("ranks", *path), to) for path, to in [
        (("sync",), "max"), (("values", 0, "hex"), ["1.0"]), (("more",), 1), (("grads",), []), (("grads", 1), 3),
    ]]  # fmt: skip
    for path, to in [*wrong, (("loss",), 3), (("ranks",), [])]:
        content["cases"] = [changed_by(RECORDS["clip", 0], path, to)]
        assert not validator.is_valid(content), path
        with pytest.raises(InputError, match=r"^here: `cases"):
            check(content, DATA / "ranks.schema.json", "here")


def test_an_exported_folder_has_the_cases_of_its_losses(tmp_path):
    list(export(tmp_path, ("siglip",), "float32"))
    exported = read_ranks(read_vectors(tmp_path).manifest, tmp_path)
    assert [made.id for made in exported] == [case("siglip", number).id for number in range(len(SCENARIOS))]
    for made in exported:
        assert made.joined.formats == ("float32",)
        assert {tuple(x.allowed) for each in made.grads for x in each.values()} == {("float32",)}
        assert not failed(made, answers(made), "float32")
