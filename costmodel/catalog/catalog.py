"""The catalog: chips, links, clusters and constants by name, from the shipped folder and a user's own.

Finding an entry by its canonical name reads one file. An alias costs a scan of the `aliases:` lines of that kind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from costmodel.catalog.entries import Chip, Cluster, Kernels, Link, Number
from costmodel.catalog.facts import constant
from costmodel.catalog.reader import LARGEST_FILE, Block, read
from costmodel.errors import CatalogError, InputError

ENVIRONMENT = "COSTMODEL_CATALOG"
KINDS = ("clusters", "chips", "links")
CONSTANTS = ("assumptions", "recipes")
FOLDERS = (*KINDS, *CONSTANTS, "kernels", "models")
"""Where a catalog keeps its entries, NAME.yaml."""
_APART = (Path("sources.yaml"), Path("models/standard/rule.yaml"))
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")
_ALIASES = re.compile(r"^aliases:(.*\n(?:[ \t-].*\n|\n)*)", re.MULTILINE)
_Entry = TypeVar("_Entry", Chip, Link, Cluster)


def shipped(folder: str) -> Path:
    """The shipped folder `hardware` or `models`: inside an installed package, else beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / folder
    return inside if inside.is_dir() else package.parent / folder


class Shelf:
    """The files of one kind of entry in several folders, the first of which wins where names repeat."""

    def __init__(self, singular: str, folders: tuple[Path, ...]) -> None:
        self.singular, self.folders = singular, folders

    def path(self, name: str) -> Path:
        """The file of the entry called `name`, or known by that alias.

        Raises InputError with the nearest names if there is none, CatalogError if its file is called what no entry can be.
        """
        wanted = name.strip().lower()
        if _NAME.fullmatch(wanted):
            for folder in self.folders:
                path = folder / f"{wanted}.yaml"
                if path.is_file():
                    return path
        path_by_alias = self.aliases()
        if wanted in path_by_alias:
            return path_by_alias[wanted]
        for path in self.paths():
            if path.stem.strip().lower() == wanted and not _NAME.fullmatch(path.stem):
                better = f", such as {wanted}.yaml" if _NAME.fullmatch(wanted) else ""
                message = f"the name of a file is lower case letters, digits, hyphens and dots{better}: rename it"
                raise CatalogError(message, file=str(path))
        raise InputError.unknown(self.singular, name, [*self.names(), *path_by_alias])

    def names(self) -> tuple[str, ...]:
        """The canonical names of all entries."""
        return tuple(sorted({path.stem for path in self.paths()}))

    def paths(self) -> list[Path]:
        """All files, those of the first folder first; a file that an earlier folder overrides is left out."""
        paths: dict[str, Path] = {}
        for folder in self.folders:
            for path in sorted(folder.glob("*.yaml")):
                paths.setdefault(path.stem, path)
        return list(paths.values())

    def aliases(self) -> dict[str, Path]:
        """Files by alias, found by a scan of the text only."""
        found: dict[str, Path] = {}
        for path, text in self.texts():
            match = _ALIASES.search(text)
            if match:
                for alias in _NAME.findall(match.group(1).split("#")[0]):
                    found.setdefault(alias, path)
        return found

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Files that can be read, unparsed; others are named when they are asked for, and by `catalog check`."""
        for path in self.paths():
            try:
                if path.is_file() and path.stat().st_size <= LARGEST_FILE:
                    yield path, path.read_text(encoding="utf-8") + "\n"
            except (OSError, UnicodeDecodeError):
                continue


class Catalog:
    """Entries by name, each read when it is first asked for."""

    def __init__(self, shipped_hardware: Path, shipped_models: Path, extra: Path | None = None) -> None:
        self.shipped_hardware, self.shipped_models, self.extra = shipped_hardware, shipped_models, extra
        self._entries: dict[tuple[str, Path], Chip | Link | Cluster] = {}
        self._kernels: dict[Path, Kernels] = {}
        self._sets: dict[tuple[str, str], Mapping[str, Number]] = {}

    @classmethod
    def open(cls, extra: Path | None = None) -> Catalog:
        """The shipped catalog with the folder `extra`, or that of COSTMODEL_CATALOG, laid over it.

        A file there adds an entry or overrides the one of its name. Raises InputError when the folder is not there or
        holds no entry.
        """
        given = extra if extra is not None else (os.environ.get(ENVIRONMENT) or None)
        folder = at_home(given) if given is not None else None
        if folder is not None and not _is_folder(folder):
            where = "--catalog" if extra is not None else ENVIRONMENT
            raise InputError(f"the catalog folder {str(folder)[:200]!r} ({where}) is not a folder")
        if folder is not None:
            _check_holds_entries(folder)
        return cls(shipped("hardware"), shipped("models"), folder)

    @classmethod
    def of(cls, catalog: Catalog | Path | None) -> Catalog:
        """What a caller gave as the catalog: an open one as it is, a folder or nothing opened."""
        return catalog if isinstance(catalog, Catalog) else cls.open(catalog)

    def chip(self, name: str) -> Chip:
        """The chip of that name or alias. Raises InputError when there is none, CatalogError when its file is bad."""
        from costmodel.catalog.chips import chip

        try:
            return self._entry("chips", name, chip)
        except CatalogError:
            raise
        except InputError:
            machine, clusters = name.strip().partition(":")[0], self.shelf("clusters")
            if machine.lower() in {*clusters.names(), *clusters.aliases()}:
                raise InputError(
                    f"{name!r} is a cluster, not a chip: its chip is {self.cluster(machine).chip}"
                ) from None
            raise

    def link(self, name: str) -> Link:
        """The link of that name or alias; raises as `chip` does."""
        from costmodel.catalog.links import link

        return self._entry("links", name, link)

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name or alias; raises as `chip` does."""
        from costmodel.catalog.clusters import cluster

        return self._entry("clusters", name, cluster)

    def kernels(self, chip: str) -> Kernels:
        """The constants of the kernels measured on the chip of that canonical name; none where it has no file of them."""
        from costmodel.catalog.kernels import kernels

        paths = [folder / f"{chip}.yaml" for folder in self.shelf("kernels").folders]
        present = next((path for path in paths if path.is_file()), None)
        if present is None:
            return Kernels(chip)
        if present not in self._kernels:
            block = self.read(present)
            check_names(block, block.text("name"), (), present)
            self._kernels[present] = kernels(block)
        return self._kernels[present]

    def names(self, kind: str) -> tuple[str, ...]:
        """The canonical names of all `chips`, `links`, `clusters`, `assumptions`, `recipes` or `models`."""
        return self.shelf(kind).names()

    def assumptions(self, name: str) -> Mapping[str, Number]:
        """The constants of hardware/assumptions/NAME.yaml, by name; those in the user's folder add or override."""
        return self._constants("assumptions", "set of assumptions", name)

    def recipe(self, name: str) -> Mapping[str, Number]:
        """The constants of hardware/recipes/NAME.yaml, as `assumptions` gives them: what a framework stores of a weight."""
        return self._constants("recipes", "recipe", name)

    def _constants(self, kind: str, said: str, name: str) -> Mapping[str, Number]:
        """Read once: an answer about many layouts asks for the same sets thousands of times."""
        if (kind, name) not in self._sets:
            self._sets[kind, name] = MappingProxyType(self._read_constants(kind, said, name))
        return self._sets[kind, name]

    def _read_constants(self, kind: str, said: str, name: str) -> dict[str, Number]:
        constants: dict[str, Number] = {}
        paths = [folder / f"{name}.yaml" for folder in reversed(self.shelf(kind).folders)]
        present = [path for path in paths if _NAME.fullmatch(name) and path.is_file()]
        if not present:
            raise InputError.unknown(said, name, self.names(kind))
        for path in present:
            constants |= read_assumptions(self.read(path))
        return constants

    def shelf(self, kind: str) -> Shelf:
        """The files of a kind; raises InputError when `kind` is none."""
        roots = {"models": self.shipped_models} | {
            k: self.shipped_hardware / k for k in (*KINDS, *CONSTANTS, "kernels")
        }
        if kind not in roots:
            raise InputError.unknown("kind of entry", kind, roots)
        folders = (roots[kind],) if self.extra is None else (self.extra / kind, roots[kind])
        return Shelf(kind.removesuffix("s"), folders)

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """What each source id stands for."""
        texts: dict[str, str] = {}
        for folder in (self.shipped_hardware, self.extra):
            path = folder / "sources.yaml" if folder else None
            if path and path.is_file():
                block = self.read(path)
                texts |= {key: block.text(key) for key in block}
        return texts

    def hash(self) -> str:
        """Twelve hexadecimal digits that change whenever a file of the catalog, models included, does."""
        from hashlib import sha256

        digest = sha256()
        for root in (self.shipped_hardware, self.shipped_models, self.extra):
            for path in sorted(yaml_files(root)) if root else ():
                try:
                    content = path.read_bytes() if path.stat().st_size <= LARGEST_FILE else b""
                except OSError:
                    content = b""  # such a file gives no entry either
                name = path.relative_to(root or path).as_posix().encode()
                digest.update(b"%d %s %d " % (len(name), name, len(content)) + content)
            digest.update(b"|")
        return digest.hexdigest()[:12]

    def read(self, path: Path) -> Block:
        """The file at `path`, named in messages from the folder of the catalog that it lies in."""
        return read(path, self.shown(path))

    def shown(self, path: Path) -> str:
        """`path` as messages show it: hardware/chips/x.yaml for a shipped file, else as the user gave it."""
        for root in (self.shipped_hardware, self.shipped_models):
            if path.is_relative_to(root):
                return f"{root.name}/{path.relative_to(root).as_posix()}"
        return str(path)

    def load(self, path: Path, parse: Callable[[Block], _Entry]) -> _Entry:
        """The entry in the file at `path`, which must be called as the file is."""
        block = self.read(path)
        entry = parse(block)
        check_names(block, entry.name, entry.aliases, path)
        return entry

    def _entry(self, kind: str, name: str, parse: Callable[[Block], _Entry]) -> _Entry:
        path = self.shelf(kind).path(name)
        if (kind, path) not in self._entries:
            self._entries[kind, path] = self.load(path, parse)
        return self._entries[kind, path]  # type: ignore[return-value]  # the kind fixes the type


def at_home(path: str | Path) -> Path:
    """`path` with its ~ filled in, or as it is where there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # not a name that a folder can have
        return False


def _check_holds_entries(folder: Path) -> None:
    """Raise InputError, which says what is expected and what there is, when nothing in the folder would be read."""
    lost = ""
    for path in (path for ending in (".yaml", ".yml") for path in yaml_files(folder, ending)):
        inside = path.relative_to(folder)
        if is_read(inside):
            return
        lost = lost or f"; {inside.as_posix()[:100]!r} is none of these"
    expected = ", ".join(f"{name}/NAME.yaml" for name in FOLDERS)
    raise InputError(f"the catalog folder {str(folder)[:200]!r} holds no entries; expected {expected}{lost}")


def is_read(inside: Path) -> bool:
    """Whether a catalog reads the file at that path inside its folder."""
    return (len(inside.parts) == 2 and inside.parts[0] in FOLDERS and inside.suffix == ".yaml") or inside in _APART


def yaml_files(root: Path, ending: str = ".yaml") -> Iterator[Path]:
    """The files of that ending that could be entries below `root`, which may be any folder, however deep."""
    for pattern in ("*", "*/*", "hardware/*/*", "models/*/*"):
        yield from (path for path in root.glob(f"{pattern}{ending}") if path.is_file())


def read_assumptions(block: Block) -> dict[str, Number]:
    """The constants of a file of assumptions, by name."""
    block.keys_are(("name", "meaning", "constants"))
    block.text("meaning")
    constants = block.block("constants")
    return {key: constant(constants, key) for key in constants}


def check_names(block: Block, name: str, aliases: tuple[str, ...], path: Path) -> None:
    """Raise CatalogError unless `name` is the file's and all names are lower case with hyphens."""
    for key, text in (("name", name), *(("aliases", alias) for alias in aliases)):
        if not _NAME.fullmatch(text):
            raise block.error(f"{text[:60]!r} is not a name: lower case letters, digits, hyphens and dots", key)
    if name != path.stem:
        raise block.error(f"the entry is called {name!r} but its file {path.name!r}; call both the same", "name")
    if name in aliases:
        raise block.error(f"{name!r} is the name itself", "aliases")
