"""Cases of measured training steps: a model, a batch and a precision."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def parsed(text, precisions):
    """Path of the model, batch and precision of MODEL:BATCH:PRECISION; MODEL is a path or a name in `examples/models`. Raises ValueError."""
    try:
        model, batch, precision = text.rsplit(":", 2)
        batch = int(batch)
    except ValueError:
        raise ValueError(f"{text} is no case: give MODEL:BATCH:PRECISION, such as dlrm_nvidia:2048:tf32") from None
    path = Path(model) if model.endswith(".toml") else ROOT / f"examples/models/{model}.toml"
    if not path.is_file():
        raise ValueError(f"{path} does not exist: give the path of a model.toml, or a name in examples/models")
    if precision not in precisions:
        raise ValueError(f"{text}: the precision {precision} is unknown: choose of {', '.join(precisions)}")
    return path, batch, precision


def checked(parser, cases, precisions, program, option):
    """The parsed cases; ends with the parser's error where one is none, or the program of an option does not exist."""
    try:
        found = [parsed(case, precisions) for case in cases]
    except ValueError as error:
        parser.error(str(error))
    if not program.is_file():
        parser.error(f"{program} does not exist: build it, or give {option}")
    return found
