"""PyTorch targets: tensors that require gradients in, one backward pass; see `Framework`."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nceref.errors import InputError
from nceref.output.text import shown
from nceref.targets.frameworks.call import (
    Answer,
    CallRequest,
    Trouble,
    content,
    gradient_of,
    laid_out,
    loss_of,
    modified,
    value_of,
)
from nceref.targets.frameworks.framework import Dialect, Framework, Mode, Reply
from nceref.targets.frameworks.steps import in_steps
from nceref.targets.target import Program, ResolvedTarget


def check(request: CallRequest) -> None:
    """Refuse a device that is not there."""
    import torch

    try:
        torch.zeros(1, device=request.device)
    except (RuntimeError, AssertionError) as error:
        msg = f"`device` is {shown(request.device)}, which torch cannot use here: {str(error).splitlines()[0]}"
        raise InputError(msg) from error


def answer(target: ResolvedTarget, request: CallRequest, floats: frozenset[str], gradients: bool) -> Answer:
    """Call it on copies that a graph can be followed through, and read the gradients of the leaves."""
    import torch

    graph = gradients and request.mode != "no-grad"
    taken: list[_Call] = []
    # The caller may be inside of no_grad or inference mode, where no graph is built.
    with torch.inference_mode(False), torch.set_grad_enabled(graph), _precision(request):
        return in_steps(request, lambda part: _called(target, part, floats, gradients, taken))


@dataclass(frozen=True, eq=False)
class _Call:
    """A call with its leaves, and the gradients that it and later steps leave there."""

    request: CallRequest
    leaves: Mapping[str, Any]
    grads: dict[str, Any] = field(default_factory=dict)


def _called(
    target: ResolvedTarget, request: CallRequest, floats: frozenset[str], gradients: bool, taken: list[_Call]
) -> Answer:
    """The answer of one call, after those in `taken`, to whose rows its loss may lead back."""
    import torch

    assert target.program is not None
    leaves = _leaves(request, floats)
    # What a module holds itself has no gaps in memory.
    plain = replace(request, mode="")
    handed = {
        n: _handed(n, x, plain if n in target.parameters else request) if isinstance(x, torch.Tensor) else x
        for n, x in leaves.items()
    }
    tensors = [(n, x, reader(x)) for n, x in handed.items() if isinstance(x, torch.Tensor)]
    before = [(n, x, read, read(x)) for n, x, read in tensors]
    returned = target.program(handed, request.reduction, _placed(request))
    loss = loss_of(returned, request, lambda x: isinstance(x, torch.Tensor))
    changed = [n for n, x, read, was in before if read(x) != was]
    if not isinstance(loss, torch.Tensor):
        return _without_graph(loss, request, modified(changed))
    value = value_of(_numbers(loss), request)
    tracked = request.differentiable - floats if gradients else frozenset()
    taken.append(_Call(request, {n: x for n, x in leaves.items() if n in tracked}))
    _add_gradients(loss, taken)
    return Answer(value, taken[-1].grads, remarks=modified(changed))


def reader(tensor: Any) -> Callable[[Any], Any]:
    """A reader of a tensor's content by methods of the C class under it: those of torch.Tensor can be replaced."""
    import torch

    base: Any = type(tensor).__mro__[-2]
    numbers = torch.uint8

    def read(x: Any) -> Any:
        row = base.reshape(base.contiguous(base.cpu(base.detach(x))), (-1,))
        # NumPy has no bfloat16.
        return x.shape, content(base.numpy(base.view(row, numbers)))

    return read


@contextlib.contextmanager
def _precision(request: CallRequest) -> Iterator[None]:
    """Products in bfloat16 or in TF32, where that is the mode."""
    import torch

    before, kind = torch.get_float32_matmul_precision(), torch.device(request.device).type
    try:
        torch.set_float32_matmul_precision("high" if request.mode == "tf32" else before)
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=request.mode == "autocast"):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _handed(name: str, leaf: Any, request: CallRequest) -> Any:
    """A copy, as activations are: writing into it is allowed, and is seen afterwards."""
    floating = leaf.is_floating_point()
    copy = leaf.requires_grad_(name in request.differentiable).clone() if floating else leaf
    return laid_out(copy, request.mode, lambda shape: leaf.new_full(shape, float("nan") if floating else -1))


def _leaves(request: CallRequest, floats: frozenset[str]) -> dict[str, Any]:
    import torch

    dtype, out = getattr(torch, request.dtype), dict(request.inputs)
    for name, x in request.inputs.items():
        if isinstance(x, np.ndarray):
            kind = dtype if x.dtype.kind == "f" else torch.int64
            out[name] = torch.tensor(x, dtype=kind, device=request.device)
        elif name in request.scalars - floats:
            out[name] = torch.tensor(x, dtype=dtype, device=request.device)
    return out


def _placed(request: CallRequest) -> Callable[[Any], Any]:
    import torch

    def placed(instance: Any) -> Any:
        if isinstance(instance, torch.nn.Module):
            instance = instance.to(device=request.device, dtype=getattr(torch, request.dtype))
            instance = instance.eval() if request.mode == "eval" else instance
        return torch.compile(instance) if request.mode == "compile" else instance

    return placed


def _without_graph(loss: Any, request: CallRequest, remarks: dict[str, str]) -> Answer:
    """A Python number, or a NumPy array: it can be judged, but nothing can be trained with it."""
    kind = type(loss).__name__
    numpy = "; choose --framework numpy for a NumPy function" if type(loss).__module__ == "numpy" else ""
    remarks["python-float"] = f"returns a {kind}, not a tensor: no gradient can flow back from it{numpy}"
    return Answer(value_of(loss, request), {}, dict.fromkeys(request.differentiable, f"it returns a {kind}"), remarks)


def _add_gradients(loss: Any, taken: Sequence[_Call]) -> None:
    """Add the gradients of the last call's loss to those of all calls; a target may have kept rows of earlier steps."""
    import torch

    leaves = [(call, n, x) for call in taken for n, x in call.leaves.items()]
    cotangent = taken[-1].request.cotangent
    upstream = torch.as_tensor(1.0 if cotangent is None else cotangent, dtype=torch.float64)
    found: Sequence[Any] = [None] * len(leaves)
    if leaves and loss.requires_grad:
        tensors = [x for _, _, x in leaves]
        # The same as `grad_outputs`, for which PyTorch would import SymPy.
        weighted = (loss * upstream.to(loss).expand_as(loss)).sum()
        found = torch.autograd.grad(weighted, tensors, allow_unused=True)
    for (call, n, x), g in zip(leaves, found, strict=True):
        # An input that the graph does not reach has the gradient 0.
        if g is None and n in call.grads:
            continue
        grad = gradient_of(n, _numbers(torch.zeros_like(x) if g is None else g), call.request)
        call.grads[n] = call.grads[n] + grad if n in call.grads else grad


def _numbers(tensor: Any) -> Any:
    import torch

    if tensor.is_complex():
        msg = "returns complex numbers"
        raise Trouble(msg, "not-a-number-type")
    return tensor.detach().to("cpu", torch.float64).numpy()


def program(reply: Reply) -> Program:
    """A program with a known value and a known backward pass."""
    import torch

    class Known(torch.autograd.Function):  # type: ignore[misc]
        """The value forward, the gradients backward, whatever the tensors are."""

        @staticmethod
        def forward(ctx: Any, value: Any, grads: tuple[Any, ...], *tensors: Any) -> Any:
            ctx.grads = grads
            return value

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            # Rows are added up, so that their cotangent is 1 throughout.
            scale = cotangent.flatten()[0] if cotangent.numel() else 0
            return None, None, *(g if g is None else g * scale for g in ctx.grads)

    def returned(inputs: Mapping[str, Any], reduction: str, placed: Any) -> Any:
        tensors = {n: x for n, x in inputs.items() if isinstance(x, torch.Tensor) and x.is_floating_point()}
        plain = {n: x.detach().cpu().double().numpy() if n in tensors else x for n, x in inputs.items()}
        value, grads = reply({n: x.cpu().numpy() if isinstance(x, torch.Tensor) else x for n, x in plain.items()})
        like = next(iter(tensors.values()))
        native = [like.new_tensor(np.asarray(grads[n])) if n in grads else None for n in tensors]
        return Known.apply(like.new_tensor(np.asarray(value)), tuple(native), *tensors.values())

    return returned


def called_with(module: Any, tensors: Mapping[str, Any], call: Callable[[], Any]) -> Any:
    """The result of a call during which tensors stand in the place of a module's parameters.

    `module` may be compiled. `tensors` is path to tensor; one number takes the shape of the parameter. `call` calls the
    module in any way.
    """
    import torch

    class Around(torch.nn.Module):  # type: ignore[misc]
        """A module around the other one, so that `call` may call any of its methods."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = getattr(module, "_orig_mod", module)

        def forward(self) -> Any:
            return call()

    around = Around()
    shapes = {path: x.shape for path, x in around.inner.named_parameters(remove_duplicate=False)}
    placed = {f"inner.{n}": x if x.ndim else x.reshape(shapes[n]) for n, x in tensors.items()}
    return torch.func.functional_call(around, placed, ())


def _in_bfloat16(probe: Any, others: Sequence[Any]) -> Any:
    """The case with the bounds of bfloat16; None in formats other than float32, which are not lowered."""
    from nceref.tolerance.implementation import implementation_bounds

    if probe.dtype != "float32":
        return None
    bounds = implementation_bounds(probe.bound, "bfloat16", probe.reduction)
    return replace(probe, bounds=bounds) if np.all(np.isfinite(bounds.value)) else None


_DIALECT = Dialect(
    imports=("import torch",),
    array="torch.tensor({literal}, dtype=torch.{dtype}, requires_grad=True)",
    scalar="torch.tensor({literal}, dtype=torch.{dtype}, requires_grad=True)",
    labels="torch.tensor({literal})",
    cast="f = f.to(torch.{dtype}) if isinstance(f, torch.nn.Module) else f",
    call="value = {call}\nvalue = value['loss'] if isinstance(value, dict) else value",
    grads="value.sum().backward()\n"
    "grads = {{name: torch.zeros_like(x) if x.grad is None else x.grad for name, x in {{{by_name}}}.items()}}\n"
    "grads = {{name: grad.double().numpy() for name, grad in grads.items()}}",
    number="value = value.detach().double().numpy() if isinstance(value, torch.Tensor) else value",
    holding="""# Parameters that the module holds itself.
module, held = f, {{{held}}}
f = lambda *args, **names: torch.func.functional_call(module, held, args, names)""",
)
FRAMEWORK = Framework(
    "torch",
    check,
    answer,
    program,
    _DIALECT,
    modules={"torch": "torch", "F": "torch.nn.functional"},
    logarithm="torch.log({})",
    packages=("torch", "torchvision"),
    ways=("again", "upstream", "strided", "offset", "transposed", "after-larger", "sum", "mean"),
    modes={
        "no-grad": Mode("within no_grad", "no-grad-differs", value_only=True),
        "eval": Mode("as a module in evaluation mode", "evaluation-mode-differs"),
        "compile": Mode("compiled by torch.compile", "compiled-differs", optional=True, family="compiled"),
        "autocast": Mode("under autocast to bfloat16", "low-precision-differs", _in_bfloat16, optional=True),
        "tf32": Mode("with products in TF32", "low-precision-differs", _in_bfloat16, optional=True),
    },
    ranks="processes",
    joined=("torch.cat([{}])", "torch.stack([{}], 1)"),
    integers=("{}.int()",),
    outputs=("torch.nn.functional.cross_entropy(*{})",),
    constant="{}.detach()",
    module_base="torch.nn.modules.module",
    called_with=called_with,
    array="torch.Tensor",
    content=lambda tensor: reader(tensor)(tensor),
)
