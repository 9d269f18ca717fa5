"""Written by `make generate` from the declarations in `nceref.family`: change those."""
# fmt: off

import inspect
from typing import Any, Literal, SupportsFloat

from nceref.engine import passes
from nceref.engine.anatomy import Anatomy
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.entry_point import entry_point
from nceref.spec import Loss, Parameter, Source

FAMILY: str

class LossFunction:
    declaration: Loss
    address: Any
    __name__: Any
    __qualname__: Any
    __doc__: Any
    __signature__: Any
    def __init__(self, declaration: Loss, address: str = '') -> None: ...
    def __reduce__(self) -> Any: ...
    def __repr__(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def formula(self) -> Any: ...
    @property
    def latex(self) -> str: ...
    @property
    def sources(self) -> tuple[Source, ...]: ...
    @property
    def properties(self) -> frozenset[str]: ...
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...
    @entry_point
    def __call__(self, *arrays: Any, **arguments: Any) -> Any: ...
    @entry_point
    def value_and_grad(self, *arrays: Any, **arguments: Any) -> tuple[Any, dict[str, Any]]: ...
    @entry_point
    def anatomy(self, *arrays: Any, **arguments: Any) -> Anatomy: ...
    @entry_point
    def decompose(self, *arrays: Any, **arguments: Any) -> dict[str, Any]: ...

def input_gradients(bound: BoundLoss, evaluation: passes.Evaluation, cotangent: Any = None) -> dict[str, Any]: ...
def differentiable(declaration: Loss) -> list[str]: ...
def signature(declaration: Loss) -> inspect.Signature: ...
def default_of(p: Parameter) -> Any: ...
def document(declaration: Loss) -> str: ...
def describe(p: Parameter) -> str: ...
def get_loss(name: str) -> LossFunction: ...
def all_losses() -> dict[str, LossFunction]: ...

class _Alignment(LossFunction):
    """Mean distance of positive pairs to a power: what pulls views together."""

    def __call__(self, x: Any, y: Any, *, exponent: SupportsFloat = 2.0, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, x: Any, y: Any, *, exponent: SupportsFloat = 2.0, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, x: Any, y: Any, *, exponent: SupportsFloat = 2.0,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Arcface(LossFunction):
    """Cross-entropy of scaled cosines with an additive angular margin on the target class."""

    def __call__(self, embeddings: Any, class_weights: Any, target: Any, *, margin: SupportsFloat = 0.5,
        scale: SupportsFloat = 64.0, normalize: Literal["l2", "none"] = "l2",
        fallback: Literal["none", "linear"] = "none", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, embeddings: Any, class_weights: Any, target: Any, *, margin: SupportsFloat = 0.5,
        scale: SupportsFloat = 64.0, normalize: Literal["l2", "none"] = "l2",
        fallback: Literal["none", "linear"] = "none", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, embeddings: Any, class_weights: Any, target: Any, *, margin: SupportsFloat = 0.5,
        scale: SupportsFloat = 64.0, normalize: Literal["l2", "none"] = "l2",
        fallback: Literal["none", "linear"] = "none") -> Anatomy: ...

class _BalancedSoftmax(LossFunction):
    """Cross-entropy whose softmax is weighted by class counts, for long-tailed training sets."""

    def __call__(self, logits: Any, target: Any, class_counts: Any, *, temperature: SupportsFloat = 1.0,
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, logits: Any, target: Any, class_counts: Any, *, temperature: SupportsFloat = 1.0,
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, logits: Any, target: Any, class_counts: Any, *, temperature: SupportsFloat = 1.0) -> Anatomy: ...

class _Clip(LossFunction):
    """Symmetric InfoNCE between two towers; a logit scale multiplies the similarities."""

    def __call__(self, image: Any, text: Any, *, logit_scale: SupportsFloat, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, image: Any, text: Any, *, logit_scale: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, image: Any, text: Any, *, logit_scale: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Cosface(LossFunction):
    """Cross-entropy of scaled cosines with a margin subtracted from the target's cosine."""

    def __call__(self, embeddings: Any, class_weights: Any, target: Any, *, margin: SupportsFloat = 0.35,
        scale: SupportsFloat = 64.0, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, embeddings: Any, class_weights: Any, target: Any, *, margin: SupportsFloat = 0.35,
        scale: SupportsFloat = 64.0, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, embeddings: Any, class_weights: Any, target: Any, *, margin: SupportsFloat = 0.35,
        scale: SupportsFloat = 64.0, normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _CrossEntropy(LossFunction):
    """Softmax cross-entropy with temperature and label smoothing."""

    def __call__(self, logits: Any, target: Any, *, temperature: SupportsFloat = 1.0,
        label_smoothing: SupportsFloat = 0.0, reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, logits: Any, target: Any, *, temperature: SupportsFloat = 1.0,
        label_smoothing: SupportsFloat = 0.0, reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True,
        cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, logits: Any, target: Any, *, temperature: SupportsFloat = 1.0,
        label_smoothing: SupportsFloat = 0.0) -> Anatomy: ...

class _Dcl(LossFunction):
    """NT-Xent without the positive in the denominator: the positive's pull does not fade."""

    def __call__(self, z1: Any, z2: Any, *, temperature: SupportsFloat, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, z1: Any, z2: Any, *, temperature: SupportsFloat, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, z1: Any, z2: Any, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Dclw(LossFunction):
    """DCL with positives weighted down where they already agree; the weights are constants."""

    def __call__(self, z1: Any, z2: Any, *, temperature: SupportsFloat, sigma: SupportsFloat = 0.5,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, z1: Any, z2: Any, *, temperature: SupportsFloat, sigma: SupportsFloat = 0.5,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, z1: Any, z2: Any, *, temperature: SupportsFloat, sigma: SupportsFloat = 0.5,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Debiased(LossFunction):
    """NT-Xent whose negatives are corrected for samples of the anchor's own class among them."""

    def __call__(self, z1: Any, z2: Any, *, temperature: SupportsFloat, positive_prior: SupportsFloat = 0.1,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, z1: Any, z2: Any, *, temperature: SupportsFloat, positive_prior: SupportsFloat = 0.1,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, z1: Any, z2: Any, *, temperature: SupportsFloat, positive_prior: SupportsFloat = 0.1,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _GuidedInfoNce(LossFunction):
    """InfoNCE without the candidates that a guide finds more similar than the positive (GISTEmbed)."""

    def __call__(self, queries: Any, documents: Any, negatives: Any = None, *, guide_queries: Any = None,
        guide_documents: Any = None, guide_negatives: Any = None, temperature: SupportsFloat,
        margin: SupportsFloat = 0.0, margin_of: Literal["absolute", "relative"] = "absolute",
        directions: Literal["qd_qq_dd", "qd_qq", "qd_dd", "qd"] = "qd_qq_dd",
        candidates: Literal["joined", "own"] = "joined", normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, documents: Any, negatives: Any = None, *, guide_queries: Any = None,
        guide_documents: Any = None, guide_negatives: Any = None, temperature: SupportsFloat,
        margin: SupportsFloat = 0.0, margin_of: Literal["absolute", "relative"] = "absolute",
        directions: Literal["qd_qq_dd", "qd_qq", "qd_dd", "qd"] = "qd_qq_dd",
        candidates: Literal["joined", "own"] = "joined", normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, queries: Any, documents: Any, negatives: Any = None, *, guide_queries: Any = None,
        guide_documents: Any = None, guide_negatives: Any = None, temperature: SupportsFloat,
        margin: SupportsFloat = 0.0, margin_of: Literal["absolute", "relative"] = "absolute",
        directions: Literal["qd_qq_dd", "qd_qq", "qd_dd", "qd"] = "qd_qq_dd",
        candidates: Literal["joined", "own"] = "joined", normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _HardContrastive(LossFunction):
    """InfoNCE over the hardest negatives only: an upper quantile of each row."""

    def __call__(self, queries: Any, keys: Any, *, temperature: SupportsFloat, fraction: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, keys: Any, *, temperature: SupportsFloat, fraction: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, queries: Any, keys: Any, *, temperature: SupportsFloat, fraction: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Hcl(LossFunction):
    """Debiased contrastive loss with importance weights on hard negatives."""

    def __call__(self, z1: Any, z2: Any, *, temperature: SupportsFloat, positive_prior: SupportsFloat = 0.1,
        concentration: SupportsFloat = 1.0, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, z1: Any, z2: Any, *, temperature: SupportsFloat, positive_prior: SupportsFloat = 0.1,
        concentration: SupportsFloat = 1.0, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, z1: Any, z2: Any, *, temperature: SupportsFloat, positive_prior: SupportsFloat = 0.1,
        concentration: SupportsFloat = 1.0, normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _InfoNce(LossFunction):
    """InfoNCE: each query must pick its own key among all keys, or among explicit negatives."""

    def __call__(self, queries: Any, keys: Any, negatives: Any = None, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, keys: Any, negatives: Any = None, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, queries: Any, keys: Any, negatives: Any = None, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Mnrl(LossFunction):
    """Multiple negatives ranking: InfoNCE over the documents of a batch and hard negatives."""

    def __call__(self, queries: Any, documents: Any, negatives: Any = None, *, temperature: SupportsFloat,
        candidates: Literal["joined", "own", "hard"] = "joined", hardness: SupportsFloat = 0.0,
        hardness_of: Literal["all", "in_batch", "hard"] = "all", normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, documents: Any, negatives: Any = None, *, temperature: SupportsFloat,
        candidates: Literal["joined", "own", "hard"] = "joined", hardness: SupportsFloat = 0.0,
        hardness_of: Literal["all", "in_batch", "hard"] = "all", normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, queries: Any, documents: Any, negatives: Any = None, *, temperature: SupportsFloat,
        candidates: Literal["joined", "own", "hard"] = "joined", hardness: SupportsFloat = 0.0,
        hardness_of: Literal["all", "in_batch", "hard"] = "all",
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Moco(LossFunction):
    """InfoNCE against a queue of old keys; no gradient through keys or queue."""

    def __call__(self, queries: Any, keys: Any, queue: Any, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, keys: Any, queue: Any, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, queries: Any, keys: Any, queue: Any, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _MultiDirection(LossFunction):
    """InfoNCE with queries and documents as candidates of one another and among themselves."""

    def __call__(self, queries: Any, documents: Any, negatives: Any = None, *, temperature: SupportsFloat,
        directions: Literal["all", "qd_qq_dd", "qd_qq", "qd_dd", "qd_dq", "symmetric"] = "all",
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, documents: Any, negatives: Any = None, *, temperature: SupportsFloat,
        directions: Literal["all", "qd_qq_dd", "qd_qq", "qd_dd", "qd_dq", "symmetric"] = "all",
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, queries: Any, documents: Any, negatives: Any = None, *, temperature: SupportsFloat,
        directions: Literal["all", "qd_qq_dd", "qd_qq", "qd_dd", "qd_dq", "symmetric"] = "all",
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Nce(LossFunction):
    """Binary noise-contrastive estimation with a known noise density; no normalizer is assumed."""

    def __call__(self, data_logits: Any, noise_logits: Any, *, data_log_noise: Any, noise_log_noise: Any,
        noise_ratio: SupportsFloat, reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, data_logits: Any, noise_logits: Any, *, data_log_noise: Any, noise_log_noise: Any,
        noise_ratio: SupportsFloat, reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True,
        cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, data_logits: Any, noise_logits: Any, *, data_log_noise: Any, noise_log_noise: Any,
        noise_ratio: SupportsFloat) -> Anatomy: ...

class _NtXent(LossFunction):
    """NT-Xent of SimCLR: the other view among all rows of both views but the anchor."""

    def __call__(self, z1: Any, z2: Any, *, temperature: SupportsFloat, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, z1: Any, z2: Any, *, temperature: SupportsFloat, normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True, cotangent: Any = None) -> tuple[Any,
        dict[str, Any]]: ...
    def anatomy(self, z1: Any, z2: Any, *, temperature: SupportsFloat,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Paco(LossFunction):
    """Parametric contrastive loss: SupCon weighted by alpha, with class centers among the candidates."""

    def __call__(self, embeddings: Any, labels: Any, centers: Any, *, alpha: SupportsFloat, temperature: SupportsFloat,
        queue: Any = None, queue_labels: Any = None, class_prior: Any = None, center_features: Any = None,
        center_bias: Any = None, form: Literal["sum", "normalized"] = "sum", normalize: Literal["l2", "none"] = "l2",
        reduction: Literal["mean", "sum", "none"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, embeddings: Any, labels: Any, centers: Any, *, alpha: SupportsFloat,
        temperature: SupportsFloat, queue: Any = None, queue_labels: Any = None, class_prior: Any = None,
        center_features: Any = None, center_bias: Any = None, form: Literal["sum", "normalized"] = "sum",
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, embeddings: Any, labels: Any, centers: Any, *, alpha: SupportsFloat, temperature: SupportsFloat,
        queue: Any = None, queue_labels: Any = None, class_prior: Any = None, center_features: Any = None,
        center_bias: Any = None, form: Literal["sum", "normalized"] = "sum",
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...
    def decompose(self, embeddings: Any, labels: Any, centers: Any, *, alpha: SupportsFloat, temperature: SupportsFloat,
        queue: Any = None, queue_labels: Any = None, class_prior: Any = None, center_features: Any = None,
        center_bias: Any = None, form: Literal["sum", "normalized"] = "sum",
        normalize: Literal["l2", "none"] = "l2") -> dict[str, Any]: ...

class _SampledSoftmax(LossFunction):
    """Softmax over items of which a batch is sampled, each corrected for how often it is (logQ)."""

    def __call__(self, queries: Any, items: Any, expected_counts: Any, *, item_ids: Any = None,
        temperature: SupportsFloat, correction: Literal["all", "negatives", "weighted"] = "all",
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, items: Any, expected_counts: Any, *, item_ids: Any = None,
        temperature: SupportsFloat, correction: Literal["all", "negatives", "weighted"] = "all",
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, queries: Any, items: Any, expected_counts: Any, *, item_ids: Any = None,
        temperature: SupportsFloat, correction: Literal["all", "negatives", "weighted"] = "all",
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Siglip(LossFunction):
    """Sigmoid loss over all image-text pairs, summed over pairs and divided by N."""

    def __call__(self, image: Any, text: Any, *, logit_scale: SupportsFloat, logit_bias: SupportsFloat = 0.0,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, image: Any, text: Any, *, logit_scale: SupportsFloat, logit_bias: SupportsFloat = 0.0,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, image: Any, text: Any, *, logit_scale: SupportsFloat, logit_bias: SupportsFloat = 0.0,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _Simple(LossFunction):
    """Linear loss: positives attract, all negatives repel with one constant weight."""

    def __call__(self, queries: Any, keys: Any, *, negative_weight: SupportsFloat | None = None,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, queries: Any, keys: Any, *, negative_weight: SupportsFloat | None = None,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, queries: Any, keys: Any, *, negative_weight: SupportsFloat | None = None,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

class _SupconIn(LossFunction):
    """Supervised contrastive loss, log of the mean softmax over positives (L_in of Khosla et al.)."""

    def __call__(self, embeddings: Any, labels: Any = None, *, temperature: SupportsFloat, mask: Any = None,
        anchor_mode: Literal["all", "one"] = "all", anchor_weights: Any = None, normalize: Literal["l2", "none"] = "l2",
        no_positive: Literal["error", "skip", "zero"] = "error", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, embeddings: Any, labels: Any = None, *, temperature: SupportsFloat, mask: Any = None,
        anchor_mode: Literal["all", "one"] = "all", anchor_weights: Any = None, normalize: Literal["l2", "none"] = "l2",
        no_positive: Literal["error", "skip", "zero"] = "error", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, embeddings: Any, labels: Any = None, *, temperature: SupportsFloat, mask: Any = None,
        anchor_mode: Literal["all", "one"] = "all", anchor_weights: Any = None, normalize: Literal["l2", "none"] = "l2",
        no_positive: Literal["error", "skip", "zero"] = "error") -> Anatomy: ...

class _SupconOut(LossFunction):
    """Supervised contrastive loss, mean over positives of the log-softmax (L_out of Khosla et al.)."""

    def __call__(self, embeddings: Any, labels: Any = None, *, temperature: SupportsFloat, mask: Any = None,
        anchor_mode: Literal["all", "one"] = "all", queue: Any = None, queue_labels: Any = None,
        form: Literal["mean", "sum"] = "mean", base_temperature: SupportsFloat | None = None,
        anchor_weights: Any = None, normalize: Literal["l2", "none"] = "l2",
        no_positive: Literal["error", "skip", "zero"] = "error", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True) -> Any: ...
    def value_and_grad(self, embeddings: Any, labels: Any = None, *, temperature: SupportsFloat, mask: Any = None,
        anchor_mode: Literal["all", "one"] = "all", queue: Any = None, queue_labels: Any = None,
        form: Literal["mean", "sum"] = "mean", base_temperature: SupportsFloat | None = None,
        anchor_weights: Any = None, normalize: Literal["l2", "none"] = "l2",
        no_positive: Literal["error", "skip", "zero"] = "error", reduction: Literal["mean", "sum", "none"] = "mean",
        compute: bool = True, cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, embeddings: Any, labels: Any = None, *, temperature: SupportsFloat, mask: Any = None,
        anchor_mode: Literal["all", "one"] = "all", queue: Any = None, queue_labels: Any = None,
        form: Literal["mean", "sum"] = "mean", base_temperature: SupportsFloat | None = None,
        anchor_weights: Any = None, normalize: Literal["l2", "none"] = "l2",
        no_positive: Literal["error", "skip", "zero"] = "error") -> Anatomy: ...

class _Uniformity(LossFunction):
    """Log of the mean Gaussian potential between points: what spreads them over the sphere."""

    def __call__(self, x: Any, *, t: SupportsFloat = 2.0, include_diagonal: Literal[False, True] = False,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean"] = "mean", compute: bool = True) -> Any: ...
    def value_and_grad(self, x: Any, *, t: SupportsFloat = 2.0, include_diagonal: Literal[False, True] = False,
        normalize: Literal["l2", "none"] = "l2", reduction: Literal["mean"] = "mean", compute: bool = True,
        cotangent: Any = None) -> tuple[Any, dict[str, Any]]: ...
    def anatomy(self, x: Any, *, t: SupportsFloat = 2.0, include_diagonal: Literal[False, True] = False,
        normalize: Literal["l2", "none"] = "l2") -> Anatomy: ...

alignment: _Alignment
arcface: _Arcface
balanced_softmax: _BalancedSoftmax
clip: _Clip
cosface: _Cosface
cross_entropy: _CrossEntropy
dcl: _Dcl
dclw: _Dclw
debiased: _Debiased
guided_info_nce: _GuidedInfoNce
hard_contrastive: _HardContrastive
hcl: _Hcl
info_nce: _InfoNce
mnrl: _Mnrl
moco: _Moco
multi_direction: _MultiDirection
nce: _Nce
nt_xent: _NtXent
paco: _Paco
sampled_softmax: _SampledSoftmax
siglip: _Siglip
simple: _Simple
supcon_in: _SupconIn
supcon_out: _SupconOut
uniformity: _Uniformity
