"""GPT-2-like decoder: 6 layers, d=512, 8 heads, sequence 256; AdamW (foreach by default), fp32."""
import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

LAYERS, DIM, HEADS, SEQUENCE, VOCABULARY = pick((6, 512, 8, 256, 50257), (2, 32, 2, 16, 100))
BATCH = batch_size(16)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        batch, length, _ = x.shape
        heads = [t.view(batch, length, HEADS, DIM // HEADS).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(DIM, dim=2)]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, DIM), nn.Embedding(SEQUENCE, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def steptime_setup():
    model = Decoder().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    data = [torch.randint(0, VOCABULARY, (BATCH, SEQUENCE + 1)) for _ in range(BATCHES)]

    def step(tokens):
        tokens = tokens.to(DEVICE)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    return step, data, arguments("transformer", BATCH, model)
