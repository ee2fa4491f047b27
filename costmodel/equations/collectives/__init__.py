"""Collectives: the textbook forms, one chapter an algorithm on a topology, and the groups on real machines made of them.

`ALGORITHMS` lists every textbook form. An operation that a chapter implements is an equation of the operation's name, the sum
of `<operation>_latency`, what it takes for a payload of nothing, and `<operation>_bandwidth`, what the payload adds.
"""

from __future__ import annotations

from dataclasses import dataclass

from costmodel.equations.collectives.all_to_all import (
    BruckExchange,
    DirectExchange,
    ExpertExchange,
    PairwiseExchange,
    SkewedExchange,
)
from costmodel.equations.collectives.hierarchical import (
    FatTree,
    Hierarchical,
    HierarchicalPipelined,
    MultiChannelRing,
    MultiSlice,
    NodesExchange,
    RailExchange,
)
from costmodel.equations.collectives.in_network import (
    Nvls,
    NvlsInTurn,
    NvlsTree,
    NvlsWithoutOwnTraffic,
    Sharp,
    SharpOverNodes,
)
from costmodel.equations.collectives.point_to_point import CutThrough, Dissemination, HostLoad, StoreAndForward
from costmodel.equations.collectives.rates import OPERATIONS
from costmodel.equations.collectives.ring import ChunkedPath, Path, PipelinedPath, Ring, TwoWayRing, TwoWayRingByHalves
from costmodel.equations.collectives.switch import (
    Bruck,
    Direct,
    OneShot,
    QuantisedTwoShot,
    Rabenseifner,
    RecursiveDoubling,
    TwoShot,
)
from costmodel.equations.collectives.torus import AxisByAxisTorus, EvenlySplitTorus, Torus
from costmodel.equations.collectives.tree import (
    Binomial,
    Chain,
    DoubleBinaryTree,
    PipelinedChain,
    ScatterAllGather,
    StreamedChain,
)
from costmodel.symbolic import Chapter


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A textbook form: its name on the command line, its equations, and what it needs besides."""

    name: str
    chapter: type[Chapter]
    needs: str = ""

    @property
    def function(self) -> str:
        """The name of its function in costmodel.generated.collectives_math."""
        return self.name.replace("-", "_")

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that it implements."""
        return tuple(operation for operation in OPERATIONS if operation in self.chapter.system.equations)

    def equations(self, operation: str) -> tuple[str, str, str]:
        """Names of the equations of an operation: its time, the latency part and the bandwidth part of it."""
        return operation, f"{operation}_latency", f"{operation}_bandwidth"


ALGORITHMS: tuple[Algorithm, ...] = (
    Algorithm("ring", Ring),
    Algorithm("two-way-ring", TwoWayRing),
    Algorithm("two-way-ring-by-halves", TwoWayRingByHalves),
    Algorithm("path", Path),
    Algorithm("chunked-path", ChunkedPath),
    Algorithm("pipelined-path", PipelinedPath),
    Algorithm("torus", Torus),
    Algorithm("evenly-split-torus", EvenlySplitTorus),
    Algorithm("axis-by-axis-torus", AxisByAxisTorus),
    Algorithm("recursive-doubling", RecursiveDoubling, "a power of two, for all-gather and reduce-scatter"),
    Algorithm("rabenseifner", Rabenseifner),
    Algorithm("bruck", Bruck),
    Algorithm("direct", Direct),
    Algorithm("one-shot", OneShot),
    Algorithm("two-shot", TwoShot),
    Algorithm("quantised-two-shot", QuantisedTwoShot),
    Algorithm("binomial", Binomial),
    Algorithm("scatter-all-gather", ScatterAllGather),
    Algorithm("chain", Chain),
    Algorithm("streamed-chain", StreamedChain),
    Algorithm("pipelined-chain", PipelinedChain),
    Algorithm("double-binary-tree", DoubleBinaryTree),
    Algorithm("pairwise-exchange", PairwiseExchange),
    Algorithm("direct-exchange", DirectExchange),
    Algorithm("bruck-exchange", BruckExchange),
    Algorithm("skewed-exchange", SkewedExchange),
    Algorithm("expert-exchange", ExpertExchange),
    Algorithm("nvls", Nvls, "switches that add floating-point numbers"),
    Algorithm("nvls-without-own-traffic", NvlsWithoutOwnTraffic, "switches that add floating-point numbers"),
    Algorithm("nvls-in-turn", NvlsInTurn, "switches that add floating-point numbers"),
    Algorithm("nvls-tree", NvlsTree, "switches that add floating-point numbers"),
    Algorithm("sharp", Sharp, "a network that adds"),
    Algorithm("sharp-over-nodes", SharpOverNodes, "a network that adds"),
    Algorithm("hierarchical", Hierarchical),
    Algorithm("hierarchical-pipelined", HierarchicalPipelined),
    Algorithm("multi-channel-ring", MultiChannelRing),
    Algorithm("fat-tree", FatTree),
    Algorithm("nodes-exchange", NodesExchange),
    Algorithm("rail-exchange", RailExchange),
    Algorithm("multi-slice", MultiSlice),
    Algorithm("store-and-forward", StoreAndForward),
    Algorithm("cut-through", CutThrough),
    Algorithm("host-load", HostLoad),
    Algorithm("dissemination", Dissemination),
)
"""Every textbook form, grouped by file."""

__all__ = ["ALGORITHMS", "OPERATIONS", "Algorithm"]
