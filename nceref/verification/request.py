"""The arguments of `verify`, checked and sorted: the loss, the conventions intended, and how to judge."""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any

import numpy as np

from nceref import __version__
from nceref.cases.aliases import match_input
from nceref.cases.corpus.files import read_inputs
from nceref.cases.corpus.resizing import NO_RESIZING, Resizing, parse_shape
from nceref.cases.expected_failures import ExpectedFailure, read_expected_failures
from nceref.cases.former_ids import current, warn_of_former
from nceref.cases.parametrization import candidates, described, parse_parametrization
from nceref.cases.records import Probe
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.intended import AXES, intended, intentions
from nceref.diagnosis.ranks.intended import check_gather
from nceref.engine.arguments import checked_number, converted, integer, one_of
from nceref.errors import InputError
from nceref.losses import all_losses, get_loss
from nceref.output.system import processes_available
from nceref.output.text import class_name, printable, shown
from nceref.output.words import alike, as_code, counted, did_you_mean
from nceref.registry import choose, folder_of, names_object, pick, place_and_name
from nceref.spec import Array, Choice, Labels, Loss, Parameter, Scalar
from nceref.targets.command_line import is_command, refuse_options, words_of
from nceref.targets.frameworks import NAMES
from nceref.targets.peers import peer
from nceref.targets.process.isolation import isolation
from nceref.targets.ranks.contract import Contract, split_inputs
from nceref.targets.ranks.options import added, contracts, importable
from nceref.targets.recorded import RecordedTarget
from nceref.targets.search import MOST
from nceref.verification.against import MeasuredReference
from nceref.verification.modes import MODES
from nceref.verification.options import BY_NAME, CALL, NEW, RANKS, Option, names_of

NOT_CONTAINED = (
    "this system starts no processes: the target ran in the one of the checker, without a time limit, and what hangs or"
    " crashes there is not judged, it ends the run"
)


def ways_of_calling(options: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Options with which an older program is called: as the new one is, then by itself where that is another way."""
    alone = {name: x for name, x in options.items() if name not in names_of(CALL)}
    return (options,) if alone == options else (options, alone)


@dataclass(frozen=True, eq=False)
class OldProgram:
    """An older program that a target is held to, with the loss and the options of that."""

    thing: Any
    loss: str | Loss | None
    options: Mapping[str, Any]

    @property
    def ways(self) -> tuple[Mapping[str, Any], ...]:
        """The options in each way of calling the program."""
        return ways_of_calling({name: x for name, x in self.options.items() if name not in names_of(NEW)})

    def request(self, way: Mapping[str, Any], **settings: Any) -> "Request":
        """Its request in one of the ways, under further settings."""
        return request_of(self.thing, self.loss, {**way, **settings})


@dataclass(frozen=True, eq=False)
class Request:
    """A target and what it is held to.

    Attributes
    ----------
    thing : str or object
        The target as it was given; `name` is how a report calls it. A `RecordedTarget` brings its own cases.
    loss : Loss
        The reference.
    settings : mapping
        Arguments of the reference that the target intends.
    intended : mapping
        Conventions of the closed list that the target intends, by axis, with what they are set to.
    reduction : str
        ``mean``, ``sum`` or ``none``.
    dtypes : tuple of str
        Formats of the runs.
    cases : tuple of str
        Ids of the only cases to judge; empty for all.
    param : mapping
        Inputs to the path of a parameter of the module, and the name of the function of it, empty to be measured.
    unsought : mapping
        Inputs whose parameters are left alone, with their paths.
    contracts : tuple of Contract
        The runs on ranks, or in steps; empty for one without.
    added : (str, float) or None
        A second target, that is added to the first on ranks, and its weight.
    calls : int
        Calls of the target that the search for an explanation may take; 0: none is looked for.
    temperatures : float or None
        The lowest temperature that must work; None: the lowest in use.
    against : OldProgram or None
        An older program that the target is held to, of which nothing is known yet.
    old : Request or None
        The older program, if its own numbers are the reference; `reference` gives a case these.
    about : mapping
        Further facts for the report.
    """

    thing: Any
    name: str
    loss: Loss
    settings: Mapping[str, Any]
    intended: Mapping[str, str]
    reduction: str
    dtypes: tuple[str, ...]
    call: str = ""
    init: Mapping[str, Any] = field(default_factory=dict)
    framework: str = ""
    floats: tuple[str, ...] = ()
    suite: str = BY_NAME["suite"].default
    device: str = BY_NAME["device"].default
    seed: int = BY_NAME["seed"].default
    algorithm: str = BY_NAME["algorithm"].default
    timeout: float = BY_NAME["timeout"].default
    isolate: bool = False
    cases: tuple[str, ...] = ()
    require_grad: bool = False
    expected_failures: Mapping[str, ExpectedFailure] = field(default_factory=dict)
    explain: bool = False
    repro: bool = False
    param: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unsought: Mapping[str, str] = field(default_factory=dict)
    modes: tuple[str, ...] = ()
    resizing: Resizing = NO_RESIZING
    inputs: Mapping[str, Any] = field(default_factory=dict)
    calls: int = MOST
    temperatures: float | None = None
    contracts: tuple[Contract, ...] = ()
    added: tuple[str, float] | None = None
    against: OldProgram | None = None
    old: "Request | None" = None
    reference: MeasuredReference | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_the_loss(self) -> bool:
        """Whether the reference is the loss itself, with no convention and no other program in its place."""
        return not self.intended and self.reference is None

    def answered(self, probe: Probe) -> Probe:
        """The case with what the target is held to in place of the loss."""
        altered = intended(probe, self.intended)
        return altered if self.reference is None else self.reference(altered)

    @property
    def in_steps(self) -> bool:
        """Whether the target is called in steps of gradient accumulation."""
        return any(contract.in_turn for contract in self.contracts)

    @property
    def recorded(self) -> RecordedTarget | None:
        """The target, if its answers were recorded elsewhere: no call beyond them can be made."""
        # By its type: an object may say of itself what it likes.
        return self.thing if issubclass(type(self.thing), RecordedTarget) else None

    @property
    def stated(self) -> dict[str, Any]:
        """The conventions as they were stated, for the report."""
        reduction = {} if self.reduction == "mean" else {"reduction": self.reduction}
        return {**self.settings, **self.intended, **reduction}


def request_of(thing: Any, loss: str | Loss | None, options: Mapping[str, Any]) -> Request:
    """The checked request of a call of `verify`; a known target brings its loss, its conventions and how it is called.

    `thing` is the target, as for `verify`, and `loss` the name of the reference, or a declaration; None for a known
    target. `options` are all other arguments of `verify`: those of `OPTIONS`, of which what was left out has its
    default, and conventions (arguments of the loss, ``reduction``, axes of the closed list). Raises
    `InputError` for an option, a loss, a setting or a value that does not exist.
    """
    settings = {name: x for name, x in options.items() if name not in BY_NAME}
    options = {name: x for name, x in options.items() if name in BY_NAME and x is not None}
    thing, name = _target(thing)
    given, old = {**settings, **options}, options.pop("against", None)
    if is_command(thing):
        refuse_options(options)
    on_ranks = contracts({name: x for name, x in options.items() if name in names_of(RANKS)})
    # Words that only a framework or a target reads stay as they are.
    own = {
        name: converted(name, x, _READERS[BY_NAME[name].kind], BY_NAME[name], x)
        for name, x in options.items()
        if name not in names_of(RANKS)
    }
    if known := _known(thing, options):
        held, target = known
        held.require()
        loss, settings = _declared_loss(target, loss, name), {**target.settings, **settings}
        thing, init = _address(thing, target, own.get("init") or {}, "init" if not own.get("param") else "param")
        own |= {"init": init} if init else {}
        own |= {"framework": options.get("framework") or held.framework, "floats": target.floats}
    if old is not None:
        must_be_a_program(old)
        loss = loss or _loss_of_known(old)
        own["against"] = OldProgram(old, loss, given)
    _must_be_possible(thing, loss, own)
    if own.get("repro") and own.get("calls") == 0:
        msg = "`repro` needs calls to find a small failing input, and `calls` is 0: leave out one of the two"
        raise InputError(msg)
    if on_ranks:
        _must_be_one_process(thing, own, settings, on_ranks[0])
    if on_ranks and not on_ranks[0].in_turn:
        thing = _on_ranks(thing, own)
    declaration = _loss(loss, name)
    meant = intentions(declaration, settings)
    check_gather(declaration, meant, on_ranks)
    own["param"] = _own_parameters(declaration, own.get("param", {}))
    rest = {key: value for key, value in settings.items() if key not in meant}
    reduction = rest.pop("reduction", "mean")
    dtypes, cases = own.pop("dtype", BY_NAME["dtype"].default), own.pop("case", ())
    checked = _checked(declaration, rest)
    sizes = own.pop("shape", (0, 0, 0))
    own["resizing"] = Resizing(own.pop("multiple_of", 1), *sizes)
    if "inputs" in own:
        own["inputs"] = read_inputs(own["inputs"], declaration)
        _must_divide(own["inputs"], declaration, on_ranks)
        # What the batch has, the designed cases have as well: the target takes it.
        arrays = {p.name for p in declaration.parameters if isinstance(p, Array | Labels) and not p.required}
        checked = {**{name: ... for name in own["inputs"] if name in arrays}, **checked}
    second = None if options.get("added") is None else added(options["added"])
    ways = {"cases": cases, "contracts": on_ranks, "added": second, **own}
    return Request(thing, name, declaration, checked, meant, reduction, dtypes, **ways)


def _target(thing: Any) -> tuple[Any, str]:
    """The target, as plain text if it is text, and its name."""
    # By its type: an object may say of itself what it likes.
    if issubclass(type(thing), str):
        return str.__str__(thing), printable(thing)
    return thing, converted("target", thing, _name, thing)


def _known(thing: Any, options: Mapping[str, Any]) -> tuple[peer.Peer, peer.PeerTarget] | None:
    """The package and its declaration of a target that the text names; None if there is none."""
    # A call expression makes it another target: what the package declares does not hold then.
    if type(thing) is not str or options.get("call"):
        return None
    return peer.find(thing)


def must_be_a_program(old: Any) -> None:
    """Refuse an older program that is the name of a loss, or text that names nothing."""
    if type(old) is str and old in all_losses():
        msg = f"`against` must be a program, file.py:name or package.module:name, got {shown(old)}; give --loss {old}"
        raise InputError(msg)
    if type(old) is str and not is_command(old):
        place_and_name(old, "`against`")


def _loss_of_known(old: Any) -> str | None:
    """The loss of an older program that is a known target."""
    known = _known(old, {})
    return None if known is None else known[1].loss


def _address(text: str, target: peer.PeerTarget, init: Mapping[str, Any], option: str) -> tuple[str, Mapping[str, Any]]:
    """The import path of a known target, and its constructor arguments.

    Arguments that are scalars of the loss reach it as these; with others, or with parameters of its own (the option
    ``param``), its own class is imported.
    """
    presets = target.presets(init)
    if presets is not None and option == "init":
        return target.address, presets
    paths = [path for path in (*target.also, target.path) if path]
    if not paths and option == "param":
        msg = f"`param` maps parameters of a module, but {target.name} is a function; leave it out"
        raise InputError(msg)
    if not paths:
        msg = f"`init` of {target.name} must be its scalars, got {shown(dict(init))}; give --loss and --call for others"
        raise InputError(msg)
    return next((path for path in paths if path.replace(":", ".") == text.replace(":", ".")), paths[-1]), init


def _declared_loss(target: peer.PeerTarget, loss: str | Loss | None, name: str) -> str:
    if loss not in (None, target.loss):
        msg = f"`loss` must be {target.loss!r} for {name}, or be left out, got {shown(loss)}; --call makes it another"
        raise InputError(msg)
    return target.loss


def _must_be_possible(thing: Any, loss: Any, own: Mapping[str, Any]) -> None:
    """Refuse, before anything is executed, a text that names nothing, and to isolate what runs here."""
    if is_command(thing):
        words_of(thing)
    elif type(thing) is str:
        place_and_name(thing)
    elif own.get("isolate"):
        msg = "`isolate` is for a target that is named by text, file.py:name: an object runs in this process"
        raise InputError(msg)
    # The reference is evaluated where the target is judged, so that no isolation of the target covers it.
    if own.get("isolate") and isinstance(loss, str) and names_object(loss):
        msg = (
            f"`loss` is {shown(loss)}, which runs in this process with all rights that you have, and `isolate` covers"
            " the target alone; name a loss of the package, leave out `isolate` if you trust both, or, if you trust"
            " the file of the loss, import it in Python and hand over the declaration: verify(..., loss=LOSS)"
        )
        raise InputError(msg)


def _must_be_one_process(thing: Any, own: Mapping[str, Any], settings: Mapping[str, Any], contract: Contract) -> None:
    """Refuse what neither ranks nor steps can do."""
    if own.get("repro"):
        what = "call, and steps are" if contract.in_turn else "process, and ranks are"
        msg = f"`repro` writes a script of one {what} several; leave out one of the two"
        raise InputError(msg)
    if settings.get("reduction") == "none":
        where, part = ("in steps" if contract.in_turn else "on ranks"), contract.part
        msg = f"`reduction` must be mean or sum {where}: the value of a {part} is one number, got 'none'"
        raise InputError(msg)
    if is_command(thing):
        why, remedy = "since ranks meet in PyTorch or JAX", "name the function itself"
        if contract.in_turn:
            why, remedy = "which answers each case by itself", "name a function of Python, or let the program take the"
            remedy += " steps, and leave `accumulate` out"
        msg = f"`{'accumulate' if contract.in_turn else 'ranks'}` is not for a target cmd:, {why}; {remedy}"
        raise InputError(msg)


def _on_ranks(thing: Any, own: Mapping[str, Any]) -> str:
    """The target as text, by which every rank imports it; what ranks exclude is refused."""
    if own.get("isolate"):
        msg = "`isolate` gives every process a network of its own, and ranks meet in one; leave out one of the two"
        raise InputError(msg)
    if own.get("device", "cpu") != "cpu":
        msg = f"`device` must be cpu on ranks, which meet by gloo, got {shown(own['device'])}"
        raise InputError(msg)
    return thing if issubclass(type(thing), str) else importable(thing)


def _must_divide(batch: Mapping[str, Any], loss: Loss, contracts: Sequence[Contract]) -> None:
    """Refuse a batch of the caller's own whose rows are no multiple of the number of steps."""
    count = max((len(batch[name]) for name in split_inputs(loss, batch)), default=0)
    for contract in contracts:
        if contract.in_turn and count % contract.unit:
            shares = ",".join(str(len(own)) for own in np.array_split(np.arange(count), contract.world_size))
            or_shares = f", or --shards {shares}" if count >= contract.world_size else ", or take fewer steps"
            msg = f"`inputs` has {counted(count, 'row')}, but `accumulate` has {contract.world_size} steps;"
            msg += f" give a multiple of {contract.unit} rows{or_shares}"
            raise InputError(msg)


def positive(name: str, value: Any) -> float:
    """A number above 0, and at most a million."""
    return checked_number(Scalar(name, "", "", low=0.0, high=1e6, high_closed=True), value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        msg = f"`{name}` must be text, got {shown(value)}"
        raise InputError(msg)
    return str.__str__(value)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    return (_text(name, value),) if isinstance(value, str) else tuple(_text(name, x) for x in value)


def _modes(name: str, value: Any) -> tuple[str, ...]:
    known = tuple(mode for mode, each in MODES.items() if each.optional)
    return tuple(dict.fromkeys(one_of(name, word, known) for text in _texts(name, value) for word in text.split(",")))


def _named_values(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        msg = f"`{name}` must map names of arguments to values, got {shown(value)}"
        raise InputError(msg)
    return value


_READERS: Mapping[str, Callable[[Option, Any], Any]] = {
    "text": lambda option, x: _text(option.name, x),
    "texts": lambda option, x: _texts(option.name, x),
    "choice": lambda option, x: one_of(option.name, x, option.choices),
    "flag": lambda option, x: one_of(option.name, x, (True, False)),
    "values": lambda option, x: _named_values(option.name, x),
    "failures": lambda option, x: read_expected_failures(x),
    "modes": lambda option, x: _modes(option.name, x),
    "formats": lambda option, x: _formats(x),
    "integer": lambda option, x: integer(f"`{option.name}`", x, least=option.least, most=option.most),
    "shape": lambda option, x: parse_shape(option.name, x),
    "inputs": lambda option, x: x,
    "number": lambda option, x: positive(option.name, x),
}
"""A reader of the values of an option, by kind."""


def _own_parameters(loss: Loss, given: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Path and parametrization by input."""
    fitting = {p.name: p for p in loss.parameters if isinstance(p, Scalar | Array) and not p.constant}
    out = {}
    for name, text in given.items():
        parameter = pick("input with a gradient", name, fitting, f"nceref losses {loss.name}")
        path, form = parse_parametrization(_text("param", text))
        if form and form not in candidates(parameter):
            ways = ", ".join(candidates(parameter))
            msg = f"`param` maps `{name}` by {form}, but it must be one of {ways}, got {shown(text)}"
            raise InputError(msg)
        out[name] = path, form
    return out


def _formats(given: Any) -> tuple[str, ...]:
    """Names of dtypes; those of NumPy, torch and jax are known by their last word."""
    listed = [given] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)
    if not listed:
        msg = "`dtype` must name at least one format, got none"
        raise InputError(msg)
    names = [x if isinstance(x, str) else getattr(x, "__name__", None) or str(x).rpartition(".")[2] for x in listed]
    return tuple(dict.fromkeys(map(str, names)))


def _name(thing: Any) -> str:
    try:
        own_name = getattr(thing, "__name__", None) or class_name(thing)
        module = getattr(thing, "__module__", None)
        return printable(own_name if module in (None, "__main__", "builtins") else f"{module}:{own_name}")
    # An attribute of an object may raise.
    except Exception:
        return class_name(thing)


def _loss(loss: str | Loss | None, name: str) -> Loss:
    if loss is None:
        msg = f"`loss` must name the reference for {name}, see `nceref losses`; `nceref verify TARGET` finds it"
        raise InputError(msg)
    declaration: Loss = loss if isinstance(loss, Loss) else get_loss(loss).declaration
    return declaration


def _checked(loss: Loss, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with choices and scalars inside their domains."""
    parameters = {p.name: p for p in loss.parameters}
    out: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in parameters:
            raise InputError(_unknown_setting(loss, name, value))
        out[name] = converted(name, value, _setting, parameters[name], value)
    return out


def _unknown_setting(loss: Loss, name: str, value: Any) -> str:
    listed = [c.id for c in CONVENTIONS.values() if c.axis == name]
    if listed:
        listed = [repr(id) for id in listed]
        return f"`{name}` must be a convention for {loss.name}, one of {', '.join(listed)}, got {shown(value)}"
    inputs = [p.name for p in loss.parameters]
    known, alias = [*inputs, "reduction"], match_input(name, inputs)
    meant = did_you_mean([alias] if alias else alike(printable(name), [*known, *AXES]), as_code)
    has = f"it has {', '.join(map(as_code, known))}, and the axes {', '.join(sorted(AXES))}"
    return f"`{printable(name)}` is no convention of {loss.name}; {meant or has}"


def _setting(parameter: Parameter, value: Any) -> Any:
    if value is None:
        return value
    if isinstance(parameter, Choice):
        return one_of(parameter.name, value, parameter.options)
    if isinstance(parameter, Scalar):
        return checked_number(parameter, value)
    # An array of any kind asks for a generated one.
    if not isinstance(value, str):
        return ...
    if isinstance(parameter, Array) and parameter.alternative is not None:
        return one_of(parameter.name, value, ("views",))
    name, text = parameter.name, shown(value)
    msg = f"`{name}` must be 'given', for generated ones, or be left out, for none; got {text}"
    raise InputError(msg)


def selected(ids: Iterable[str], chosen: Iterable[str]) -> frozenset[str]:
    """The chosen ids of cases, or all ids if none is chosen; raises `InputError` for an id that does not exist."""
    warn_of_former(given := list(chosen))
    return frozenset(choose("case", map(current, given), {id: id for id in ids}, "nceref verify TARGET --list-cases"))


def environment(request: Request, target: Any, forms: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Facts about a run, by name: versions, dtype, device, suite, seed, algorithm, and which input goes where.

    `target` is None if it could not be loaded. `forms` has the parametrizations of inputs that the target holds itself.
    """
    framework = target.framework if target is not None else request.framework
    facts = {
        "nceref": __version__,
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "framework": framework,
        "dtype": ", ".join(request.dtypes),
        "device": request.device,
        "suite": request.suite,
        "seed": request.seed,
        "algorithm": request.algorithm,
        "platform": platform.platform(terse=True),
    }
    if framework in NAMES:
        facts[framework] = _version(framework)
    if target is not None:
        held = {name: described(form, target.parameters[name]) for name, form in (forms or {}).items()}
        left = [f"the parameter {path} is not judged (--param)" for path in request.unsought.values()]
        parts = [target.binding, *(f"{name} -> {words}" for name, words in held.items()), *left, request.resizing.words]
        facts["arguments"] = ", ".join(filter(None, parts))
        facts |= {"parameters": held} if held else {}
        facts |= {"other_parameters": list(target.others)} if target.others else {}
        facts |= {"fixed": dict(target.fixed), "defaults": dict(target.defaults)}
    facts |= request.about
    if request.contracts:
        first = request.contracts[0]
        facts[f"{first.part}s"] = ", ".join(each.label for each in request.contracts)
        facts |= {"value": first.value, "sync": first.sync}
    if request.recorded is not None:
        return facts | dict(request.recorded.facts)
    # An object runs in this process everywhere; to find out about others, none is started for it.
    if not processes_available(attempt=issubclass(type(request.thing), str)):
        facts["containment"] = NOT_CONTAINED
    if request.isolate:
        facts["isolation"] = isolation(folder_of(request.thing)).name
    return facts


def recorded_request(recorded: RecordedTarget) -> Request:
    """The request that answers recorded elsewhere are judged by."""
    like = Request(recorded, recorded.name, recorded.loss, {}, {}, "mean", (recorded.dtype,))
    return replace(like, suite=recorded.suite, device="")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
