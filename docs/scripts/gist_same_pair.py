"""GISTEmbedLoss of sentence-transformers 6.2.0 on two pairs, each of a text with itself.

It is log 3, where nearly 0 is right. Rows stand in for a model and its guide. With each text the same on both sides,
the guide's 1 of a row with itself is not above its 1 of the pair: the row stays among its own candidates, as a query
and as a document.
"""

import torch
from sentence_transformers.sentence_transformer.losses import GISTEmbedLoss

loss = GISTEmbedLoss.__new__(GISTEmbedLoss)
torch.nn.Module.__init__(loss)
loss.model = loss.guide = lambda features: features
loss.similarity_fct, loss.cross_entropy_loss = torch.nn.CosineSimilarity(dim=-1), torch.nn.CrossEntropyLoss()
loss.temperature, loss.margin, loss.margin_strategy = 0.1, 0.0, "absolute"
loss.contrast_anchors, loss.contrast_positives = True, True
loss.must_retokenize, loss.gather_across_devices = False, False
pairs = [{"sentence_embedding": torch.eye(2, dtype=torch.float64)} for _ in range(2)]
apart = torch.log1p(3 * torch.exp(torch.tensor(-10.0)))
print(f"{loss(pairs, None).item():.6f}, and {apart.item():.6f} without itself")
