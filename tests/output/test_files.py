"""Files are whole or not there, whoever writes them; errors name the file, and nothing the user had is lost."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nceref.errors import FileError, InputError
from nceref.output import files

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="rights, links and pipes as POSIX has them")


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_and_nothing_else_is_left_if_writing_fails(monkeypatch, tmp_path):
    def fail(self, target):
        raise PermissionError(13, "Permission denied", str(self))

    path = tmp_path / "file.txt"
    files.write_text(path, "old\n")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError) as caught:
        files.write_text(path, "new\n", "--json")
    assert str(caught.value) == f"cannot write --json {path}: permission denied; choose another place"
    assert path.read_text() == "old\n"
    assert listed(tmp_path) == ["file.txt"]


@POSIX
def test_a_link_stays_a_link_and_mode_and_group_stay(tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "there").chmod(0o640)
    if os.getuid() == 0:
        os.chown(tmp_path / "there", 65534, 65534)
    old = (tmp_path / "there").stat()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    files.write_text(tmp_path / "link", "π\n")
    files.write_text(tmp_path / "dangling", "new\n")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == "π\n".encode()
    new = (tmp_path / "there").stat()
    assert (new.st_mode, new.st_uid, new.st_gid) == (old.st_mode, old.st_uid, old.st_gid)
    assert (tmp_path / "dangling").is_symlink()
    assert (tmp_path / "made").read_text() == "new\n"


@POSIX
def test_pipes_and_devices_are_written_to(tmp_path):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with ThreadPoolExecutor() as pool:
        reader = pool.submit(fifo.read_bytes)
        files.replace(fifo, b"through")
        assert reader.result() == b"through"
    files.replace(os.devnull, b"gone")
    assert not Path(os.devnull).is_file()
    with pytest.raises(FileError, match=r"/dev/full: no space left on device; free some space, or choose another pl"):
        files.replace("/dev/full", b"too much")
    command = "from nceref.output import files; files.replace('/dev/stdout', b'here'); print('after', flush=True)"
    output = subprocess.run([sys.executable, "-c", command], stdout=subprocess.PIPE, check=True, env=environment())
    assert output.stdout == b"hereafter\n"


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


ODD = (
    ("folder", "it is a folder; name a file"),
    ("new/", "it is a folder; name a file"),
    ("new/file", "its folder does not exist; make it first, or choose another place"),
    ("nowhere", "its folder does not exist; make it first, or choose another place"),
    ("file/below", "not a directory; choose another place"),
    ("/proc/nowhere/x", "its folder does not exist; make it first, or choose another place"),
    ("n" * 300, "file name too long; choose a shorter one"),
    ("loop", "too many levels of symbolic links; choose another place"),
    ("a\0b", "embedded null byte; choose another place"),
    ("a\ud800b", "surrogates not allowed; choose another place"),
)
"""What is no place for a file."""


def test_a_folder_that_is_there_and_takes_no_file_is_not_called_missing(tmp_path, monkeypatch):
    """As in /proc, of which the system says that too."""

    def refuse(folder):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(files, "_new_file", refuse)
    with pytest.raises(FileError) as caught:
        files.write_text(tmp_path / "made", "text", "--out")
    assert str(caught.value).endswith("made: its folder takes no new files; choose another place")


@POSIX
@pytest.mark.parametrize(("place", "message"), ODD)
def test_what_is_no_place_for_a_file_is_named_with_reason_and_remedy(tmp_path, monkeypatch, place, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("new/file")
    for write in (
        lambda: files.write_text(place, "text", "--out"),
        lambda: files.must_be_writable({}, {"--out": place}),
    ):
        with pytest.raises(FileError) as caught:
            write()
        assert str(caught.value).startswith("cannot write --out")
        assert str(caught.value).endswith(message)
    assert listed(tmp_path) == ["file", "folder", "loop", "nowhere"]
    assert (tmp_path / "file").read_text() == "kept"


def test_folders_are_made_for_several_files_and_not_for_one(tmp_path):
    folder = files.make_folder(tmp_path / "new" / "made", "--out")
    files.write_text(files.make_folder(folder) / "file", "text")
    for taken in (folder / "file", folder / "file" / "below"):
        with pytest.raises(FileError, match=r"cannot write --out .*: not a directory; choose another place"):
            files.make_folder(taken, "--out")
    for act in (files.make_folder, files.read, lambda path, option: files.must_be_writable({}, {option: path})):
        with pytest.raises(FileError, match=r"^--out is empty; give a path$"):
            act("", "--out")
    with pytest.raises(FileError, match=r"^--out is empty; give a path$"):
        files.must_be_writable({"--out": ""}, {})


@pytest.mark.parametrize("path", [3, None, b"bytes"])
def test_what_is_no_path_is_named(path):
    with pytest.raises(InputError, match="--out must be named by text or a path, got "):
        files.write_text(path, "text", "--out")


@POSIX
def test_names_of_any_bytes_are_files(tmp_path):
    for name in (os.fsdecode(b"not utf-8 \xff"), "new\nline", "\x1b[31m", " ", "-", "é" * 127):
        files.write_text(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"
    with pytest.raises(FileError) as caught:
        files.read(tmp_path / "none \x1b[31m\udcff")
    assert str(caught.value).isprintable()


FORBIDDEN = """
import os, sys
from nceref.errors import FileError
from nceref.output import files
os.setuid(65534)
for path in sys.argv[1:]:
    for write in (lambda: files.replace(path, b"new"), lambda: files.must_be_writable({}, {"--out": path})):
        try:
            write()
        except FileError as error:
            print(error)
"""


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="rights do not bind root, who gives them up")
def test_what_may_not_be_written_stays(tmp_path):
    for folder in (tmp_path.parent.parent, tmp_path.parent):
        folder.chmod(0o755)
    tmp_path.chmod(0o777)
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / "inside").write_text("kept")
    (tmp_path / "locked" / "inside").chmod(0o666)
    (tmp_path / "locked").chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "protected").write_text("kept")
    (tmp_path / "protected").chmod(0o444)
    (tmp_path / "link").symlink_to("protected")
    names = ("locked/new", "locked/inside", "closed/new", "protected", "link")
    output = subprocess.run(
        [sys.executable, "-c", FORBIDDEN, *(str(tmp_path / name) for name in names)],
        capture_output=True, text=True, check=True, env=environment(),
    ).stdout.splitlines()  # fmt: skip
    assert [line.split(": ")[1] for line in output] == ["permission denied; choose another place"] * 2 * len(names)
    assert listed(tmp_path) == ["closed", "link", "locked", "protected"]
    assert [(tmp_path / name).read_text() for name in ("locked/inside", "protected")] == ["kept", "kept"]


WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from nceref.output import files
path, mark = sys.argv[1:]
def write(i):
    files.replace(path, (mark * (1 + i % 7)).encode() * 9000)
    return files.read(path)
with ThreadPoolExecutor(4) as pool:
    seen = list(pool.map(write, range(60)))
assert all(len(set(each)) == 1 and len(each) % 9000 == 0 for each in seen)
"""


def test_several_processes_and_threads_write_one_file(tmp_path):
    path = tmp_path / "file"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), mark], env=environment(), stderr=subprocess.PIPE)
        for mark in "ab"
    ]
    assert [writer.communicate(timeout=120)[1] for writer in writers] == [b"", b""]
    assert listed(tmp_path) == ["file"]
    assert path.read_bytes() in {mark * 9000 * n for mark in (b"a", b"b") for n in range(1, 8)}


@POSIX
def test_the_draft_of_a_dead_process_goes_and_that_of_a_living_one_stays(tmp_path, monkeypatch):
    inside, replace = [], Path.replace

    def again(self, target):
        # Another thread or process writes, while this draft is whole and not in its place.
        if not inside:
            inside.append(self.name)
            files.write_text(tmp_path / "other", "2")
            assert self.exists()
        return replace(self, target)

    (tmp_path / f"{files.DRAFT}dead").write_text("half")
    (tmp_path / f"{files.DRAFT}pipe").symlink_to("nowhere")
    monkeypatch.setattr(Path, "replace", again)
    files.write_text(tmp_path / "file", "1")
    assert inside[0].startswith(files.DRAFT)
    assert listed(tmp_path) == [f"{files.DRAFT}pipe", "file", "other"]


@POSIX
def test_a_draft_that_is_taken_for_a_leftover_is_written_anew(tmp_path, monkeypatch):
    import fcntl

    lock, taken = fcntl.flock, []

    def late(descriptor, how):
        if len(taken) < 2:
            (draft,) = tmp_path.glob(f"{files.DRAFT}*")
            taken.append(draft)
            # Somebody holds it and is about to remove it, or has removed it.
            if len(taken) == 1:
                draft.unlink()
                raise BlockingIOError
            draft.unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    files.write_text(tmp_path / "file", "1")
    assert (len(taken), listed(tmp_path)) == (2, ["file"])


@POSIX
def test_where_there_are_no_locks_files_are_written_and_no_draft_is_taken(tmp_path, monkeypatch):
    import fcntl

    def none(descriptor, how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    (tmp_path / f"{files.DRAFT}mine").write_text("half")
    with files.alone(tmp_path):
        files.write_text(tmp_path / "file", "1")
    assert listed(tmp_path) == [f"{files.DRAFT}mine", "file"]


def test_one_at_a_time_is_alone_in_a_folder(tmp_path):
    count = tmp_path / "count"
    count.write_text("0")

    def add(_):
        with files.alone(tmp_path):
            files.write_text(count, str(int(count.read_text()) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))
    assert sys.platform == "win32" or count.read_text() == "40"
    with files.alone(tmp_path / "not there"):
        pass


@POSIX
def test_what_is_read_is_a_file_and_of_some_size(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_TEXT", 100)
    (tmp_path / "large").write_bytes(b" " * 101)
    (tmp_path / "binary").write_bytes(b"abc\xff")
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    os.mkfifo(tmp_path / "pipe")
    fifo = str(tmp_path / "pipe")
    for read, path, message in (
        (files.read, "/dev/zero", "cannot read --resume /dev/zero: it is not a regular file; name another file"),
        (files.read, "none", "cannot read --resume none: no such file or directory; name another file"),
        (files.read, str(tmp_path), f"cannot read --resume {tmp_path}: it is a folder; name a file"),
        (files.read_text, "/dev/zero", "cannot read --resume /dev/zero: it is not a regular file; name another file"),
        (files.read, fifo, f"cannot read --resume {fifo}: it is not a regular file; name another file"),
        (files.read_text, fifo, f"cannot read --resume {fifo}: it is not a regular file; name another file"),
        (files.read_text, str(tmp_path / "large"), "it is larger than 100 bytes; name another file"),
        (files.read_text, str(tmp_path / "binary"), "it is not text in utf-8 (byte 3); name another file"),
    ):
        with pytest.raises(FileError) as caught:
            read(path, "--resume")
        assert str(caught.value).endswith(message)
    assert files.read_text(tmp_path / "text") == "one\ntwo\n"


def test_what_cannot_be_written_is_named_by_its_option(tmp_path):
    (tmp_path / "file").write_text("")
    files.must_be_writable({"--out": str(tmp_path / "made")}, {"--json": str(tmp_path / "file"), "--save": None})
    files.must_be_writable({"--out": f"{tmp_path}/made/"}, {"--json": "-", "--save": str(tmp_path / "new")})
    assert listed(tmp_path) == ["file"]
    same = {"--json": str(tmp_path / "a"), "--save": str(tmp_path / "made" / ".." / "a")}
    for folders, named, inputs, message in (
        ({}, same, {}, "--json and --save are the same file"),
        ({}, {"--json": "-", "--junit": "-"}, {}, "--json and --junit are the same file, -"),
        ({}, {"--json": "a.py"}, {"TARGET": "./a.py"}, "TARGET and --json are the same file, a.py; name two"),
        ({"--out": str(tmp_path / "file")}, {}, {}, "cannot write --out .*it is a file"),
        ({"--out": str(tmp_path / "file" / "a")}, {}, {}, "cannot write --out .*not a directory"),
        ({}, {"--json": str(tmp_path)}, {}, "cannot write --json .*it is a folder"),
        ({}, {"--json": str(tmp_path / "file" / "below")}, {}, "cannot write --json .*not a directory"),
        ({"--out": str(tmp_path / "made")}, {"--json": str(tmp_path / "made" / "a")}, {}, "its folder does not exist"),
    ):
        with pytest.raises(InputError, match=message):
            files.must_be_writable(folders, named, inputs)
