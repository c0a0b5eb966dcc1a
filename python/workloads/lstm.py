"""LSTM language model, 2 layers of 650; clip_grad_norm_ (which does not synchronise), SGD, and loss.item() (which does) each step."""
import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

DIM, LAYERS, SEQUENCE, VOCABULARY = pick((650, 2, 35, 10_000), (16, 2, 5, 100))
BATCH = batch_size(64)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, DIM)
        self.dropout = nn.Dropout(0.2)
        self.lstm = nn.LSTM(DIM, DIM, LAYERS, dropout=0.2, batch_first=True)
        self.head = nn.Linear(DIM, VOCABULARY)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.dropout(self.tokens(tokens)))
        return self.head(self.dropout(hidden))


def steptime_setup():
    model = Language().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    data = [torch.randint(0, VOCABULARY, (BATCH, SEQUENCE + 1)) for _ in range(BATCHES)]
    losses = []

    def step(tokens):
        tokens = tokens.to(DEVICE)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        losses[:] = [loss.item()]

    return step, data, arguments("lstm", BATCH, model)
