"""What a catalog entry is once it has been read and checked: frozen records in base SI units.

A `Number` always knows where it came from. What nobody publishes is an `Unknown` with its reason,
and asking for its value is an error that says which entry to complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from costmodel.errors import InputError


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the catalog: `value` in the base SI `unit`, and where it comes from."""

    value: float
    unit: str
    source: str
    confidence: str
    note: str = ""
    stated: str = ""
    date: str = ""
    where: str = ""
    meaning: str = ""
    low: float | None = None
    high: float | None = None

    def at(self, end: Literal["low", "value", "high"]) -> float:
        """The value, or an end of its range; the value again where no range is given."""
        found = {"low": self.low, "value": self.value, "high": self.high}[end]
        return self.value if found is None else found


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that is not known, with the reason."""

    reason: str
    where: str = ""

    @property
    def value(self) -> float:
        """There is none: raises InputError with the reason and the place to complete."""
        raise InputError(f"{self.where or 'a catalog entry'} is unknown ({self.reason}); give it in a --catalog folder")


Fact = Number | Unknown


@dataclass(frozen=True, slots=True)
class Chip:
    """One accelerator. `peak` maps a dtype to dense FLOP/s; `attainable` holds measured shares and kernel constants."""

    name: str
    aliases: tuple[str, ...]
    vendor: str
    kind: Literal["gpu", "tpu", "other"]
    peak: Mapping[str, Fact]
    memory_capacity: Fact
    memory_bandwidth: Fact
    power: Fact
    attainable: Mapping[str, Fact]
    details: Mapping[str, Fact] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The constants of kernels that were measured on a chip, or in `kernels_of` the sister chip whose constants stand for them."""

    chip: str
    kernels: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    kernels_of: str = ""


@dataclass(frozen=True, slots=True)
class Overlay:
    """What lies between the payload and the wire of a link into a network.

    `framing` names a transport of hardware/assumptions/networks.yaml (empty: the usual one of the link's kind), `encapsulation`
    tunnels, ciphers and tags of that file, outer or inner alike; `limits` are facts such as `mtu`, `packet_rate` or `flow_rate`.
    """

    framing: str = ""
    encapsulation: tuple[str, ...] = ()
    limits: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Library:
    """What a library of collectives makes of a link; a protocol without constants is not used there."""

    name: str
    constants: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """One kind of link. `bandwidth` is one way, of one link or port as `per` says; `latency` is one hop or step.

    Where there is an `overlay`, both are those without it.
    """

    name: str
    aliases: tuple[str, ...]
    kind: str
    per: str
    bandwidth: Fact
    latency: Fact
    attainable: Mapping[str, Fact]
    details: Mapping[str, Fact] = field(default_factory=dict)
    note: str = ""
    overlay: Overlay | None = None
    library: Library | None = None


@dataclass(frozen=True, slots=True)
class Twists:
    """The shapes, shortest axis first, of which slices are offered as twisted tori, and who says so."""

    shapes: tuple[tuple[int, ...], ...]
    source: str
    confidence: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """The fast domain of a cluster.

    kind `switch`: `size` chips behind switches, each with one port of the link's bandwidth;
    kind `mesh`: `size` chips, one link to each other chip;
    kind `torus`: `axes` axes (2 or 3) of one link each way; `wrap_rule` is `multiple-of-4` (all axes wrap when every
    length is a multiple of 4), `exactly-N` (an axis wraps when it is N long: 16 on v5e and v6e), `always` or `never`;
    `shapes` are the slices that can be had by name, `largest` the whole pod, `job_limit` the largest that one job is scheduled on,
    `twists` the slices that can be had with short axes that close half way along the long ones (None: none).
    """

    kind: Literal["switch", "mesh", "torus"]
    link: str
    size: int = 0
    axes: int = 0
    wrap_rule: str = ""
    largest: tuple[int, ...] = ()
    job_limit: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    chips_in_slice_name: int = 1  # v5p-512 counts cores, two a chip: 2; v5litepod-64 counts chips: 1
    slice_prefixes: tuple[str, ...] = ()
    twists: Twists | None = None


def shape_text(shape: Sequence[int]) -> str:
    """A shape as it is typed: 8x16x16."""
    return "x".join(str(length) for length in shape)


def has_twist(shape: Sequence[int]) -> bool:
    """Whether short axes can close half way along the others: k x k x 2k and k x 2k x 2k."""
    return len(shape) == 3 and set(shape) == {min(shape), 2 * min(shape)}


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the network above the fast domain, inner first.

    `blocks` is how many blocks of the level below (fast domains, for the first level) one block of this level joins,
    or 0 when there is no limit; `oversubscription` is downlink over uplink of a block of this level (1 is full bandwidth).
    """

    name: str
    blocks: int
    link: str
    links_per_host: float
    oversubscription: Fact


@dataclass(frozen=True, slots=True)
class Price:
    """Money for one chip and hour, from one provider on one date."""

    provider: str
    usd_per_chip_hour: Number
    kind: str  # on-demand, spot, reserved


@dataclass(frozen=True, slots=True)
class Cluster:
    """A kind of machine that can be had in some number: chips, hosts, fast domain, network, prices."""

    name: str
    aliases: tuple[str, ...]
    chip: str
    chips_per_host: int
    scale_up: ScaleUp
    network: tuple[Level, ...]
    host_link: str
    largest_chips: int
    prices: tuple[Price, ...]
    host: Mapping[str, Fact] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Experts:
    """The mixture of experts of a model.

    Of the layers with a feed-forward, `first_layer` (from 0) and every `every`-th after it hold experts; the others
    are dense, of the model's `ffn_size`. `latent_size` is the width that experts work on, 0 for the hidden size.
    The router may choose among the experts of `groups_per_token` of `groups` equal groups alone; one group holds all.
    """

    count: int
    per_token: int
    ffn_size: int
    shared: int = 0
    shared_ffn_size: int = 0
    first_layer: int = 0
    every: int = 1
    latent_size: int = 0
    router_bias: bool = False
    shared_gate: bool = False
    groups: int = 1
    groups_per_token: int = 1


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek): ranks of the compressed query (0: none) and key-value, and head sizes."""

    query_rank: int
    kv_rank: int
    rope_head_size: int
    plain_head_size: int
    value_head_size: int


@dataclass(frozen=True, slots=True)
class Recurrent:
    """The layers of a hybrid model that keep a state of fixed size in place of attention.

    `layers` of the model are of this kind, `attention_layers` attend and `ffn_layers` hold a feed-forward, dense or
    with experts. `heads` heads of `head_size` values share `groups` keys and queries of `state_size`; `convolution`
    is the length of the short convolution before them, 0 when there is none.
    """

    kind: Literal["mamba2", "gated-delta-net", "lightning"]
    layers: int
    attention_layers: int
    ffn_layers: int
    heads: int
    head_size: int
    groups: int
    state_size: int
    convolution: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """The shape of a decoder-only transformer; sizes are counts of features, names follow Hugging Face where they can.

    `not_modelled` names kinds of layers of the decoder that no step time is known for here; `not_counted` names parts
    beside the decoder (a vision tower, heads that predict further tokens) that the entry leaves out.
    """

    name: str
    aliases: tuple[str, ...]
    family: str
    layers: int
    hidden_size: int
    ffn_size: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied_embeddings: bool
    gated_ffn: bool
    norm: Literal["rmsnorm", "layernorm", "layernorm-no-bias", "none"]
    norms_per_layer: int
    final_norm: bool
    attention_bias: Literal["none", "qkv", "qkvo"]
    ffn_bias: bool
    qk_norm: Literal["none", "per-head", "full"]
    positions: int  # learned position embeddings, 0 when rotary or none
    max_sequence: int
    window: int = 0  # sliding window of the layers that have one, 0 when none
    attention_chunk: int = 0  # chunks inside which the layers attend that do not attend to all, 0 when none
    window_every: int = 1  # of every this many layers, all but one slide or attend in chunks (1: all do)
    experts: Experts | None = None
    latent_attention: LatentAttention | None = None
    recurrent: Recurrent | None = None
    parallel_block: bool = False
    embedding_norm: bool = False  # a norm between the embedding and the first layer
    attention_gate: bool = False  # the attention's output is gated by a projection of its own size
    attention_sinks: bool = False  # each head has one learned logit beside the keys
    multi_token_prediction_layers: int = 0  # modules that predict further tokens, which the model was published with
    not_modelled: tuple[str, ...] = ()
    not_counted: tuple[str, ...] = ()
    published_parameters: Number | None = None
    published_active_parameters: Number | None = None
    checkpoint_parameters: int = 0  # of a published checkpoint, to the last one; 0 when none is recorded
    extra_parameters: int = 0  # of layers that have no fields here
    hugging_face: tuple[str, ...] = ()  # ids of checkpoints of this shape
    confidence: str = ""
    source: str = ""
    note: str = ""
