import torch


class SupervisedCollator:
    def __init__(self, pad_token_id, max_length, padding):
        self.pad_token_id = pad_token_id
        self.max_length = max_length
        self.padding = padding

    def __call__(self, rows):
        rows = [row[: self.max_length] for row in rows]
        longest = max(map(len, rows))
        width = self.max_length if self.padding == "max_length" else (longest + 7) // 8 * 8
        ids = torch.full((len(rows), width), self.pad_token_id)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
        mask = ids != self.pad_token_id
        # rows end with their padding and attention is causal, so it needs no mask
        return {"input_ids": ids, "labels": ids.masked_fill(~mask, -100)}


class LengthBuckets(torch.utils.data.Sampler):
    """Batches of rows of similar length, in random order."""

    def __init__(self, lengths, batch_size, seed=0):
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batches = [order[i : i + batch_size] for i in range(0, len(order) - batch_size + 1, batch_size)]
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for i in torch.randperm(len(self.batches), generator=self.generator).tolist():
            yield self.batches[i]
