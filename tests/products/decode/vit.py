"""The trace of a vision transformer in PyTorch, with fused attention, of any sizes: what a table of models is full of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconcile.core.records import Op, Tensor, Trace


@dataclass(frozen=True)
class Vit:
    """ViT-B/16 on a picture of 224 × 224 unless told otherwise, without the convolution that makes its tokens."""

    tokens: int = 197
    width: int = 768
    heads: int = 12
    inner: int = 3072
    layers: int = 12
    classes: int = 1000

    @property
    def attention(self) -> int:
        """Products of queries with keys and of what comes of them with values, in all layers."""
        return self.layers * 2 * self.tokens**2 * self.width

    @property
    def head(self) -> int:
        return self.width * self.classes

    @property
    def macs(self) -> int:
        each = 4 * self.width**2 + 2 * self.width * self.inner
        return self.layers * self.tokens * each + self.attention + self.head

    @property
    def norms(self) -> int:
        """What fvcore counts for layer norms: 5 per element."""
        return (2 * self.layers + 1) * 5 * self.tokens * self.width

    def trace(self) -> Trace:
        return Trace("torch", {"torch": "2.13.0"}, "dispatch", tuple(self._numbered()), (), (), (), ())

    def _numbered(self) -> Iterator[Op]:
        for number, one in enumerate(self._ops()):
            yield one._replace(id=f"op{number}")

    def _ops(self) -> Iterator[Op]:
        for n in range(self.layers):
            at = f"blocks.{n}"
            yield self._norm(f"{at}.norm1")
            yield linear(f"{at}.attn.qkv", self.tokens, self.width, 3 * self.width)
            yield self._fused(f"{at}.attn")
            yield linear(f"{at}.attn.proj", self.tokens, self.width, self.width)
            yield self._norm(f"{at}.norm2")
            yield linear(f"{at}.mlp.fc1", self.tokens, self.width, self.inner)
            yield linear(f"{at}.mlp.fc2", self.tokens, self.inner, self.width)
        yield self._norm("norm")
        yield linear("head", 1, self.width, self.classes)

    def _norm(self, layer: str) -> Op:
        shapes = [(1, self.tokens, self.width), (self.width,), (self.width,)]
        return op("aten.native_layer_norm", layer, shapes, shapes[0], normalized_shape=[self.width], eps=1e-5)

    def _fused(self, layer: str) -> Op:
        each = (1, self.heads, self.tokens, self.width // self.heads)
        options = {"dropout_p": 0.0, "is_causal": False, "scale": None, "enable_gqa": None, "attn_mask": None}
        return op("aten.scaled_dot_product_attention", layer, [each] * 3, each, **options)


def linear(layer: str, rows: int, width: int, out: int) -> Op:
    return op("aten.addmm", layer, [(out,), (rows, width), (width, out)], (rows, out))


def op(name: str, layer: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], **attrs: object) -> Op:
    shapes = tuple(Tensor(shape, "float32") for shape in inputs)
    return Op(layer, name, layer, shapes, (Tensor(output, "float32"),), attrs)
