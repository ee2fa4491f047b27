"""`costmodel collective`: how long a collective takes, by every algorithm that applies."""

from __future__ import annotations

from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import MachineCommand, examples, new_app
from costmodel.cli.options import On, Slices, count
from costmodel.errors import InputError
from costmodel.report import Answer

app = new_app()

OPERATION = (
    "all-gather, reduce-scatter, all-reduce, all-to-all, broadcast, reduce, gather, scatter, send-recv, dispatch, "
    "combine, host-load or barrier."
)
SIZE = (
    "Payload by the convention of nccl-tests (1GiB, 64MB): the whole gathered or reduced array; of all-to-all, one "
    'rank\'s send buffer, which is the array over all devices that "How To Scale Your Model" counts, divided by the '
    "number of ranks."
)


@app.command(
    cls=MachineCommand,
    epilog=examples(
        "collective all-reduce --size 1GiB --on dgx-h100:64x8",
        "collective all-gather --size 64MiB --on tpu-v5p:8x16x16 --axes x",
        "collective all-reduce --sweep 1KiB:16GiB --on dgx-h100:1024 --group 8",
        "collective send-recv --size 32MiB --on dgx-h100:512 --between spine",
        "collective all-reduce --size 1GiB --on meta-roce-24k:1024 --overlay vxlan,ipsec --mtu 1500",
        "collective all-reduce --sweep 1KiB:1GiB --on dgx-h100:8 --library none",
        "collective reduce-scatter --size 512MiB --on dgx-h100:64x8 --beside all-to-all:64MiB:64",
        "collective dispatch --experts 256 --top-k 8 --tokens 4096 --hidden 7168 --on dgx-h100:64",
    ),
)
@answering
def collective(
    operation: Annotated[str, typer.Argument(metavar="OP", help=OPERATION)],
    catalog: Catalog,
    on: On,
    size: Annotated[str | None, typer.Option("--size", metavar="SIZE", help=SIZE)] = None,
    sweep: Annotated[
        str | None,
        typer.Option("--sweep", metavar="FROM:TO", help="Sizes instead of one, doubled from one to the next."),
    ] = None,
    group: Annotated[
        int | None, count("--group", "RANKS", "Ranks of a group; default: all. All groups run at once.")
    ] = None,
    stride: Annotated[int, count("--stride", "RANKS", "On switches, ranks from one of the group to the next.")] = 1,
    axes: Annotated[
        str | None, typer.Option("--axes", metavar="AXES", help="On a torus, the axes of a group: x, xy, xyz+slices.")
    ] = None,
    slices: Slices = 1,
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", metavar="NAME", help="This one only; default: all, fastest first.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="NAME", help="Of the elements; switches do not add integers.")
    ] = None,
    between: Annotated[
        str | None,
        typer.Option(
            "--between", metavar="PLACES", help="Of send-recv: domain, leaf, spine; neighbour, farthest, dcn; host."
        ),
    ] = None,
    overlay: Annotated[
        str | None,
        typer.Option(
            "--overlay", metavar="NAMES", help="Between domains, what packets go through: vxlan,ipsec; tcp; none."
        ),
    ] = None,
    mtu: Annotated[int | None, count("--mtu", "BYTES", "Largest packet between domains: 1500, 9000.")] = None,
    library: Annotated[
        str | None,
        typer.Option(
            "--library", metavar="NAME", help="What runs it: nccl, xla, or none; default: what the machine uses."
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", metavar="NAME", help="Of nccl, this one only: ll, ll128, simple.")
    ] = None,
    started_by: Annotated[
        str | None,
        typer.Option(
            "--started-by", metavar="NAME", help="Framework whose host starts it, not a captured graph: torch, jax."
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            "--beside",
            metavar="OP:SIZE[:GROUP]",
            help="Another at the same time, on links that both use: all-gather:64MiB:8.",
        ),
    ] = None,
    groups_sharing: Annotated[
        int, count("--groups-sharing", "COUNT", "Groups that run it over the same links at once.")
    ] = 1,
    experts: Annotated[int | None, count("--experts", "COUNT", "Of dispatch and combine: experts in all.")] = None,
    top_k: Annotated[int | None, count("--top-k", "COUNT", "Experts that a token is sent to.")] = None,
    tokens: Annotated[int | None, count("--tokens", "COUNT", "Tokens of a rank.")] = None,
    hidden: Annotated[int | None, count("--hidden", "COUNT", "Features of a token.")] = None,
    node_limit: Annotated[int | None, count("--node-limit", "COUNT", "Nodes that a token is sent to at most.")] = None,
) -> Answer:
    """Time of a collective by each algorithm, fastest first."""
    from costmodel.studies.collective import collective as study
    from costmodel.studies.timings import Routing

    routing = None
    if experts is not None and top_k is not None and tokens is not None and hidden is not None:
        routing = Routing(tokens, hidden, experts, top_k, node_limit)
    elif any(option is not None for option in (experts, top_k, tokens, hidden, node_limit)):
        raise InputError("tokens are sent by all of --tokens, --hidden, --experts and --top-k")
    return study(
        operation,
        size,
        on,
        group=group,
        axes=axes,
        stride=stride,
        algorithm=algorithm,
        dtype=dtype,
        slices=slices,
        between=between,
        routing=routing,
        sweep=sweep,
        overlay=overlay,
        mtu=mtu,
        library=library,
        protocol=protocol,
        started_by=started_by,
        beside=beside,
        groups_sharing=groups_sharing,
        catalog=catalog,
    )
