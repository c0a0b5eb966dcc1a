"""CUDA's lists of autocast on the CPU: which ops run in 32 bits.

`torch.autocast("cpu")` keeps ops such as norms and softmaxes in 16 bits that a GPU computes in 32, and later ops inherit the
type. With these lists, a step recorded on the CPU for a GPU has the types that the GPU would use.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional

# Inputs are cast to 32 bits.
WIDE = (
    *("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan", "pow"),
    *("softplus", "layer_norm", "native_layer_norm", "group_norm", "frobenius_norm", "nuclear_norm", "cosine_similarity"),
    *("poisson_nll_loss", "cosine_embedding_loss", "nll_loss", "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss"),
    *("smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss"),
    *("triplet_margin_loss", "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp"),
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d"),
    *("upsample_trilinear3d", "upsample_bicubic2d", "_upsample_nearest_exact2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
)
# The result is of 32 bits, unless another type is given.
WIDE_RESULT = ("softmax", "log_softmax", "cumsum", "cumprod", "sum", "prod")
KEY = "AutocastCPU"


class CudaLists:
    """Context in which CUDA's lists replace the CPU's."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._library: Any = None

    def __enter__(self) -> "CudaLists":
        library = self._library = self._torch.library.Library("aten", "IMPL", KEY)
        for names, made in ((WIDE, self._wide), (WIDE_RESULT, self._wide_result)):
            for op in (op for name in names for op in self._overloads(name)):
                # Ops on the CPU's own list of 32 bits stay there.
                if not self._torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), KEY):
                    found = made(op)
                    if found is not None:
                        library.impl(op.name().partition("::")[2], found, KEY)
        return self

    def __exit__(self, *_: object) -> None:
        self._library._destroy()

    def _overloads(self, name: str) -> List[Any]:
        """Overloads that allocate their results. The set differs between PyTorch releases; overloads of TorchScript alone are left out."""
        packet = getattr(self._torch.ops.aten, name, None)
        every = [] if packet is None else [getattr(packet, each) for each in packet.overloads()]
        known = [op for op in every if self._torch._C._dispatch_has_kernel(op.name())]
        return [op for op in known if not op._schema.is_mutable and "Dimname" not in str(op._schema)]

    def _below(self) -> Any:
        """Context in which autocast does not cast again."""
        keys = self._torch._C
        return keys._ExcludeDispatchKeyGuard(keys.DispatchKeySet(keys.DispatchKey.AutocastCPU))

    def _is_narrow(self, value: Any) -> bool:
        return self._torch.is_tensor(value) and value.dtype in (self._torch.bfloat16, self._torch.float16)

    def _cast(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._cast, value))
        return value.to(self._torch.float32) if self._is_narrow(value) else value

    def _wide(self, op: Any) -> Callable[..., Any]:
        def run(*args: Any, **given: Any) -> Any:
            with self._below():
                return op(*map(self._cast, args), **{name: self._cast(value) for name, value in given.items()})

        return run

    def _wide_result(self, op: Any) -> Optional[Callable[..., Any]]:
        names = [argument.name for argument in op._schema.arguments]
        if "dtype" not in names:
            return None

        def run(*args: Any, **given: Any) -> Any:
            named = {**dict(zip(names, args)), **given}
            if named.get("dtype") is None and self._is_narrow(args[0]):
                named["dtype"] = self._torch.float32
            with self._below():
                return op(args[0], **{name: value for name, value in named.items() if name != names[0]})

        return run
