"""Where a plain call fails, the usual adapters are tried, and the one that gives the reference's value is named."""

from types import SimpleNamespace

import numpy as np
import pytest
from slow import partly_slow

from nceref import get_loss
from nceref.errors import InputError
from nceref.verification.adapters import layers
from nceref.verification.verifier import verify

pytestmark = pytest.mark.usefixtures("in_this_process")
FILE = """
import numpy as np

def rows(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))

def cat(features, tau):
    s = rows(features) @ rows(features).T / tau
    np.fill_diagonal(s, -np.inf)
    return np.mean(np.logaddexp.reduce(s, axis=1) - np.diag(np.roll(s, len(s) // 2, axis=1)))

def stacked(features, labels=None, temperature=0.1):
    if features.ndim < 3:
        raise ValueError("features must be [batch, views, ...]")
    return cat(np.concatenate([features[:, 0], features[:, 1]]), temperature)

class Loss:
    def __init__(self, temperature):
        self.temperature = temperature
    def __call__(self, features):
        return cat(features, self.temperature)
    def loss(self, z1, z2):
        return cat(np.concatenate([z1, z2]), self.temperature)

class Uncallable:
    def loss(self, z1, z2, temperature):
        return cat(np.concatenate([z1, z2]), temperature)

def pair(views, temperature):
    return cat(np.concatenate(views), temperature)

def described(z1, z2, temperature):
    return {"accuracy": np.mean([0.0, 1.0]), "contrastive": cat(np.concatenate([z1, z2]), temperature)}

def halves(features, tau):
    return cat(features, tau) / 2

def classes(x, labels, temperature):
    if x.ndim != 3:
        raise ValueError("x must be [batch, views, ...]")
    x = x[:, 0]
    s = rows(x) @ rows(x).T / temperature
    np.fill_diagonal(s, -np.inf)
    own = (labels[:, None] == labels) & ~np.eye(len(x), dtype=bool)
    p = np.where(own, s - np.logaddexp.reduce(s, axis=1)[:, None], 0)
    return -np.mean(p.sum(axis=1) / own.sum(axis=1))

def needs(z1, z2, temperature, table):
    return 0.0

def of_five(z1, z2, temperature):
    if len(z1) != 5:
        raise ValueError("batch")
    return cat(np.concatenate([z1, z2]), temperature)
"""


FILE += """
def of_even(z1, z2, temperature):
    if len(z1) % 2:
        raise ValueError("batch")
    return pair([z1, z2], temperature)

def unnamed(a, b, c=0.5):
    return pair([a, b], c)

def rows_of(z1, z2, temperature):
    return np.full(2 * len(z1), pair([z1, z2], temperature))

def of_int32(x, labels, temperature):
    if labels.dtype != np.int32:
        raise TypeError("labels")
    return classes(x[:, None], labels, temperature)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(target):
    """The object itself: it runs in this process, which is faster."""
    namespace = {"__name__": "mine"}
    exec(FILE, namespace)
    return namespace[target]


AGREES = "this gives the reference's value on 3 of 3 cases"
RUNS = "this call runs, but gives other values than the reference"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("target", "call", "measured"),
    [
        ("cat", "f(np.concatenate([z1, z2]), tau=temperature)", AGREES),
        ("stacked", "f(np.stack([z1, z2], 1), temperature=temperature)", AGREES),
        ("Loss", "f(np.concatenate([z1, z2]))", AGREES),
        ("pair", "f([z1, z2], temperature=temperature)", AGREES),
        ("described", "f(z1, z2, temperature=temperature)['contrastive']", AGREES),
        ("unnamed", "f(z1, z2, c=temperature)", AGREES),
        ("halves", "f(np.concatenate([z1, z2]), tau=temperature)", RUNS),
    ],
)
def test_the_adapter_that_works_is_named_with_what_was_measured(target, call, measured):
    program = f"mine.py:{target}" if target == "Loss" else named(target)
    report = verify(program, "nt_xent", suite="quick")
    assert (report.exit_code, f'; {measured}: --call "{call}"' in report.reason) == (4, True), report.reason
    assert "such as" not in report.reason
    done = verify(named(target), "nt_xent", call=call, suite="quick", calls=0)
    assert done.verdict == ("value-only" if measured == AGREES else "differs")


def with_bank(query, positive, negatives, curriculum, temperature=0.1):
    own = np.sum(unit(query) * unit(positive), axis=1) / temperature
    rest = curriculum * logits_of(query, negatives, 1 / temperature)
    return np.mean(np.logaddexp(own, np.logaddexp.reduce(rest, axis=1)) - own)


def with_penalty(query, penalty, positive, negatives, temperature):
    return with_bank(query, positive, negatives, 1.0, temperature) + penalty * np.sum(query)


def with_two(query, positive, negatives, warmup, penalty, temperature):
    return with_penalty(query, warmup, positive, negatives, temperature) + penalty * np.sum(positive)


def with_log(query, positive, negatives, curriculum, temperature):
    return with_bank(query, positive, negatives, 1.0, temperature) * np.cos(1 + curriculum)


BANK = "negatives, curriculum=1.0, temperature=temperature)"


@pytest.mark.parametrize(
    ("target", "call", "words"),
    [
        (with_bank, f"f(queries, keys, {BANK}", f"{AGREES} with curriculum = 1.0"),
        (
            with_penalty,
            "f(queries, penalty=0.0, positive=keys, negatives=negatives, temperature=temperature)",
            f"{AGREES} with penalty = 0.0",
        ),
        (
            with_two,
            "f(queries, keys, negatives, warmup=0.0, penalty=0.0, temperature=temperature)",
            f"{AGREES} with warmup = 0.0 and penalty = 0.0",
        ),
        (with_log, f"f(queries, keys, {BANK}", f"{RUNS}"),
    ],
)
def test_an_argument_that_nobody_knows_is_a_constant_and_never_a_scalar_of_the_loss(target, call, words):
    report = verify(target, "info_nce", negatives=..., suite="quick")
    assert report.reason.endswith(f'; {words}: --call "{call}"'), report.reason
    handed = []

    def spied(query, positive, negatives, curriculum, temperature):
        handed.append(curriculum)
        return with_bank(query, positive, negatives, curriculum, temperature)

    verify(spied, "info_nce", negatives=..., suite="quick")
    assert {*handed} <= {1.0, 0.0}


def test_no_line_to_paste_has_a_place_left_open():
    def needs(q, k, temperature, table, *, rows):
        raise ValueError

    def shapeless(views, temperature):
        raise ValueError

    for target in (needs, shapeless, named("described")):
        for calls in (0, 4000):
            reason = verify(target, "nt_xent", suite="quick", calls=calls).reason
            assert "..." not in reason


def test_one_letter_is_an_array_where_an_array_would_be_left_over():
    def sigmoid(a, b):
        signs = 2 * np.eye(len(a)) - 1
        return np.sum(np.logaddexp(0, -signs * (logits_of(a, b, 10.0) - 10.0))) / len(a)

    assert verify(sigmoid, "siglip", logit_scale=10.0, logit_bias=-10.0, suite="quick").ok


class KeptScale:
    """The logarithm of its scale is an attribute that nothing is handed to."""

    def __init__(self):
        self.log_scale = np.array(2.6592)

    def __call__(self, image_features, text_features):
        return by_temperature(image_features, text_features, temperature=np.exp(-self.log_scale))


class KeptTau(KeptScale):
    """The temperature itself."""

    def __init__(self):
        self.tau = 0.5

    def __call__(self, image_features, text_features):
        return by_temperature(image_features, text_features, temperature=self.tau)


@pytest.mark.parametrize(
    ("target", "kept"), [(KeptScale, "log_scale=np.log(logit_scale)"), (KeptTau, "tau=1 / logit_scale")]
)
def test_a_scalar_that_an_object_keeps_is_replaced(target, kept):
    call = f"vars(f).update({kept}) or f(image, text)"
    assert f'; {AGREES}: --call "{call}"' in verify(target, "clip", suite="quick").reason
    assert verify(target, "clip", call=call, suite="quick").ok


def test_labels_of_32_bits_are_tried():
    report = verify(named("of_int32"), "supcon_out", labels=..., suite="quick")
    call = "f(embeddings, labels.astype(np.int32), temperature=temperature)"
    assert f'{AGREES}: --call "{call}"' in report.reason


def test_what_is_wrong_with_the_answer_is_said_once():
    reason = verify(named("rows_of"), "nt_xent", suite="quick").reason
    assert reason.endswith("choose rows with --set reduction=none")
    reason = verify(named("described"), "nt_xent", suite="quick", calls=0).reason
    which = "say with --call which is the loss: ['accuracy'] or ['contrastive']"
    assert reason.endswith(f"returns a dict of accuracy (), contrastive (); {which}")
    # Then the line that does so is the only one.
    reason = verify(named("described"), "nt_xent", suite="quick").reason
    assert (which in reason, reason.count("['")) == (False, 1)
    reason = verify(named("of_even"), "nt_xent", suite="quick").reason
    assert "right where N is a multiple of 2, and at no other N above 1 that was tried (--multiple-of 2 " in reason


def test_an_axis_of_one_view_is_tried_where_a_call_raises():
    report = verify(named("classes"), "supcon_out", labels=..., suite="quick")
    assert f'{AGREES}: --call "f(embeddings[:, None], labels, temperature=temperature)"' in report.reason


def test_logits_and_labels_are_handed_to_a_cross_entropy(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "simclr.py").write_text("""
import torch
def logits_and_labels(features, temperature):
    z = torch.nn.functional.normalize(features, dim=-1)
    n = len(z) // 2
    s = (z @ z.T / temperature)[~torch.eye(2 * n, dtype=torch.bool)].view(2 * n, -1)
    return s, torch.cat([torch.arange(n) + n - 1, torch.arange(n)])
""")
    reason = verify(f"{tmp_path}/simclr.py:logits_and_labels", "nt_xent").reason
    assert "torch.nn.functional.cross_entropy(*f(torch.cat([z1, z2]), temperature=temperature))" in reason


MOCO = """
import numpy as np

def rows(x):
    return x / np.sqrt(np.sum(x * x, axis=1, keepdims=True))

def logits(q, k, columns, T):
    q, k = rows(q), rows(k)
    return np.concatenate([np.sum(q * k, axis=1, keepdims=True), q @ columns], axis=1) / T

def loss(s):
    return np.mean(np.logaddexp.reduce(s, axis=1) - s[:, 0])

def columns(q, k, queue, T):
    return loss(logits(q, k, rows(queue.T).T, T))

def unit_columns(q, k, queue, T):
    return loss(logits(q, k, queue, T))

def hot_positive(q, k, queue, T):
    s = logits(q, k, queue, T)
    return loss(np.concatenate([T * s[:, :1], s[:, 1:]], axis=1))

class Kept:
    # K is a number here, and no keys.
    def __init__(self, K=16, T=0.07):
        self.K, self.T, self.queue = K, T, rows(np.random.default_rng(0).normal(size=(K, 8))).T

    def __call__(self, q, k):
        return unit_columns(q, k, self.queue, self.T)

class KeptRows(Kept):
    def __init__(self, T=0.07):
        self.T, self.memory = T, rows(np.random.default_rng(0).normal(size=(16, 8)))

    def __call__(self, q, k, temperature):
        return unit_columns(q, k, self.memory.T, temperature)

class KeptHot(Kept):
    def __call__(self, q, k):
        return hot_positive(q, k, self.queue, self.T)
"""
UNIT = "(queue / (queue**2).sum(1, keepdims=True) ** 0.5)"
SEVERAL = (
    ("columns", "f(queries, keys, queue.T, T=temperature)", AGREES),
    ("unit_columns", f"f(queries, keys, {UNIT}.T, T=temperature)", AGREES),
    ("hot_positive", "f(queries, keys, queue.T, T=temperature)", RUNS),
    ("Kept", f"vars(f).update(queue={UNIT}.T) or f(queries, keys)", AGREES),
    ("KeptRows", f"vars(f).update(memory={UNIT}) or f(queries, keys, temperature=temperature)", AGREES),
    ("KeptHot", "vars(f).update(queue=queue.T) or f(queries, keys)", RUNS),
)


@pytest.mark.parametrize(
    ("target", "call", "measured"),
    partly_slow(SEVERAL, lambda case: case[0] in ("columns", "KeptHot"), "the same search; one of each is quick"),
    ids=[target for target, *_ in SEVERAL],
)
def test_a_queue_in_columns_of_unit_length_or_kept_by_an_object_is_handed_over(tmp_path, target, call, measured):
    (tmp_path / "queues.py").write_text(MOCO)
    program = f"{tmp_path}/queues.py:{target}"
    report = verify(program, "moco", suite="quick")
    assert (report.exit_code, f'; {measured}: --call "{call}"' in report.reason) == (4, True), report.reason
    # As it is copied from a terminal, with its line breaks.
    done = verify(program, "moco", call=call.replace(" or ", " or\n"), suite="quick", calls=0)
    assert done.verdict == ("value-only" if measured == AGREES else "differs")
    if measured != AGREES:
        unit = verify(program, "moco", call=call.replace("queue.T", f"{UNIT}.T"), suite="quick", calls=600)
        assert [d.id for d in unit.diagnosis if d.first] == ["temperature-missing-on-positive"]


MODULES = """
import torch
import torch.nn.functional as F

class MoCo(torch.nn.Module):
    def __init__(self, dim=128, K=4096, T=0.07):
        super().__init__()
        self.K, self.T = K, T
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))

    def forward(self, q, k):
        q, k = F.normalize(q, dim=1), F.normalize(k, dim=1).detach()
        s = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue], dim=1) / self.T
        return F.cross_entropy(s, torch.zeros(len(q), dtype=torch.long))

class Hot(MoCo):
    def forward(self, q, k):
        q, k = F.normalize(q, dim=1), F.normalize(k, dim=1).detach()
        s = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue / self.T], dim=1)
        return F.cross_entropy(s, torch.zeros(len(q), dtype=torch.long))
"""


def test_the_queue_that_a_module_has_as_a_buffer_is_replaced(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "modules.py").write_text(MODULES)
    unit = UNIT.replace("queue", "queue.detach()")
    call = f"vars(f).update(queue={unit}.T) or f(queries, keys)"
    assert f'{AGREES}: --call "{call}"' in verify(f"{tmp_path}/modules.py:MoCo", "moco", suite="quick").reason
    assert verify(f"{tmp_path}/modules.py:MoCo", "moco", suite="quick", call=call).verdict == "conforms"
    hot = verify(f"{tmp_path}/modules.py:Hot", "moco", suite="quick", call=call)
    assert [d.id for d in hot.diagnosis if d.first] == ["temperature-missing-on-positive"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("mine.py:needs", '--call "f(z1, z2, temperature=temperature, table=1.0)"'),
        (
            "mine.py:Loss.loss",
            'is a method without its object; name the class: mine.py:Loss --call "f.loss(z1, z2)"',
        ),
        ("mine.py:Uncallable", "name its method, as in --call 'f.METHOD(z1, z2)'"),
        ("mine.py:of_five", "it is right for N = 5 only (--shape 5,D judges that size), and on no case with N = 4, "),
    ],
)
def test_one_sentence_solves_it(target, message):
    assert message in verify(target, "nt_xent", suite="quick").reason


def test_constants_and_layers_that_a_target_has_by_itself_are_named():
    reason = verify(lambda logits, target: 0.0, "balanced_softmax", suite="quick").reason
    assert "let its constructor or its call take `class_counts`, or map" in reason
    words = layers(get_loss("cross_entropy").declaration, {"other_parameters": ["head.weight", "head.bias"]})
    assert "computes with head.weight, head.bias, which cross_entropy does not have" in words
    assert "--call 'f.METHOD(logits, target)'" in words
    assert not layers(get_loss("cross_entropy").declaration, {})


def test_a_number_that_an_object_holds_as_an_array_without_axes_is_known():
    held = SimpleNamespace(temperature=np.array(0.25), forward=lambda z1, z2: named("pair")([z1, z2], 0.25))
    report = verify(held, "nt_xent", suite="quick")
    assert report.verdict == "value-only"
    assert "temperature = 0.25" in report.environment["arguments"]


def test_a_module_that_is_applied_to_its_parameters_is_handed_them_by_an_expression():
    class Applied:
        def init(self):
            return {}

        def apply(self, variables, z1, z2):
            return named("pair")([z1, z2], variables["params"]["temperature"])

        def __call__(self, z1, z2):
            raise ValueError

    call = "f.apply({'params': {'temperature': temperature}}, z1, z2)"
    assert f'--call "{call}"' in verify(Applied, "nt_xent", suite="quick").reason
    assert verify(Applied, "nt_xent", call=call, suite="quick").verdict == "value-only"


def test_a_method_is_called_by_an_expression():
    report = verify(named("Uncallable"), "nt_xent", call="f.loss(z1, z2, temperature)", suite="quick")
    assert report.verdict == "value-only"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("./mine:cat", r"did you mean \./mine\.py:cat\?"),
        ("https://a.b/mine.py:cat", "an address of the web; download the file, and name that"),
        ("mine.cat", "did you mean mine:cat"),
    ],
)
def test_a_text_that_is_almost_a_target_is_answered_with_one(text, message):
    with pytest.raises(InputError, match=message):
        verify(text, "nt_xent")


def test_a_call_that_was_given_is_not_replaced():
    calls = []

    def target(x):
        calls.append(x)
        raise ValueError

    report = verify(target, "nt_xent", call="f(z1)", temperature=0.5, suite="quick")
    assert report.reason.startswith("no case could be judged: raises ValueError")
    assert "--call" not in report.reason
    assert all(np.ndim(x) == 2 for x in calls)


def logits_of(rows, others, factor):
    return factor * (unit(rows) @ unit(others).T)


def unit(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def softmax_of_own(logits):
    return np.mean(np.logaddexp.reduce(logits, axis=1) - np.diag(logits))


def by_log(queries, items, log_q, temperature):
    return softmax_of_own(logits_of(queries, items, 1 / temperature) - log_q)


def by_log_added(queries, items, log_q, temperature):
    return softmax_of_own(logits_of(queries, items, 1 / temperature) + log_q)


def by_scale(anchor, positive, scale=20.0):
    return softmax_of_own(logits_of(anchor, positive, scale))


def by_scale_twice(anchor, positive, scale=20.0):
    return softmax_of_own(logits_of(anchor, positive, 2 * scale))


def by_temperature(image, text, *, temperature):
    logits = logits_of(image, text, 1 / temperature)
    return (softmax_of_own(logits) + softmax_of_own(logits.T)) / 2


def with_both(queries, keys, temperature, scale=1.0):
    return scale * softmax_of_own(logits_of(queries, keys, 1 / temperature))


def with_triplets(anchor, positive, negatives, scale=20.0):
    if negatives.ndim != 2:
        raise ValueError
    return softmax_of_own(logits_of(anchor, np.concatenate([positive, negatives]), scale))


def of_triplets_alone(queries, documents, negatives, temperature):
    own = np.sum(unit(queries) * unit(documents), axis=1)[:, None] / temperature
    hard = np.sum(unit(queries)[:, None] * unit(negatives), axis=-1) / temperature
    logits = np.concatenate([own, hard], axis=1)
    return np.mean(np.logaddexp.reduce(logits, axis=1) - own[:, 0])


@pytest.mark.parametrize(
    ("target", "loss", "handed", "explained"),
    [
        (by_log, "sampled_softmax", "log_q=np.log(expected_counts)", ""),
        (by_log_added, "sampled_softmax", "log_q=np.log(expected_counts)", "logq-added"),
        (by_scale, "mnrl", "scale=1 / temperature", ""),
        (by_scale, "info_nce", "scale=1 / temperature", ""),
        (by_scale_twice, "info_nce", "scale=1 / temperature", "temperature-off-by-a-factor"),
        (by_temperature, "clip", "temperature=1 / logit_scale", ""),
        (with_both, "info_nce", "temperature", ""),
    ],
)
def test_a_parameter_whose_name_shows_a_function_of_an_input_is_handed_it(target, loss, handed, explained):
    report = verify(target, loss, suite="quick")
    assert handed in report.environment["arguments"]
    assert [d.id for d in report.diagnosis] == [explained] * bool(explained)
    assert report.ok == (not explained)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_gradient_by_a_function_of_an_input_is_not_taken_for_that_by_the_input(in_order):
    def by_scale_with_gradients(scale, keys, queries):
        value, grads = get_loss("info_nce").value_and_grad(queries, keys, temperature=1 / scale)
        own = {"scale": -float(grads["temperature"]) / scale**2, "keys": grads["keys"], "queries": grads["queries"]}
        return value, list(own.values()) if in_order else own

    report = verify(by_scale_with_gradients, "info_nce", suite="quick")
    assert report.ok
    assert {r.quantity for r in report.results if r.status == "pass"} >= {"grad.queries", "grad.keys"}
    unjudged = {r.why for r in report.results if r.quantity == "grad.temperature"}
    assert unjudged == {"the target takes `scale`, a function of it, and returns that gradient"}


def test_an_optional_input_that_a_call_names_is_given():
    call = "f(queries, documents, negatives.reshape(-1, negatives.shape[-1]), 1 / temperature)"
    report = verify(with_triplets, "mnrl", suite="quick", call=call)
    assert (report.ok, report.settings["negatives"]) == (True, ...)
    # The setting has no case without.
    call = "f(queries, documents, negatives, temperature)"
    assert verify(of_triplets_alone, "mnrl", suite="quick", call=call, candidates="hard").ok
    # One that may be left out is left out, as it ran without.
    report = verify(by_scale, "mnrl", suite="quick", call="f(queries, documents, 1 / temperature) if negatives is None"
                    " else 1 / 0")  # fmt: skip
    assert (report.ok, "negatives" in report.settings) == (True, False)


def test_several_rows_of_a_sample_are_handed_over_one_below_the_other():
    def triplets(queries, documents, negatives, temperature):
        return with_triplets(queries, documents, negatives, 1 / temperature)

    report = verify(triplets, "mnrl", suite="quick")
    assert f'{AGREES}: --call "f(queries, documents, negatives.reshape(-1, negatives.shape[-1]), ' in report.reason


def test_a_word_in_place_of_an_optional_array_is_refused():
    message = "`negatives` must be 'given', for generated ones, or be left out, for none; got 'none'"
    with pytest.raises(InputError, match=message):
        verify(by_scale, "mnrl", negatives="none")
