"""What many tests are run by: every case is run, and none that fails is lost."""

import pytest
from sweep import sweep


def test_every_case_is_run_and_all_that_fail_are_named():
    seen = []

    @sweep("x, y", [(1, "a"), (2, "b"), (3, "c")])
    @sweep("z", [0, 1])
    def check(x, y, z, fixture):
        seen.append((x, y, z, fixture))
        if y == "c":
            pytest.skip("does not arise")
        if z:
            pytest.fail("no") if x == 1 else None
            assert x == 1, "wrong"

    with pytest.raises(BaseExceptionGroup) as caught:
        check(fixture="f")
    assert seen == [(x, y, z, "f") for x, y in ((1, "a"), (2, "b"), (3, "c")) for z in (0, 1)]
    inner = [group.exceptions[0] for group in caught.value.exceptions]
    assert [str(error).split("\n")[0] for error in inner] == ["no", "wrong"]
    assert [group.__notes__ for group in caught.value.exceptions] == [["case: 1-'a'"], ["case: 2-'b'"]]


def test_where_all_cases_skip_the_test_is_skipped():
    @sweep("x", [1, 2])
    def check(x):
        pytest.skip("nothing to do")

    with pytest.raises(pytest.skip.Exception):
        check()
