"""Which modules of a model ran which ops, told without a change to what is recorded.

Autograd counts the functions that it makes on a thread, and an op notes the count as it begins. Where a module is called and
where it returns, the count is moved on by a function that nobody uses: the ops of its forward pass have the numbers in
between, and so have their backward functions.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Dict, List, Tuple

# A step of more calls is recorded without them: a network that calls a cell for each element of a long sequence.
MOST = 50_000


class ModuleCalls:
    """Notes the forward calls of all modules while it is entered.

    The hooks are PyTorch's global ones, so that no module is changed. They would make torch.compile compile again; a
    process that has compiled notes nothing.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._count = getattr(torch._C._autograd, "_get_sequence_nr", None)
        self._move_on = getattr(torch._C._functions, "UndefinedGrad", None)
        self._handles: List[Any] = []
        self._open: List[Tuple[Any, int]] = []
        self._calls: List[List[Any]] = []
        self._names: Dict[int, Dict[int, str]] = {}
        self._paths: Dict[int, str] = {}
        self._constants: Dict[int, List[Any]] = {}

    def __enter__(self) -> "ModuleCalls":
        if self._count is None or self._move_on is None or _has_compiled():
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
        self._handles, self._open = [], []

    def as_dict(self) -> Dict[str, Any]:
        """The part of meta.json that tells of modules.

        modules: `[path, class, first number, first number after]` a call, outer ones first.
        constants: `[shape, bytes of an element]` of each buffer and each parameter that takes no gradient: a step only reads
            them, as it does its batch, but they are on the device already.
        """
        calls = self._calls if len(self._calls) <= MOST else []
        found = {"modules": calls, "constants": list(self._constants.values())}
        return {name: value for name, value in found.items() if value}

    def _begin(self, module: Any, _inputs: Any) -> None:
        if threading.get_ident() == self._thread and len(self._calls) <= MOST:
            if id(module) not in self._paths:
                self._paths[id(module)] = self._path(module)
            now = self._next()
            self._calls.append([self._paths[id(module)], type(module).__name__, now, now])
            self._open.append((module, len(self._calls) - 1))

    def _leave(self, module: Any, _inputs: Any, _output: Any) -> None:
        # A call that an error ended may have left others open.
        if threading.get_ident() == self._thread and any(module is each for each, _ in self._open):
            end = self._next()
            while self._open:
                ended, at = self._open.pop()
                self._calls[at][3] = end
                if ended is module:
                    break

    def _next(self) -> int:
        """Moves the count on: what noted a number until now has a smaller one."""
        self._move_on()  # type: ignore[misc]
        return int(self._count())  # type: ignore[misc]

    def _path(self, module: Any) -> str:
        """`DLRM.bottom.0`: the name by which the innermost open module knows it, below that one's path."""
        for around, at in reversed(self._open):
            name = self._known_to(around).get(id(module))
            if name:
                return f"{self._calls[at][0]}.{name}"
        name = type(module).__name__
        if self._open:
            return f"{self._calls[self._open[-1][1]][0]}.{name}"
        self._note_constants(module)
        alike = sum(path.partition("#")[0] == name for path in self._paths.values())
        return name if alike == 0 else f"{name}#{alike + 1}"

    def _note_constants(self, module: Any) -> None:
        held = [*module.buffers(), *(each for each in module.parameters() if not each.requires_grad)]
        self._constants.update((id(each), [list(each.shape), each.element_size()]) for each in held)

    def _known_to(self, module: Any) -> Dict[int, str]:
        if id(module) not in self._names:
            self._names[id(module)] = {id(each): name for name, each in module.named_modules()}
        return self._names[id(module)]


def _has_compiled() -> bool:
    """Whether torch.compile has been at work in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    frames = getattr(utils, "counters", {}).get("frames", {})
    return bool(frames)
