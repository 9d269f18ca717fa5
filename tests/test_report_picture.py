"""The picture of a report in the README is one of the README's own example."""

from pathlib import Path

import pytest

from tools.report_picture import PICTURE, ROOT, example

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_is_that_of_the_readme():
    file, content, command = example(README)
    assert command[0] == "verify"
    assert command[1].split(":")[0] == file
    assert f"def {command[1].split(':')[1]}(" in content
    assert f"]({PICTURE.relative_to(ROOT).as_posix()})" in README


@pytest.mark.parametrize("part", ["```python\n", "$ nceref verify"])
def test_a_readme_without_an_example_is_refused(part):
    with pytest.raises(SystemExit, match="must have a block of Python that begins"):
        example(README.replace(part, "", 1))
