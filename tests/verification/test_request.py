"""What a caller asked for that does not exist is refused, with what to do."""

import re

import numpy as np
import pytest
from programs import plain
from sweep import sweep

import nceref
from nceref.cases.corpus.geometries import SUITES
from nceref.errors import InputError
from nceref.targets.frameworks import NAMES
from nceref.targets.ranks.contract import SYNCS, VALUES
from nceref.tolerance.implementation import ALGORITHMS
from nceref.verification.options import BY_NAME

QUICK = {"loss": "info_nce", "suite": "quick"}


@sweep(
    ("options", "message"),
    [
        ({"loss": "info_nec"}, "did you mean 'info_nce'"),
        ({"loss": None}, "`loss` must name the reference"),
        ({"loss": None, "target": "h1.py:::error::fn"}, "which has 5 colons instead of one"),
        ({"suite": "fast"}, "`suite` must be one of"),
        ({"dtype": "float8"}, "`dtype` must be one of"),
        ({"case": "designed-0.4"}, "no case named"),
        ({"normalize": "l1"}, "`normalize` must be one of"),
        ({"margin": 0.2}, "`margin` must be a convention for info_nce, one of 'margin-"),
        ({"factor": 2}, "'outer-factor-2', .*got 2"),
        ({"tau": 0.1}, "`tau` is no convention of info_nce; did you mean `temperature`?"),
        ({"normalise": "none"}, "did you mean `normalize`?"),
        ({"frobnicate": 1}, "`frobnicate` is no convention of info_nce; it has `queries`"),
        ({"factor": "outer-factor-3"}, "no value of factor named"),
        ({"reduction": "median"}, "`reduction`"),
        ({"temperature": "cold"}, "`temperature` must be one number, > 0, got 'cold'"),
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"framework": "keras"}, "`framework` must be one of"),
        ({"seed": -1}, "`seed` must be"),
        ({"timeout": "x"}, "`timeout` must be"),
        ({"expected_failures": ["a"]}, "`expected_failures` must map"),
    ],
)
def test_wrong_usage_is_an_error_that_says_what_to_do(options, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        nceref.verify(**{"target": plain.with_gradients, **QUICK, **options})


def test_dtypes_of_numpy_are_known():
    assert nceref.verify(plain.with_gradients, dtype=np.float32, **QUICK).environment["dtype"] == "float32"


def test_every_option_is_documented_and_has_the_words_of_what_reads_it():
    documented = re.findall(r"^    (\w+) : ", nceref.verify.__doc__.partition("Returns")[0], re.M)
    assert sorted(documented) == sorted(["target", "loss", *BY_NAME])
    words = {"suite": SUITES, "algorithm": ALGORITHMS, "framework": NAMES, "sync": SYNCS, "value": VALUES}
    for name, known in words.items():
        assert set(BY_NAME[name].choices) == set(known), name
