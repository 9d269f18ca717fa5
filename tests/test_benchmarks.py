"""Benchmarks: floors by hand, verdicts, agreement of what is compared, and a report that has every row."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from sweep import sweep

from benchmarks import RefusedError, conformance, device, machine, place, quadrants, report, scaling
from benchmarks.__main__ import FORMAT, ON_THE_CPU, joined, main
from benchmarks.cases import QUICK, SPEED, Case, inputs, views
from benchmarks.clock import ROOT, fresh, ratio_quartiles, spread
from benchmarks.place import HOST, Place
from benchmarks.plots import plots
from benchmarks.programs import check_agreement, ours, resident, room
from benchmarks.speed import fastest
from benchmarks.tables import seconds, tables
from benchmarks.targets import IMPOSSIBLE, MET, SHORT, UNKNOWN, judge
from nceref import testing
from nceref.theory import table_formats

RATES = {"operations": 1e9, "exponentials": 1e9}
JUDGED = (*ON_THE_CPU, "chunked")
RESULTS = ROOT / "benchmarks" / "results.json"


def towers(loss="clip", n=4096, dim=128):
    return Case(loss, {"N": n, "D": dim})


def test_floor_is_the_time_of_products_and_exponentials():
    for case, operations, exponentials in (
        (views(8192), 4 * 8192**2 * 128, 8192**2),
        (towers(), 6 * 4096 * 4096 * 128, 4096**2),
        (towers("siglip", dim=512), 6 * 4096 * 4096 * 512, 4096**2),
        (Case("supcon_out", {"N": 4096, "D": 128, "C": 100}), 4 * 4096**2 * 128, 4096**2),
        (
            Case("paco", {"N": 4096, "D": 128, "C": 1000, "K": 8192}),
            8 * 4096 * (4096 + 8192) * 128 + 8 * 4096 * 1000 * 128,
            4096 * (4096 + 8192) + 4096 * 1000,
        ),
    ):
        assert case.floor(RATES) == pytest.approx((operations + exponentials) / 1e9), case.name
        assert case.floor({**RATES, "exponentials": 1e300}) == pytest.approx(operations / 1e9), case.name


def test_rates_count_the_work_of_one_block_and_are_those_of_the_fastest_round():
    # A processor of this century does a million of either a second, and none does 10^15.
    for rates in (machine.rates("float32", 16, threads=1, seconds=0.01), device.rates_at(HOST, "float32", 16, side=64)):
        assert all(1e6 < rate < 1e15 for rate in rates.values())
    slow, fast = {"operations": 1.0, "exponentials": 5.0}, {"operations": 3.0, "exponentials": 2.0}
    assert fastest([slow, fast]) == {"operations": 3.0, "exponentials": 5.0}


def test_numbers_of_a_measurement_are_read_as_they_were_meant():
    assert spread([5, 1, 2, 4, 3]) == {"median": 3, "low": 2, "high": 4, "samples": 5}
    assert [seconds(x) for x in (1.5, 0.2263, 0.0123, 2.6e-4)] == ["1.50 s", "226 ms", "12.3 ms", "260 µs"]
    # The slow with the fast.
    assert ratio_quartiles({"low": 2.0, "high": 6.0}, {"low": 1.0, "high": 2.0}) == [1.0, 6.0]
    assert ratio_quartiles(None, spread([1.0])) is None
    for power in (1.0, 2.0, 2.5):
        sizes = scaling.FITTED
        assert scaling.exponent(sizes, [3e-9 * m**power for m in sizes]) == pytest.approx(power)


def results(**rows):
    """A run with one row of each kind: 0.2 s against a second, with a floor of 0.1 s."""
    time, slow = spread([0.2]), spread([1.0])
    row = {
        "name": "nt_xent 8192x128 f32", "target": 4.5, "within": 1.4, "nceref": time, "baseline": slow, "tuned": None,
        "floor": 0.1, "ratio": 5.0, "ratio_quartiles": [5.0, 5.0], "tuned_ratio": None, "of_floor": 2.0,
        "baseline_of_floor": 10.0,
    }  # fmt: skip
    point = {"rows": 8192, "seconds": time, "extra": 1 << 20}
    measured = {
        "format": FORMAT, "quick": False,
        "machine": {"CPU": "one", "threads": 2, "torch": "2.0", "cupy": None},
        "speed": {"rates": [{"dtype": "float32", "dim": 128, **RATES}], "rows": [row | rows]},
        "memory": {"rows": [
            {"name": "batch A", "rows": 8192, "program": "nceref", "extra": 65 << 20, "limit": 64 << 20},
            {"name": "batch B", "rows": 8192, "program": "baseline", "extra": 1 << 30, "limit": None},
        ]},
        "scaling": {
            "nceref": [point], "baseline": [point], "fitted": [4096, 8192], "exponent": 2.05,
            "largest": point | {"rows": 131_072},
        },
        "threads": {"name": "batch C", "one": slow, "two": time, "ratio": 1.6, "machine": 1.9, "target": 1.7,
                    "ratio_quartiles": [1.5, 1.8]},
        "startup": {"python": time, "click": time, "nceref": slow, "ratio": 5.0},
    }  # fmt: skip
    run = {
        "rows": 65_536, "dim": 128, "workers": 2, "chunk": 8192, "times": [60.0, 50.0], "idle": [90 << 20, 95 << 20],
        "peaks": [300 << 20, 400 << 20],
    }  # fmt: skip
    beside = {
        "memory": spread([45.0]),
        "ratio": 1.22,
        "ratio_of_fastest": 1.11,
        "processor_ratio": 1.05,
        "ratio_quartiles": [1.1, 1.3],
    }
    measured["chunked"] = {
        "machine": {"date": "2026-11-22", "CPU": "another", "BLAS": "a BLAS"},
        "versions": {"dask": "2026.8.0"}, "dim": 128, "sizes": [run | beside], "chunks": [run],
        "largest": run | {"rows": 262_144}, "judged": 65_536, "interrupted": {"given_up": [0.1, 2.5], "idle": [3.0]},
    }  # fmt: skip
    return {name: x | {"others": 0.25} if name in JUDGED else x for name, x in measured.items()}


def verdicts(measured):
    return [judgment.verdict for judgment in judge(measured)]


def test_every_target_gets_its_verdict():
    # ratio, within the floor, memory, exponent, largest batch, threads; workers: ratio, memory, largest batch, Ctrl-C
    assert verdicts(results()) == [MET, SHORT, SHORT, MET, MET, SHORT, MET, MET, MET, SHORT]


def test_a_ratio_is_judged_by_its_target_and_by_what_the_floor_leaves():
    for row, verdict, reasons in (
        ({"ratio": 4.5}, MET, None),
        ({"ratio": 4.4}, SHORT, None),
        ({"ratio": 4.0, "baseline_of_floor": 4.4}, IMPOSSIBLE, ("PyTorch / floor = 4.40",)),
        # A floor that was passed excuses nothing.
        ({"ratio": 4.0, "baseline_of_floor": 4.4, "of_floor": 0.9}, SHORT, None),
        ({"ratio": 4.6, "baseline_of_floor": 4.4}, MET, None),
        ({"ratio": None, "baseline_of_floor": None}, UNKNOWN, None),
        # A verdict that noise may turn names the quartiles.
        ({"ratio_quartiles": [4.4, 5.0]}, MET, ("quartiles 4.40 to 5.00",)),
        ({"ratio_quartiles": [4.6, 5.0]}, MET, ()),
    ):
        judged = judge(results(**row))[0]
        assert judged.verdict == verdict, row
        assert reasons is None or judged.reasons == reasons, row


def test_workers_are_judged_by_the_one_that_takes_most_and_by_the_slowest_end():
    worse = results()
    worse["chunked"]["sizes"][0] |= {"ratio": 1.26, "peaks": [1 << 20, 1600 << 20]}
    worse["chunked"]["interrupted"]["given_up"] = [1.9]
    assert verdicts(worse)[-4:] == [SHORT, SHORT, MET, MET]
    assert judge(worse)[-4].reasons == ("fastest 1.11x", "processor time 1.05x", "quartiles 1.10 to 1.30")


def test_targets_say_when_the_machine_was_busy():
    busy = results()
    quiet = {name: x | {"others": 0.01} if name in JUDGED else x for name, x in busy.items()}
    assert "other processes took 25% of the processors during speed" in tables(busy)[-1].note
    assert "other processes" not in tables(quiet)[-1].note


def test_the_exponent_may_be_a_tenth_away():
    measured = results()
    for exponent, verdict in ((1.91, MET), (2.09, MET), (2.11, SHORT), (1.89, SHORT)):
        measured["scaling"]["exponent"] = exponent
        assert verdicts(measured)[3] == verdict


def test_a_quick_run_judges_nothing():
    assert judge(results() | {"quick": True}) == []
    assert all(case.target is None and case.within is None for case in QUICK)


def texts(measured):
    return [cell for table in tables(measured) for row in table.rows() for cell in row.values()]


def test_the_report_has_every_row_and_its_plots(tmp_path):
    path = tmp_path / "performance.md"
    report.write(results(), path)
    text = path.read_text(encoding="utf-8")
    for cell in texts(results()):
        assert cell in text
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "performance-chunked.png", "performance-scaling.png", "performance-speed.png", "performance.md",
    ]  # fmt: skip
    assert "(performance-speed.png)" in text
    assert text.index("## Targets") < text.index("## Speed")


def test_without_torch_the_report_says_so_and_has_no_ratios(tmp_path):
    missing = results(baseline=None, ratio=None, baseline_of_floor=None)
    missing["machine"]["torch"] = None
    report.write(missing, tmp_path / "performance.md")
    text = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "PyTorch is missing" in text
    assert not (tmp_path / "performance-speed.png").exists()


def test_printed_tables_fit_80_columns():
    measured = results(name=max((case.name for case in SPEED), key=len), ratio=123.4, of_floor=123.4)
    lines = [line for table in tables(measured) for line in table_formats.text(table).splitlines()]
    assert max(map(len, lines)) <= 80


@pytest.mark.skipif(not RESULTS.exists(), reason="no run has been recorded: make bench")
def test_the_recorded_run_is_what_the_document_says():
    recorded = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert recorded["format"] == FORMAT
    assert not recorded["quick"]
    assert set(ON_THE_CPU) <= set(recorded)
    assert judge(recorded)
    images = {title: f"performance-{name}.png" for title, (name, _) in plots(recorded).items()}
    document = report.document(recorded, images)
    assert document == (ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), "run make bench"


def test_inputs_are_the_same_for_all_programs():
    case = Case("paco", {"N": 8, "D": 4, "C": 3, "K": 6}, dtype="float64")
    first, second = inputs(case), inputs(case)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert first["centers"].shape == (3, 4)
    assert first["queue"].dtype == np.float64


@sweep("case", QUICK, ids=lambda case: case.name)
def test_baselines_compute_what_nceref_computes(case):
    pytest.importorskip("torch", reason="needs PyTorch: make peers")
    from benchmarks.programs import theirs

    mine = ours(case, HOST)
    answers = mine.answers(mine.run())
    for formulation in ("baseline", "tuned") if case.loss == "nt_xent" else ("baseline",):
        other = theirs(case, HOST, formulation, "cpu")
        other.run()
        measured = other.answers(other.run())  # a second call does not add to the gradients of the first
        check_agreement(case, answers, measured)
        assert set(case.call.learned) <= set(measured)


def test_programs_that_compute_different_things_are_refused():
    case = towers(n=8, dim=4)
    mine = {"value": np.float32(1), "image": np.ones((8, 4), np.float32)}
    check_agreement(case, mine, mine)
    with pytest.raises(RefusedError, match=r"clip 8x4 f32: nceref and PyTorch differ in image by 1\.0e-03"):
        check_agreement(case, mine, mine | {"image": np.full((8, 4), 1 / 1.001)})
    with pytest.raises(RefusedError, match="compare the same things"):
        check_agreement(case, mine, mine | {"text": np.ones((8, 4))})
    with pytest.raises(RefusedError):
        check_agreement(case, mine | {"value": np.nan}, mine)


def test_double_precision_has_less_room():
    case = towers()
    assert room(case) / room(replace(case, dtype="float64")) == pytest.approx(2**29)


def test_a_failing_process_is_refused_with_its_reason():
    with pytest.raises(RefusedError, match="unknown_field"):
        fresh(resident, unknown_field=1)


def test_the_same_array_library_agrees_with_the_cpu():
    strict = pytest.importorskip("array_api_strict", reason="needs the test extra")
    there = Place("strict", "array_api_strict", strict.asarray, np.asarray)
    measured = list(device.agreement(there, ["clip", "supcon_out"], ["float32", "float64"], lambda line: None))
    assert [row["loss"] for row in measured] == ["clip", "clip", "supcon_out", "supcon_out"]
    assert all(row["agrees"] and row["cases"] > 0 for row in measured)


def test_a_place_that_is_wrong_differs():
    there = Place("wrong", "NumPy", lambda x: x, lambda x: np.asarray(x) * 1.001)
    assert not next(device.agreement(there, ["clip"], ["float64"], lambda line: None))["agrees"]


def test_other_processes_are_what_is_busy_beyond_our_own_work():
    before, after = machine.Busy(0.0, 100.0, 10.0), machine.Busy(10.0, 116.0, 20.0)
    assert after.others(before) == pytest.approx(6 / 10 / os.cpu_count())
    assert "other processes took 25% of the processors" in tables(results())[1].note


def test_results_on_a_device_are_shown():
    measured = results()
    agreement = [{"loss": "clip", "dtype": "float32", "cases": 3, "of_bound": 0.1, "agrees": True}]
    on_device = {"device": "a GPU", "library": "CuPy 13", "agreement": agreement, **measured["speed"]}
    cells = texts({name: measured[name] for name in ("format", "quick", "machine")} | {"device": on_device})
    assert {"agrees", "nt_xent 8192x128 f32"} <= set(cells)


def command(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_quick_command_prints_and_writes_json(tmp_path):
    path = tmp_path / "results.json"
    done = command("--quick", "startup", "--json", str(path))
    assert done.returncode == 0, done.stderr
    assert "nceref --help" in done.stdout
    recorded = json.loads(path.read_text(encoding="utf-8"))
    assert recorded["quick"]
    assert recorded["startup"]["ratio"] > 0
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_a_question_is_measured_anew_beside_the_others(tmp_path):
    path, earlier = tmp_path / "results.json", results()
    path.write_text(json.dumps(earlier))
    anew = {"format": FORMAT, "quick": False, "machine": {"CPU": "another"}, "startup": {"ratio": 2.0}}
    assert joined(path, anew) == earlier | {"startup": {"ratio": 2.0}}
    for file, quick, message in ((path, True, "another kind of run"), (tmp_path / "none", False, "pass --json FILE")):
        with pytest.raises(RefusedError, match=message):
            joined(file, anew | {"quick": quick})


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(place, "_cupy", lambda: None)
    monkeypatch.setattr(place, "_torch", lambda: None)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_device_is_refused_in_one_line_and_exits_with_2(capsys):
    with pytest.raises(RefusedError, match=r"^no CUDA device: .*$"):
        place.cuda()
    with pytest.raises(SystemExit) as ended:
        main(["device"])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith("Error: no CUDA device")
    assert captured.err.count("\n") == 1


def test_the_toy_is_timed_only_if_both_programs_end_alike():
    ends = np.zeros((6, 40))
    quadrants.agree({"replay": {"weights": ends}, "script": {"weights": ends + 9e-6}})
    quadrants.agree({"replay": {"weights": ends}})
    apart = ends.copy()
    apart[1, 7] = 1e-4
    with pytest.raises(RefusedError, match=r"the replay ends 1\.0e-04 from the script"):
        quadrants.agree({"replay": {"weights": ends}, "script": {"weights": apart}})
    # The last two runs, at 0.01 and 0.001, are not compared.
    apart = ends.copy()
    apart[4:] = 1
    quadrants.agree({"replay": {"weights": ends}, "script": {"weights": apart}})


def test_training_is_what_is_left_without_the_drawing_of_indices():
    assert quadrants._parts(3.0, 1.0) == {"end to end": 3.0, "training": 2.0, "indices": 1.0}


def test_the_cost_of_a_test_suite_counts_verifications_and_checks(monkeypatch):
    monkeypatch.setattr(conformance, "FUNCTIONS", 1)
    right, _ = conformance.targets("numpy")
    counts = conformance.measure("numpy")
    assert (counts["targets"], counts["verifications"]) == (2, 2)
    tests = len(testing.parametrize_with_checks([right], suite="quick").mark.args[1])
    assert counts["passed"] + counts["skipped"] + counts["failed"] == 2 * tests
    assert 0 < counts["failed"] <= counts["passed"] < 2 * tests


@pytest.mark.parametrize("dtypes", conformance.FORMATS)
def test_the_losses_in_pytorch_are_those_of_the_example(dtypes):
    given, example = (
        tomllib.loads(text)
        for text in (conformance.torch_manifest(dtypes), (conformance.EXAMPLE / "nceref.toml").read_text())
    )
    assert given["defaults"]["dtypes"] == [*dtypes]
    assert [t["name"] for t in given["target"]] == [t["name"] for t in example["target"]]
    written = {node.name for node in ast.parse(conformance.TORCH_EXAMPLE.read_text()).body if hasattr(node, "name")}
    assert {t["target"] for t in given["target"]} <= {f"{conformance.TORCH_EXAMPLE}:{name}" for name in written}
