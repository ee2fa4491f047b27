"""What `recompute` in a layout says: a word, modules as Megatron-core names them, or whole layers by one of its methods."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from costmodel.errors import InputError, nearest
from costmodel.generated import labels

KINDS = labels.CHOICES["recompute"]
MODULES = labels.MODULES["all"]
NONE, BY_MODULES, FULL = "none", KINDS[0], KINDS[-1]
WORDS: dict[str, tuple[str, ...]] = {
    NONE: (),
    "norms": ("layernorm",),
    "mlp-product": ("moe_act",),
    "light": ("layernorm", "moe_act"),
    "attention": ("core_attn",),
}
"""Words for sets of modules; a set that has one prints as it."""
RECOMPUTE = (*WORDS, *KINDS[1:])
"""The words, without modules and methods."""
METHODS = ("uniform", "block")
FORMS = f"{', '.join(RECOMPUTE)}, full-uniform-N, full-block-N, or modules joined by +: {', '.join(MODULES)}"
WITHIN = {("moe", "moe_act"), ("moe", "shared_experts")}
"""The second is a part of the first, which runs it again already; mlp leaves moe_act the experts."""
_METHOD = re.compile(rf"full-(?P<method>{'|'.join(METHODS)})-(?P<layers>[1-9]\d{{0,3}})")
MOST_LAYERS = 9999


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What is run again. `every`: of how many layers one is. `uniform`, `block`: layers of the method of that name, or 1 and 0."""

    kind: str = BY_MODULES
    modules: tuple[str, ...] = ()
    every: int = 1
    uniform: int = 1
    block: int = 0

    def __str__(self) -> str:
        if self.uniform > 1:
            return f"{FULL}-{METHODS[0]}-{self.uniform}"
        if self.block:
            return f"{FULL}-{METHODS[1]}-{self.block}"
        words = {modules: word for word, modules in WORDS.items()}
        said = words.get(self.modules, "+".join(self.modules)) if self.kind == BY_MODULES else self.kind
        return said + (f"/{self.every}" if self.every > 1 else "")

    @property
    def layers(self) -> int:
        """The number of layers that it names, 1 where it names none."""
        return max(self.every, self.uniform, self.block)

    @property
    def is_rare(self) -> bool:
        """Whether searches do not try such a thing unless they are asked to."""
        return self.uniform > 1 or self.block > 0 or any(module in labels.MODULES["rare"] for module in self.modules)


@lru_cache(maxsize=256)
def recomputation(text: str) -> Recomputation:
    """What a text says. Raises InputError for what it does not know, and for modules of which one is within another."""
    method = _METHOD.fullmatch(text)
    if method is not None:
        layers = int(method["layers"])
        return (
            Recomputation(FULL, uniform=layers) if method["method"] == METHODS[0] else Recomputation(FULL, block=layers)
        )
    if text.startswith(f"{FULL}-"):
        raise InputError(
            f"layout: recompute={text[:40]} is not known; full-uniform-N keeps the input of every N layers, full-block-N runs the "
            f"first N layers of a chunk again, N from 1 to {MOST_LAYERS}"
        )
    said, slash, every = text.partition("/")
    kind, modules = _kind(said)
    if not slash:
        return Recomputation(kind, modules)
    known = every.isascii() and every.isdigit() and len(every) <= 4 and int(every) >= 2
    if said == NONE or not known:
        raise InputError(
            f"layout: recompute={text[:40]} is not known; a kind other than none, and one of how many layers, such as full/2"
        )
    return Recomputation(kind, modules, int(every))


def recomputations(text: str) -> tuple[str, ...]:
    """What a list says, separated by commas or spaces, each once.

    Raises InputError as `recomputation`, for an empty list, and for modules with only spaces between them, as Megatron joins them.
    """
    for part in text.split(","):
        if len(named := part.split()) > 1 and set(named) <= set(MODULES):
            raise InputError(
                f"--recompute {part.strip()[:80]!r}: join modules that are run again together by +, {'+'.join(named)[:80]}, or "
                "separate what is tried in turn by commas"
            )
    found = tuple(dict.fromkeys(str(recomputation(one)) for one in text.replace(",", " ").split()))
    if not found:
        raise InputError(f"--recompute is empty; name what may be run again, such as {NONE},{FULL}")
    return found


def check_layers(text: str, layers: int) -> None:
    """Raise InputError where a text names more layers than the `layers` of a model."""
    again = recomputation(text)
    if again.layers > layers:
        said = "one layer in more" if again.every > 1 else "more layers"
        raise InputError(f"layout: recompute={text} names {said} than the {layers} of the model")


def recompute_inputs(texts: Sequence[str]) -> dict[str, Sequence[float] | float]:
    """The inputs of the equations along the axis of recomputation; one number where all rows leave it at what is usual."""
    found = [recomputation(text) for text in texts]
    flags = {f"recomputed_{module}": [float(module in one.modules) for one in found] for module in MODULES}
    layers = {"uniform_layers": [one.uniform for one in found], "block_layers": [one.block for one in found]}
    usual = {**dict.fromkeys(flags, 0.0), "uniform_layers": 1.0, "block_layers": 0.0}
    return {
        "recompute": [KINDS.index(one.kind) for one in found],
        "recompute_every": [one.every for one in found],
        **{
            name: values if any(value != usual[name] for value in values) else usual[name]
            for name, values in (flags | layers).items()
        },
    }


def _kind(said: str) -> tuple[str, tuple[str, ...]]:
    if said in KINDS[1:]:
        return said, ()
    if said in WORDS:
        return BY_MODULES, WORDS[said]
    named = said.split("+")
    for module in named:
        if module not in MODULES:
            known = MODULES if len(named) > 1 else (*RECOMPUTE, *MODULES)
            near = nearest(module, known)
            hint = (
                f"did you mean {near[0]}?" if near else f"choose from {', '.join(known) if len(named) > 1 else FORMS}"
            )
            where = f"{module[:40]!r} in recompute={said[:60]}" if len(named) > 1 else f"recompute={said[:40]}"
            raise InputError(f"layout: {where} is not known; {hint}")
        if named.count(module) > 1:
            raise InputError(f"layout: recompute={said[:60]} names {module} twice")
    for whole, inner in WITHIN:
        if whole in named and inner in named:
            raise InputError(
                f"layout: recompute={said[:60]}: {inner} is a part of {whole}, which runs it again already; leave out one of them"
            )
    return BY_MODULES, tuple(module for module in MODULES if module in named)
