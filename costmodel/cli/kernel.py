"""`costmodel kernel`: how long a single kernel takes on one chip, and why not at its peak."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import examples, new_app
from costmodel.cli.options import count
from costmodel.errors import InputError
from costmodel.report import Answer

app = new_app(
    "kernel", "How long a kernel takes on one chip, and what bounds it. Shapes near it that do better are named."
)


class ChipCommand(TyperCommand):
    """A command with --on, whose help ends in the chips there are."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, then the names."""
        from costmodel.catalog.catalog import Catalog

        super().format_epilog(ctx, formatter)
        with formatter.section("Chips"):
            names = ", ".join(Catalog.open().names("chips"))
            formatter.write(
                textwrap.indent(textwrap.fill(names, formatter.width - 2, break_on_hyphens=False), "  ") + "\n"
            )


OnChip = Annotated[
    str, typer.Option("--on", metavar="CHIP", show_default=False, help="A chip by name or alias: h100-sxm, b200.")
]
Precision = Annotated[
    str,
    typer.Option(
        "--precision", metavar="NAME", help="bf16, fp16, tf32, fp8, fp8-block (a scale for 128 elements), fp4."
    ),
]
Implementation = Annotated[
    str | None,
    typer.Option(
        "--implementation",
        metavar="NAME",
        help="Whose kernel, where several were measured: vllm, sglang, tensorrt-llm, flash-attention-2 or -3.",
    ),
]
Cached = Annotated[
    bool, typer.Option("--cached", help="The same operands come again at once: small ones lie in the cache.")
]
Sustained = Annotated[
    bool, typer.Option("--sustained", help="In the midst of long work, at the clock that the power allows.")
]
Rows = Annotated[int, count("-m", "ROWS", "Rows of the result: tokens, mostly.")]
Columns = Annotated[int, count("-n", "COLUMNS", "Columns of the result.")]
Features = Annotated[int, count("-k", "FEATURES", "Features summed over.")]
Heads = Annotated[int, count("--heads", "COUNT", "Query heads.")]
KvHeads = Annotated[int | None, count("--kv-heads", "COUNT", "Key-value heads; default: as many as query heads.")]
HeadSize = Annotated[int, count("--head-size", "FEATURES", "Features of a head.")]
Sequences = Annotated[int, count("--sequences", "COUNT", "Sequences of the batch.")]
Window = Annotated[int | None, count("--window", "TOKENS", "Tokens that a query sees back; default: all.")]
Context = Annotated[int | None, count("--context", "TOKENS", "Earlier tokens, in the cache.")]


@app.command(
    cls=ChipCommand,
    epilog=examples(
        "kernel matmul --on h100-sxm -m 8192 -n 8192 -k 8192",
        "kernel matmul --on b200 -m 64 -n 7168 -k 16384 --precision fp8-block",
        "kernel matmul --on tpu-v5p -m 4000 -n 8192 -k 1000 --format json",
    ),
)
@answering
def matmul(
    catalog: Catalog,
    on: OnChip,
    m: Rows,
    n: Columns,
    k: Features,
    precision: Precision = "bf16",
    sustained: Sustained = False,
    cached: Cached = False,
) -> Answer:
    """A product of [M, K] and [K, N], by tiles. Waves, split sums and memory are shown."""
    from costmodel.studies.kernel import kernel as study

    return study(
        "matmul",
        on,
        precision=precision,
        sustained=sustained,
        cached=cached,
        catalog=catalog,
        rows=m,
        columns=n,
        features=k,
    )


@app.command(
    "grouped-matmul",
    cls=ChipCommand,
    epilog=examples("kernel grouped-matmul --on h100-sxm --groups 8 -m 512 -n 4096 -k 7168 --precision fp8-block"),
)
@answering
def grouped_matmul(
    catalog: Catalog,
    on: OnChip,
    groups: Annotated[int, count("--groups", "COUNT", "Products in one kernel, of the experts on a chip for example.")],
    m: Rows,
    n: Columns,
    k: Features,
    precision: Precision = "bf16",
    sustained: Sustained = False,
    cached: Cached = False,
) -> Answer:
    """Several products of one shape in one kernel."""
    from costmodel.studies.kernel import kernel as study

    return study(
        "grouped-matmul",
        on,
        precision=precision,
        sustained=sustained,
        cached=cached,
        catalog=catalog,
        groups=groups,
        rows=m,
        columns=n,
        features=k,
    )


def _prompt(name: str, summary: str, *lines: str) -> None:
    """A command of attention over a prompt, forward or backward."""

    @answering
    def attention(
        catalog: Catalog,
        on: OnChip,
        tokens: Annotated[int, count("--tokens", "TOKENS", "Tokens of each sequence.")],
        heads: Heads,
        kv_heads: KvHeads = None,
        head_size: HeadSize = 128,
        sequences: Sequences = 1,
        context: Context = None,
        window: Window = None,
        full: Annotated[bool, typer.Option("--full", help="All tokens see all: no causal mask.")] = False,
        precision: Precision = "bf16",
        implementation: Implementation = None,
    ) -> Answer:
        from costmodel.studies.kernel import kernel as study

        return study(
            name,
            on,
            precision=precision,
            implementation=implementation,
            catalog=catalog,
            tokens=tokens,
            heads=heads,
            kv_heads=kv_heads or 0,
            head_size=head_size,
            sequences=sequences,
            context_tokens=context or 0,
            window=window or 0,
            causal=int(not full),
        )

    attention.__doc__ = summary
    app.command(name, cls=ChipCommand, epilog=examples(*lines))(attention)


_prompt(
    "attention",
    "Fused attention over prompts: prefill, training.",
    "kernel attention --on h100-sxm --tokens 8192 --heads 64 --kv-heads 8",
    "kernel attention --on h100-sxm --tokens 16384 --heads 16 --full --implementation flash-attention-3",
)
_prompt(
    "attention-backward",
    "Its backward pass.",
    "kernel attention-backward --on a100-sxm-80gb --tokens 4096 --heads 32 --head-size 64 --sequences 4",
)


@app.command(
    "attention-decode",
    cls=ChipCommand,
    epilog=examples("kernel attention-decode --on h200-sxm --sequences 64 --context 8192 --heads 64 --kv-heads 8"),
)
@answering
def attention_decode(
    catalog: Catalog,
    on: OnChip,
    context: Annotated[int, count("--context", "TOKENS", "Tokens in the cache of each sequence.")],
    heads: Heads,
    kv_heads: KvHeads = None,
    head_size: HeadSize = 128,
    sequences: Sequences = 1,
    window: Window = None,
    implementation: Implementation = None,
    cached: Cached = False,
) -> Answer:
    """Fused attention for one new token of each sequence."""
    from costmodel.studies.kernel import kernel as study

    return study(
        "attention-decode",
        on,
        implementation=implementation,
        cached=cached,
        catalog=catalog,
        context_tokens=context,
        heads=heads,
        kv_heads=kv_heads or 0,
        head_size=head_size,
        sequences=sequences,
        window=window or 0,
    )


@app.command(
    cls=ChipCommand,
    epilog=examples(
        "kernel experts --on b200-sxm --tokens 4096 --hidden 7168 --ffn 2048 --experts 256 --top-k 8 --precision fp8-block"
    ),
)
@answering
def experts(
    catalog: Catalog,
    on: OnChip,
    tokens: Annotated[int, count("--tokens", "TOKENS", "Tokens of the batch.")],
    hidden: Annotated[int, count("--hidden", "FEATURES", "Width of the model.")],
    ffn: Annotated[int, count("--ffn", "FEATURES", "Width of an expert.")],
    experts: Annotated[int, count("--experts", "COUNT", "Experts on the chip.")],
    top_k: Annotated[int, count("--top-k", "COUNT", "Experts of a token.")],
    without_gate: Annotated[
        bool, typer.Option("--without-gate", help="Two matrices an expert instead of three, as in Nemotron 3.")
    ] = False,
    precision: Precision = "bf16",
    implementation: Implementation = None,
    cached: Cached = False,
) -> Answer:
    """The block of experts of a layer, gated unless said otherwise.

    Tokens are spread evenly; permute, products, activation and combine are counted.
    """
    from costmodel.studies.kernel import kernel as study

    return study(
        "experts",
        on,
        precision=precision,
        implementation=implementation,
        cached=cached,
        catalog=catalog,
        tokens=tokens,
        hidden_size=hidden,
        expert_ffn_size=ffn,
        experts=experts,
        experts_per_token=top_k,
        gated=0 if without_gate else 1,
    )


def _elementwise(name: str, summary: str) -> None:
    """A command of one elementwise or row-wise operation."""

    @answering
    def operation(
        catalog: Catalog,
        on: OnChip,
        rows: Annotated[int, count("--rows", "COUNT", "Rows: tokens, mostly.")],
        columns: Annotated[int, count("--columns", "FEATURES", "Features of a row.")],
        cached: Cached = False,
    ) -> Answer:
        from costmodel.studies.kernel import kernel as study

        return study(name, on, cached=cached, catalog=catalog, rows=rows, columns=columns)

    operation.__doc__ = summary
    line = f"kernel {name} --on h100-sxm --rows 8192 --columns 8192"
    app.command(name, cls=ChipCommand, epilog=examples(line))(operation)


for _name, _summary in {
    "norm": "RMSNorm or LayerNorm of each row.",
    "residual-norm": "A residual added, then a norm.",
    "swiglu": "The gated activation of a feed-forward.",
    "bias-gelu": "A bias added, then GELU.",
    "rotary": "Rotary positions of queries or keys.",
    "softmax": "Softmax of each row.",
    "cast": "A cast from 16 bits to eight.",
    "add": "A sum of two arrays.",
    "copy": "A copy.",
}.items():
    _elementwise(_name, _summary)


@app.command(
    cls=ChipCommand,
    epilog=examples(
        "kernel launch --on h100-sxm --kernels 4 --each 4.5 --slow 2",
        "kernel launch --on b200-sxm --kernels 1200 --each 20",
    ),
)
@answering
def launch(
    catalog: Catalog,
    on: OnChip,
    kernels: Annotated[int, count("--kernels", "COUNT", "Kernels of the chain.")],
    each: Annotated[str, typer.Option("--each", metavar="US", help="Microseconds of an average kernel on the device.")],
    slow: Annotated[
        int | None, count("--slow", "COUNT", "Of these, launched through a Python kernel language; default: all.", 0)
    ] = None,
) -> Answer:
    """A chain of kernels, by the way of launching it.

    Eager code, a Python kernel language, a CUDA graph, dependent launch.
    """
    from costmodel.studies.launches import launch as study

    try:
        kernel_time = float(each) * 1e-6
    except ValueError:
        raise InputError(f"--each {each[:30]!r} is not a number of microseconds, such as 4.5") from None
    return study(kernels, kernel_time, on, slow_kernels=slow, catalog=catalog)
