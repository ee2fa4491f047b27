"""A layout: how a training step is spread over chips. One grammar, in which a layout prints as it is read.

tp=8 pp=16 dp=128 v=4 mbs=1 zero=1 sp=1 recompute=selective schedule=interleaved placement=tp-dp-pp
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from costmodel.errors import InputError, nearest
from costmodel.generated import labels
from costmodel.search.recomputation import MODULES, NONE, recomputation
from costmodel.topology.whereabouts import says_where

SCHEDULES, CONTEXTS, OFFLOADS, RESHARDS = (
    labels.CHOICES[name] for name in ("schedule", "cp_type", "offload", "reshard")
)
OVERLAPS, DISPATCH = (labels.CHOICES[name] for name in ("ep_overlap", "dispatch_by"))
DRIVES = "/nvme"
"""What follows the label where states go on to drives."""
FOLDED = labels.SCHEDULES["folded"]
"""Schedules that take two chunks a stage, no more and no fewer."""

PAIRED = ("dualpipe", "dualpipev")
"""Schedules that run the forward pass of one micro-batch beside the backward pass of another."""

KEYS = {
    "tp": "tensor-parallel ranks (default 1)",
    "cp": "context-parallel ranks, which share the tokens of a sequence (default 1)",
    "pp": "pipeline stages (default 1)",
    "dp": "data-parallel ranks (default: what is left of the chips)",
    "ep": "expert-parallel ranks, which hold different experts; they divide tp x cp x dp / etp (default 1)",
    "etp": "ranks that share the features of an expert (default 1 when ep is over 1, else tp)",
    "ep_overlap": "what the exchanges of experts hide behind: none, shared (the shared experts) or micro-batch (default none, or micro-batch with dualpipe and dualpipev)",
    "dispatch": "of what a token is sent one copy to: expert (all-to-all), rank, or node, passed on there (default node)",
    "v": "chunks of layers on each stage, for interleaving (default 1, or 2 for a schedule that takes no other)",
    "mbs": "sequences of a micro-batch (default 1)",
    "zero": "0 DDP, 1 optimizer states shared, 2 gradients too, 3 weights too, as FSDP (default 1, or 0 when dp and cp are 1)",
    "shard": "ranks that share what zero shares, copied to other groups as HSDP does (default all of dp x cp)",
    "reshard": "after what zero=3 gives up gathered weights: forward (of the layer), backward (as SHARD_GRAD_OP), step, or default (the recipe's: step in torchtitan with pp over 1, else forward)",
    "sp": "Megatron sequence parallelism, 1 or 0 (default 1 when tp is over 1)",
    "cp_type": "ring (zig-zag), ring-contiguous, all-gather, ulysses or usp, where cp is over 1 (default ring)",
    "recompute": f"none, norms, mlp-product, light (these two), attention, selective (every second product) or full; full/4 in one of 4 layers; Megatron's modules joined by + ({', '.join(MODULES)}); or its methods, full-uniform-N and full-block-N (default none)",
    "schedule": f"{', '.join(SCHEDULES)} (default 1f1b, or interleaved when v is over 1)",
    "group": "micro-batches that go through a chunk together when interleaved (default pp)",
    "first": "layers of the first stage, or chunk where a pipeline comes back; the others share the rest (default: balanced)",
    "last": "layers of the last stage, or chunk where a pipeline comes back, beside embedding and head (default: balanced)",
    "p2p": "overlap or blocking: whether messages between stages overlap the work (default blocking for 1f1b, else overlap)",
    "offload": f"what the host keeps: {', '.join(OFFLOADS)}; with {DRIVES} behind it states go on to its drives (default none)",
    "placement": "megatron, torchtitan, llama3, jax, jax-split or best; an order, fastest links first; where each axis lies (tp:x,fsdp:yz); or the ranks on each dimension (domain:tp8/network:dp16.pp4). Default: tp-dp-pp, or tp-cp-dp-pp when cp is over 1; best on a TPU slice",
}
_WORD = re.compile(r"(?P<key>[^=\s]+)=(?P<value>\S+)")
_LARGEST = 2**20


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of parallelism and what goes with them; `str` gives the text that `parse_layout` takes back."""

    tp: int
    pp: int
    dp: int
    virtual_stages: int
    micro_batch_size: int
    zero: int
    sequence_parallel: bool
    recompute: str
    schedule: str
    placement: str
    cp: int = 1
    cp_type: str = CONTEXTS[0]
    group: int = 0
    """0: as many as stages, which the text leaves out."""
    first: int = 0
    last: int = 0
    """Layers of the first and of the last stage; 0: balanced, which the text leaves out."""
    p2p: str = ""
    """overlap, blocking or, which the text leaves out, as Megatron runs the schedule."""
    offload: str = OFFLOADS[0]
    """What the host keeps, with `DRIVES` behind it on its drives; none, which the text leaves out."""
    ep: int = 1
    etp: int = 1
    ep_overlap: str = OVERLAPS[0]
    dispatch: str = DISPATCH[-1]
    shard: int = 0
    """0: all ranks with the same weights, which the text leaves out."""
    reshard: str = RESHARDS[0]
    """After what gathered weights are given up; default, as the recipe has it, which the text leaves out."""
    has_experts: bool = False
    """Whether it is of a model with experts, which tensor-parallel ranks share where the text says nothing of them."""

    def __str__(self) -> str:
        return f"{self.without_placement} placement={self.placement}"

    @property
    def without_placement(self) -> str:
        """The text as far as it fits a column; the placement is the longest word and mostly the default."""
        group = f" group={self.group}" if self.group else ""
        ends = "".join(f" {key}={value}" for key in ("first", "last", "p2p") if (value := getattr(self, key)))
        shard = f" shard={self.shard}" if self.shard else ""
        shard += f" reshard={self.reshard}" if self.reshard != RESHARDS[0] else ""
        context = f" cp={self.cp} cp_type={self.cp_type}" if self.cp > 1 or self.cp_type != CONTEXTS[0] else ""
        offload = f" offload={self.offload}" if self.offload != OFFLOADS[0] else ""
        return (
            f"tp={self.tp}{context}{self._experts} pp={self.pp} dp={self.dp} v={self.virtual_stages} mbs={self.micro_batch_size} zero={self.zero}{shard}"
            f" sp={int(self.sequence_parallel)} recompute={self.recompute} schedule={self.schedule}{group}{ends}{offload}"
        )

    @property
    def says_of_experts(self) -> bool:
        """Whether anything about experts is not as it would be without a word of them."""
        return bool(self._experts)

    @property
    def _experts(self) -> str:
        """The words about experts that are not as they would be without them."""
        usual = self.tp if self.has_experts else 1
        own = f" ep={self.ep} etp={self.etp}" if self.ep > 1 or self.etp > 1 or self.etp != usual else ""
        overlap = f" ep_overlap={self.ep_overlap}" if self.ep_overlap != default_overlap(self.schedule, self.ep) else ""
        return own + overlap + (f" dispatch={self.dispatch}" if self.dispatch != DISPATCH[-1] else "")

    @property
    def chips(self) -> int:
        """How many chips it takes."""
        return self.tp * self.cp * self.pp * self.dp


ELSEWHERE = {
    "fsdp": "zero=3",
    "gbs": "--batch",
    "hsdp": "zero=3 with shard",
    "micro_batch": "mbs",
    "micro_batch_size": "mbs",
    "sharding": "zero",
    "vp": "v",
    "vpp": "v",
}
"""What other tools write, and what stands for it here."""


def _unknown_key(key: str) -> InputError:
    meant = ELSEWHERE.get(key.lower())
    return (
        InputError(f"unknown layout key {key!r}: write {meant}")
        if meant
        else InputError.unknown("layout key", key, KEYS)
    )


def parse_layout(text: str, chips: int, placement: str = "", *, experts: bool = False) -> Layout:
    """The layout that `text` describes on so many chips; where it names no placement it gets this one, or the default order.

    `experts` says whether the model has any, which tensor-parallel ranks share unless ep or etp is given.

    Raises InputError for an unknown or repeated key, a value out of range, or degrees that do not multiply out.
    """
    given: dict[str, str] = {}
    for word in text.split():
        match = _WORD.fullmatch(word)
        placed = match is not None and match["key"] == "placement" and says_where(match["value"])
        if match is not None and "," in word and not placed:
            join = "modules are joined by +" if match["key"] == "recompute" else "separate the words by spaces"
            raise InputError(f"layout: {word[:40]!r} holds a comma; {join}")
        if match is None and says_where(word):
            raise InputError(
                f"layout: {word[:40]!r} says where an axis lies; that is one word, such as placement=tp:x,fsdp:yz"
            )
        if match is None:
            raise InputError(f"layout: {word[:40]!r} is not key=value; the keys are {', '.join(KEYS)}")
        key, value = match["key"], match["value"]
        if key not in KEYS:
            raise _unknown_key(key)
        if key in given:
            raise InputError(f"layout: {key} is given twice")
        given[key] = value
    tp, cp, pp = _degree(given, "tp", 1), _degree(given, "cp", 1), _degree(given, "pp", 1)
    dp = _degree(given, "dp", chips // (tp * cp * pp) or 1)
    if tp * cp * pp * dp != chips:
        raise InputError(_not_multiplying_out(tp, cp, pp, dp, chips))
    chunks = _degree(given, "v", 2 if given.get("schedule") in FOLDED else 1)
    ep = _degree(given, "ep", 1)
    schedule = _word(given, "schedule", SCHEDULES, "interleaved" if chunks > 1 else "1f1b")
    return Layout(
        tp=tp,
        pp=pp,
        dp=dp,
        ep=ep,
        etp=_degree(given, "etp", 1 if ep > 1 or not experts else tp),
        ep_overlap=_word(given, "ep_overlap", OVERLAPS, default_overlap(schedule, ep)),
        dispatch=_word(given, "dispatch", DISPATCH, DISPATCH[-1]),
        virtual_stages=chunks,
        micro_batch_size=_degree(given, "mbs", 1),
        shard=_degree(given, "shard", 0),
        reshard=_word(given, "reshard", RESHARDS, RESHARDS[0]),
        zero=int(_word(given, "zero", ("0", "1", "2", "3"), "1" if dp * cp > 1 else "0")),
        sequence_parallel=_word(given, "sp", ("0", "1"), "1" if tp > 1 else "0") == "1",
        recompute=str(recomputation(given.get("recompute", NONE))),
        schedule=schedule,
        placement=given.get("placement", placement or default_placement(cp)),
        cp=cp,
        cp_type=_word(given, "cp_type", CONTEXTS, CONTEXTS[0]),
        group=_degree(given, "group", 0),
        first=_degree(given, "first", 0),
        last=_degree(given, "last", 0),
        p2p=_word(given, "p2p", ("overlap", "blocking"), "") if "p2p" in given else "",
        offload=_offload(given),
        has_experts=experts,
    )


def default_overlap(schedule: str, ep: int) -> str:
    """What the exchanges of experts hide behind when nothing is said: another micro-batch in schedules made for it."""
    return OVERLAPS[-1] if ep > 1 and schedule in PAIRED else OVERLAPS[0]


def default_placement(cp: int) -> str:
    """The order of the axes on links, fastest first, when none is said; one that a layout does not use is not named."""
    return "tp-cp-dp-pp" if cp > 1 else "tp-dp-pp"


def _degree(given: dict[str, str], key: str, default: int) -> int:
    value = given.get(key)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) <= 10) or not 1 <= int(value) <= _LARGEST:
        raise InputError(f"layout: {key}={value[:40]} must be a whole number from 1 to {_LARGEST}")
    return int(value)


def _word(given: dict[str, str], key: str, choices: tuple[str, ...], default: str) -> str:
    value = given.get(key, default)
    if value not in choices:
        near = nearest(value, choices)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(choices)}"
        raise InputError(f"layout: {key}={value[:40]} is not known; {hint}")
    return value


def _offload(given: dict[str, str]) -> str:
    value = given.get("offload", OFFLOADS[0])
    parts, slash, where = value.partition("/")
    _word({"offload": parts}, "offload", OFFLOADS, OFFLOADS[0])
    if where not in {"", "host", DRIVES[1:]} or (slash and not where) or (where and parts == OFFLOADS[0]):
        raise InputError(f"layout: offload={value[:40]} is not known; a label other than none, and /host or {DRIVES}")
    return parts + (DRIVES if where == DRIVES[1:] else "")


def parts_offloaded(offload: str) -> tuple[str, ...]:
    """What the host keeps, part by part."""
    label = offload.removesuffix(DRIVES)
    return () if label == OFFLOADS[0] else tuple(label.split("+"))


def on_drives(offload: str) -> bool:
    """Whether states go on to the drives of the host."""
    return offload.endswith(DRIVES)


def _not_multiplying_out(tp: int, cp: int, pp: int, dp: int, chips: int) -> str:
    context = f" cp={cp}" if cp > 1 else ""
    shown = f"tp {tp} x cp {cp} x pp {pp}" if cp > 1 else f"tp {tp} x pp {pp}"
    product = f"{shown} x dp {dp} = {tp * cp * pp * dp}"
    if chips % (tp * cp * pp) == 0:
        return f"layout: {product}, not the {chips} chips; dp={chips // (tp * cp * pp)} would fill them"
    fitting = (p for p in range(1, 2 * pp) if chips % (tp * cp * p) == 0)
    best = min(fitting, key=lambda p: abs(p - pp), default=0)
    if best:
        return f"layout: {product}, not the {chips} chips; nearest: tp={tp}{context} pp={best} dp={chips // (tp * cp * best)}"
    if chips % tp == 0:
        best_cp = max(c for c in range(1, cp + 1) if chips % (tp * c) == 0)
        return (
            f"layout: {product}, not the {chips} chips; cp={cp} does not divide what tp={tp} leaves, cp={best_cp} does"
        )
    best_tp = max(t for t in range(1, tp + 1) if chips % t == 0)
    return f"layout: {product}, not the {chips} chips; tp={tp} does not divide them, tp={best_tp} does"
