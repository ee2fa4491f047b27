"""What the free text of published tables says, in words of ours: rules in order, the first that matches holds.

Every rule stands in docs/reference/published-runs.md, which is written from here. Text that no rule matches is not guessed: the
row is skipped with it as the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from costmodel.search.recomputation import MODULES, recomputation
from costmodel.studies.validation.rows import UnreadError

UNSTATED = ""
"""The source does not say."""


class Rule(NamedTuple):
    """Text in which `pattern` is found, in any case, means `word`; `because` says why where that is not plain."""

    pattern: str
    word: str
    because: str = ""

    def matches(self, text: str) -> bool:
        """Whether it is found in the text."""
        return re.search(self.pattern, text, re.IGNORECASE) is not None


NAMED = "modules"
"""A word for the modules that a text names."""

RECOMPUTE = (
    Rule(r"^$|^unstated|^see |^none set", UNSTATED, "a recipe that sets none may inherit one"),
    Rule(r"^none", "none"),
    Rule(r"^full|^yes|^other: full", "full"),
    Rule(r"^selective.*every other layer|^selective \(layer\)", "full/2"),
    Rule(r"minimal", "light", "MaxText's policy keeps the outputs of all products"),
    Rule(
        r"except_mlp",
        "selective",
        "MaxText's policy: the first products of the feed-forward are run again, not quite ours",
    ),
    Rule(r"^selective \[\]$", "none", "an empty list of modules"),
    Rule(rf"^selective.*\b({'|'.join(MODULES)})\b", NAMED, "the modules of Megatron-core that it names"),
    Rule(
        r"^selective.*rmsnorm.*mla",
        "layernorm+mla_up_proj",
        "norms and up-projections of latent attention are run again",
    ),
    Rule(r"^selective.*rmsnorm", "norms"),
    Rule(r"^selective.*attention core", "attention"),
    Rule(r"^selective.*\b(per[- ])?op\b", "selective", "torchtitan's per-operation checkpointing"),
    Rule(
        r"^selective( \((config default|set in).*)?$",
        "selective-default",
        "what selective means by default: see the table",
    ),
    Rule(
        r"^other: custom .*(query_proj|qkv_proj)",
        "selective",
        "queries, keys, values and inputs are kept, the rest run again",
    ),
    Rule(r"^other: qkv_proj_offloaded", "selective", "queries, keys and values are offloaded, the rest run again"),
    Rule(r"^other: custom .*decoder_layer_input", "full", "little but the input of the layer is kept"),
)
"""What of the forward pass is run again: a word of --layout, or that a table says what is meant."""

SHARDING = (
    Rule(r"^$|^unstated|^fsdp/hsdp$", UNSTATED),
    Rule(r"no distributed optimizer", "0"),
    Rule(r"distributed optimizer", "1"),
    Rule(r"zero-?2|shard_grad_op|not resharded", "2"),
    Rule(r"zero-?3|fsdp|hsdp|fully sharded|full.shard", "3"),
    Rule(r"zero-?1", "1"),
    Rule(r"zero-?0|^none|^ddp", "0"),
)
"""The ZeRO stage."""

PRECISION = (
    Rule(r"^$|unstated$|^unstated|^mixed$", UNSTATED),
    Rule(r"\bor fp8", "unread", "either of two precisions"),
    Rule(r"^fp16/bf16|^bf16/fp16", "16-bit"),
    Rule(r"nvfp4|mxfp4|\bfp4", "nvfp4"),
    Rule(r"fp8.*rowwise", "fp8-rowwise"),
    Rule(r"mxfp8|fp8-mx", "mxfp8"),
    Rule(r"fp8.*(128x128|fine-grained|subchannel)", "fp8-block"),
    Rule(r"fp8-amp", "fp8-delayed", "Transformer Engine's recipe of that time"),
    Rule(r"fp8", "fp8"),
    Rule(r"bf16|bfloat16", "bf16"),
    Rule(r"fp16", "fp16"),
)
"""The precision of the weight products."""

ATTENTION = (
    Rule(r"^naive", "naive"),
    Rule(r"sdpa|flash.?attention.?2", "flash-2", "the kernel of PyTorch's own scaled_dot_product_attention"),
    Rule(r"flash|fused|cudnn|splash|pallas", "fused"),
    Rule(r"^$|^unstated", UNSTATED),
)
"""Whether scores are written to memory."""

SEQUENCE_PARALLEL = (
    Rule(r"^true|^yes|^1$", "on"),
    Rule(r"^false|^no$|^0$", "off"),
    Rule(r"^$|^unstated", UNSTATED),
)

SCHEDULE = (
    Rule(r"zb-?2p", "zb-2p"),
    Rule(r"zb-?1p", "zb-1p"),
    Rule(r"dualpipe", "dualpipe"),
    Rule(r"1f1b-i|interleaved", "interleaved"),
    Rule(r"1f1b", "1f1b"),
    Rule(r"", UNSTATED),
)
"""The pipeline schedule, where the text on overlap names one."""

FLOPS = (
    Rule(r"unstated|not restated|not on the page|predate", "unknown"),
    Rule(r"^hardware|hardware flops incl", "hardware", "recomputation counted; attention in full"),
    Rule(r"sc21 formula", "hardware"),
    Rule(r"early estimate", "unknown", "the source corrects the formula later"),
    Rule(r"full \(non-causal\)|full attention|not causal|6\*n_nonemb", "full"),
    Rule(r"causal", "causal"),
    Rule(r"megatron-core model flops", "causal", "by comparison of rows that print tokens a second too"),
    Rule(r"palm", "full"),
    Rule(r"", "unknown"),
)
"""Which FLOPs a printed rate counts."""


class Trait(NamedTuple):
    """A property of a run that some field mentions: the fields searched, the pattern, and what it means."""

    word: str
    fields: tuple[str, ...]
    pattern: str
    meaning: str


TRAITS = (
    Trait(
        "before-2023",
        ("framework",),
        r"megatron.*(2020|2021|2022)|deepspeed zero-3 in megatron|deepspeed 0\.[0-6]|metaseq|^megatron-deepspeed",
        "code of before 2023: no overlap of gradients, no sequence parallelism unless stated",
    ),
    Trait("old-zero-3", ("framework",), r"zero-3 in megatron", "ZeRO-3 of 2021"),
    Trait("compiled", ("framework",), r"torch\.compile|maxtext|jax|pax|t5x", "kernels fused by a compiler"),
    Trait(
        "tp-overlap",
        ("overlap", "framework"),
        r"asynctp|tp-comm-overlap|tp/pp/dp overlap|megatron-bridge|^nemo",
        "tensor-parallel traffic overlaps on purpose",
    ),
    Trait(
        "dp-not-overlapped", ("sharding", "overlap"), r"not overlapped", "gradients are reduced after the step's work"
    ),
    Trait(
        "ep-overlap",
        ("overlap",),
        r"(?<!no )ep overlap( true| on|;| \+)|dualpipe",
        "expert traffic overlaps on purpose",
    ),
    Trait("cuda-graphs", ("overlap",), r"cuda graphs (?!none|off)", "kernels are launched as graphs"),
    Trait("offload", ("overlap", "recompute"), r"offload(?!( false))", "activations are kept on the host"),
    Trait("reduces-fp32", ("sharding",), r"mp_mode=default|fsdp2", "gradients are reduced in fp32"),
    Trait("embedding-slots", ("notes",), r"transformer\|embedding", "embedding and head take slots of the pipeline"),
    Trait("fine-tuning", ("notes", "framework"), r"\blora\b|fine-?tun|\bsft\b|\bpeft\b", "fine-tuning or packed data"),
    Trait("token-drop", ("notes",), r"token ?drop", "tokens are dropped"),
    Trait(
        "contradicts-itself",
        ("notes",),
        r"inconsistent|one engineer|first steps included",
        "a log that contradicts itself",
    ),
    Trait("misconfigured", ("notes",), r"misconfig", "called misconfigured by its source"),
    Trait(
        "layout-mismatch",
        ("notes",),
        r"differs from (#gpus|nodes|\d)|tp\*pp.*differs",
        "a layout that does not multiply out",
    ),
    Trait("batch-presumed", ("notes",), r"global batch = micro x gpus presumed", "a batch that was presumed"),
    Trait("one-layer", ("notes",), r"not a training step", "not a step but one layer"),
)
"""Looked for in the fields of a row; a mention is enough."""


def word(field: str, rules: Sequence[Rule], text: str) -> str:
    """What `text` means; raises UnreadError where no rule matches, or one says that nobody can tell."""
    plain = " ".join(text.split())
    for rule in rules:
        if rule.matches(plain):
            if rule.word == "unread":
                break
            return rule.word
    raise UnreadError(f"{field} {plain[:60]!r} is not understood")


def recompute(text: str) -> str:
    """What a text says is run again, as `recompute` in a layout; raises as `word` does, and for modules that contain each other."""
    said = word("recompute", RECOMPUTE, text)
    if said != NAMED:
        return said
    return str(recomputation("+".join(module for module in MODULES if re.search(rf"\b{module}\b", text))))


def traits(cells: Mapping[str, str]) -> frozenset[str]:
    """The properties that the fields of a row mention."""
    return frozenset(
        trait.word
        for trait in TRAITS
        if any(re.search(trait.pattern, cells.get(field, ""), re.IGNORECASE) for field in trait.fields)
    )


@dataclass(frozen=True, slots=True)
class Network:
    """What a text says of a network: GB/s into it of one chip, and of TPUs the slices and their shape or name."""

    chip_gbytes_per_s: float | None = None
    slices: int = 1
    slice_named: str = ""


_BITS = 8
_RATES: tuple[tuple[str, float, bool, str], ...] = (
    # pattern with a number of gigabits, factor on it, whether it is of a node
    (r"(\d+) ?gbps[- ]per[- ]gpu", 1, False, "400gbps per gpu"),
    (r"8 planes, (\d+) ?gbps", 1, False, "a NIC a GPU in each of 8 planes"),
    (r"(\d+) ?gbps[- ]per[- ]node", 1, True, "1600gbps per node"),
    (r"(\d+) ?tbps per node", 1000, True, "2tbps per node"),
    (r"omni-path, (\d+) links", 100, True, "links of 100 Gbit/s a node"),
)
_TIMES = re.compile(r"(\d+)x(\d+)(?:g|\b)")
_KNOWN: tuple[tuple[str, float, str], ...] = (
    (r"tcpxo", 200, "GCP A3 Mega, 1600 Gbit/s a node"),
    (r"tcpx", 100, "GCP A3 High, 800 Gbit/s a node"),
    (r"cx-7", 400, "ConnectX-7 of 400 Gbit/s a GPU"),
)


def network(text: str, chips_per_node: int) -> Network:
    """The network that a text describes; where it gives no rate, none is made up here."""
    plain = text.lower()
    slices = re.search(r"\((\d+) slice", plain)
    named = re.search(r"slice\(s\) of (v\d\w*-\d+)|torus (\d+(?:x\d+)+)", plain)
    count = int(slices[1]) if slices else 2 if "two v4 pods" in plain else 1
    return Network(_chip_rate(plain, chips_per_node), count, (named[1] or named[2]) if named else "")


def _chip_rate(plain: str, chips_per_node: int) -> float | None:
    if re.search(r"roce|\bib\b|ib-|infiniband|ethernet", plain) and (times := _TIMES.search(plain)):
        return int(times[1]) * int(times[2]) / _BITS / chips_per_node
    for pattern, factor, of_node, _ in _RATES:
        found = re.search(pattern, plain)
        if found:
            return int(found[1]) * factor / _BITS / (chips_per_node if of_node else 1)
    return next((gbits / _BITS for pattern, gbits, _ in _KNOWN if re.search(pattern, plain)), None)
