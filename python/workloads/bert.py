"""nn.TransformerEncoder as in BERT (6 layers, d=512), masked-word loss; Adam, autocast to bfloat16."""
import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

LAYERS, DIM, HEADS, SEQUENCE, VOCABULARY = pick((6, 512, 8, 128, 30522), (2, 32, 2, 16, 100))
BATCH = batch_size(32)


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, DIM), nn.Embedding(SEQUENCE, DIM)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, VOCABULARY)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.encoder(self.tokens(tokens) + self.positions(positions)))


def steptime_setup():
    model = Bert().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    data = [
        (torch.randint(0, VOCABULARY, (BATCH, SEQUENCE)), torch.randint(0, VOCABULARY, (BATCH, SEQUENCE))) for _ in range(BATCHES)
    ]

    def step(batch):
        tokens, labels = (each.to(DEVICE) for each in batch)
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()

    return step, data, arguments("bert", BATCH, model)
