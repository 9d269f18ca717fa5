"""What each example prints, as it stands in the files of `golden`: one a command, the call above what it printed.

`make goldens` writes them anew; a diff of them is what a change does to pages and records.
"""

import difflib
import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
PLACEHOLDERS = (
    (r"<style>[^<]*</style>", "<style>[style]</style>"),
    (r'("(?:seconds|explaining)": |\btime=")[\d.e-]+', r"\1[seconds]"),
    (r"\b\d+\.\d+ s\b", "[seconds]"),
    # The columns of a table follow the width of the numbers.
    (r"(CPU seconds|of these to explain)(?:[ |&]+|</th><td>)[\d.]+(?:[ |&]+|</td><td>)[\d.]+", r"\1 [seconds]"),
    (r'("(?:nceref|python|numpy|platform)"(?:: | value=)")[^"]*', r"\1[version]"),
    (r"\bnceref \d+\.\d+\.\w+", "nceref [version]"),
    # Where its lines break depends on the name of the kernel.
    (r"\bMade with NumPy [^;]*;\s+others\s+round\s+otherwise", "Made with [kernel]; others round otherwise"),
    (r"(\b[Mm]ade[\s_]with(?:\"?:)?\s\"?)NumPy [^\";]*", r"\1[kernel]"),
    # The rounding errors of a replay, beside the share of nearest neighbors.
    (r"(\b0\.9\d(?: +| [|&] |</td><td>)|\"apart\": )\d[\d.]*e-\d\d", r"\1[rounding]"),
    # Which of the two it is depends on whether there is PyTorch.
    (r"Error: (`ranks` runs programs in PyTorch|no mutant named 'no-such-program').*", "Error: [no program]"),
)
"""What depends on machine, time and versions, and what stands in its place."""
DIGITS, ENTRIES, FIRST, LAST = 4, 2, 120, 20
"""Of a number, the digits that no kernel of the BLAS changes; of a list of JSON and of a long page, its ends."""


def shown(out, err, file=""):
    """What stands in the file of a command for one call: standard output, standard error, and a file of JSON."""
    parts = [_shortened(out)]
    parts += [f"--- standard error\n{_masked(err).rstrip()}"] if err else []
    parts += [f"--- {Path(file).name}\n{_shortened(Path(file).read_text(encoding='utf-8'))}"] if file else []
    text = "\n".join(filter(None, parts))
    assert not re.search(r"^\$ nceref ", text, re.MULTILINE)
    return text


def _masked(text):
    for pattern, placeholder in PLACEHOLDERS:
        text = re.sub(pattern, placeholder, text)
    return text


def _shortened(text):
    if text.startswith(("{", "[")):
        return _masked(json.dumps(_ends(json.loads(text, parse_constant=_refused)), indent=1, ensure_ascii=False))
    # A kernel with a long name is on more lines.
    lines = _masked(text).rstrip("\n").split("\n")
    if len(lines) > FIRST + LAST:
        lines[FIRST:-LAST] = [f"[... {len(lines) - FIRST - LAST} lines]"]
    return "\n".join(lines)


def _refused(constant):
    msg = f"{constant} is no JSON"
    raise ValueError(msg)


def _ends(content):
    if isinstance(content, dict):
        return {key: _ends(each) for key, each in content.items()}
    if isinstance(content, list):
        more = [f"[... {len(content)} entries]"] if len(content) > ENTRIES + 1 else []
        return [_ends(each) for each in (content[:ENTRIES] if more else content)] + more
    return float(f"{content:.{DIGITS}g}") if isinstance(content, float) else content


def read():
    """What each call prints, by its words."""
    printed = {}
    for path in sorted(FOLDER.glob("*.txt")):
        _, *parts = re.split(r"^\$ nceref (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        printed |= {words: text.rstrip("\n") for words, text in zip(parts[::2], parts[1::2], strict=True)}
    return printed


def write(printed):
    """Write the file of each command, and no other."""
    files = {}
    for words, text in printed.items():
        files.setdefault(words.split()[0], []).append(f"$ nceref {words}\n{text}\n")
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for name, parts in files.items():
        (FOLDER / f"{name}.txt").write_text("\n".join(parts), encoding="utf-8")


def differences(known, text):
    """The lines of a call that are not those in the file."""
    return "\n".join(difflib.unified_diff(known.splitlines(), text.splitlines(), "golden", "printed", n=1, lineterm=""))
