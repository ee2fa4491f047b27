"""What a search tries beside the placements: micro-batches, schedules, sharding, recomputation, sequence parallelism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from costmodel.generated import labels
from costmodel.search.layout import (
    CONTEXTS,
    DISPATCH,
    DRIVES,
    FOLDED,
    OFFLOADS,
    OVERLAPS,
    RESHARDS,
    SCHEDULES,
    Layout,
    on_drives,
)
from costmodel.search.recomputation import recomputation, recompute_inputs
from costmodel.search.software import Software

MOST_MICRO_BATCH = 64
MOST_CHUNKS = 16
LIMITS = {"tp": 64, "pp": 64}
"""Degrees that are tried: beyond them a layer or a pipeline is cut finer than anybody runs."""
MOST_CP = 16
LEAST_TOKENS = 8192
"""Context parallelism is tried up to 16 ranks, while each keeps so many tokens of a sequence: shorter ones need none."""
SEARCHED_CONTEXTS = tuple(kind for kind in CONTEXTS if kind != "ring-contiguous")
"""A ring whose ranks hold one piece each is never faster than the balanced one."""

CHUNKED = labels.SCHEDULES["chunked"]
"""Schedules that take any number of chunks a stage, two or more."""
TRIED = ("1f1b", "interleaved", "zb-h1", "zb-v")
"""Schedules that `plan` tries. gpipe and breadth-first hold all micro-batches at once; interleaved-zb, zb-h2, zb-1p and zb-2p are zb-h1
or zb-v for more memory or by a search; v-half and v-min lose in every micro-batch; dualpipe, dualpipev and chimera pay off when
communication of experts hides; pipedream's change the mathematics."""

TRIED_RECOMPUTE = ("none", "light", "selective", "full")
"""What `plan` tries of recomputation, each for less memory and more time. norms and mlp-product are halves of light, and attention
saves next to nothing where the kernel is fused."""
TRIED_UNFUSED = ("none", "light", "attention", "selective", "full")
"""The same where attention keeps its scores: to drop those alone is then Megatron-LM's own choice."""

OF_FEED_FORWARDS = ("mlp", "layernorm+mlp", "moe", "layernorm+moe", "mlp+moe", "layernorm+mlp+moe")
ADVISED_MODULES = (
    *("mla_up_proj", "layernorm+mla_up_proj", "layernorm+moe_act+mla_up_proj"),
    *OF_FEED_FORWARDS,
    *(f"{modules}+mla_up_proj" for modules in OF_FEED_FORWARDS),
)
"""Modules of Megatron-core that are looked at besides where a layout does not fit; a rule rejects those that its model lacks."""

OFFLOADS_TO = {
    "host": OFFLOADS,
    "nvme": (*OFFLOADS, *(label + DRIVES for label in OFFLOADS if "optimizer" in label)),
}
"""What `plan --offload` tries: what hosts can keep in their memory, and with states on their drives too."""
RESHARDS_TO = {"backward": ("backward",), "step": ("backward", "step")}
"""What `plan --reshard` tries of FSDP beside what the recipe has: weights kept to the backward pass, or to the end of a step too."""
ZEROS = (0, 1, 2, 3)
"""ZeRO stages."""

ASYNCHRONOUS = labels.SCHEDULES["asynchronous"]
"""Schedules whose gradients are those of older weights."""


@dataclass(frozen=True, slots=True)
class Stages:
    """What a layout can say of a schedule beside its name and chunks; zeros and nothing are what is usual.

    `group`: micro-batches of an interleaved group. `first`, `last`: layers of the ends. `p2p`: whether messages overlap.
    """

    group: int = 0
    first: int = 0
    last: int = 0
    p2p: str = ""

    @classmethod
    def of(cls, layout: Layout) -> Stages:
        """What a layout says."""
        return cls(layout.group, layout.first, layout.last, layout.p2p)

    def messages_block(self, schedule: str) -> bool:
        """Whether messages hold up the ranks: as said, or as Megatron runs plain 1F1B."""
        return self.p2p == "blocking" if self.p2p else schedule == "1f1b"


USUAL = Stages()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The rows of the product axes of the training equations, in their order."""

    micro_batches: tuple[int, ...]
    schedules: tuple[tuple[str, int], ...]
    zeros: tuple[int, ...] = ZEROS
    shards: tuple[int, ...] = ()
    """Ranks that share what each of `zeros` shares; all when left out."""
    reshards: tuple[str, ...] = ()
    """After what each of `zeros` gives up gathered weights; as the recipe has it when left out."""
    recomputes: tuple[str, ...] = TRIED_RECOMPUTE
    sequence_parallel: tuple[bool, ...] = (False, True)
    stages: tuple[Stages, ...] = ()
    """What else is said of the stages, one a schedule; what is usual when left out."""
    cp_types: tuple[str, ...] = CONTEXTS[:1]
    most_cp: int = 1
    offloads: tuple[str, ...] = OFFLOADS[:1]
    experts: tuple[int, ...] = (1,)
    """Expert-parallel degrees."""
    etp: int | None = None
    """Ranks that share an expert; 1 and as many as tp are both tried where it is None."""
    ep_overlap: str = OVERLAPS[0]
    dispatch: str = DISPATCH[-1]

    @property
    def rows(self) -> list[tuple[str, int, Stages]]:
        """The rows of the axis of schedules: label, chunks, and what else is said of the stages."""
        said = self.stages or (USUAL,) * len(self.schedules)
        return [(schedule, chunks, more) for (schedule, chunks), more in zip(self.schedules, said, strict=True)]

    def beside(self, layout: Layout) -> Candidates:
        """These, and where they are not usual the schedule of a layout with all that it says of the stages, and its sharing."""
        found = self
        if layout.reshard != RESHARDS[0]:
            rows_of_sharing = (*self.sharing, (layout.zero, layout.shard, layout.reshard))
            zeros, shards, reshards = zip(*rows_of_sharing, strict=True)
            found = replace(self, zeros=zeros, shards=shards, reshards=reshards)
        said = Stages.of(layout)
        if said == USUAL:
            return found
        rows = [*self.rows, (layout.schedule, layout.virtual_stages, said)]
        return replace(
            found,
            schedules=tuple((schedule, chunks) for schedule, chunks, _ in rows),
            stages=tuple(more for _, _, more in rows),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows each axis has."""
        return (
            len(self.micro_batches),
            len(self.schedules),
            len(self.zeros),
            len(self.recomputes),
            len(self.sequence_parallel),
            len(self.cp_types),
            len(self.offloads),
        )

    @property
    def hosted(self) -> bool:
        """Whether hosts may keep something."""
        return self.offloads != OFFLOADS[:1]

    @property
    def is_rare(self) -> bool:
        """Whether it takes equations that searches are spared: hosts keep something, or what is run again is named at length."""
        return self.hosted or any(recomputation(recompute).is_rare for recompute in self.recomputes)

    @property
    def limits(self) -> dict[str, int]:
        """The largest degrees that are tried."""
        return {**LIMITS, "cp": self.most_cp}

    def point(self) -> dict[str, float]:
        """The inputs of the equations at the first row of every axis."""
        return {name: value[0] if isinstance(value, Sequence) else value for name, value in self.inputs().items()}

    @property
    def sharing(self) -> tuple[tuple[int, int, str], ...]:
        """ZeRO stage, size of the groups that share, and after what gathered weights are given up, for each row of that axis."""
        rows = len(self.zeros)
        return tuple(zip(self.zeros, self.shards or (0,) * rows, self.reshards or RESHARDS[:1] * rows, strict=True))

    def inputs(self) -> dict[str, Sequence[float] | float]:
        """The inputs of the equations that vary along the product axes, and the choices that hold for all."""
        return {
            "ep_overlap": OVERLAPS.index(self.ep_overlap),
            "dispatch_by": DISPATCH.index(self.dispatch),
            "micro_batch_size": self.micro_batches,
            "schedule": [SCHEDULES.index(schedule) for schedule, _ in self.schedules],
            "virtual_stages": [chunks for _, chunks in self.schedules],
            "group_size": [said.group for _, _, said in self.rows],
            **self._ends(),
            "messages_block": [float(said.messages_block(schedule)) for schedule, _, said in self.rows],
            **_sharding(self.zeros),
            "shard_group": self.shards or [0] * len(self.zeros),
            "reshard": [RESHARDS.index(kind) for kind in self.reshards] or [0] * len(self.zeros),
            **recompute_inputs(self.recomputes),
            "sequence_parallel": [int(on) for on in self.sequence_parallel],
            "cp_type": [CONTEXTS.index(kind) for kind in self.cp_types],
            "offload": [OFFLOADS.index(offload.removesuffix(DRIVES)) for offload in self.offloads],
            "states_on_drives": [float(on_drives(offload)) for offload in self.offloads],
        }

    def _ends(self) -> dict[str, Sequence[float] | float]:
        """Layers of the ends by schedule; one number where none are said, so that nothing else varies with them."""
        if not self.stages:
            return {"first_layers": 0.0, "last_layers": 0.0}
        return {
            "first_layers": [said.first for _, _, said in self.rows],
            "last_layers": [said.last for _, _, said in self.rows],
        }

    def subset(self, kept: Iterable[Iterable[int]]) -> Candidates:
        """The candidates of some rows of each product axis."""
        micro_batches, schedules, sharing, recomputes, sequence, contexts, offloads = (
            [int(i) for i in rows] for rows in kept
        )
        return replace(
            self,
            micro_batches=tuple(self.micro_batches[i] for i in micro_batches),
            schedules=tuple(self.schedules[i] for i in schedules),
            stages=tuple(self.stages[i] for i in schedules) if self.stages else (),
            zeros=tuple(self.zeros[i] for i in sharing),
            shards=tuple(self.shards[i] for i in sharing) if self.shards else (),
            reshards=tuple(self.reshards[i] for i in sharing) if self.reshards else (),
            recomputes=tuple(self.recomputes[i] for i in recomputes),
            sequence_parallel=tuple(self.sequence_parallel[i] for i in sequence),
            cp_types=tuple(self.cp_types[i] for i in contexts),
            offloads=tuple(self.offloads[i] for i in offloads),
        )

    def layout(self, index: Sequence[int], degrees: Mapping[str, float], placement: str) -> Layout:
        """The layout at one point of the product axes, with its degrees."""
        micro_batch, schedule, zero, recompute, sequence, context, offload = index
        label, chunks, said = self.rows[schedule]
        return Layout(
            tp=int(degrees["tp"]),
            cp=int(degrees["cp"]),
            pp=int(degrees["pp"]),
            dp=int(degrees["dp"]),
            virtual_stages=chunks,
            micro_batch_size=self.micro_batches[micro_batch],
            zero=self.zeros[zero],
            shard=self.shards[zero] if self.shards else 0,
            reshard=self.reshards[zero] if self.reshards else RESHARDS[0],
            sequence_parallel=self.sequence_parallel[sequence],
            cp_type=self.cp_types[context],
            offload=self.offloads[offload],
            recompute=self.recomputes[recompute],
            schedule=label,
            placement=placement,
            group=said.group,
            first=said.first,
            last=said.last,
            p2p=said.p2p,
            ep=int(degrees.get("ep", 1)),
            etp=int(degrees.get("etp", 1)),
            ep_overlap=self.ep_overlap if int(degrees.get("ep", 1)) > 1 else OVERLAPS[0],
            dispatch=self.dispatch,
            has_experts="etp" in degrees,
        )


def tried_recomputes(software: Software) -> tuple[str, ...]:
    """What a search tries of recomputation with such code."""
    return TRIED_UNFUSED if software.unfused else TRIED_RECOMPUTE


def candidates(
    layers: int,
    global_batch: int,
    sequence_length: int,
    schedules: Sequence[str] = TRIED,
    recomputes: Sequence[str] = TRIED_RECOMPUTE,
    *,
    experts: int = 1,
    offloads: Sequence[str] = OFFLOADS[:1],
    shards: Sequence[int] = (),
    reshards: Sequence[str] = (),
) -> Candidates:
    """What is worth trying for a model of so many layers and a batch of so many sequences of that length, with these schedules.

    `experts` counts the routed experts of a layer, which expert-parallel degrees divide; `shards` are sizes of groups that share
    the weights while other groups have copies (HSDP). `reshards` are what to try of how long FSDP keeps gathered weights, beside
    what the recipe has.
    """
    micro_batches = tuple(
        size for size in _powers_of_two(min(MOST_MICRO_BATCH, global_batch)) if global_batch % size == 0
    )
    chunks = [v for v in range(2, MOST_CHUNKS + 1) if layers % v == 0 or (layers + 2) % v == 0]
    rows = [
        (schedule, v, USUAL)
        for schedule in schedules
        for v in (chunks if schedule in CHUNKED else (2,) if schedule in FOLDED else (1,))
    ]
    rows += [
        (schedule, v, split)
        for schedule in schedules
        for v in ((2,) if schedule in (*CHUNKED, *FOLDED) else (1,))
        for split in _unequal(layers, schedule, v)
    ]
    kept = [(shard, reshard) for shard in (0, *shards) for reshard in reshards]
    most_cp = max(1, min(MOST_CP, sequence_length // LEAST_TOKENS))
    return Candidates(
        micro_batches,
        tuple((schedule, v) for schedule, v, _ in rows),
        stages=tuple(said for *_, said in rows) if any(said != USUAL for *_, said in rows) else (),
        zeros=(*ZEROS, *(ZEROS[-1] for _ in (*shards, *kept))),
        shards=(*(0 for _ in ZEROS), *shards, *(shard for shard, _ in kept)),
        reshards=(*(RESHARDS[0] for _ in (*ZEROS, *shards)), *(reshard for _, reshard in kept)) if kept else (),
        recomputes=tuple(recomputes),
        cp_types=SEARCHED_CONTEXTS if most_cp > 1 else CONTEXTS[:1],
        most_cp=most_cp,
        offloads=tuple(offloads),
        experts=tuple(ep for ep in range(1, experts + 1) if experts % ep == 0),
    )


def stages_of(schedule: str, pp: int, chunks: int) -> tuple[int, int]:
    """How many stages `first` and `last` are ends of, and chunks of a stage: of a folded pipeline two stages a rank, of one chunk."""
    return (pp * chunks, 1) if schedule in FOLDED else (pp, chunks)


def ends(layers: int, stages: int, chunks: int, full: int) -> Iterator[tuple[int, int]]:
    """Layers of the first and the last stage, where each of the others has `full`: whole chunks, none more than the others."""
    left = layers - (stages - 2) * full
    for first in range(chunks, min(full, left - 1) + 1, chunks):
        if left - first <= full and (left - first) % chunks == 0:
            yield first, left - first


def _unequal(layers: int, schedule: str, chunks: int) -> Iterator[Stages]:
    """The layers of the ends for each number of ranks that cannot be balanced: the last stage gets what the others leave."""
    for pp in (size for size in _powers_of_two(LIMITS["pp"]) if size > 1):
        if layers % (pp * chunks) == 0 or (layers + 2) % (pp * chunks) == 0:
            continue
        stages, of_a_stage = stages_of(schedule, pp, chunks)
        possible = [*ends(layers, stages, of_a_stage, -(-layers // (stages * of_a_stage)) * of_a_stage)]
        if possible:
            first, last = possible[-1]
            yield Stages(first=first, last=last)


def with_host(layout: Layout) -> Candidates:
    """The layout with each thing that a host can keep in its memory, and each stage of ZeRO."""
    return replace(
        only(layout),
        zeros=ZEROS,
        shards=(layout.shard,) * len(ZEROS),
        reshards=(*(RESHARDS[0] for _ in ZEROS[:-1]), layout.reshard),
        offloads=OFFLOADS,
    )


def with_modules(layout: Layout) -> Candidates:
    """The layout with each of the lists of modules that are worth a look."""
    return replace(only(layout), recomputes=tuple(str(recomputation(modules)) for modules in ADVISED_MODULES))


def only(layout: Layout) -> Candidates:
    """The one point of a given layout."""
    return Candidates(
        micro_batches=(layout.micro_batch_size,),
        schedules=((layout.schedule, layout.virtual_stages),),
        zeros=(layout.zero,),
        shards=(layout.shard,),
        reshards=(layout.reshard,),
        recomputes=(layout.recompute,),
        sequence_parallel=(layout.sequence_parallel,),
        stages=(Stages.of(layout),),
        cp_types=(layout.cp_type,),
        most_cp=layout.cp,
        offloads=(layout.offload,),
        experts=(layout.ep,),
        etp=layout.etp,
        ep_overlap=layout.ep_overlap,
        dispatch=layout.dispatch,
    )


def _sharding(zeros: Sequence[int]) -> dict[str, list[float]]:
    """What each ZeRO stage shares, as the equations take it."""
    return {
        "optimizer_sharded": [float(zero >= 1) for zero in zeros],
        "gradients_sharded": [float(zero >= 2) for zero in zeros],
        "weights_sharded": [float(zero >= 3) for zero in zeros],
    }


def _powers_of_two(most: int) -> Iterator[int]:
    size = 1
    while size <= most:
        yield size
        size *= 2
