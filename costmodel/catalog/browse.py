"""An entry as a flat list of what it says: how it is shown, checked and handed to scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from costmodel.catalog.catalog import KINDS, Catalog
from costmodel.catalog.entries import Chip, Cluster, Fact, Link, Overlay, Price, shape_text
from costmodel.errors import CatalogError, InputError

Entry = Chip | Link | Cluster


def load(catalog: Catalog, kind: str, name: str) -> Entry:
    """The entry of that kind and name; raises as Catalog.chip does."""
    loaders: dict[str, Callable[[str], Entry]] = {
        "chips": catalog.chip,
        "links": catalog.link,
        "clusters": catalog.cluster,
    }
    return loaders[kind](name)


def find(catalog: Catalog, name: str) -> list[tuple[str, Entry]]:
    """Every entry called `name`, of whatever kind, clusters first; InputError with the nearest names if there is none."""
    found: list[tuple[str, Entry]] = []
    known: list[str] = []
    for kind in KINDS:
        try:
            catalog.shelf(kind).path(name)
        except CatalogError:
            raise
        except InputError:
            known += [*catalog.names(kind), *catalog.shelf(kind).aliases()]
        else:
            found.append((kind, load(catalog, kind, name)))
    if not found:
        raise InputError.unknown("hardware", name, known)
    return found


def facts_of(entry: Entry) -> dict[str, Fact]:
    """Every fact of an entry by its field, in the order of the file."""
    if isinstance(entry, Cluster):
        levels = {f"network.{level.name}.oversubscription": level.oversubscription for level in entry.network}
        return {**levels, **_prefixed("host", entry.host), **_prices(entry.prices)}
    if isinstance(entry, Link):
        spec: dict[str, Fact] = {"bandwidth": entry.bandwidth, "latency": entry.latency, **entry.details}
    else:
        spec = {
            **_prefixed("peak", entry.peak),
            "memory_capacity": entry.memory_capacity,
            "memory_bandwidth": entry.memory_bandwidth,
            "power": entry.power,
            **entry.details,
        }
    overlay = entry.overlay.limits if isinstance(entry, Link) and entry.overlay else {}
    library = entry.library.constants if isinstance(entry, Link) and entry.library else {}
    return {
        **_prefixed("spec", spec),
        **_prefixed("attainable", entry.attainable),
        **_prefixed("overlay", overlay),
        **_prefixed("library", library),
    }


def fields_of(entry: Entry) -> dict[str, str | int | float]:
    """What an entry says beside facts, in the order of the file."""
    if isinstance(entry, Chip):
        return {"vendor": entry.vendor, "kind": entry.kind}
    if isinstance(entry, Link):
        overlay = entry.overlay or Overlay()
        named = {"framing": overlay.framing, "encapsulation": " ".join(overlay.encapsulation)}
        return {
            "kind": entry.kind,
            "per": entry.per,
            **{f"overlay.{key}": text for key, text in named.items() if text},
        }
    scale_up = entry.scale_up
    fields: dict[str, str | int | float] = {
        "chip": entry.chip,
        "chips_per_host": entry.chips_per_host,
        "host_link": entry.host_link,
        "largest_chips": entry.largest_chips,
        "scale_up.kind": scale_up.kind,
        "scale_up.link": scale_up.link,
    }
    if scale_up.kind == "torus":
        fields["scale_up.wrap_rule"] = scale_up.wrap_rule
        fields["scale_up.largest"] = shape_text(scale_up.largest)
        if scale_up.job_limit:
            fields["scale_up.job_limit"] = shape_text(scale_up.job_limit)
        if scale_up.slice_prefixes:
            fields["scale_up.slice_prefixes"] = " ".join(scale_up.slice_prefixes)
            fields["scale_up.slice_name_per_chip"] = scale_up.chips_in_slice_name
        if scale_up.twists:
            fields["scale_up.twists"] = " ".join(shape_text(shape) for shape in scale_up.twists.shapes)
        fields["scale_up.shapes"] = " ".join(shape_text(shape) for shape in scale_up.shapes)
    else:
        fields["scale_up.size"] = scale_up.size
    for level in entry.network:
        fields[f"network.{level.name}.blocks"] = level.blocks
        fields[f"network.{level.name}.link"] = level.link
        links = level.links_per_host
        fields[f"network.{level.name}.links_per_host"] = int(links) if links == int(links) else links
    return fields


def _prices(prices: tuple[Price, ...]) -> dict[str, Fact]:
    """Prices for a chip and hour by provider and kind, numbered where these repeat."""
    found: dict[str, Fact] = {}
    for index, price in enumerate(prices, 1):
        field = f"prices.{price.provider}.{price.kind}"
        found[f"{field}.{index}" if field in found else field] = price.usd_per_chip_hour
    return found


def _prefixed(prefix: str, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {f"{prefix}.{key}": fact for key, fact in facts.items()}
