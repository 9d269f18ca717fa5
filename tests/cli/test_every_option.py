"""Every command with every option and every format prints what stands in `tests/commands/golden`.

The options are read from the commands, so one without an example fails here. What the numbers mean is tested elsewhere.
"""

import os

import click
import pytest
from commands.examples import EXAMPLES, commands, fill, make_small
from commands.golden import differences, read, shown, write
from output.page_text import check

from nceref.cli import experiment_page, quadrants_pictures
from nceref.output.pages import Page
from nceref.theory import figure_files

pytestmark = pytest.mark.machine


def words_of(example):
    return example.words.split()


def parsed(example):
    """The command of an example, and which of its parameters were given."""
    words = words_of(example)
    # Of a group, two words name the command.
    name, command = next((n, c) for n, c in commands() if words[: len(n.split())] == n.split())
    words = words[len(name.split()) :]
    context = command.make_context(name, words)
    given = click.core.ParameterSource.COMMANDLINE
    return name, {key: value for key, value in context.params.items() if context.get_parameter_source(key) is given}


def test_every_option_and_every_format_has_an_example():
    used = {}
    for example in EXAMPLES:
        name, given = parsed(example)
        used.setdefault(name, []).append(given)
    missing = []
    for name, command in commands():
        for option in command.params:
            values = [given[option.name] for given in used.get(name, ()) if option.name in given]
            # An option that may be repeated has several at once.
            values += [one for value in values if isinstance(value, tuple) for one in value]
            wanted = [option.flag_value] if isinstance(getattr(option, "flag_value", None), str) else []
            if "--format" in option.opts:
                wanted += option.type.choices
            missing += [(name, option.opts[0], "")] * (not values)
            missing += [(name, option.opts[0], value) for value in wanted if value not in values]
    assert missing == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("every_option")
    fill(folder)
    return folder


def drawing(figure, data, suffix):
    """In place of a picture; the tests of figures and of `quadrants` draw."""
    return f"{figure.name} {suffix} {data}".encode()


@pytest.fixture(autouse=True)
def small(folder, monkeypatch):
    monkeypatch.chdir(folder)
    make_small(monkeypatch.setattr)
    for module in (figure_files, quadrants_pictures):
        monkeypatch.setattr(module, "render", drawing)
    monkeypatch.setattr(quadrants_pictures, "animation", lambda *given: b"")
    monkeypatch.setattr(experiment_page, "figure", lambda study, results, suffix: suffix.encode())


@pytest.fixture(scope="module")
def golden():
    """What stands in the files; where they are to be written anew, nothing does, and what is printed is put in."""
    known = {} if os.environ.get("WRITE_GOLDENS") else read()
    yield known
    if os.environ.get("WRITE_GOLDENS"):
        write(known)


def test_every_file_is_of_an_example(golden):
    assert golden.keys() <= {example.words for example in EXAMPLES}


@pytest.fixture
def pages(monkeypatch):
    """The pages that a command prints as text."""
    printed, text = [], Page.text
    monkeypatch.setattr(Page, "text", lambda page, **screen: printed.append(page) or text(page, **screen))
    return printed


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.words[:60])
def test_it_prints_what_it_did(request, run, golden, pages, example):
    if not {"--isolate", "--timeout"} & {*words_of(example)}:
        request.getfixturevalue("in_this_process")
    status, out, err = run(*words_of(example))
    assert (status, "Traceback" in err) == (example.status, False), out + err
    # What is refused is told on standard error.
    assert out or " --out " in example.words or (example.status == 2 and err)
    for page in tuple(pages):
        check(page)
    text = shown(out, err, example.json.strip("-"))
    if os.environ.get("WRITE_GOLDENS"):
        golden[example.words] = text
    assert text == golden.get(example.words), (
        f"if that is meant, make goldens:\n{differences(golden.get(example.words, ''), text)}"
    )
