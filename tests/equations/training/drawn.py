"""Machines, models and layouts to train, drawn so that every rule holds: what the tests of training share."""

from dataclasses import dataclass, replace
from functools import cache
from math import gcd

from hypothesis import strategies as st

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Experts, Model
from costmodel.catalog.resolve import resolve_model
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.search.layout import CONTEXTS, Layout, default_placement, parse_layout
from costmodel.search.recomputation import RECOMPUTE
from costmodel.search.workload import Workload
from costmodel.topology.machine import parse_machine

CATALOG = Catalog.open()
CATALOG.assumptions = cache(CATALOG.assumptions)  # the same constants for thousands of examples

NAMED = ("core_attn+mlp", "layernorm+moe_act+mlp/2", "full-uniform-2")
"""Modules and a method besides the words, which run the same again however a stage is cut into chunks."""

SWITCHED = ("dgx-h100:8", "dgx-h100:24", "dgx-a100:64", "meta-roce-24k:512", "gb200-nvl72:144", "mi300x-cluster:32")
TORI = ("tpu-v5e:4x4", "tpu-v5p:4x4x4", "tpu-v6e:16x16")

SHOWN = (
    "layers",
    "hidden_size",
    "ffn_size",
    "heads",
    "kv_heads",
    "head_size",
    "vocabulary",
    "tied_embeddings",
    "gated_ffn",
)


@cache
def machine(on, slices=1):
    return parse_machine(on, slices, CATALOG)


def decoder(**sizes):
    """A dense decoder, small unless said otherwise."""
    plain = {
        "name": "drawn",
        "aliases": (),
        "family": "drawn",
        "layers": 4,
        "hidden_size": 1024,
        "ffn_size": 4096,
        "heads": 16,
        "kv_heads": 16,
        "head_size": 64,
        "vocabulary": 32000,
        "tied_embeddings": False,
        "gated_ffn": True,
        "norm": "rmsnorm",
        "norms_per_layer": 2,
        "final_norm": True,
        "attention_bias": "none",
        "ffn_bias": False,
        "qk_norm": "none",
        "positions": 0,
        "max_sequence": 2**20,
    }
    return Model(**plain | sizes)


def mixture(experts=8, per_token=2, expert_ffn_size=1000, shared=0, first_layer=0, **sizes):
    """A small decoder with experts in its layers from `first_layer` on."""
    shared_size = expert_ffn_size if shared else 0
    held = Experts(experts, per_token, expert_ffn_size, shared, shared_size, first_layer)
    return decoder(experts=held, **sizes)


@dataclass(frozen=True, repr=False)
class Case:
    """A workload under a layout; calling it gives every quantity, with some inputs changed."""

    workload: Workload
    layout: Layout

    def __repr__(self):
        w, m = self.workload, self.workload.model
        sizes = {name: getattr(m, name) for name in SHOWN}
        return f"<{w.machine.name_as_typed}, {w.global_batch} x {w.sequence_length}, {self.layout}, {sizes}>"

    def _repr_pretty_(self, printer, cycle):
        printer.text("..." if cycle else repr(self))

    def __call__(self, overlap="modelled", **changes):
        given = inputs(self.workload, self.layout, CATALOG, overlap)
        assert changes.keys() <= given.keys()
        return call(math_module(self.workload).evaluate, given | changes)

    @property
    def inputs(self):
        return inputs(self.workload, self.layout, CATALOG)

    def laid(self, **changes):
        """The same workload under another layout."""
        return replace(self, layout=replace(self.layout, **changes))

    def on(self, **changes):
        """The same layout for another workload."""
        return replace(self, workload=replace(self.workload, **changes))

    def of(self, **sizes):
        """The same for another model."""
        return self.on(model=replace(self.workload.model, **sizes))


def on(model, where, layout, sequence_length, global_batch):
    """A model, by name or as a record, on a machine under a layout as a person writes it."""
    shape = resolve_model(model, CATALOG) if isinstance(model, str) else model
    at = machine(where)
    return Case(Workload(at, shape, sequence_length, global_batch), parse_layout(layout, at.chips))


def divisors(n, most):
    return [d for d in range(1, min(n, most) + 1) if n % d == 0]


@st.composite
def cases(
    draw, machines=(*SWITCHED, *TORI), most_tp=16, most_pp=8, least_dp=1, least_tp=1, least_pp=1, most_cp=1, least_cp=1
):
    """A case that keeps every rule: the model is made to fit the degrees, the batch to fit the micro-batches."""
    where = machine(draw(st.sampled_from(machines)))
    room = where.chips // least_dp
    tp = draw(
        st.sampled_from([d for d in divisors(room, most_tp) if d >= least_tp and room // d >= least_pp * least_cp])
    )
    pp = draw(
        st.sampled_from([d for d in divisors(room // tp, most_pp) if d >= least_pp and room // (tp * d) >= least_cp])
    )
    cp = draw(st.sampled_from([d for d in divisors(room // (tp * pp), most_cp) if d >= least_cp] or [1]))
    cp_type = draw(st.sampled_from(CONTEXTS[:-1])) if cp > 1 else CONTEXTS[0]  # usp needs the heads that suit it
    dp = where.chips // (tp * cp * pp)
    chunks = draw(st.integers(1, 3)) if pp > 1 else 1
    depth = draw(st.integers(1, 3))
    short = 2 if pp > 1 and depth * chunks > 1 and draw(st.booleans()) else 0
    micro_batches = draw(st.integers(1, 4)) * (pp if chunks > 1 else 1)
    size = draw(st.sampled_from((1, 2, 4)))
    layout = Layout(
        tp=tp,
        pp=pp,
        dp=dp,
        virtual_stages=chunks,
        micro_batch_size=size,
        zero=draw(st.integers(0, 3)) if dp * cp > 1 else 0,
        sequence_parallel=tp > 1 and draw(st.booleans()),
        recompute=draw(st.sampled_from((*RECOMPUTE, *NAMED))),
        schedule="interleaved" if chunks > 1 else "1f1b",
        placement=default_placement(cp),
        cp=cp,
        cp_type=cp_type,
    )
    model = draw(models(tp, cp=cp, layers=pp * chunks * depth - short))
    sequence = tp * cp * 64 * 2 ** draw(st.integers(0, 5))
    return Case(Workload(where, model, sequence, dp * size * micro_batches), layout)


@st.composite
def models(draw, tp, layers, cp=1):
    """A decoder of so many layers that so many tensor- and context-parallel ranks can share."""
    ways = tp * cp
    shared = [n for n in (*divisors(ways, ways), 2 * ways) if n % tp == 0 or tp % n == 0]
    kv_heads = draw(st.sampled_from(shared))
    head_size = draw(st.sampled_from((64, 128)))
    heads = kv_heads * ways // gcd(kv_heads, ways) * draw(st.integers(1, 4))
    return decoder(
        layers=layers,
        hidden_size=128 * draw(st.integers(4, 64)),
        ffn_size=tp * 64 * draw(st.integers(8, 64)),
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        vocabulary=draw(st.integers(1000, 200_000)),
        tied_embeddings=draw(st.booleans()),
        gated_ffn=draw(st.booleans()),
        norm=draw(st.sampled_from(("rmsnorm", "layernorm"))),
        attention_bias=draw(st.sampled_from(("none", "qkv", "qkvo"))),
        **draw(st.sampled_from(({}, {}, {"window": 512}, {"attention_chunk": 384}))),
        **draw(st.sampled_from(({}, {}, {"parallel_block": True, "norms_per_layer": 1}, {"parallel_block": True}))),
    )
