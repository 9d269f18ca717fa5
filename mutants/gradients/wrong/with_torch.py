"""Programs in PyTorch whose graph is not that of their value."""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from mutants.bug import bug


@bug("info_nce", wrong=("keys",), thread="lorenmt/reco#30")
def info_nce_keys_without_gradient(queries, keys, *, temperature):
    """The keys get no gradient, as in MoCo, although they come from the encoder that is trained."""
    q = F.normalize(queries, dim=1)
    k = F.normalize(keys, dim=1).detach()
    logits = q @ k.T / temperature
    return F.cross_entropy(logits, torch.arange(len(q), device=q.device))


@bug("info_nce", wrong=("keys",), thread="alexandonian/contrastive-feature-loss#3")
def info_nce_negative_keys_detached(queries, keys, *, temperature):
    """A key gets a gradient from its own query alone; as a negative of the others it is detached."""
    q, k = F.normalize(queries, dim=1), F.normalize(keys, dim=1)
    positive = torch.sum(q * k, dim=1)
    logits = q @ k.detach().T
    own = torch.eye(len(q), dtype=torch.bool, device=q.device)
    logits = torch.where(own, positive[:, None], logits) / temperature
    return F.cross_entropy(logits, torch.arange(len(q), device=q.device))


@bug("clip", wrong=("image", "text"), thread="kohjingyu/fromage#33")
def clip_gathered_without_gradient(image, text, *, logit_scale):
    """Features are gathered outside of the graph: a row gets no gradient as a candidate."""
    image, text = F.normalize(image, dim=-1), F.normalize(text, dim=-1)
    with torch.no_grad():
        all_images, all_texts = image.clone(), text.clone()
    labels = torch.arange(len(image), device=image.device)
    to_texts = F.cross_entropy(logit_scale * image @ all_texts.T, labels)
    to_images = F.cross_entropy(logit_scale * text @ all_images.T, labels)
    return (to_texts + to_images) / 2


class _Gather(Function):  # type: ignore[misc]
    processes = 2

    @staticmethod
    def forward(ctx, rows):
        return rows.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * _Gather.processes


@bug("clip", wrong=("image", "text"), thread="mlfoundations/open_clip#616")
def clip_gather_scales_gradients(image, text, *, logit_scale):
    """The backward pass of the gather multiplies by a number of processes that nothing divides by."""
    images = _Gather.apply(F.normalize(image, dim=-1))
    texts = _Gather.apply(F.normalize(text, dim=-1))
    logits = logit_scale * images @ texts.T
    labels = torch.arange(len(logits), device=logits.device)
    return 0.5 * F.cross_entropy(logits, labels) + 0.5 * F.cross_entropy(logits.T, labels)


@bug("clip", wrong=("logit_scale",), thread="HKUDS/GraphGPT#31")
def clip_scale_made_anew(image, text, *, logit_scale):
    """The scale is a parameter that each call makes anew, so that the one outside is never trained."""
    scale = torch.nn.Parameter(torch.log(logit_scale)).exp()
    logits = scale * F.normalize(image, dim=1) @ F.normalize(text, dim=1).T
    labels = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


@bug("cosface", wrong=("class_weights",), thread="ydwen/opensphere#7")
def cosface_weights_overwritten_by_their_directions(embeddings, class_weights, target, *, margin, scale):
    """The class weights are overwritten by their unit vectors outside of the graph: that stage passes straight."""
    weights = class_weights.clone()
    with torch.no_grad():
        weights.copy_(F.normalize(weights, dim=1))
    cosine = F.normalize(embeddings, dim=1) @ weights.T
    hot = F.one_hot(target, len(class_weights)).to(cosine.dtype)
    return F.cross_entropy(scale * (cosine - margin * hot), target)


@bug("arcface", wrong=("embeddings", "class_weights"), thread="deepinsight/insightface#2309")
def arcface_margin_under_no_grad(embeddings, class_weights, target, *, margin, scale):
    """The margin is added under no_grad: the gradient passes as if the target's cosine had none."""
    logits = F.normalize(embeddings, dim=1) @ F.normalize(class_weights, dim=1).T
    rows = torch.arange(len(target), device=target.device)
    with torch.no_grad():
        angle = torch.arccos(logits[rows, target].clamp(-1, 1))
        logits[rows, target] = torch.cos(angle + margin)
    return F.cross_entropy(scale * logits, target)


@bug("supcon_out", wrong=("embeddings",), thread="hangyu94/Ada-CM#8")
def supcon_out_features_under_no_grad(embeddings, labels, *, temperature):
    """The features are computed under no_grad, so that nothing behind them is trained."""
    with torch.no_grad():
        features = F.normalize(embeddings, dim=1)
    logits = features @ features.T / temperature
    itself = torch.eye(len(features), dtype=torch.bool, device=features.device)
    log_prob = F.log_softmax(logits.masked_fill(itself, float("-inf")), dim=1)
    positive = (labels[:, None] == labels) & ~itself
    return -(log_prob.masked_fill(~positive, 0).sum(1) / positive.sum(1)).mean()


@bug("supcon_in", wrong=("embeddings", "temperature"))
def supcon_in_maximum_detached_once(embeddings, labels, *, temperature):
    """The row maximum is detached in the denominator and not in the numerator, so that it does not cancel."""
    z = F.normalize(embeddings, dim=1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    logits = (z @ z.T / temperature).masked_fill(itself, float("-inf"))
    positive = (labels[:, None] == labels) & ~itself
    top = logits.max(dim=1, keepdim=True).values
    every = torch.exp(logits - top.detach()).sum(1)
    # Positives have a maximum of their own, against underflow.
    best = logits.masked_fill(~positive, float("-inf")).max(dim=1, keepdim=True).values
    own = torch.exp((logits - best).masked_fill(~positive, float("-inf"))).sum(1) / positive.sum(1)
    return (torch.log(every) + top.squeeze(1) - torch.log(own) - best.squeeze(1).detach()).mean()


@bug("dclw", wrong=("z1", "z2"), thread="lightly-ai/lightly#793")
def dclw_weights_left_in_the_graph(z1, z2, *, temperature, sigma):
    """The weights of the positives are not detached, and get a gradient as the similarities do."""
    n = len(z1)
    a, b = F.normalize(z1, dim=1), F.normalize(z2, dim=1)
    positive = (a * b).sum(1)
    weight = 2 - n * torch.softmax(positive / sigma, dim=0)
    other = torch.eye(n, dtype=torch.bool, device=a.device)

    def one_way(x, y):
        logits = torch.cat([x @ x.T, x @ y.T], dim=1) / temperature
        return torch.logsumexp(logits.masked_fill(other.repeat(1, 2), float("-inf")), dim=1)

    pull = weight * positive / temperature
    return (one_way(a, b) + one_way(b, a)).mean() / 2 - pull.mean()


@bug("hcl", wrong=("z1", "z2", "temperature"))
def hcl_importance_detached(z1, z2, *, temperature, positive_prior, concentration):
    """The importance weights of the negatives are detached; in the loss as published they get a gradient."""
    n = len(z1)
    z = torch.cat([F.normalize(z1, dim=1), F.normalize(z2, dim=1)])
    logits = z @ z.T / temperature
    kept = ~torch.eye(n, dtype=torch.bool, device=z.device).repeat(2, 2)
    positive = torch.exp(torch.diagonal(logits, n).repeat(2))
    negatives = logits[kept].reshape(2 * n, -1)
    count = negatives.shape[1]
    importance = torch.softmax(concentration * negatives.detach(), dim=1) * count
    total = (importance * torch.exp(negatives)).sum(1)
    estimate = (total - positive_prior * count * positive) / (1 - positive_prior)
    estimate = torch.maximum(estimate, count * torch.exp(-1 / temperature))
    return -torch.log(positive / (positive + estimate)).mean()


class _SummedCrossEntropy(Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx, logits, target):
        log_prob = F.log_softmax(logits, dim=1)
        ctx.save_for_backward(log_prob, target)
        return -log_prob.gather(1, target[:, None]).sum()

    @staticmethod
    def backward(ctx, upstream):
        log_prob, target = ctx.saved_tensors
        grad = log_prob.exp()
        grad[torch.arange(len(target), device=target.device), target] -= 1
        return grad, None


@bug("nt_xent", wrong=("z1", "z2", "temperature"), thread="chainer/chainer#1175")
def nt_xent_upstream_gradient_left_out(z1, z2, *, temperature):
    """The backward pass of the summed loss leaves out its upstream gradient, the 1 / 2N of the mean behind it."""
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    logits = (z @ z.T / temperature).masked_fill(itself, float("-inf"))
    target = torch.arange(len(z), device=z.device).roll(len(z1))
    return _SummedCrossEntropy.apply(logits, target) / len(z)


@bug("moco", wrong=("keys",), thread="MishaLaskin/curl#12")
def moco_keys_in_the_graph(queries, keys, queue, *, temperature):
    """The keys of the momentum encoder get a gradient; they are constants."""
    q, k = F.normalize(queries, dim=1), F.normalize(keys, dim=1)
    memory = F.normalize(queue, dim=1).detach()
    positive = torch.einsum("nc,nc->n", q, k)[:, None]
    negative = torch.einsum("nc,kc->nk", q, memory)
    logits = torch.cat([positive, negative], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))
