"""Records training steps of random models: `python -m steptime.measure.steps --out DIR`.

A kernel inside a training step is not as fast as the same kernel alone: its operands may still be in the L2 cache, its
code may not. These recordings show what a fit of kernels measured alone cannot know.

    __main__.py      the command
    session.py       the order of things: the time budget, models that fail, models that are too slow
    plan.py          which kind of model has which number, and how large models may be
    model.py         a model with its batches and optimizers, and what a step of it is
    recommender.py   embeddings, feature interaction and MLPs
    cnn.py           convolutional networks for images
    blocks.py        their blocks
    transformer.py   encoders and decoders
    attention.py     their blocks
    mixed.py         MLPs, autoencoders, recurrent taggers, 1-D convolutions
"""
