"""Train a sentence encoder on query/passage pairs with in-batch negatives."""
import os

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel, get_linear_schedule_with_warmup

from data import QueryPassagePairs, SameLengthBatches, collate
from losses import MultipleNegativesRankingLoss

SMALL = os.environ.get("SMALL") == "1"

BATCH_SIZE = 4 if SMALL else 256
PAIRS = 64 if SMALL else 51200
EPOCHS = 2 if SMALL else 6
QUERY_LENS = (8, 16) if SMALL else (24, 32)
PASSAGE_LEN = 24 if SMALL else 128
VOCAB = 1000 if SMALL else 30528
LOG_EVERY = 100


class SentenceEncoder(nn.Module):
    """BERT and the mean over the tokens."""

    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=VOCAB,
            hidden_size=32 if SMALL else 768,
            num_hidden_layers=2 if SMALL else 12,
            num_attention_heads=2 if SMALL else 12,
            intermediate_size=64 if SMALL else 3072,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.0,
        )
        self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, input_ids):
        return self.bert(input_ids=input_ids).last_hidden_state.mean(1)


def parameter_groups(model, weight_decay=0.01):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def main():
    torch.manual_seed(12)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = QueryPassagePairs(PAIRS, VOCAB, QUERY_LENS, PASSAGE_LEN)
    loader = DataLoader(
        dataset,
        batch_sampler=SameLengthBatches(dataset.lengths, BATCH_SIZE),
        collate_fn=collate,
        num_workers=2 if SMALL else 4,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
    )
    model = SentenceEncoder().to(device)
    loss_fn = MultipleNegativesRankingLoss()
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=2e-5, fused=True)
    scheduler = get_linear_schedule_with_warmup(optimizer, 100, EPOCHS * len(loader))

    model.train()
    step = 0
    running = torch.zeros((), device=device)
    for epoch in range(EPOCHS):
        for queries, passages in loader:
            queries = queries.to(device, non_blocking=True)
            passages = passages.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                query_vectors = model(queries)
                passage_vectors = model(passages)
            loss = loss_fn(query_vectors, passage_vectors)
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            running += loss.detach()
            step += 1
            if step % LOG_EVERY == 0:
                print(f"epoch {epoch} step {step} loss {running.item() / LOG_EVERY:.4f}")
                running.zero_()
    print("trained", step, "steps")


if __name__ == "__main__":
    main()
