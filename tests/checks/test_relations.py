"""What must hold between losses and within one, exactly: declared relations, and the identities of the literature."""

from dataclasses import replace

import numpy as np
import pytest
from sweep import sweep

from nceref import all_losses, get_loss, losses
from nceref.checks import run
from nceref.spec import Relation
from nceref.tolerance import close

pytestmark = pytest.mark.machine

EPS = float(np.finfo(np.float64).eps)
RELATIONS = [(name, relation) for name, loss in all_losses().items() for relation in loss.declaration.relations]


every_relation = sweep(("name", "relation"), RELATIONS, ids=[f"{n}: {r.statement}" for n, r in RELATIONS])


@pytest.fixture
def few_cases(one_by_one, monkeypatch):
    """Those geometries that break what is declared for too many settings."""
    monkeypatch.setattr(run, "PROPERTY_GEOMETRIES", ("random", "odd", "pair"))
    monkeypatch.setattr(run, "OTHER_SETTINGS", (("random", "mixed"), (1.0,)))


@pytest.mark.usefixtures("few_cases")
@every_relation
def test_declared_relation_holds_for_its_settings_and_no_others(name, relation):
    result = run.check_relation(get_loss(name).declaration, relation)
    assert (result.status, result.check) == ("pass", f"relation to {relation.other}"), result.detail
    assert ("not beyond" in result.detail) == bool(relation.given)


@pytest.mark.slow(reason="up to 51 settings; `nceref check` has them all as well")
@every_relation
def test_declared_relation_holds_for_all_its_settings_and_no_others(name, relation):
    result = run.check_relation(get_loss(name).declaration, relation)
    assert result.status == "pass", result.detail


@sweep(
    ("name", "relation", "key"),
    [(name, relation, key) for name, relation in RELATIONS for key in relation.given if len(relation.given) < 3],
    ids=lambda x: getattr(x, "statement", x),
)
def test_a_relation_without_one_of_its_hypotheses_fails_with_the_setting(name, relation, key):
    wide = replace(relation, given={other: level for other, level in relation.given.items() if other != key})
    result = run.check_relation(get_loss(name).declaration, wide)
    assert result.status == "fail"
    assert ": declared" in result.detail
    assert key in result.detail or "defaults" in result.detail


def test_a_relation_whose_hypothesis_is_too_narrow_fails_with_the_setting_beyond():
    name, relation = next(one for one in RELATIONS if one[0] == "clip")
    result = run.check_relation(get_loss(name).declaration, replace(relation, given={"normalize": "l2"}))
    assert result.status == "fail"
    assert "declared with normalize='l2', and it holds on" in result.detail


def test_a_relation_that_does_not_hold_fails_by_name():
    wrong = Relation("dcl", "NT-Xent is DCL", lambda losses, inputs: (losses.nt_xent(**inputs), losses.dcl(**inputs)))
    result = run.check_relation(get_loss("nt_xent").declaration, wrong)
    assert (result.status, result.check) == ("fail", "relation to dcl")
    assert " = " in result.detail
    less = replace(wrong, kind="<=")
    assert run.check_relation(get_loss("nt_xent").declaration, less).status == "fail"


def test_a_relation_says_with_what_it_holds():
    from nceref.cli import losses_page

    page = losses_page.page_of(losses.info_nce).text(width=200)
    assert "at the same temperature. Only with negatives=None." in page
    assert losses_page.record(losses.alignment)["relations"][0]["hypothesis"] == "with exponent=2.0 and normalize='l2'"


def views(n=5, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((2, n, d))


@pytest.mark.parametrize("n", [2, 3, 17])
def test_equal_rows_give_the_log_of_the_number_of_candidates(n):
    x = np.ones((n, 3))
    arguments = {"temperature": 0.1}
    assert close(losses.nt_xent(x, x, **arguments), np.log(2 * n - 1))
    assert close(losses.dcl(x, x, **arguments), np.log(2 * n - 2), scale=10.0)
    assert close(losses.info_nce(x, x, **arguments), np.log(n))
    assert close(losses.clip(x, x, logit_scale=10.0), np.log(n))
    assert close(losses.supcon_out(x, np.arange(n) % 1, **arguments), np.log(n - 1), scale=10.0)


@pytest.mark.parametrize("seed", range(5))
def test_l_in_is_at_most_l_out_row_by_row(seed):
    rng = np.random.default_rng(seed)
    z, labels = rng.standard_normal((9, 3)), rng.permutation(np.arange(9) % 3)
    for temperature in (1.0, 0.1, 0.01):
        inside = losses.supcon_in(z, labels, temperature=temperature, reduction="none")
        outside = losses.supcon_out(z, labels, temperature=temperature, reduction="none")
        assert np.all(inside <= outside + 64 * EPS / temperature)


@pytest.mark.parametrize("labels", [[0, 0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 2, 2, 2, 2, 2], [0] * 8, list(range(8))])
def test_paco_decomposes_exactly_for_any_label_distribution(labels):
    rng = np.random.default_rng(0)
    z, centers = rng.standard_normal((8, 3)), rng.standard_normal((8, 3))
    for alpha in (0.0, 0.05, 1.0):
        arguments = {"alpha": alpha, "temperature": 0.2}
        parts = losses.paco.decompose(z, labels, centers, **arguments)
        total = parts["L_sup"] + alpha * parts["L_supcon"] + parts["L_extra"]
        assert close(losses.paco(z, labels, centers, **arguments), total, scale=10.0)


def test_a_loss_without_parts_says_who_has_some():
    with pytest.raises(ValueError, match="declares no decomposition; these do: paco"):
        losses.nt_xent.decompose(*views(), temperature=0.1)


def test_uniformity_does_not_see_where_the_points_are():
    x = np.random.default_rng(0).integers(0, 8, (6, 3)).astype(float)
    near = losses.uniformity(x, normalize="none", t=0.125)
    assert losses.uniformity(x + 2.0**40, normalize="none", t=0.125) == near


def test_in_batch_and_explicit_negatives_agree_for_one_query():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((1, 3)), rng.standard_normal((4, 3))
    explicit = losses.info_nce(q, k[:1], k[1:], temperature=0.2)
    expected = losses.info_nce(np.tile(q, (4, 1)), k, temperature=0.2, reduction="none")[0]
    assert close(explicit, expected, scale=1.0)
