"""Networks for text, from transformers and PyTorch."""

from __future__ import annotations

from typing import Any, Sequence

import torch
from torch import nn
from torch.nn import functional as F

from .case import Case, case, labels


def _transformers(kind: str, config: str, length: int, blocks: Sequence[str], **options: Any) -> Case:
    import transformers

    settings = getattr(transformers, config)(**options)
    model = getattr(transformers, kind)(settings)
    model.train()

    def loss(net, index):
        return net(input_ids=index, labels=index).loss

    return Case(model, loss, lambda batch: (labels(settings.vocab_size, batch, length),), "adamw", blocks)


@case(batch=8, removed={"aten::dropout": ["bert.embeddings.dropout", "bert.encoder.layer.*.output.dropout", "bert.encoder.layer.*.attention.output.dropout"]})
def bert() -> Case:
    return _transformers("BertForMaskedLM", "BertConfig", 64, ["bert.encoder.layer.*"], vocab_size=4000, hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768)


@case(batch=4, removed={"aten::dropout": ["transformer.drop", "transformer.h.*.attn.resid_dropout", "transformer.h.*.mlp.dropout"]})
def gpt2() -> Case:
    return _transformers("GPT2LMHeadModel", "GPT2Config", 96, ["transformer.h.*"], vocab_size=5000, n_embd=192, n_layer=4, n_head=3, use_cache=False)


@case(batch=4)
def llama() -> Case:
    return _transformers("LlamaForCausalLM", "LlamaConfig", 96, ["model.layers.*"], vocab_size=4000, hidden_size=256, intermediate_size=688, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=4, use_cache=False)


@case(batch=8)
def t5() -> Case:
    return _transformers("T5ForConditionalGeneration", "T5Config", 48, ["encoder.block.*", "decoder.block.*"], vocab_size=4000, d_model=192, d_kv=32, d_ff=768, num_layers=2, num_heads=6, decoder_start_token_id=0, use_cache=False)


@case(batch=8, removed={"aten::dropout": ["distilbert.embeddings.dropout", "distilbert.transformer.layer.*.ffn.dropout"]})
def distilbert() -> Case:
    return _transformers("DistilBertForMaskedLM", "DistilBertConfig", 64, ["distilbert.transformer.layer.*"], vocab_size=4000, dim=192, n_layers=3, n_heads=3, hidden_dim=768)


@case(batch=4)
def mistral() -> Case:
    return _transformers("MistralForCausalLM", "MistralConfig", 80, ["model.layers.*"], vocab_size=4000, hidden_size=192, intermediate_size=512, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, sliding_window=32, use_cache=False)


@case(batch=8)
def electra() -> Case:
    return _transformers("ElectraForMaskedLM", "ElectraConfig", 48, ["electra.encoder.layer.*"], vocab_size=4000, embedding_size=64, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512)


class Encoder(nn.Module):
    """Embeddings, PyTorch's own encoder layers, a score for each word."""

    def __init__(self, vocabulary: int, width: int, layers: int, length: int, dropout: float) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=dropout, batch_first=True)
        self.mix, self.head = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(width, vocabulary)

    def forward(self, index):
        return self.head(self.mix(self.token(index) + self.place))


def _words(net, index, classes):
    return F.cross_entropy(net(index).flatten(0, 1), classes.flatten())


@case(batch=16, removed={"aten::dropout": ["mix.layers.*.dropout*"]})
def encoder() -> Case:
    """An encoder whose sequence length is a multiple of the batch size."""
    return Case(Encoder(4000, 128, 3, 64, 0.1), _words, lambda batch: (labels(4000, batch, 64), labels(4000, batch, 64)), "adam", ["mix.layers.*"])


@case(batch=32)
def translation() -> Case:
    """An encoder and a decoder."""
    vocabulary, length, width = 3000, 24, 128
    model = nn.ModuleDict({"token": nn.Embedding(vocabulary, width), "mix": nn.Transformer(width, 4, 2, 2, 512, batch_first=True), "head": nn.Linear(width, vocabulary)})
    model.forward = lambda source, target: model["head"](
        model["mix"](model["token"](source), model["token"](target), tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device), tgt_is_causal=True)
    )

    def loss(net, source, target):
        return F.cross_entropy(net(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)

    return Case(model, loss, lambda batch: (labels(vocabulary, batch, length), labels(vocabulary, batch, length)), "adam", ["mix.encoder.layers.*", "mix.decoder.layers.*"])
