"""Vectors in the formats of other programs: the same bits, whoever reads them."""

import io
import json
import shutil
import subprocess

import numpy as np
import pytest

from nceref.verification.vectors.formats import WRITERS, arrays_of
from nceref.verification.vectors.records import VectorCase, VectorOutput

NUMBERS = np.array([[0.1, -0.0, 5e-324], [1.0, -256.0, 1.7e308]])
ROOMS = {"float64": np.array(1e-15), "float16": np.array(0.25)}
OF_ENTRIES = np.array([[1e-6, 2e-6, 3e-6], [4e-6, 5e-6, 6e-6]])
CASES = (
    VectorCase(
        "plain-0.5-00000001", "moco", {"normalize": "l2", "fast": True},
        {"queries": NUMBERS, "labels": np.array([2, 0]), "temperature": 0.07}, "value",
        {"value": VectorOutput(np.array(1 / 3), (), 0.0, {}, False, (), ROOMS, {}),
         "grad.queries": VectorOutput(NUMBERS, (200, 3), 0.0, {}, True, (), {"float32": OF_ENTRIES}, {}, (0, 199))},
    ),
    VectorCase("refused-0.5-00000002", "moco", {}, {"temperature": -1.0}, "error", {}),
)  # fmt: skip
MANIFEST = "ab" * 32
EXPECTED = {
    "plain-0.5-00000001/inputs/queries": NUMBERS,
    "plain-0.5-00000001/inputs/labels": np.array([2, 0]),
    "plain-0.5-00000001/inputs/temperature": np.array(0.07),
    "plain-0.5-00000001/outputs/value": np.array(1 / 3),
    "plain-0.5-00000001/outputs/grad.queries": NUMBERS,
    "plain-0.5-00000001/rows/grad.queries": np.array([0, 199]),
    "plain-0.5-00000001/allowed/float64/value": np.array(1e-15),
    "plain-0.5-00000001/allowed/float16/value": np.array(0.25),
    "plain-0.5-00000001/allowed/float32/grad.queries": OF_ENTRIES,
    "refused-0.5-00000002/inputs/temperature": np.array(-1.0),
}
ABOUT = {
    "loss": "moco",
    "manifest": MANIFEST,
    "reduction": "mean",
    "cases": {
        "plain-0.5-00000001": {"expect": "value", "settings": {"normalize": "l2", "fast": True}},
        "refused-0.5-00000002": {"expect": "error", "settings": {}},
    },
}


def written(format):
    return WRITERS[format][1]("moco", CASES, MANIFEST)


def from_npz(content):
    with np.load(io.BytesIO(content), allow_pickle=False) as data:
        return json.loads(str(data["about"])), {name: data[name] for name in data.files if name != "about"}


def from_safetensors(content):
    size = int.from_bytes(content[:8], "little")
    assert size % 8 == 0
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    about = json.loads(header.pop("__metadata__")["about"])
    ends = [each["data_offsets"] for each in header.values()]
    assert [0, *(end for _, end in ends)] == [*(start for start, _ in ends), len(data)]
    kinds = {"F64": "<f8", "I64": "<i8"}
    return about, {
        name: np.frombuffer(data[slice(*x["data_offsets"])], kinds[x["dtype"]]).reshape(x["shape"])
        for name, x in header.items()
    }


def from_the_package(content):
    safetensors = pytest.importorskip("safetensors.numpy")
    return ABOUT, safetensors.load(content)


@pytest.mark.parametrize(
    ("format", "read"), [("npz", from_npz), ("safetensors", from_safetensors), ("safetensors", from_the_package)]
)
def test_arrays_come_back_bit_by_bit(format, read):
    about, arrays = read(written(format))
    assert about == ABOUT
    assert arrays.keys() == EXPECTED.keys() == arrays_of(CASES).keys()
    for name, x in EXPECTED.items():
        assert (arrays[name].shape, arrays[name].tobytes()) == (x.shape, x.tobytes()), name


PROGRAM = """
#include <stdio.h>
#include "moco.h"
#include "moco.h"

int main(void) {
    printf("%s %d\\n", NCEREF_MOCO_MANIFEST, nceref_moco_count);
    for (int i = 0; i < nceref_moco_count; i++) {
        const nceref_case *one = &nceref_moco_cases[i];
        printf("%s %s\\n", one->id, one->expect);
        for (int k = 0; k < one->setting_count; k++) printf("%s=%s\\n", one->settings[k].name, one->settings[k].value);
        for (int k = 0; k < one->input_count + one->output_count; k++) {
            const nceref_array *x = k < one->input_count ? &one->inputs[k] : &one->outputs[k - one->input_count];
            printf("%s %d %ld %ld", x->name, x->dimensions, x->shape[0], x->shape[1]);
            for (int format = 0; format < 4; format++) {
                if (x->allowed[format]) printf(" %g", x->allowed[format][x->size - 1]);
                else printf(" -");
            }
            for (long n = 0; n < x->size; n++) {
                if (x->numbers) printf(" %a", x->numbers[n]);
                else printf(" %lld", x->integers[n]);
            }
            if (x->rows) printf(" rows %ld %ld", x->rows[0], x->rows[1]);
            printf("\\n");
        }
    }
    return 0;
}
"""
PRINTED = f"""{MANIFEST} 2
plain-0.5-00000001 value
normalize=l2
fast=true
queries 2 2 3 - - - - {{numbers}}
labels 1 2 1 - - - - 2 0
temperature 0 1 1 - - - - 0x1.1eb851eb851ecp-4
value 0 1 1 1e-15 - - 0.25 0x1.5555555555555p-2
grad.queries 2 200 3 - 6e-06 - - {{numbers}} rows 0 199
refused-0.5-00000002 error
temperature 0 1 1 - - - - -0x1p+0
"""


@pytest.mark.parametrize("compiler", [("cc", "-std=c99", "c"), ("c++", "-std=c++17", "cpp")], ids=lambda x: x[0])
def test_a_header_has_the_same_bits_in_c(tmp_path, compiler):
    if not shutil.which(compiler[0]):
        pytest.skip(f"no compiler {compiler[0]} on PATH")
    (tmp_path / "moco.h").write_bytes(written("c-header"))
    source = tmp_path / f"print.{compiler[2]}"
    source.write_text(PROGRAM, encoding="utf-8")
    flags = [compiler[1], "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run([compiler[0], *flags, "-o", tmp_path / "print", source], check=True)
    printed = subprocess.run([tmp_path / "print"], capture_output=True, text=True, check=True).stdout
    numbers = "0x1.999999999999ap-4 -0x0p+0 0x0.0000000000001p-1022 0x1p+0 -0x1p+8 "
    assert printed == PRINTED.format(numbers=numbers + (1.7e308).hex())
