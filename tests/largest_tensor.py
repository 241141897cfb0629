"""How large the tensors grow while code runs."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """While active, keeps the size of the largest tensor that any operator returned."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numel = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operator and look at what it returns."""
        found = func(*args, **(kwargs or {}))
        for each in tree_leaves(found):
            if isinstance(each, Tensor):
                self.numel = max(self.numel, each.numel())
        return found
