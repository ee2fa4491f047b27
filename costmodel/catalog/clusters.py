"""Reading a cluster: hardware/clusters/NAME.yaml. A cloud's machine shape is a cluster too."""

from __future__ import annotations

from costmodel.catalog.entries import Cluster, Level, Price, ScaleUp, Twists, has_twist, shape_text
from costmodel.catalog.facts import CONFIDENCE, fact, facts, number
from costmodel.catalog.reader import Block

WRAP_RULES = ("multiple-of-4", "exactly-16", "exactly-32", "always", "never")
PRICE_KINDS = ("on-demand", "spot", "reserved", "flexible", "estimate")

HOST = {
    "dram_capacity": ("bytes", 2**30, 2**46),
    "dram_bandwidth": ("bytes per second", 1e9, 1e14),
    "drives": ("count", 1, 64),
    "drive_capacity": ("bytes", 2**30, 2**50),
    "drive_read_bandwidth": ("bytes per second", 1e8, 1e12),
    "local_storage": ("bytes", 2**30, 2**50),
    "cpus": ("count", 1, 16),
    "virtual_cpus": ("count", 1, 1024),
    "power": ("power", 100.0, 1e6),
    "purchase_price": ("price", 1e3, 1e8),
}


def cluster(block: Block) -> Cluster:
    """The cluster that a file describes; raises CatalogError where the file breaks a rule."""
    block.keys_are(
        ("name", "chip", "chips_per_host", "host_link", "scale_up", "largest_chips"),
        ("aliases", "network", "host", "prices", "note"),
    )
    return Cluster(
        name=block.text("name"),
        aliases=block.texts("aliases", ()),
        chip=block.text("chip"),
        chips_per_host=block.integer("chips_per_host", 1, 64),
        scale_up=_scale_up(block.block("scale_up")),
        network=tuple(_level(level) for level in block.blocks("network")) if "network" in block else (),
        host_link=block.text("host_link"),
        largest_chips=block.integer("largest_chips", 1, 10**7),
        prices=tuple(_price(price) for price in block.blocks("prices")) if "prices" in block else (),
        host=facts(block.block("host"), HOST) if "host" in block else {},
        note=block.text("note", ""),
    )


def _scale_up(block: Block) -> ScaleUp:
    kind = block.choice("kind", ("switch", "mesh", "torus"))
    if kind != "torus":
        block.keys_are(("kind", "link", "size"))
        return ScaleUp(kind, block.text("link"), size=block.integer("size", 1, 4096))  # type: ignore[arg-type]
    block.keys_are(
        ("kind", "link", "wrap_rule", "largest"),
        ("job_limit", "shapes", "slice_prefixes", "slice_name_per_chip", "twists"),
    )
    largest = block.integers("largest", 1, 65536)
    if len(largest) not in (2, 3):
        raise block.error("a torus has 2 or 3 axes", "largest")
    shapes = tuple(_shape(block, text, len(largest)) for text in block.texts("shapes", ()))
    job_limit = block.integers("job_limit", 1, 65536) if "job_limit" in block else ()
    if job_limit and len(job_limit) != len(largest):
        raise block.error(f"expected {len(largest)} lengths, as `largest` has", "job_limit")
    return ScaleUp(
        "torus",
        block.text("link"),
        axes=len(largest),
        wrap_rule=block.choice("wrap_rule", WRAP_RULES),
        largest=largest,
        job_limit=job_limit,
        shapes=shapes,
        chips_in_slice_name=block.integer("slice_name_per_chip", 1, 8, default=1),
        slice_prefixes=block.texts("slice_prefixes", ()),
        twists=_twists(block.block("twists"), len(largest)) if "twists" in block else None,
    )


def _twists(block: Block, axes: int) -> Twists:
    block.keys_are(("shapes", "source", "confidence"), ("note",))
    shapes = tuple(sorted(tuple(sorted(_shape(block, text, axes))) for text in block.texts("shapes")))
    for shape in shapes:
        if not has_twist(shape):
            raise block.error(f"{shape_text(shape)} has no twist: k x k x 2k and k x 2k x 2k have", "shapes")
    return Twists(shapes, block.text("source"), block.choice("confidence", CONFIDENCE), block.text("note", ""))


def _shape(block: Block, text: str, axes: int) -> tuple[int, ...]:
    parts = text.split("x")
    if len(parts) != axes or not all(part.isascii() and part.isdigit() and int(part[:9]) > 0 for part in parts):
        raise block.error(f"{text[:40]!r} is not a shape of {axes} axes such as {'x'.join('4' * axes)}", "shapes")
    return tuple(int(part) for part in parts)


def _level(block: Block) -> Level:
    block.keys_are(("name", "blocks", "link", "links_per_host", "oversubscription"))
    links = block.number("links_per_host")
    if not 0 < links <= 64:
        raise block.error(f"{links:g} is out of range, above 0 to 64", "links_per_host")
    return Level(
        name=block.text("name"),
        blocks=block.integer("blocks", 0, 10**6),
        link=block.text("link"),
        links_per_host=links,
        oversubscription=fact(block, "oversubscription", "ratio", 1.0, 1000.0),
    )


def _price(block: Block) -> Price:
    block.keys_are(("provider", "kind", "usd_per_chip_hour"))
    price = number(block, "usd_per_chip_hour", "price per hour", 0.01, 1000.0)
    if not price.date:
        raise block.block("usd_per_chip_hour").error(
            "a price needs the date on which it held: the key 'date' is missing"
        )
    return Price(block.text("provider"), price, block.choice("kind", PRICE_KINDS))
