"""Names that implementations give to the inputs of a loss: small letters, underscores left out."""

from collections.abc import Iterable, Mapping

FIRST = ("za", "zi", "z0", "h1", "hi", "h0", "x1", "xi", "x0", "xa", "out0", "view1", "p1", "feat1", "features1",
         "emb1", "embeddings1", "embedding1", "input1", "anchor", "anchors")  # fmt: skip
SECOND = ("zb", "zj", "h2", "hj", "x2", "xj", "xb", "out2", "view2", "p2", "feat2", "features2", "emb2", "embeddings2",
          "embedding2", "input2", "positive", "positives")  # fmt: skip
DOCUMENTS = ("docs", "doc", "document", "passages", "passage", "positives", "positive", "pos", "p", "d")
ROWS = ("features", "feature", "feats", "feat", "emb", "embs", "embedding", "z", "x", "projections", "input", "inputs")
CLASSES = ("y", "target", "targets", "label", "labels")
WEIGHTS = ("weight", "weights", "w", "prototypes", "centers", "proxies", "kernel", "classcenters")

ARRAYS: Mapping[str, tuple[str, ...]] = {
    "z1": FIRST,
    "z2": SECOND,
    "x": ("x1", "z1", *ROWS),
    "y": ("x2", "z2"),
    "queries": ("q", "query", "anchor", "anchors"),
    "documents": DOCUMENTS,
    "items": ("item", "candidates", "candidate", "itemembeddings", "candidateembeddings", "i"),
    "expected_counts": ("counts", "samplingprobability", "candidatesamplingprobability", "probabilities"),
    "keys": ("k", "key", "positive", "positives", "positivekey", "positivekeys", "pos"),
    "negatives": ("neg", "negs", "negative", "negativekey", "negativekeys", "hardnegatives", "hardneg", "hardnegs"),
    "guide_queries": ("anchorguide", "guideanchor", "guideanchors", "queryguide", "guidequery"),
    "guide_documents": ("positiveguide", "guidepositive", "guidepositives", "documentguide", "guidedocument"),
    "guide_negatives": ("negativeguide", "guidenegative"),
    "queue": ("memory", "bank", "memorybank", "queuekeys", "queuefeatures"),
    "embeddings": ROWS,
    "image": ("images", "imagefeatures", "imageembeds", "imageembeddings", "imgfeatures", "imgemb", "img"),
    "text": ("texts", "textfeatures", "textembeds", "textembeddings", "txtfeatures", "txtemb", "txt"),
    "logits": ("scores", "output", "outputs", "pred", "preds", "predictions", "input"),
    "class_weights": WEIGHTS,
    "centers": WEIGHTS,
    "class_counts": ("counts", "clsnumlist", "samplesperclass", "samplepercls", "samplesperclss", "classfrequencies"),
    "class_prior": ("prior", "priors", "frequencies"),
    "mask": ("positivemask", "posmask"),
    "anchor_weights": ("sampleweights", "weights"),
    "data_logits": ("poslogits", "datascores"),
    "noise_logits": ("neglogits", "noisescores"),
    "data_log_noise": (),
    "noise_log_noise": (),
    "center_features": (),
    "center_bias": (),
}
LABELS: Mapping[str, tuple[str, ...]] = {
    "labels": CLASSES,
    "target": CLASSES,
    "item_ids": ("ids", "candidateids"),
    "queue_labels": ("memorylabels", "banklabels"),
}
SCALARS: Mapping[str, tuple[str, ...]] = {
    "temperature": ("tau", "t", "temp", "temper", "τ"),
    "logit_scale": ("scale", "s", "logitscale"),
    "logit_bias": ("bias", "b"),
    "scale": ("s", "gamma"),
    "margin": ("m",),
    "t": ("temperature",),
    "exponent": ("alpha", "power"),
    "alpha": (),
    "sigma": (),
    "label_smoothing": ("smoothing",),
    "positive_prior": ("tauplus", "prior"),
    "concentration": ("beta",),
    "base_temperature": ("basetau", "basetemp"),
    "negative_weight": ("negweight",),
    "noise_ratio": ("nu",),
    "fraction": ("hardfraction",),
    "hardness": ("hardnessstrength", "alpha"),
}
FORMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "temperature": (
        "1 / {}",
        ("scale", "logitscale", "inversetemperature", "invtemperature", "invtemp", "inversetau", "invtau"),
    ),
    "logit_scale": ("1 / {}", ("temperature", "tau", "temp")),
    "expected_counts": (
        "log {}",
        ("logq", "logcounts", "logexpectedcounts", "logprobs", "logprobabilities", "logprob", "logsamplingprobability"),
    ),
}
"""Functions of an input that implementations take in its place, with the names that show it."""
CHOICES: Mapping[str, tuple[str, ...]] = {"normalize": ("normalise", "normalized", "normalised", "l2normalize")}
ALL: Mapping[str, tuple[str, ...]] = {**ARRAYS, **LABELS, **SCALARS, **CHOICES}
"""Every input of the package with its other names."""
NEVER = frozenset({"self", "cls", "reduction"})
"""Parameters that no input is handed to by position."""


def plain(name: str) -> str:
    """A name without underscores and capitals."""
    return name.replace("_", "").lower()


def match_input(parameter: str, inputs: Iterable[str]) -> str | None:
    """The one of `inputs` that a parameter's name stands for; None if there is none, or more than one.

    The very name comes first, then the same letters, then an alias.
    """
    inputs = tuple(inputs)
    if parameter in inputs:
        return parameter
    word = plain(parameter)
    matches = [name for name in inputs if word == plain(name)] or [n for n in inputs if word in ALL.get(n, ())]
    return matches[0] if len(matches) == 1 else None


def kind(parameter: str) -> frozenset[str]:
    """The kinds of input that a parameter's name allows for: ``array``, ``labels``, ``scalar``.

    A name that is in no table allows for all three; one in `NEVER` for none.
    """
    if parameter in NEVER:
        return frozenset()
    word = plain(parameter)
    if len(word) < 3:  # One letter means anything: b is a bias, or the second of two arrays.
        return frozenset({"array", "labels", "scalar"})
    tables = {"array": ARRAYS, "labels": LABELS, "scalar": SCALARS, "choice": CHOICES}
    known = {k for k, table in tables.items() if any(word == plain(n) or word in also for n, also in table.items())}
    return frozenset(known or {"array", "labels", "scalar"})
