"""A peer: somebody else's package or repository, with how each of its losses is called; finds and loads them."""

import importlib.metadata
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from nceref.errors import InputError, UnavailableError
from nceref.registry import discover, pick


@dataclass(frozen=True, eq=False)
class PeerTarget:
    """One loss of a peer.

    Attributes
    ----------
    name : str
        Name, such as ``lightly-ntxent``.
    path : str
        Import path, such as ``lightly.loss:NTXentLoss``; empty if the name alone stands for it.
    loss : str
        The loss of the reference that it claims to be.
    call : callable
        Takes the inputs of that loss by name, as arrays of the framework, and returns what the peer returns. What its
        signature leaves out, the peer cannot be given.
    settings : mapping
        The conventions that the peer declares, such as ``{"normalize": "none"}``.
    floats : tuple of str
        Scalars that the peer takes as plain numbers, mostly in its constructor: their gradient cannot be judged.
    omits : str
        Parts that are not judged, since only one of both sides has them.
    also : tuple of str
        Other paths that it is usually imported by.
    init : mapping
        Arguments of the peer's constructor that are scalars of the loss under another name or in another unit: the
        scalar, and what makes it of the argument.
    ranks : tuple of mapping
        Other arguments of the constructor, or of what is wrapped around the loss, one a way to use it on several ranks:
        `call` takes them, and where it has to be told its place, `rank` and `world_size`.
    """

    name: str
    path: str
    loss: str
    call: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    floats: tuple[str, ...] = ()
    omits: str = ""
    also: tuple[str, ...] = ()
    init: Mapping[str, tuple[str, Callable[[Any], Any]]] = field(default_factory=dict)
    ranks: tuple[Mapping[str, Any], ...] = ()

    def presets(self, init: Mapping[str, Any]) -> dict[str, Any] | None:
        """Constructor arguments as keywords of `call`; None where one of them is something else."""
        renamed = [self.init.get(name, (name, _same)) for name in init]
        out = {name: made(value) for (name, made), value in zip(renamed, init.values(), strict=True)}
        parameters = inspect.signature(self.call).parameters
        taken = {name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
        return out if len(out) == len(init) and out.keys() <= taken else None

    @property
    def address(self) -> str:
        """The import path of `call`, as a target is named: another process can load it."""
        return f"{self.call.__module__}:{self.call.__qualname__}"


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Checkout:
    """A repository that is not installed: of a clone of it, single files are loaded by themselves.

    Attributes
    ----------
    files : tuple of str
        The files that are loaded, relative to the clone.
    variable : str
        The environment variable that holds the path of the clone.
    """

    files: tuple[str, ...]
    variable: str


@dataclass(frozen=True, eq=False)
class Peer:
    """A package, or a checkout, with the losses in it.

    Attributes
    ----------
    name : str
        Name of the distribution, and of the file.
    package : str
        Name of the module that is imported.
    pip : str
        Argument of ``pip install``; empty for a checkout.
    link : str
        Address of the project.
    targets : tuple of PeerTarget
    framework : str
        ``torch`` or ``jax``.
    checkout : Checkout or None
        Source of its files, if it is not installed by pip.
    """

    name: str
    package: str
    pip: str
    link: str
    targets: tuple[PeerTarget, ...]
    framework: str = "torch"
    checkout: Checkout | None = None

    @property
    def command(self) -> str:
        """The command that installs the package, or clones its repository and names the checkout."""
        if self.checkout is None:
            return f"pip install {self.pip}"
        return f"git clone {self.link}, then --checkout {self.name}=PATH or {self.checkout.variable}=PATH"

    @property
    def version(self) -> str | None:
        """The installed version, or a digest of the files of a checkout; None if there is neither."""
        if self.checkout is None:
            return _installed(self)
        root = os.environ.get(self.checkout.variable)
        return _digest(self, root) if root else None

    def require(self) -> None:
        """Raise `UnavailableError`, with the command that helps, if the peer is not here."""
        if self.version is None:
            named = ", ".join(repr(target.path or target.name) for target in self.targets)
            msg = f"target {named} needs {self.name}: {self.command}"
            raise UnavailableError(msg)


def peers() -> Mapping[str, Peer]:
    """Every declared peer by name; nothing of theirs is imported."""
    return discover("nceref.targets.peers.packages", "PEER", Peer)


def find(text: str) -> tuple[Peer, PeerTarget] | None:
    """The peer and its target of that name or import path; None if no peer declares it.

    `text` is a name, such as ``lightly-ntxent``, or an import path, such as ``lightly.loss:NTXentLoss``, also with a
    point in place of the colon.
    """
    for peer in peers().values():
        for target in peer.targets:
            if text.replace(":", ".") in {path.replace(":", ".") for path in (target.name, target.path, *target.also)}:
                return peer, target
    return None


def get(text: str) -> tuple[Peer, PeerTarget]:
    """Like `find`, but raises `InputError` with the names that may have been meant."""
    known = {target.name: (peer, target) for peer in peers().values() for target in peer.targets}
    return find(text) or pick("known target", text, known, "nceref verify --all")


def installed_version(name: str) -> str | None:
    """The version of a peer, or of another distribution; None where it is not installed.

    The local part, such as ``+cpu``, is left out: known differences are those of a release.
    """
    return peers()[name].version if name in peers() else _release(name)


def _release(name: str) -> str | None:
    try:
        return importlib.metadata.version(name).split("+")[0]
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def _installed(peer: Peer) -> str | None:
    try:
        return _release(peer.name) if importlib.util.find_spec(peer.package) else None
    except ModuleNotFoundError:
        return None


def _digest(peer: Peer, root: str) -> str:
    """The content of the files that are loaded, in twelve digits, which a clone without its history has too."""
    assert peer.checkout is not None
    content = b"".join(_file(peer, root, name).read_bytes() for name in peer.checkout.files)
    return f"sha256 {sha256(content).hexdigest()[:12]}"


@contextmanager
def checkouts(given: Mapping[str, str | os.PathLike[str]]) -> Iterator[None]:
    """Name the folders of checkouts by peer, as ``--checkout NAME=PATH`` does.

    They are handed on in environment variables, so that child processes see them. Raises `InputError` if a name is not
    that of a peer with a checkout, or its folder does not hold the files.
    """
    wanted = {}
    for name, path in given.items():
        peer = peers().get(name)
        if peer is None or peer.checkout is None:
            known = ", ".join(name for name, peer in peers().items() if peer.checkout)
            msg = f"`--checkout` must be NAME=PATH with NAME one of {known}, got {name!r}"
            raise InputError(msg)
        for file in peer.checkout.files:
            _file(peer, path, file)
        wanted[peer.checkout.variable] = str(Path(path).expanduser().resolve())
    before = {variable: os.environ.get(variable) for variable in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for variable, old in before.items():
            os.environ.pop(variable)
            os.environ.update({variable: old} if old is not None else {})


def _file(peer: Peer, root: str | os.PathLike[str], name: str) -> Path:
    path = Path(root).expanduser() / name
    if not path.is_file():
        msg = f"{peer.name} must be in a folder that holds {name}, got {str(root)!r}; {peer.command}"
        raise InputError(msg)
    return path


def load(name: str, file: str, stand_ins: Mapping[str, Mapping[str, Any]] | None = None) -> ModuleType:
    """Load one file of a package or a checkout by itself, without importing what lies around it.

    `name` is that of the peer, and `file` a path inside the checkout, or beside the other installed packages.
    `stand_ins` are modules that the file imports, each with the names that it needs. The module is not entered into
    `sys.modules`. Raises `UnavailableError` if the package is not installed, or no folder of the checkout was given;
    `InputError` if there is no such file in it.
    """
    peer = peers()[name]
    peer.require()
    root = Path(_root(peer))
    path = _file(peer, root, file)
    spec = importlib.util.spec_from_file_location(f"checkout_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _standing_in(stand_ins or {}, root):
        spec.loader.exec_module(module)
    return module


def _root(peer: Peer) -> str | Path:
    """The folder that holds the checkout's files, or the installed package."""
    if peer.checkout is not None:
        return os.environ[peer.checkout.variable]
    spec = importlib.util.find_spec(peer.package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.parent


@contextmanager
def _standing_in(modules: Mapping[str, Mapping[str, Any]], root: Path) -> Iterator[None]:
    """Stand-ins for modules and for the packages around them, whose other files are still found; then all as before."""
    tops = {name.split(".")[0] for name in modules}
    ours = {name: module for name, module in sys.modules.items() if name.split(".")[0] in tops}
    names = {".".join(full.split(".")[: i + 1]) for full in modules for i in range(full.count(".") + 1)}
    for name in ours:
        del sys.modules[name]
    try:
        for name in sorted(names):
            module = sys.modules[name] = ModuleType(name)
            vars(module).update({"__path__": [str(root.joinpath(*name.split(".")))], **modules.get(name, {})})
            parent, _, last = name.rpartition(".")
            vars(sys.modules[parent]).update({last: module}) if parent else None
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] in tops]:
            del sys.modules[name]
        sys.modules.update(ours)
