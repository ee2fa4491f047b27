"""What is wrong in a catalog, shipped or a user's own.

Files that do not load, names and sources that lead nowhere, numbers that cannot all be true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path

from costmodel.catalog.browse import facts_of, load
from costmodel.catalog.catalog import (
    CONSTANTS,
    FOLDERS,
    Catalog,
    check_names,
    is_read,
    read_assumptions,
    yaml_files,
)
from costmodel.catalog.counts import parameter_counts
from costmodel.catalog.entries import Chip, Cluster, Fact, Library, Link, Number, shape_text
from costmodel.catalog.links import PROTOCOLS
from costmodel.catalog.models import read_model
from costmodel.catalog.reader import Block
from costmodel.catalog.sizes import standard_rule
from costmodel.errors import CatalogError, InputError, nearest

TAKEN = ("domain", "network", "host")
"""What a level of the network cannot be called."""
_HEADLINE = 0.1  # of the published number of parameters of a model without an exact count
_DIGITS = 0.02  # what is printed twice, in two units or rounded, may differ by so much


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong, with its place; `line` is 0 and `field` empty where there is none."""

    file: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return str(CatalogError(self.message, file=self.file, line=self.line, field=self.field))


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked at, and what is wrong there."""

    files: int
    problems: tuple[Problem, ...]


def lint(catalog: Catalog) -> Report:
    """Everything that is wrong in the catalog, by file and line; entries that the user's folder overrides are left out."""
    problems: list[Problem] = list(_misplaced(catalog))
    files = 0
    for kind in FOLDERS:
        paths = catalog.shelf(kind).paths()
        files += len(paths)
        problems += _names(catalog, kind)
        for path in paths:
            try:
                problems += _entry_problems(catalog, kind, path)
            except CatalogError as error:
                problems.append(_from_error(error))
            except InputError as error:
                problems.append(Problem(catalog.shown(path), 0, "", str(error)))
    try:
        files += bool(catalog.sources)
        files += bool(standard_rule(catalog))
    except CatalogError as error:
        problems.append(_from_error(error))
    return Report(
        files,
        tuple(sorted(set(problems), key=lambda problem: (problem.file, problem.line, problem.field, problem.message))),
    )


def _from_error(error: CatalogError) -> Problem:
    return Problem(error.file, error.line, error.field, error.message)


def _misplaced(catalog: Catalog) -> Iterator[Problem]:
    """Files that nothing reads: of another ending, or outside the folders of entries."""
    roots = [catalog.shipped_hardware, *([catalog.extra] if catalog.extra else [])]
    for root in roots:
        for path in sorted(path for ending in (".yaml", ".yml") for path in yaml_files(root, ending)):
            if not is_read(path.relative_to(root)):
                expected = ", ".join(f"{folder}/NAME.yaml" for folder in FOLDERS)
                yield Problem(catalog.shown(path), 0, "", f"nothing reads this file: entries are {expected}")


def _names(catalog: Catalog, kind: str) -> Iterator[Problem]:
    """Names of a kind that mean two entries; of a shipped one and a user's, the user's is at fault."""
    users = {path.stem: _is_users(catalog, path) for path in catalog.shelf(kind).paths()}
    blocks: dict[str, Block] = {}
    for path in sorted(catalog.shelf(kind).paths(), key=lambda path: users[path.stem]):
        with suppress(CatalogError):  # told when the file is loaded
            blocks[path.stem] = catalog.read(path)
    owner: dict[str, str] = {}
    for name, block in blocks.items():
        try:
            aliases = block.texts("aliases", ())
        except CatalogError:
            continue
        for alias in aliases:
            other = blocks.get(alias)
            if other is not None and users[alias] > users[name]:
                message = f"{alias!r} is an alias of {name}: call the entry otherwise"
                yield Problem(other.file, other.line("name"), "name", message)
            elif other is not None and alias != name:
                yield Problem(block.file, block.line("aliases"), "aliases", f"{alias!r} is the name of another entry")
            elif alias in owner:
                message = f"{alias!r} is also an alias of {owner[alias]}"
                yield Problem(block.file, block.line("aliases"), "aliases", message)
            owner.setdefault(alias, name)


def _is_users(catalog: Catalog, path: Path) -> bool:
    return catalog.extra is not None and path.is_relative_to(catalog.extra)


def _entry_problems(catalog: Catalog, kind: str, path: Path) -> Iterator[Problem]:
    if kind == "models":
        yield from _model(catalog, path)
        return
    if kind in CONSTANTS:
        block = catalog.read(path)
        check_names(block, block.text("name"), (), path)
        yield from _sources(catalog, dict(read_assumptions(block)))
        return
    if kind == "kernels":
        yield from _kernels(catalog, path)
        return
    entry = load(catalog, kind, path.stem)
    yield from _sources(catalog, facts_of(entry))
    if isinstance(entry, Chip):
        yield from _chip(entry)
    elif isinstance(entry, Link):
        yield from _link(entry)
        yield from _overlay(catalog, entry, path)
    else:
        yield from _cluster(catalog, entry, path)


def _kernels(catalog: Catalog, path: Path) -> Iterator[Problem]:
    """A chip that is not there, or a sister that has no kernels of its own."""
    found, block = catalog.kernels(path.stem), catalog.read(path)
    for held in found.kernels.values():
        yield from _sources(catalog, dict(held))
    if message := _missing(catalog, "chips", found.chip):
        yield _from_error(block.error(message, "name"))
    if found.kernels_of and not catalog.kernels(found.kernels_of).kernels:
        yield _from_error(block.error(f"{found.kernels_of[:60]} has no kernels of its own", "kernels_of"))


def _model(catalog: Catalog, path: Path) -> Iterator[Problem]:
    model, block = read_model(catalog, path), catalog.read(path)
    counted = parameter_counts(model)["parameters"]
    if model.checkpoint_parameters:
        if counted != model.checkpoint_parameters:
            message = f"the sizes give {counted:,} parameters, {counted - model.checkpoint_parameters:+,} of this"
            yield _from_error(block.error(message, "checkpoint_parameters"))
    elif model.published_parameters and abs(counted / model.published_parameters.value - 1) > _HEADLINE:
        message = f"the sizes give {counted:,} parameters; headlines are rounded by less than {_HEADLINE:.0%}"
        yield _from_error(block.error(message, "published_parameters"))


def _sources(catalog: Catalog, facts: Mapping[str, Fact]) -> Iterator[Problem]:
    """Sources of one word that sources.yaml does not explain; several words stand for themselves."""
    for fact in facts.values():
        if isinstance(fact, Number) and not stands_alone(fact.source) and fact.source not in catalog.sources:
            near = nearest(fact.source, catalog.sources)
            hint = f"did you mean {' or '.join(near)}?" if near else "add it there, or write the source out"
            yield _at(fact, f"the source {fact.source!r} is not in sources.yaml: {hint}")


def stands_alone(source: str) -> bool:
    """Whether a source is written out, or else is a word that sources.yaml explains."""
    return " " in source or "://" in source


def _chip(chip: Chip) -> Iterator[Problem]:
    for narrow, wide in (("fp16", "bf16"), ("fp8", "bf16"), ("int8", "bf16"), ("fp4", "fp8"), ("int4", "int8")):
        low, high = chip.peak.get(narrow), chip.peak.get(wide)
        if isinstance(low, Number) and isinstance(high, Number) and low.value < high.value and not low.note:
            yield _at(low, f"{narrow} is slower than {wide}; where that is so, a note says it")
    bf16 = chip.peak.get("bf16", chip.peak.get("fp16"))
    if isinstance(bf16, Number) and isinstance(chip.memory_bandwidth, Number):
        intensity = bf16.value / chip.memory_bandwidth.value
        if not 20 <= intensity <= 2000:
            message = f"the peak is {intensity:.3g} FLOP a byte of memory bandwidth, 20 to 2000 are plausible"
            yield _at(chip.memory_bandwidth, message)
    yield from _ordered(chip.details, "clock", "clock_boost")
    yield from _ordered({**chip.details, "power": chip.power}, "idle_power", "power")
    yield from _ordered({**chip.details, "power": chip.power}, "typical_power", "power")
    for low_field in ("training_matmul", "training_matmul_fp8", "training_matmul_fp4"):
        kernel = low_field.replace("training_matmul", "kernel_matmul")
        if low_field in chip.attainable and kernel not in chip.attainable:
            yield _at(chip.attainable[low_field], f"{low_field} needs {kernel} beside it")


def _link(link: Link) -> Iterator[Problem]:
    count, each = link.details.get("links_per_chip"), link.details.get("bandwidth_per_link")
    whole = link.bandwidth
    if isinstance(count, Number) and isinstance(each, Number) and isinstance(whole, Number):
        total = count.value * each.value
        if abs(total / whole.value - 1) > _DIGITS:
            message = (
                f"{count.value:g} links of {each.stated} are {total / 1e9:g} GB/s; sheets often print both directions"
            )
            yield _at(whole, message)
    if link.library is not None:
        yield from _library(link.library)


def _library(library: Library) -> Iterator[Problem]:
    """Protocols of which only a part is told, and such as swap roles."""
    known = library.constants
    for protocol in PROTOCOLS:
        for parts in (("start", "step", "share"), ("ring_step", "tree_step", "nic_share")):
            told = [known[f"{protocol}_{part}"] for part in parts if f"{protocol}_{part}" in known]
            if told and len(told) < len(parts):
                missing = [f"{protocol}_{part}" for part in parts if f"{protocol}_{part}" not in known]
                yield _at(told[0], f"{', '.join(missing)} is missing beside it")
    for part, more in (("ring_step", "slower"), ("share", "wider")):
        for first, second in pairwise([known[f"{p}_{part}"] for p in PROTOCOLS if f"{p}_{part}" in known]):
            if first.value > second.value:
                yield _at(second, f"low latency, 128-byte flags, whole chunks: each is {more} than the one before")


def _overlay(catalog: Catalog, link: Link, path: Path) -> Iterator[Problem]:
    """Transports and encapsulations that no constant describes."""
    if link.overlay is None:
        return
    known, block = catalog.assumptions("networks"), catalog.read(path).block("overlay")
    for name in link.overlay.encapsulation:
        if not {f"{side}_{name.replace('-', '_')}" for side in ("inside", "outside")} & set(known):
            yield _from_error(
                block.error(f"{name!r} is none that assumptions/networks.yaml describes", "encapsulation")
            )
    framing = link.overlay.framing
    if framing and f"headers_{framing.replace('-', '_')}" not in known:
        yield _from_error(block.error(f"{framing!r} is none that assumptions/networks.yaml describes", "framing"))


def _cluster(catalog: Catalog, cluster: Cluster, path: Path) -> Iterator[Problem]:
    block = catalog.read(path)
    scale_up = block.block("scale_up")

    def wrong(message: str, key: str, inside: bool = False) -> Problem:
        where = scale_up if inside else block
        return _from_error(where.error(message, key))

    references = [("chips", cluster.chip, "chip", False), ("links", cluster.host_link, "host_link", False)]
    references.append(("links", cluster.scale_up.link, "link", True))
    for kind, name, key, inside in references:
        message = _missing(catalog, kind, name)
        if message:
            yield wrong(message, key, inside)
    levels = block.blocks("network") if "network" in block else ()
    for level, described in zip(cluster.network, levels, strict=True):
        message = _missing(catalog, "links", level.link)
        if message:
            yield _from_error(described.error(message, "link"))
        if level.blocks == 0 and level is not cluster.network[-1]:
            yield _from_error(described.error("only the outermost level has no limit of blocks", "blocks"))
        if level.name in TAKEN:
            yield _from_error(
                described.error(f"{level.name} means something else in a placement: name it otherwise", "name")
            )
    if len({level.name for level in cluster.network}) < len(cluster.network):
        yield wrong("two levels have the same name", "network")
    twists = cluster.scale_up.twists
    if twists is not None and not stands_alone(twists.source) and twists.source not in catalog.sources:
        yield _from_error(
            scale_up.block("twists").error(f"the source {twists.source!r} is not in sources.yaml", "source")
        )
    if cluster.scale_up.kind == "torus":
        yield from (wrong(message, key, inside) for message, key, inside in _torus(cluster))
        return
    size, host = cluster.scale_up.size, cluster.chips_per_host
    if size % host and host % size:
        yield wrong(f"domains of {size} chips and hosts of {host} do not fit each other", "size", inside=True)
    if cluster.largest_chips % host:
        yield wrong(f"{cluster.largest_chips} chips are not whole hosts of {host}", "largest_chips")


def _torus(cluster: Cluster) -> Iterator[tuple[str, str, bool]]:
    """Message, key, and whether the key is one of the fast domain."""
    scale_up = cluster.scale_up
    whole = prod(scale_up.largest)
    if cluster.largest_chips != whole:
        yield f"the whole torus has {whole} chips, not {cluster.largest_chips}", "largest_chips", False
    if scale_up.job_limit and prod(scale_up.job_limit) > whole:
        yield "one job cannot have more chips than the whole torus", "job_limit", True
    for shape in scale_up.shapes:
        if prod(shape) > whole:
            yield f"{shape_text(shape)} has more chips than the whole torus", "shapes", True
    for shape in scale_up.twists.shapes if scale_up.twists else ():
        if prod(shape) > whole:
            yield f"{shape_text(shape)} has more chips than the whole torus", "twists", True
    names = (cluster.name, *cluster.aliases)
    for prefix in scale_up.slice_prefixes:
        if prefix not in names:
            yield f"{prefix!r} must also be an alias, so that {prefix}-8 is found", "slice_prefixes", True


def _missing(catalog: Catalog, kind: str, name: str) -> str:
    """Why there is no entry of that kind and name, or nothing when there is."""
    try:
        catalog.shelf(kind).path(name)
    except InputError as error:
        return str(error)
    return ""


def _ordered(facts: Mapping[str, Fact], low: str, high: str) -> Iterator[Problem]:
    smaller, larger = facts.get(low), facts.get(high)
    if isinstance(smaller, Number) and isinstance(larger, Number) and smaller.value > larger.value:
        yield _at(smaller, f"{low} is larger than {high}, {larger.stated}")


def _at(fact: Fact, message: str) -> Problem:
    """A problem at the place that a fact remembers."""
    file, line, field = fact.where.rsplit(":", 2)
    return Problem(file, int(line), field.strip(), message)


__all__ = ["Problem", "Report", "lint", "stands_alone"]
