"""Maps ops to the modules that ran them, without changing the recorded ops.

Autograd numbers the functions that it makes on a thread, and an op notes the current number when it begins. When a module is called
and when it returns, the number is advanced by an unused function: the ops of its forward pass, and their backward functions, have the
numbers in between.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Dict, Iterator, List, Tuple

# Steps with more module calls than this are recorded without them, as those of a network that calls a cell for each element of a sequence.
MOST = 50_000


class ModuleCalls:
    """Context that notes the forward calls of all modules.

    It uses PyTorch's global hooks, so that no module is changed. They would make torch.compile compile again; a
    process that has compiled notes nothing.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._count = getattr(torch._C._autograd, "_get_sequence_nr", None)
        self._move_on = getattr(torch._C._functions, "UndefinedGrad", None)
        compiler = getattr(torch, "compiler", None)
        self._is_compiling = getattr(compiler, "is_compiling", lambda: False)
        self._handles: List[Any] = []
        self._open: List[Tuple[Any, int]] = []
        self._calls: List[List[Any]] = []
        # Objects whose ids are keys below; they are kept alive so that no other object gets the same id.
        self._kept: List[Any] = []
        self._names: Dict[int, Dict[int, str]] = {}
        self._unknown: Dict[Tuple[str, int], str] = {}
        self._first: Dict[int, str] = {}
        self._constants: Dict[int, List[Any]] = {}

    def __enter__(self) -> "ModuleCalls":
        if self._count is None or self._move_on is None or has_compiled():
            return self
        self._thread = threading.get_ident()
        hooks = self._torch.nn.modules.module
        try:
            after = hooks.register_module_forward_hook(self._leave, always_call=True)
        except TypeError:  # PyTorch before 2.3
            after = hooks.register_module_forward_hook(self._leave)
        self._handles = [hooks.register_module_forward_pre_hook(self._begin), after]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles, self._open, self._kept = [], [], []
        self._names, self._unknown, self._first = {}, {}, {}

    def as_dict(self) -> Dict[str, Any]:
        """The fields of meta.json on modules.

        modules: `[path, class, first number, first number after]` of each call, outer calls first.
        constants: `[shape, bytes of an element]` of each parameter and buffer of the called modules: a step that does not update
            them only reads them, like its batch, but they are on the device already.
        """
        calls = self._calls if len(self._calls) <= MOST else []
        found = {"modules": calls, "constants": list(self._constants.values())}
        return {name: value for name, value in found.items() if value}

    def _begin(self, module: Any, _inputs: Any) -> None:
        if self._is_compiling():  # torch.compile traces hooks, too
            return
        if threading.get_ident() == self._thread and len(self._calls) <= MOST:
            path = self._path(module)
            now = self._next()
            self._calls.append([path, type(module).__name__, now, now])
            self._open.append((module, len(self._calls) - 1))

    def _leave(self, module: Any, _inputs: Any, _output: Any) -> None:
        if self._is_compiling():
            return
        # A call that ended with an error may have left inner calls open.
        if threading.get_ident() == self._thread and any(module is each for each, _ in self._open):
            end = self._next()
            while self._open:
                ended, at = self._open.pop()
                self._calls[at][3] = end
                if ended is module:
                    break

    def _next(self) -> int:
        """Advances the number and returns it: all numbers noted so far are smaller."""
        self._move_on()  # type: ignore[misc]
        return int(self._count())  # type: ignore[misc]

    def _path(self, module: Any) -> str:
        """Path such as `DLRM.bottom.0`: the path of the innermost open module that contains the module, and its name there."""
        path = next(self._known(module), None)
        if path is None and not self._open:
            path = self._first.get(id(module))  # called again by the backward pass
        if path is None:
            path = self._named(module)
        if id(module) not in self._first:
            self._kept.append(module)
            self._first[id(module)] = path
        return path

    def _known(self, module: Any) -> Iterator[str]:
        for around, at in reversed(self._open):
            name = self._known_to(around).get(id(module))
            if name:
                yield f"{self._calls[at][0]}.{name}"

    def _named(self, module: Any) -> str:
        """Path by class name, for a module that no open module contains. A number distinguishes several modules of one class."""
        around = f"{self._calls[self._open[-1][1]][0]}." if self._open else ""
        name = around + type(module).__name__
        if (name, id(module)) not in self._unknown:
            self._note_constants(module)
            alike = sum(other == name for other, _ in self._unknown)
            self._unknown[name, id(module)] = name if alike == 0 else f"{name}#{alike + 1}"
        return self._unknown[name, id(module)]

    def _note_constants(self, module: Any) -> None:
        for held in (*module.parameters(), *module.buffers()):
            self._kept.append(held)
            self._constants[id(held)] = [list(held.shape), held.element_size()]

    def _known_to(self, module: Any) -> Dict[int, str]:
        if id(module) not in self._names:
            self._names[id(module)] = {id(each): name for name, each in module.named_modules()}
        return self._names[id(module)]


def has_compiled() -> bool:
    """Whether torch.compile has compiled code in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    frames = getattr(utils, "counters", {}).get("frames", {})
    return bool(frames)
