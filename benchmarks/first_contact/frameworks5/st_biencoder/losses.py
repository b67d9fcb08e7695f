import torch
import torch.nn.functional as F
from torch import nn


class MultipleNegativesRankingLoss(nn.Module):
    """Each query's passage is its positive; the other passages of the batch are negatives."""

    def __init__(self, scale=20.0):
        super().__init__()
        self.scale = scale

    def forward(self, queries, passages):
        queries = F.normalize(queries.float(), dim=-1)
        passages = F.normalize(passages.float(), dim=-1)
        scores = queries @ passages.T * self.scale
        labels = torch.arange(len(scores), device=scores.device)
        return F.cross_entropy(scores, labels)
