"""Embedding bags over many tables: the forward pass is one launch; the backward pass includes the optimizer's step."""

from __future__ import annotations

from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch
from torch import Tensor, nn

from steptime.operators import ops, plans
from steptime.operators.batches import Batch, check_kinds, check_offsets, check_rows, with_last
from steptime.operators.codec import quantize
from steptime.operators.functional import ordinal_of
from steptime.operators.library import OperatorError, load
from steptime.operators.plans import BITS, COUNTING, DECAYS, MODES, OPTIMIZERS, BackwardPlan, BagPlan, Bags
from steptime.operators.state import RowState, saved_optimizers
from steptime.operators.training import Training

STATELESS = ("sgd",)
STATE = "optimizer_state"  # its name in a state dict


class EmbeddingBags(nn.Module):
    """Embedding bags over T tables of E_t rows and D_t columns; the pooled rows of all tables are concatenated in one output.

    rows: E of each table. dims: D of each table, or one number for all.
    mode: "sum", "mean" or "max" ("max" cannot be trained).
    optimizer: "sgd", "adagrad", "rowwise_adagrad", "adam" or "partial_rowwise_adam", with its usual settings and the learning
        rate `lr`; None without training. The backward pass runs the optimizer's step: tables have no `.grad`, and must not be
        given to another optimizer. The optimizer's state and step count are in `state_dict()` and move with the module. Loading a
        state dict of another optimizer fails. Without an optimizer, saved states are ignored.
    weight_decay, decay: "l2" adds `weight_decay` times the row to its gradient, "decoupled" shrinks the row by
        `lr * weight_decay` times the row before the step. Only rows that were looked up decay.
    dtype: "float32", "float16", "bfloat16"; "int8" or "int4" without an optimizer. Conversions of the module do not change it.
    index_dtype: type of indices and offsets, torch.int32 or torch.int64.
    include_last_offset: whether offsets end with the number of indices. With False, offsets are like the default of
        torch.nn.EmbeddingBag: B for each table.
    debug: whether offsets and indices of each batch are checked, which waits for the GPU. Offsets of the first batch of each
        shape are always checked.
    lookups: largest number of lookups of a batch over all tables; longest: largest number of one table. Given, they avoid new
        plans for larger batches, and need fewer launches if no table has more than 8192 lookups. More than `longest` lookups
        are an error that `check` reports, and nothing is trained.

    Under torch.amp.GradScaler the gradient is unscaled, and a batch whose gradient overflowed is skipped; the host decides this and
    waits for the GPU. The scaler is the one that scaled the loss, or `tables.scaler` if there are several. Each backward pass runs a
    step, and a second pass before the next step of the other optimizers raises. Within `with tables.accumulating():`, passes only
    accumulate gradients, and the first pass after it runs one step with all of them.

    Plans for batches of one size are made at the first such batch, and kept. A step can be captured into a CUDA graph
    after it has run once; then only one batch size should be trained.
    """

    def __init__(
        self,
        rows: Sequence[int],
        dims: Union[int, Sequence[int]],
        mode: str = "sum",
        optimizer: Optional[str] = "sgd",
        lr: float = 0.01,
        dtype: str = "float32",
        index_dtype: torch.dtype = torch.int64,
        lookups: Optional[int] = None,
        longest: Optional[int] = None,
        device: Any = None,
        weight_decay: float = 0.0,
        decay: str = "l2",
        include_last_offset: bool = True,
        debug: bool = False,
    ) -> None:
        super().__init__()
        dims = [dims] * len(rows) if isinstance(dims, int) else list(dims)
        if not rows or len(rows) != len(dims):
            raise OperatorError(f"{len(rows)} tables with {len(dims)} widths: give at least one table, and a width for each")
        _of("mode", mode, MODES)
        _of("dtype", dtype, tuple(BITS))
        _of("decay", decay, DECAYS)
        if index_dtype not in ops.INDEX_TYPES.values():
            raise OperatorError(f"index_dtype is {index_dtype}: choose torch.int32 or torch.int64")
        if optimizer is not None:
            _of("optimizer", optimizer, OPTIMIZERS)
            if BITS[dtype] < 16 or mode == "max":
                raise OperatorError(f"tables of {dtype} pooled by {mode} are not trained: give optimizer=None")
        self.rows, self.dims, self.mode, self.optimizer, self.dtype = tuple(rows), tuple(dims), mode, optimizer, dtype
        self.index_bits = next(bits for bits, kind in ops.INDEX_TYPES.items() if kind == index_dtype)
        self.lookups, self.longest, self._lr, self._weight_decay, self.decay = lookups, longest, lr, weight_decay, decay
        self.tables = nn.ParameterList(nn.Parameter(table, requires_grad=False) for table in self._draw(device))
        if optimizer is not None and optimizer not in STATELESS:
            self.add_module(STATE, nn.ModuleDict({optimizer: RowState(optimizer, self.rows, self.dims, device)}))
        self.register_load_state_dict_post_hook(_loaded)
        self.include_last_offset, self.debug, self._training = include_last_offset, debug, Training()
        self._checked: Set[torch.Size] = set()  # shapes of offsets
        # Connects the output to autograd, since tables have no gradients.
        self._anchor = torch.empty(0, requires_grad=True)
        self._forget()

    def _draw(self, device: Any) -> Any:
        for rows, dim in zip(self.rows, self.dims):
            table = torch.empty(rows, dim, device=device).uniform_(-(rows**-0.5), rows**-0.5)
            yield quantize(table, BITS[self.dtype]) if BITS[self.dtype] < 16 else table.to(getattr(torch, self.dtype))

    def _forget(self) -> None:
        self._forward_plans: Dict[Any, BagPlan] = {}
        self._backward_plans: Dict[Any, BackwardPlan] = {}
        self._latest: Optional[BackwardPlan] = None
        self._held = self._places()

    def _apply(self, fn: Callable[[Tensor], Tensor], *arguments: Any, **named: Any) -> EmbeddingBags:
        """Moves tables and state without converting their types."""
        self._note_steps()

        def move(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        moved: EmbeddingBags = super()._apply(move, *arguments, **named)
        if self._places() != self._held:
            self._forget()
        return moved

    def _kept(self) -> Optional[RowState]:
        return None if self.optimizer is None or self.optimizer in STATELESS else getattr(self, STATE)[self.optimizer]

    def _places(self) -> List[Tuple[Any, int]]:
        kept = self._kept()
        return [(tensor.device, tensor.data_ptr()) for tensor in self._tables() + ([] if kept is None else kept.of_tables())]

    def _note_steps(self) -> None:
        """Copies the GPU's step count into the saved state. Waits for the stream."""
        kept = self._kept()
        if kept is not None and self._latest is not None and self.optimizer in COUNTING:
            with ops.on_device(self._latest.ordinal):
                kept.steps.fill_(self._latest.steps(torch.cuda.current_stream().cuda_stream))

    def _save_to_state_dict(self, *arguments: Any, **named: Any) -> None:
        self._note_steps()
        super()._save_to_state_dict(*arguments, **named)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: List[str],
        unexpected_keys: List[str],
        error_msgs: List[str],
    ) -> None:
        self._note_steps()
        saved = saved_optimizers(list(state_dict), f"{prefix}{STATE}.")
        if self.optimizer is None:
            state_dict = {name: value for name, value in state_dict.items() if not name.startswith(f"{prefix}{STATE}.")}
        elif saved not in ([], [self.optimizer]):
            error_msgs.append(
                f"the state of {' and '.join(saved)} is saved, but these tables are trained by {self.optimizer}: make the module with the "
                f"optimizer that was saved, or leave the names that begin with {prefix}{STATE} out and load with strict=False"
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def __getstate__(self) -> Dict[str, Any]:
        """The module without plans, which are valid only in this process and for these tables."""
        self._note_steps()
        state = dict(self.__dict__)
        state.update(_forward_plans={}, _backward_plans={}, _latest=None)
        return state

    @property
    def lr(self) -> float:
        """Learning rate. A new value takes effect with the current stream's next step; setting it does not wait."""
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self._lr = lr
        for plan in self._backward_plans.values():
            with ops.on_device(plan.ordinal):
                plan.set_lr(torch.cuda.current_stream().cuda_stream, lr)

    @property
    def weight_decay(self) -> float:
        """Weight decay. A new value takes effect with the current stream's next step; setting it does not wait."""
        return self._weight_decay

    @weight_decay.setter
    def weight_decay(self, weight_decay: float) -> None:
        self._weight_decay = weight_decay
        for plan in self._backward_plans.values():
            with ops.on_device(plan.ordinal):
                plan.set_decay(torch.cuda.current_stream().cuda_stream, weight_decay, self.decay)

    def forward(self, indices: Tensor, offsets: Tensor, weights: Optional[Tensor] = None) -> Tensor:
        """Pools a batch. Returns [B, D_0 + D_1 + ...] of float32.

        indices: [N], table after table. offsets: [T * B + 1], increasing over all tables: bag b of table t has the indices
        from offset t * B + b to the next; without the last offset if `include_last_offset` is False. weights: [N] factors of the
        rows, float32, without a gradient. An index out of range gives zeros, and `check` reports it.
        """
        if weights is not None and weights.requires_grad:
            raise OperatorError("per-sample weights get no gradient: pass weights.detach()")
        offsets = self._whole(indices, offsets)
        if self.optimizer is not None and torch.is_grad_enabled() and self.training:
            return _Pool.apply(self._anchor, self, indices, offsets, weights)
        return self._pool(indices, offsets, weights)

    def check(self, indices: Tensor, offsets: Tensor, weights: Optional[Tensor] = None) -> None:
        """Waits for the GPU and raises errors of the last batch, which must be this one."""
        offsets = self._whole(indices, offsets)
        of = self._bags(indices, offsets, weights)
        plan = self._forward_plans.get(_key(of))
        if plan is None:
            raise OperatorError("there was no such batch yet: call the module with it first")
        every: Any = [plan]
        if self._latest is not None and _key(self._latest.of) == _key(of):
            every.append(self._latest)
        for plan in every:
            lookups = ops.lookups_of(plan, self._tables(), indices, offsets, weights)
            with ops.on_device(plan.ordinal):
                plan.check(torch.cuda.current_stream().cuda_stream, lookups)

    @property
    def scaler(self) -> Any:
        """The torch.amp.GradScaler that scales the loss; None for the one that has scaled a loss since its last update."""
        return self._training.scaler

    @scaler.setter
    def scaler(self, scaler: Any) -> None:
        self._training.scaler = scaler

    def accumulating(self) -> ContextManager[None]:
        """Context in which backward passes keep lookups and gradients without a step. The first pass after it runs one step with all."""
        return self._training.accumulating()

    def next_step(self) -> None:
        """Begins a new step and drops kept gradients: for loops without an optimizer of torch.optim."""
        self._training.next_step()

    def _whole(self, indices: Tensor, offsets: Tensor) -> Tensor:
        """Offsets including the last one; checked on the first batch of a shape, and on every batch with `debug`."""
        check_kinds(indices, offsets, ops.INDEX_TYPES[self.index_bits])
        offsets = with_last(indices, offsets, len(self.rows), self.include_last_offset)
        if (self.debug or offsets.shape not in self._checked) and not (offsets.is_cuda and torch.cuda.is_current_stream_capturing()):
            check_offsets(indices, offsets)
            if self.debug:
                check_rows(indices, offsets, self.rows)
            self._checked.add(offsets.shape)
        return offsets

    def _tables(self) -> Any:
        return list(self.tables._parameters.values())  # iterating over a ParameterList is slow

    def _pool(self, indices: Tensor, offsets: Tensor, weights: Optional[Tensor]) -> Tensor:
        bags = (offsets.shape[0] - 1) // len(self.rows)
        plan = self._forward_plans.get((bags, weights is not None)) or self._forward_plan(indices, offsets, weights)
        of = plan.of
        return torch.ops.steptime.embedding_bag(self._tables(), indices, offsets, weights, of.mode, BITS[of.element], plan.number)

    def _bags(self, indices: Tensor, offsets: Tensor, weights: Optional[Tensor]) -> Bags:
        bags, mode = (offsets.shape[0] - 1) // len(self.rows), MODES.index(self.mode)
        return Bags(self.rows, self.dims, bags, indices.shape[0], self.dtype, self.index_bits, weights is not None, mode)

    def _forward_plan(self, indices: Tensor, offsets: Tensor, weights: Optional[Tensor]) -> BagPlan:
        of, ordinal = self._bags(indices, offsets, weights), self._ordinal()
        with ops.on_device(ordinal):
            plan = BagPlan(load(), ordinal, of, self._addresses())
        self._forward_plans[_key(of)] = plan
        return plan

    def _backward_plan(self, indices: Tensor, offsets: Tensor, weights: Optional[Tensor]) -> BackwardPlan:
        """A plan for at least this number of lookups, with the step count of the last step. All plans share the same state."""
        key = ((offsets.shape[0] - 1) // len(self.rows), weights is not None)
        plan, count = self._backward_plans.get(key), indices.shape[0]
        if plan is not None and count <= plan.of.lookups and plan is self._latest:
            return plan
        with ops.on_device(self._ordinal()):
            stream = torch.cuda.current_stream().cuda_stream
            if plan is None or count > plan.of.lookups:
                room = count if plan is None else count + count // 8  # lengths vary
                plan = self._new_backward_plan(indices, offsets, weights, max(room, self.lookups or 0), stream)
            if self.optimizer in COUNTING:
                plan.set_steps(stream, self._steps(stream))
        self._backward_plans[key] = self._latest = plan
        return plan

    def _take_step(self, batch: Batch) -> None:
        plan = self._backward_plan(batch.indices, batch.offsets, batch.weights)
        step = getattr(torch.ops.steptime, f"embedding_bag_backward_{self.optimizer}")
        step(batch.gradient, self._tables(), batch.indices, batch.offsets, batch.weights, plan.of.mode, plan.number)

    def _new_backward_plan(self, indices: Tensor, offsets: Tensor, weights: Optional[Tensor], room: int, stream: int) -> BackwardPlan:
        if torch.cuda.is_current_stream_capturing():
            raise OperatorError("the first step with a new batch size cannot be captured: run one step before the capture")
        assert self.optimizer is not None, "a backward pass is planned for tables that have an optimizer"
        of, ordinal = self._bags(indices, offsets, weights), self._ordinal()
        of = Bags(of.rows, of.dims, of.bags, room, of.element, of.index_bits, of.weighted, of.mode)
        kept = self._kept()
        states = None if kept is None else [state.data_ptr() for state in kept.of_tables()]
        plan = BackwardPlan(load(), ordinal, of, self._addresses(), self.optimizer, self._lr, stream, self.longest, states)
        if self._weight_decay:
            plan.set_decay(stream, self._weight_decay, self.decay)
        return plan

    def _steps(self, stream: int) -> int:
        kept = self._kept()
        if self._latest is not None:
            return self._latest.steps(stream)
        return 0 if kept is None else int(kept.steps)

    def _ordinal(self) -> int:
        return ordinal_of(self.tables[0])

    def _addresses(self) -> Any:
        return [table.data_ptr() for table in self._tables()]

    def extra_repr(self) -> str:
        """Text in the printed form of the module."""
        widths = self.dims[0] if len(set(self.dims)) == 1 else list(self.dims)
        return f"{len(self.rows)} tables, {sum(self.rows)} rows, dims={widths}, mode={self.mode}, dtype={self.dtype}, optimizer={self.optimizer}"


def _of(what: str, given: Any, known: Sequence[str]) -> None:
    if given not in known:
        raise OperatorError(f"{what} is {given!r}: choose one of {', '.join(known)}")


def _loaded(module: EmbeddingBags, _incompatible: Any) -> None:
    """Applies a loaded state dict: in place, so that plans and captured graphs stay valid, or with new plans if tables have moved."""
    if module._places() != module._held:
        module._forget()
    plan, kept = module._latest, module._kept()
    if plan is not None and kept is not None and module.optimizer in COUNTING:
        with ops.on_device(plan.ordinal):
            plan.set_steps(torch.cuda.current_stream().cuda_stream, int(kept.steps))


def _key(of: Bags) -> Any:
    return of.bags, of.weighted


class _Pool(torch.autograd.Function):
    """Autograd function of the module; its backward pass trains the tables and returns no gradients."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, module: EmbeddingBags, indices: Tensor, offsets: Tensor, weights: Optional[Tensor]) -> Tensor:
        ctx.module, ctx.use = module, module._training.use()
        ctx.save_for_backward(indices, offsets, *(() if weights is None else (weights,)))
        return module._pool(indices, offsets, weights)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        indices, offsets, *rest = ctx.saved_tensors
        ctx.module._training.backward(ctx.module, ctx.use, Batch(grad.contiguous(), indices, offsets, rest[0] if rest else None))
        return None, None, None, None, None
