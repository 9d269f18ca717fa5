"""Standard output and error: characters that the encoding lacks, a full disk, a closed pipe, a closed stream."""

import io
import json
import sys
from xml.etree import ElementTree as ET

import pytest
from sweep import sweep

from nceref.cli import common
from nceref.output import streams


class Failing(io.StringIO):
    """A stream on which nothing can be written."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


def bytes_written(write, encoding, name="stdout"):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, name, stream)
        with streams.guarded():
            write()
            getattr(sys, name).flush()
    return stream.buffer.getvalue()


@sweep(
    ("text", "encoding", "written"),
    [
        ("τ ≤ ±1 é 猫 \udcff", "utf-8", "τ ≤ ±1 é 猫 ".encode() + rb"\udcff"),
        ("τ ≤ ±1 é 猫 \udcff", "latin-1", b"tau <= \xb11 \xe9 \\u732b \\udcff"),
        ("τ ≤ ±1 é 猫 \udcff", "ascii", rb"tau <= +-1 \xe9 \u732b \udcff"),
    ],
)
@sweep("name", ["stdout", "stderr"])
def test_a_character_that_is_not_there_is_replaced(text, encoding, written, name):
    assert bytes_written(lambda: getattr(sys, name).write(text), encoding, name) == written


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii", "cp1252"])
def test_data_stay_what_they_are_in_every_encoding(encoding):
    text = "τ é ± 猫 \udcff"
    written = bytes_written(lambda: common.echo_json([text]), encoding)
    assert json.loads(written) == [text]
    written = bytes_written(lambda: common.echo_xml("<x>τ é ± 猫</x>"), encoding)
    assert ET.fromstring(written).text == "τ é ± 猫"


@pytest.mark.parametrize(
    ("stream", "raised", "message"),
    [
        (Failing(OSError(28, "No space left on device")), streams.OutputError, "no space left on device"),
        (Failing(ValueError("I/O operation on closed file")), streams.OutputError, "it is closed"),
        (None, streams.OutputError, "it is closed"),
        (Failing(BrokenPipeError(32, "Broken pipe")), streams.ClosedPipeError, "^$"),
    ],
)
def test_what_cannot_be_written_is_an_error_on_standard_output_alone(monkeypatch, stream, raised, message):
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    with streams.guarded():
        sys.stderr.write("nobody reads this")
        sys.stderr.flush()
        with pytest.raises(raised, match=message):
            sys.stdout.write("this is lost")
    assert (sys.stdout, sys.stderr) == (stream, stream)


def test_what_fails_only_at_the_end_is_an_error(monkeypatch):
    full = io.StringIO()
    monkeypatch.setattr(full, "flush", lambda: Failing(OSError(28, "No space left on device")).write(""))
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(streams.OutputError, match="no space left"), streams.guarded():
        sys.stdout.write("it stands in the buffer")
