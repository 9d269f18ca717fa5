"""All frameworks, and the call of a target of any of them."""

import importlib
from collections.abc import Mapping
from dataclasses import replace

from nceref.errors import InputError, UnavailableError
from nceref.output.text import class_name, shown
from nceref.targets.frameworks import NAMES
from nceref.targets.frameworks.call import Answer, CallRequest, Trouble, short
from nceref.targets.frameworks.framework import Framework, Reply
from nceref.targets.frameworks.steps import STEP
from nceref.targets.target import ResolvedTarget

FRAMEWORKS: dict[str, Framework] = {
    name: importlib.import_module(f"nceref.targets.frameworks.{name}").FRAMEWORK for name in NAMES
}


def framework_of(name: str) -> Framework:
    """The framework of a name that a user gave."""
    if name not in FRAMEWORKS:
        msg = f"`framework` must be one of {', '.join(FRAMEWORKS)}, got {shown(name)}"
        raise InputError(msg)
    return FRAMEWORKS[name]


def check(target: ResolvedTarget, request: CallRequest) -> None:
    """Refuse a request that the target's framework cannot run, before the target is called.

    Raises `InputError` for a dtype or a device that the framework does not have, and `UnavailableError` if it is not
    installed.
    """
    try:
        framework_of(target.framework).check(request)
    except ImportError as error:
        msg = f"the target's framework is {target.framework}, which is not installed: pip install {target.framework}"
        raise UnavailableError(msg) from error


def answer(target: ResolvedTarget, request: CallRequest) -> Answer:
    """Call the target as a training step would, and with less only where it refuses.

    Every scalar is a tensor at first, then a Python number; then no gradients are asked for. What the target refused
    stands in `unjudged` and `remarks`; if no attempt succeeds, the exception of the first one is raised. Raises
    `Trouble` if the target answers with something that is no loss.
    """
    framework = framework_of(target.framework)
    known = frozenset(target.floats)
    # What stands in the place of a parameter of a module is a tensor.
    every = known | (request.scalars - target.parameters.keys())
    failed: Exception | None = None
    # Plain numbers before no gradients at all: what is refused must cost as few gradients as possible.
    attempts = dict.fromkeys([(known, True), (every, True), (every, False)])
    # Without autodiff there is one way to call a target.
    for floats, gradients in list(attempts)[: None if framework.autodiff else 1]:
        try:
            result = framework.answer(target, request, floats, gradients)
        except Exception as error:
            # It has answered, with something that is no loss, or in the steps before: another call does not help.
            if (failed is None and isinstance(error, Trouble)) or STEP.get()[0]:
                raise
            failed = failed or error
        else:
            return _with_reasons(result, target, request, floats, gradients, failed)
    assert failed is not None
    raise failed


def _with_reasons(
    result: Answer,
    target: ResolvedTarget,
    request: CallRequest,
    floats: frozenset[str],
    gradients: bool,
    failed: Exception | None,
) -> Answer:
    """The answer with the reasons for what could not be computed, and without gradients that mean nothing."""
    why = f"{class_name(failed)}: {short(failed or '', 120)}"
    refused = "the target refuses a tensor" if gradients else "the target cannot be differentiated"
    missing = (floats & request.scalars if gradients else request.differentiable) - frozenset(result.grads)
    reasons = {n: target.floats.get(n, f"{refused} ({why})") for n in missing}
    remarks = dict(result.remarks)
    if not gradients and "python-float" not in remarks:
        remarks["not-differentiable"] = f"answers only where no gradient is demanded, else raises {why}"
    unjudged = {**result.unjudged, **reasons}
    return replace(
        result, grads={n: g for n, g in result.grads.items() if n not in unjudged}, unjudged=unjudged, remarks=remarks
    )


def as_target(
    framework: str,
    reply: Reply,
    loss: str,
    floats: Mapping[str, str] | None = None,
) -> ResolvedTarget:
    """A target of a framework with a known answer, so that tensors, backward pass and reading are exercised.

    `reply` is that of `Framework.program`. `floats` has the scalars that are handed over as plain numbers, with
    reasons.
    """
    program = framework_of(framework).program(reply)
    return ResolvedTarget("a known answer", framework, loss, program, floats=floats or {}, has_reduction=True)
