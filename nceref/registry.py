"""Look-ups by name: the declarations of a folder, and the object that ``file.py:name`` names."""

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from nceref.errors import DeclarationError, InputError, TargetError
from nceref.output.text import harmless, printable, reason, shown
from nceref.output.words import alike, did_you_mean, letters
from nceref.spec import Loss

T = TypeVar("T")


@cache
def names(package: str) -> tuple[str, ...]:
    """The names declared in `package`, sorted, without importing one of them."""
    folder = importlib.import_module(package)
    return tuple(sorted(module.name for module in pkgutil.iter_modules(folder.__path__)))


@cache
def discover(package: str, attribute: str, kind: type[Any]) -> Mapping[str, Any]:
    """Import every module of a package and collect its declaration.

    The package is such as ``"nceref.family"``, and the attribute is the name of the declaration in each module, such as
    ``"LOSS"``. Its `name` must be that of the file, with dashes or underscores. The mapping is sorted by name. Raises
    `DeclarationError` for a module without such a declaration.
    """
    declarations = {}
    for name in names(package):
        declaration: Any = getattr(importlib.import_module(f"{package}.{name}"), attribute, None)
        if not isinstance(declaration, kind) or declaration.name.replace("-", "_") != name:
            msg = f"{package}.{name} must define {attribute} = {kind.__name__}(name={name!r}, ...), got {declaration!r}"
            raise DeclarationError(msg)
        declarations[declaration.name] = declaration
    # Every caller gets this one mapping from the cache: it must not be changed.
    return MappingProxyType(declarations)


def names_object(text: str) -> bool:
    """Whether a word is that of a file or a module to execute, and not a name of the package."""
    return ":" in text or text.endswith(".py")


def own_loss(text: str) -> Loss:
    """A declaration outside of the package.

    The text is ``file.py:NAME`` or ``package.module:NAME``; the file is executed. Raises `InputError` if it cannot be
    loaded, is no `Loss`, or has a formula or a plan that cannot take its arguments.
    """
    try:
        declaration = find_object(text, "a loss of your own", lambda thing: isinstance(thing, Loss))
    except TargetError as error:
        msg = f"`loss`: {error}"
        raise InputError(msg) from error
    text = printable(text)
    # A loss of the package by its import path, nceref.losses:nt_xent, has its declaration.
    declaration = getattr(declaration, "declaration", declaration)
    if not isinstance(declaration, Loss):
        msg = f"`loss` must name a declaration, NAME = nceref.spec.Loss(...); {text} is {shown(declaration)}"
        msg += f"; to check an implementation: nceref verify {text}" if callable(declaration) else ""
        raise InputError(msg)
    if not (isinstance(declaration.name, str) and declaration.name.isidentifier()):
        msg = f"`loss`: the `name` of {text} must be a Python name, got {shown(declaration.name)}"
        raise InputError(msg)
    _check_callables(declaration, text)
    return declaration


def _check_callables(declaration: Loss, text: str) -> None:
    """Refuse a formula or a plan that cannot take the arguments."""
    names = [p.name for p in declaration.parameters]
    for role, first in (("formula", ["m"]), ("plan", [])):
        try:
            inspect.signature(getattr(declaration, role)).bind(*first, **dict.fromkeys(names))
        except (TypeError, ValueError) as error:
            takes = ", ".join([*first, *names])
            msg = f"`loss`: the `{role}` of {text} must take {takes}: {printable(error)}"
            raise InputError(msg) from error


def pick(what: str, name: str, known: Mapping[str, T], command: str) -> T:
    """The declaration of that name.

    Raises `InputError` if there is none; the message says `what` is missing ("table", "loss"), names those that may
    have been meant, and the command that lists them.
    """
    # Anything that is no text has no name to look for, and may not even be hashable.
    if not isinstance(name, str) or name not in known:
        # A text has a method of that name.
        titled = ((key, getattr(declared, "title", None)) for key, declared in known.items())
        titles = {key: title for key, title in titled if isinstance(title, str)}
        error = unknown(what, name if isinstance(name, str) else shown(name), tuple(known), command, titles)
        raise error
    return known[name]


def choose(what: str, names: Iterable[str], known: Mapping[str, T], command: str) -> list[T]:
    """The declarations of these names, each once, in their order; all of them for no name. See `pick`."""
    return [pick(what, name, known, command) for name in dict.fromkeys(names) or known]


def unknown(
    what: str, name: str, known: tuple[str, ...], command: str, titles: Mapping[str, str] = MappingProxyType({})
) -> InputError:
    """The error for a name that is not declared, with those it may have meant: alike, or described by that word.

    `what` is the word for it, "table" or "loss"; the command lists the known names. `titles` are titles by name, whose
    words may be meant.
    """
    # Measured on this package: slips such as "nt_xnet" score 0.83, other words such as "simclr" for "simple" 0.67.
    meant = alike(printable(name), known, 0.75) or _titled(printable(name), titles) or _described(what, printable(name))
    hint = f"; {did_you_mean(meant)}" if meant else "."
    return InputError(f"no {what} named {shown(name)}{hint} See `{command}`")


def _titled(name: str, titles: Mapping[str, str]) -> list[str]:
    """The first names in whose title there is a word like this one."""
    words = {word.strip(",.").lower() for title in titles.values() for word in title.split()}
    meant = alike(name.lower(), sorted(words), 0.75) if len(name) > 3 else []
    return [key for key, title in titles.items() if meant and meant[0] in title.lower()][:3]


def _described(what: str, name: str) -> list[str]:
    """Declarations whose summary holds all words of a name, or else those whose notes do, or whose sources."""
    # What Python itself looks for in a module begins with an underscore, at times while declarations are imported.
    words = [letters(word) for word in name.replace("-", " ").split() if word.lower() not in _EVERYWHERE]
    if not any(len(word) > 2 for word in words) or name.startswith("_") or what not in _FOLDERS:
        return []
    declarations = discover(*_FOLDERS[what]).items()
    for part in ("summary", "notes", "sources"):
        texts = {k: _words(str(getattr(declared, part))) for k, declared in declarations}
        meant = [k for k, text in texts.items() if all(_is_in(word, text) for word in words)]
        # A word that is in more of them, such as "softmax", does not discriminate.
        if 0 < len(meant) <= 3:
            return meant
    return []


_EVERYWHERE = frozenset({"loss", "losses", "with", "and", "the", "correction"})
"""Words that say nothing about which loss is meant."""


def _words(text: str) -> list[str]:
    return [letters(word) for word in re.split(r"\W+", text)]


def _is_in(word: str, words: Sequence[str]) -> bool:
    """Whether a text has a word; a short one as a whole, a longer one as part of another."""
    return word in words if len(word) < 4 else any(word in other for other in words)


_FOLDERS: Mapping[str, tuple[str, str, Any]] = {"loss": ("nceref.family", "LOSS", Loss)}


def find_object(text: str, what: str = "TARGET", fits: Callable[[Any], bool] = callable) -> Any:
    """The object that a text names; its file or module is executed.

    The text is ``file.py:name`` or ``package.module:name``; the name may have dots. A message names it by `what`, and
    offers objects that `fits` where the name is not there. Raises `InputError` if the text has no ``:name``, or what
    stands before it can be neither a file nor a module, and `TargetError` if the file, the module or the name is not
    there, or if importing it fails.
    """
    place, name = place_and_name(text, what)
    if not name:
        raise _without_name(place, what, fits)
    thing: Any = import_place(place, text)
    walked = place
    for part in name.split("."):
        if not hasattr(thing, part):
            raise TargetError(_no_attribute(walked, part, thing, fits))
        thing, walked = getattr(thing, part), f"{walked}{':' if walked == place else '.'}{part}"
    return thing


def import_place(place: str, text: str = "") -> ModuleType:
    """The module of a file, or of a dotted name; it is executed.

    A message names it by `text`, or else by the place. Raises `TargetError` if it is not there, or if importing it
    fails.
    """
    return _file(Path(place)) if place.endswith(".py") else _module(place, text or place)


def place_and_name(text: str, what: str = "TARGET") -> tuple[str, str]:
    """Part a text into a file or a module and what is named in it; nothing is imported.

    Of a file without ``:name``, the name is empty. Raises `InputError` if the text can be neither.
    """
    place, _, name = text.rpartition(":")
    if text.startswith(("http:", "https:")) or place.endswith(".ipynb"):
        raise InputError(_malformed(text, what))
    if text.removesuffix(":").endswith(".py"):
        return text.removesuffix(":"), ""
    if name and (place.endswith(".py") or re.fullmatch(r"[\w.-]+", place)):
        return place, name
    raise InputError(_malformed(text, what))


def _malformed(text: str, what: str) -> str:
    colons, place = text.count(":"), text.rpartition(":")[0]
    if ".ipynb" in text:
        script = Path(text.partition(".ipynb")[0]).name
        return f"{what} {printable(text)} is in a notebook; export it, and name {script}.py:NAME"
    msg = f"{what} must be file.py:name or package.module:name, got {shown(text)}"
    if text.startswith(("http:", "https:")):
        return f"{msg}, an address of the web; download the file, and name that"
    if colons > 1:
        return f"{msg}, which has {colons} colons instead of one"
    if place and Path(f"{place}.py").is_file():
        return f"{msg}; did you mean {place}.py:{text.rpartition(':')[2]}?"
    if not place and re.fullmatch(r"\w+(\.\w+)+", text):
        return f"{msg}; did you mean {':'.join(text.rsplit('.', 1))}?"
    return f"{msg}, where {shown(place)} is neither a module nor a file that ends in .py" if place else msg


def folder_of(text: str) -> Path:
    """The folder whose neighbors a target may import: that of the file, or the current one."""
    place = text.rpartition(":")[0]
    if not place.endswith(".py"):
        return Path.cwd()
    try:
        return Path(place).resolve().parent
    # A link that leads to itself.
    except (OSError, RuntimeError):
        return Path(place).parent


def _without_name(place: str, what: str, fits: Callable[[Any], bool]) -> InputError:
    path = Path(place)
    if path.is_file():
        offers = _offers(_file(path), fits) or ["NAME"]
        meant = ", ".join(f"{path}:{n}" for n in offers[:10])
        return InputError(f"{what} must say which object of {path} is meant: {meant}")
    return InputError(_malformed(place, what))


def must_be_there(text: str) -> None:
    """Raise `TargetError` where the file of a text ``file.py:name`` is not there; nothing is executed."""
    place = place_and_name(text)[0]
    path = Path(place)
    if place.endswith(".py") and not path.is_file():
        folder = folder_of(f"{path}:")
        near = sorted({p.name for p in folder.glob("*.py")} - {path.name}) if folder.is_dir() else []
        msg = f"no file {printable(repr(str(path)))}{_meant(path.name, near)}"
        raise TargetError(msg)


def _file(path: Path) -> ModuleType:
    must_be_there(f"{path}:")
    at = path.stat()
    key = (str(path.resolve()), at.st_mtime_ns, at.st_size)
    if key not in _EXECUTED:
        _EXECUTED[key] = _executed(path)
    return _EXECUTED[key]


_EXECUTED: dict[tuple[str, int, int], ModuleType] = {}
"""The modules of files: like a package, a file is executed once, unless it is written again."""


def _executed(path: Path) -> ModuleType:
    """The module of a file: that of its package, from the same checkout, where there is one that can be imported."""
    root, name = _in_package(path.resolve())
    top = name.partition(".")[0]
    # A package of that name that is loaded already, such as torch, is another one, or an older state of this one.
    if root == path.resolve().parent or top in sys.modules:
        return _alone(path)
    # Before what is installed: a file of an old checkout must not be handed the new neighbors.
    with _beside(root):
        try:
            return _imported(lambda: importlib.import_module(name), str(path))  # type: ignore[no-any-return]
        except TargetError as error:
            # The package may need what is not installed, and the file does not.
            try:
                return _alone(path)
            except TargetError:
                raise error from None


def _in_package(path: Path) -> tuple[Path, str]:
    """The folder that holds the outermost package of a file, and the module that the file is there."""
    folder, parts = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        folder, parts = folder.parent, [folder.name, *parts]
    return folder, ".".join(parts).removesuffix(".__init__")


def _alone(path: Path) -> ModuleType:
    # A file must not replace a module of the same name that is loaded already, such as torch.
    name = path.stem if path.stem not in sys.modules else f"target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    previous = sys.modules.get(name)
    # Before it runs, as an import does: dataclasses and pickle look modules up by name.
    sys.modules[name] = module
    try:
        with _beside(path.resolve().parent):
            _imported(lambda: spec.loader.exec_module(module), str(path))  # type: ignore[union-attr]
    except BaseException:
        sys.modules.pop(name)
        if previous is not None:
            sys.modules[name] = previous
        raise
    return module


def _module(name: str, text: str) -> ModuleType:
    with _beside(Path.cwd()):
        try:
            there = importlib.util.find_spec(name.split(".")[0]) is not None
        # A module without a spec, such as __main__; it is usable if it is loaded.
        except (ValueError, ImportError):
            there = name.split(".")[0] in sys.modules
        if not there:
            raise TargetError(_no_module(name.split(".")[0], text))
        return _imported(lambda: importlib.import_module(name), name)  # type: ignore[no-any-return]


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """The folder on the path of imports, so that a target finds its neighbors."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))


def _imported(load: Callable[[], Any], name: str) -> Any:
    """The result of an import; an error in somebody else's file is reported with its last lines."""
    try:
        return load()
    except ModuleNotFoundError as error:
        missing = printable(error.name or "", 100)
        # The named module itself is missing in a package that is there, not something that it imports.
        if name.startswith(missing) and "." in missing:
            raise TargetError(_no_submodule(missing)) from error
        if not missing or missing.startswith("nceref."):
            raise TargetError(_failure(name, error)) from error
        package, who = missing.split(".")[0], _importer(error, name)
        msg = _needs(who, package) or f"{who} imports {package}, and there is no module of that name"
        raise TargetError(msg) from error
    except SystemExit as error:
        code = printable(error)
        msg = f"{name} exits while it is imported (SystemExit: {code}); guard it with if __name__ == '__main__'"
        raise TargetError(msg) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(_failure(name, error)) from error


def _importer(error: ModuleNotFoundError, name: str) -> str:
    """The target whose import statement failed, or the package that it imports whose own statement did."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = [str(frame.f_globals.get("__name__")) for frame in frames if frame.f_code.co_filename != __file__]
    statements = [module for module in modules if module.partition(".")[0] not in ("importlib", "_frozen_importlib")]
    return name if len(set(statements)) < 2 else printable(statements[-1].partition(".")[0], 100)


_LINES, _LONGEST = 20, 1000
"""The lines of a traceback that are shown, and the characters of a part."""


def _failure(name: str, error: BaseException) -> str:
    """The last lines of the traceback, without the frames of this package and of the import machinery."""
    try:
        shown = traceback.TracebackException.from_exception(error, limit=-3)
    # The text and the attributes of an exception are code of others.
    except Exception:
        return f"{name} cannot be imported: {reason(error)}"
    kept = [f for f in shown.stack if not f.filename.startswith((__file__, "<frozen"))]
    shown.stack[:] = kept
    text = "".join(part[:_LONGEST] for part in shown.format(chain=False))
    lines = "\n".join(harmless(text).rstrip().splitlines()[:_LINES])
    hint = ""
    if "relative import" in printable(error):
        hint = "\nThe file belongs to a package: name it package.module:name, from the folder that holds the package."
    return f"{name} cannot be imported:\n{lines}{hint}"


DISTRIBUTIONS: Mapping[str, str] = {
    **{name: name for name in ("dask", "distributed", "jax", "lightly", "optax", "torch")},
    "flint": "python-flint",
    "keras_rs": "keras-rs",
    "open_clip": "open_clip_torch",
    "pytorch_metric_learning": "pytorch-metric-learning",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
}
"""Packages that may be missing, with what installs them; of any other name, somebody else may have registered it."""


def _needs(who: str, package: str) -> str:
    """The sentence on a missing package and how to get it; empty for one that is not known."""
    if package not in DISTRIBUTIONS:
        return ""
    return f"{who} needs the package {package}: pip install {DISTRIBUTIONS[package]}"


def _no_module(package: str, text: str) -> str:
    """The message for a module that is not there: modules of the folder, and those of nearly its name."""
    if needed := _needs(f"target {shown(text)}", package):
        return needed
    folder = Path.cwd()
    near = sorted(m.name for m in pkgutil.iter_modules([str(folder)]))
    meant = did_you_mean(alike(package, [*(m.name for m in pkgutil.iter_modules()), *near], 0.75))
    rest = f"; {meant}" if meant else _meant(package, near)
    return f"no module {package!r}, neither in {printable(str(folder))} nor installed{rest}"


def _no_submodule(missing: str) -> str:
    parent, _, last = missing.rpartition(".")
    path = getattr(sys.modules.get(parent), "__path__", None)
    there = [m.name for m in pkgutil.iter_modules(path)] if path else []
    return f"no module {last!r} in {parent}{_meant(last, there)}"


def _no_attribute(place: str, name: str, thing: Any, fits: Callable[[Any], bool]) -> str:
    offers = _offers(thing, fits)
    return f"{place} has no {name!r}{_meant(name, offers)}"


def _offers(thing: Any, fits: Callable[[Any], bool]) -> list[str]:
    """Names of what fits there, what is defined in it before what it has imported."""
    public = [n for n in dir(thing) if not n.startswith("_") and fits(getattr(thing, n, None))]
    own = [n for n in public if getattr(getattr(thing, n), "__module__", None) == getattr(thing, "__name__", "")]
    return own or public


def _meant(name: str, there: list[str]) -> str:
    if meant := did_you_mean(alike(name, there)):
        return f"; {meant}"
    more = ", ..." if len(there) > 10 else ""
    return f"; there are {', '.join(there[:10])}{more}" if there else ""
