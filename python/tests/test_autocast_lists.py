"""CUDA's lists of autocast on the CPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from steptime.autocast_lists import CudaLists  # noqa: E402


def types() -> list[torch.dtype]:
    """Types of results under autocast, of ops that a GPU computes in 32 bits."""
    product = torch.nn.Linear(8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        x = product(torch.randn(4, 8))
        results = [torch.nn.functional.layer_norm(x, (8,)), x.softmax(-1), x.pow(2), x.rsqrt(), x.sum()]
        assert x.dtype == torch.bfloat16 and x.relu().dtype == torch.bfloat16
    torch.nn.functional.layer_norm(x, (8,)).float().sum().backward()
    assert product.weight.grad is not None
    return [result.dtype for result in results]


def test_what_a_gpu_computes_in_32_bits_is_so_while_it_is_entered() -> None:
    lists = CudaLists(torch)
    for _ in range(2):
        with lists:
            assert set(types()) == {torch.float32}
        assert torch.bfloat16 in types()


def test_nothing_changes_without_autocast() -> None:
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    with CudaLists(torch):
        assert x.softmax(-1).dtype == torch.bfloat16
        assert x.pow(2).dtype == torch.bfloat16
