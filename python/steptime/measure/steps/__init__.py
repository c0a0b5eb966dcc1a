"""Records training steps of random models: `python -m steptime.measure.steps --out DIR`.

A kernel in a training step has another speed than the same kernel alone: its operands may still be in the L2 cache, and its
code may not. These recordings contain effects that a fit on kernels measured alone cannot.

    __main__.py      the command
    session.py       the session: time budget, models that fail, models that are too slow
    plan.py          kinds of models by number, and limits on their size
    model.py         a model with its batches and optimizers, and its training step
    recommender.py   embeddings, feature interaction and MLPs
    cnn.py           convolutional networks for images
    blocks.py        blocks of convolutional networks
    transformer.py   encoders and decoders
    attention.py     blocks of transformers
    mixed.py         MLPs, autoencoders, recurrent taggers, 1-D convolutions
"""
