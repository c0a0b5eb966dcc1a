"""Networks for text, some from transformers."""
import torch
from torch import nn
from torch.nn import functional as F

from .task import Task, several, task


def tokens(batch, length, vocabulary):
    return several(lambda: (torch.randint(0, vocabulary, (batch, length)),))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.wide = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in self.qkv(self.before(x)).split(dim, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, dim))
        return x + self.wide(self.after(x))


@task(batch=8)
def decoder(batch):
    """A small GPT."""
    vocabulary, length, dim = 16_000, 256, 512
    model = nn.ModuleDict({"token": nn.Embedding(vocabulary, dim), "place": nn.Embedding(length, dim), "blocks": nn.Sequential(*(Block(dim, 8) for _ in range(8))), "norm": nn.LayerNorm(dim)})

    def loss(index):
        x = model["token"](index) + model["place"](torch.arange(length, device=index.device))
        scores = F.linear(model["norm"](model["blocks"](x)), model["token"].weight)
        return F.cross_entropy(scores[:, :-1].reshape(-1, vocabulary), index[:, 1:].reshape(-1))

    return Task(model, loss, tokens(batch, length, vocabulary), lambda p, **more: torch.optim.AdamW(p, lr=1e-4, **more))


@task(batch=32)
def lstm_language(batch):
    """Two LSTM layers between an embedding and its transpose."""
    vocabulary, length, dim = 10_000, 35, 650
    model = nn.ModuleDict({"token": nn.Embedding(vocabulary, dim), "memory": nn.LSTM(dim, dim, 2, dropout=0.5, batch_first=True), "head": nn.Linear(dim, vocabulary)})

    def loss(index):
        hidden, _ = model["memory"](model["token"](index))
        return F.cross_entropy(model["head"](hidden)[:, :-1].reshape(-1, vocabulary), index[:, 1:].reshape(-1))

    return Task(model, loss, tokens(batch, length, vocabulary), lambda p, **more: torch.optim.SGD(p, lr=1.0, **more))


def published(config, kind, batch, length):
    import transformers

    model = getattr(transformers, kind)(config)

    def loss(index):
        return model(input_ids=index, labels=index).loss

    return Task(model, loss, tokens(batch, length, config.vocab_size), lambda p, **more: torch.optim.AdamW(p, lr=1e-4, **more))


@task(batch=8)
def distilbert(batch):
    """Six layers of BERT, masked language model."""
    import transformers

    return published(transformers.DistilBertConfig(vocab_size=12_000, n_layers=6, dim=384, hidden_dim=1536, n_heads=6), "DistilBertForMaskedLM", batch, 128)


@task(batch=4)
def llama(batch):
    """Rotary positions, RMS norm, gated MLP, grouped queries."""
    import transformers

    config = transformers.LlamaConfig(vocab_size=8_000, hidden_size=512, intermediate_size=1376, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, use_cache=False)
    return published(config, "LlamaForCausalLM", batch, 256)


@task(batch=8)
def t5(batch):
    """Encoder and decoder with relative positions."""
    import transformers

    config = transformers.T5Config(vocab_size=8_000, d_model=256, d_kv=32, d_ff=1024, num_layers=4, num_heads=8, decoder_start_token_id=0)
    return published(config, "T5ForConditionalGeneration", batch, 96)


@task(batch=8)
def gpt2(batch):
    """GPT-2 from transformers, six layers."""
    import transformers

    return published(transformers.GPT2Config(n_layer=6, n_embd=512, n_head=8, vocab_size=20_000), "GPT2LMHeadModel", batch, 256)


@task(batch=64)
def translation(batch):
    """PyTorch's encoder and decoder."""
    vocabulary, length, dim = 8_000, 32, 256
    model = nn.ModuleDict({"token": nn.Embedding(vocabulary, dim), "mix": nn.Transformer(dim, 4, 3, 3, 1024, batch_first=True), "head": nn.Linear(dim, vocabulary)})

    def loss(source, target):
        ahead = nn.Transformer.generate_square_subsequent_mask(length - 1, device=target.device)
        hidden = model["mix"](model["token"](source), model["token"](target[:, :-1]), tgt_mask=ahead, tgt_is_causal=True)
        return F.cross_entropy(model["head"](hidden).flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)

    data = several(lambda: (torch.randint(0, vocabulary, (batch, length)), torch.randint(0, vocabulary, (batch, length))))
    return Task(model, loss, data)
